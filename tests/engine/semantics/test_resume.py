"""Resume of interrupted runs: the same outcome, and no finished call is repeated. Forks: the same up to their start."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, event, example, given
from hypothesis import strategies as st

from engine import RunResult, Workflow, dumps, loads
from engine.events import (
    AnyEvent,
    LoopIterationCompleted,
    NodeCalled,
    NodeCalling,
    NodeCompleted,
    NodeFailed,
    NodeRetrying,
    RunStarted,
    parse_place,
)
from engine.runner.fork import events_before, fork_point, state_order
from engine.runner.replay import CallLog
from engine.runner.run import Run, RunOrigin, prepare
from tests.engine.semantics.documents import each, entry, flow, gather, leave, llm, loop, part, result, transform
from tests.engine.semantics.kit import Played, begin, finish, options
from tests.engine.semantics.list_journal import ListJournal, ListStore
from tests.engine.semantics.models import FakeModels, FunctionModel, numbered
from tests.engine.semantics.random_workflows import good_documents
from tests.engine.semantics.test_random_workflows import CHOICES, PERMITTED, counted_models
from tests.engine.semantics.virtual_time import virtually


async def play_stored(workflow: Workflow, models: FakeModels) -> tuple[Played, list[AnyEvent]]:
    """Run a stored workflow, and return its events too."""
    storage = ListStore()
    run, _ = begin(workflow, models, {}, max_iterations_cap=3, store=storage)
    return await finish(run, models), storage.journal.events


async def continue_run(workflow: Workflow, past: list[AnyEvent], models: FakeModels, *, fork: str = "") -> Played:
    """Resume a run from its events; `fork`: as another run with that id."""
    started = past[0]
    assert isinstance(started, RunStarted)
    ready = prepare(workflow, started.inputs, options(models, max_iterations_cap=3))
    run = Run(ready, RunOrigin(started.run_id, ListJournal(), past, bool(fork)))
    seen = [event async for event in run.events()]
    return Played(await run.result(), seen, models.model, models)


def without_times(result: RunResult) -> dict[str, Any]:
    """The result without values that differ between runs."""
    data = result.to_json()
    for key in ("run_id", "duration_s"):
        data.pop(key)
    data["warnings"].sort()  # parallel items end in another order if some had ended before
    for looped in data["loops"].values():
        for iteration in looped["iterations"]:
            iteration.pop("duration_s")
            iteration["warnings"].sort()
    return data


def has_failed(past: list[AnyEvent]) -> bool:
    """Whether a node had failed; on resume it is retried and paid again."""
    return any(isinstance(event, NodeFailed) for event in past)


def calls_by_path(model: FunctionModel) -> Counter[str]:
    return Counter(call.path for call in model.calls)


@PERMITTED
@given(document=good_documents(), choices=CHOICES, known_price=st.booleans(), data=st.data())
def test_a_run_interrupted_anywhere_ends_the_same(
    document: dict[str, Any], choices: list[int], known_price: bool, data: st.DataObject
) -> None:
    workflow = loads(json.dumps(document))
    whole, stored = virtually(play_stored(workflow, counted_models(choices, known_price=known_price)))
    cut = data.draw(st.integers(1, len(stored) - 1), label="cut")
    past = stored[:cut]
    assume(not has_failed(past))
    under_way = Counter(CallLog(past).in_flight.keys())
    event("a call was under way" if under_way else "between calls")

    again = virtually(continue_run(workflow, past, counted_models(choices, known_price=known_price)))

    assert without_times(again.result) == without_times(whole.result)
    made_before = Counter(event.path for event in past if isinstance(event, NodeCalling))
    assert made_before + calls_by_path(again.model) == calls_by_path(whole.model) + under_way


@PERMITTED
@given(document=good_documents(), choices=CHOICES, data=st.data())
def test_a_run_interrupted_twice_ends_the_same(
    document: dict[str, Any], choices: list[int], data: st.DataObject
) -> None:
    workflow = loads(json.dumps(document))
    whole, stored = virtually(play_stored(workflow, counted_models(choices, known_price=True)))
    past = stored[: data.draw(st.integers(1, len(stored) - 1), label="first cut")]
    once = virtually(continue_run(workflow, past, counted_models(choices, known_price=True)))
    more = [event for event in once.events if event.type != "node.streaming"]
    past = more[: data.draw(st.integers(len(past), len(more) - 1), label="second cut")]
    assume(not has_failed(past))

    twice = virtually(continue_run(workflow, past, counted_models(choices, known_price=True)))

    assert without_times(twice.result) == without_times(whole.result)
    assert [event.seq for event in twice.events] == sorted({event.seq for event in twice.events})


@pytest.mark.parametrize("has_nodes", [True, False], ids=["as written now", "as written before records had nodes"])
@pytest.mark.parametrize("ended", [1, 2])
async def test_outputs_of_earlier_iterations_are_available_after_a_resume(ended: int, has_nodes: bool) -> None:
    until = "loop.index == 2 && loop.history[0].nodes.critic == 'critic 0' && loop.history[1].nodes.draft == 'draft 1'"
    workflow = flow(
        entry(default="seed"),
        loop(max_iterations=3, until=until),
        llm("draft"),
        llm("critic", "{{input}}{{loop.history.map(one, one.nodes.critic)}}"),
        leave(),
        result(),
        edges="text -> loop -> draft -> critic -> exit -> out",
    )
    whole, events = await play_stored(workflow, FakeModels(FunctionModel(numbered)))
    places = [number for number, event in enumerate(events) if isinstance(event, LoopIterationCompleted)]
    past = events[: places[ended - 1] + 1]
    if not has_nodes:
        past = [replace(event, nodes={}) if isinstance(event, LoopIterationCompleted) else event for event in past]

    again = await continue_run(workflow, past, FakeModels(FunctionModel(numbered)))

    assert again.model.prompts("critic") == whole.model.prompts("critic")[ended:]
    assert again.loop.exit_reason == whole.loop.exit_reason == "until"


def nested_iterators_with_state() -> dict[str, Any]:
    """Two nested iterators whose items read and set the named state `x`."""
    items = {"source": "expression", "expression": "[items, items]", "max_concurrency": 1}
    workflow = flow(
        entry(default="a text"),
        each("outer", **items),
        each("inner", **items),
        llm("draft"),
        transform("join", "{{state.x}}|{{input}}", output_key="x"),
        gather("gather", "inner"),
        gather("collect", "outer"),
        result(),
        edges="text -> outer -> inner -> draft -> join -> gather -> collect -> out",
    )
    return json.loads(dumps(workflow))


def failure_inside_an_iterator_that_continues() -> dict[str, Any]:
    """A router that warns and fails, in an iterator that continues with a value."""
    items = {"source": "list", "items": ["a", "b"], "max_concurrency": 1, "on_item_error": "fail"}
    branches = [{"name": "left", "when": "true"}, {"name": "right", "when": "else"}]
    workflow = flow(
        entry(default="seed"),
        each(on_error="continue", error_value="sorry", **items),
        part("router", "router", criteria="Left?", branches=branches, retries=0),
        transform("join"),
        gather(),
        transform("after"),
        result(),
        edges="text -> each -> router.input\nrouter.left -> join\nrouter.right -> join -> gather -> after -> out",
    )
    return json.loads(dumps(workflow))


@PERMITTED
@given(document=good_documents(), choices=CHOICES, chosen=st.integers(0, 2**16))
@example(document=failure_inside_an_iterator_that_continues(), choices=[0], chosen=2)
@example(document=nested_iterators_with_state(), choices=[0], chosen=1)
@example(document=nested_iterators_with_state(), choices=[0], chosen=6)
def test_a_fork_without_changes_ends_the_same_and_pays_only_for_what_it_runs_again(
    document: dict[str, Any], choices: list[int], chosen: int
) -> None:
    document["settings"] = {}
    for node in document["nodes"]:
        node["config"].pop("budget_usd", None)
    workflow = loads(json.dumps(document))
    whole, stored = virtually(play_stored(workflow, counted_models(choices, known_price=True)))
    places = [event.path for event in stored if isinstance(event, NodeCompleted)]
    places += [f"{event.path}[{event.index}]" for event in stored if isinstance(event, LoopIterationCompleted)]
    assume(places)
    place = parse_place(places[chosen % len(places)])
    plan = prepare(workflow, {}, options(counted_models(choices, known_price=True), max_iterations_cap=3)).plan
    point = fork_point(plan, place)
    order = state_order(stored, plan, point)
    first = replace(stored[0], run_id="other", parent="parent", forked_at=str(place), state_order=order)
    past = [first, *events_before(stored, plan, point, "other")]

    other = virtually(continue_run(workflow, past, counted_models(choices, known_price=True), fork="other"))

    assert [event.seq for event in other.events] == list(range(len(other.events)))
    assert {event.run_id for event in other.events} == {"other"}
    expected, found = without_times(whole.result), without_times(other.result)
    for data in (expected, found):  # a fork counts only its own cost
        for key in ("usage", "cost_usd"):
            data.pop(key)
        for looped in data["loops"].values():
            looped.pop("cost_usd")
            for iteration in looped["iterations"]:
                iteration.pop("usage")
                iteration.pop("cost_usd")
    assert found == expected
    assert calls_by_path(other.model) <= calls_by_path(whole.model)
    reused = {event.path for event in past if isinstance(event, NodeCompleted)}
    restarted = [event.path for event in other.events if isinstance(event, NodeRetrying) and not event.goes_on]
    inside = tuple(f"{path}{mark}" for path in restarted for mark in "[.")
    reused = {path for path in reused if not path.startswith(inside)}
    assert not reused & set(calls_by_path(other.model))
    if not place.last.index:
        assert str(place) not in reused
    paid = [event.call.reply.usage.output_tokens for event in other.events if isinstance(event, NodeCalled)]
    assert other.result.usage.output_tokens == sum(paid)
