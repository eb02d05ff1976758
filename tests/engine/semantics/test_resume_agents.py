"""Resume with agents, named state, ended loops and notes: the run continues where it was and repeats nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from engine import EngineError, Run, Workflow
from engine.events import (
    AnyEvent,
    LoopIterationCompleted,
    NodeCalled,
    NodeCompleted,
    NodeToolCalled,
    NodeWaiting,
    RunStarted,
    parse_place,
)
from engine.models.protocol import ModelError, ModelErrorKind
from engine.nodes.context import Answer
from engine.runner.fork import events_before, fork_point
from engine.runner.replay import CallLog
from engine.runner.run import RunOrigin, prepare
from tests.engine.semantics.agents import Tools, agent, results, script, tools_fixture, wants
from tests.engine.semantics.documents import entry, flow, leave, llm, loop, result, transform
from tests.engine.semantics.kit import Played, begin, options
from tests.engine.semantics.list_journal import ListJournal, ListStore
from tests.engine.semantics.models import Call, FakeModels, FunctionModel
from tests.engine.semantics.test_resume import calls_by_path, without_times

__all__ = ["tools_fixture"]

FLOW = flow(
    entry(),
    agent(
        tools=["add", "break", "ask_person", "send_note"],
        require_approval=["add"],
        output_key="sum",
        retries=1,
        retry_delay_s=0,
    ),
    loop(max_iterations=4),
    llm("improve", "{{state.sum}} {{state.better}}", output_key="better"),
    agent("refine", prompt="{{state.better}}", tools=["add", "exit_loop"], output_key="refined"),
    leave(),
    transform("both", "{{state.sum}} {{state.better}} {{state.refined}} {{input}}"),
    result(),
    edges="text -> agent -> loop -> improve -> refine -> exit -> both -> out",
)
"""An agent that asks a person twice and fails once, then a loop that an agent ends in its third iteration."""


def models() -> FakeModels:
    failures = iter([ModelError(ModelErrorKind.SERVER, "down")])
    first = script(
        wants(("ask_person", {"question": "Which colour?"}), ("add", {"a": 1})),
        wants(("break", {"a": 2}), ("send_note", {"to": "improve", "text": "Hurry."})),
        wants(("add", {"a": 3})),
        "three",
    )

    def answer(call: Call) -> Any:
        if call.node == "agent":
            return (next(failures, None) if len(results(call)) == 2 else None) or first(call)
        if call.node == "improve":
            return f"improved {call.iteration}"
        if call.iteration == 2:
            return wants(("exit_loop", {}))
        return script(wants(("add", {"a": call.iteration})), f"refined {call.iteration}")(call)

    return FakeModels(FunctionModel(answer))


async def answered(run: Run, catalog: FakeModels) -> Played:
    """Run to the end, answering all questions."""
    events: list[AnyEvent] = []
    async for event in run.events():
        events.append(event)
        if isinstance(event, NodeWaiting):
            try:
                run.answer(event.path, Answer("approve", None, "blue"))
            except EngineError:
                assert run.is_over or event.seq >= 0  # it was answered before the interruption
    return Played(await run.result(), events, catalog.model, catalog)


async def whole_run(workflow: Workflow = FLOW) -> tuple[Played, list[AnyEvent]]:
    storage = ListStore()
    run, catalog = begin(workflow, models(), store=storage)
    return await answered(run, catalog), storage.journal.events


async def continue_run(past: list[AnyEvent], catalog: FakeModels, *, fork: bool = False) -> Played:
    started = past[0]
    assert isinstance(started, RunStarted)
    ready = prepare(FLOW, started.inputs, options(catalog))
    return await answered(Run(ready, RunOrigin(started.run_id, ListJournal(), past, fork)), catalog)


def tools_in(events: list[AnyEvent]) -> list[tuple[str, Any]]:
    """The calls of tools with effects outside the run."""
    called = (event for event in events if isinstance(event, NodeToolCalled) and event.tool in {"add", "break"})
    return [(event.tool, event.arguments["a"]) for event in called]  # type: ignore[call-overload, index]


async def test_the_uninterrupted_run_behaves_as_intended(tools: Tools) -> None:
    whole, _ = await whole_run()

    assert whole.out == "three improved 2 refined 1 refined 1"
    assert whole.loop.exit_reason == "exit_loop"
    assert [(name, numbers["a"]) for name, numbers in tools.called] == [
        ("add", 1),
        ("break", 2),
        ("add", 3),
        ("add", 0),
        ("add", 1),
    ]
    assert len(whole.of(NodeWaiting)) == 3


async def test_a_run_interrupted_anywhere_continues_there(tools: Tools) -> None:
    whole, stored = await whole_run()
    all_tools = tools_in(stored)
    for cut in range(1, len(stored) - 1):
        past = stored[:cut]
        tools.called.clear()
        under_way = CallLog(past).in_flight
        catalog = models()
        # The only failure has passed if it was emitted before the interruption.
        if any(event.type == "node.retrying" for event in past):
            vars(catalog.model)["_answer"] = _without_failure

        again = await continue_run(past, catalog)

        assert without_times(again.result) == without_times(whole.result), f"cut at {cut}"
        made_before = [event.path for event in past if isinstance(event, NodeCalled)]
        made_now = calls_by_path(again.model)
        for path, number in calls_by_path(whole.model).items():
            failed = 1 if path == "agent" else 0
            made = made_before.count(path) + made_now[path]
            assert number - failed <= made <= number + (path in under_way), f"{path}, cut at {cut}"
        done = [(name, numbers["a"]) for name, numbers in tools.called]
        assert tools_in(past) + done == all_tools, f"cut at {cut}"


def _without_failure(call: Call) -> Any:
    calls = models().model
    first = calls._answer(call)  # type: ignore[operator]
    return calls._answer(call) if isinstance(first, Exception) else first  # type: ignore[operator]


async def test_an_answered_question_is_not_asked_again(tools: Tools) -> None:
    _, stored = await whole_run()
    answered_at = [index for index, event in enumerate(stored) if event.type == "node.answered"]
    for number, index in enumerate(answered_at, 1):
        again = await continue_run(stored[: index + 1], models())
        asked = [event for event in again.events[index + 1 :] if isinstance(event, NodeWaiting)]
        assert len(asked) == len(answered_at) - number


@pytest.mark.parametrize("text", ["{{state.sum}}", "{{state.better}}"])
async def test_forks_have_the_state_of_their_starting_point(tools: Tools, text: str) -> None:
    whole, stored = await whole_run()
    places = [event.path for event in stored if isinstance(event, NodeCompleted)]
    places += [f"{event.path}[{event.index}]" for event in stored if isinstance(event, LoopIterationCompleted)]
    for place in map(parse_place, places):
        catalog = models()
        plan = prepare(FLOW, {"text": "seed"}, options(catalog)).plan
        first = replace(stored[0], run_id="other", parent="parent", forked_at=str(place))  # type: ignore[call-arg]

        past = events_before(stored, plan, fork_point(plan, place), "other")
        other = await continue_run([first, *past], catalog, fork=True)

        assert other.out == whole.out, str(place)
        assert other.loop.exit_reason == "exit_loop", str(place)
