"""Warnings: each is in the iteration, the run and its result once, with its path."""

from __future__ import annotations

import json
from typing import Any

import pytest

from engine import Workflow
from engine.events import (
    AnyEvent,
    BudgetWarning,
    LoopIterationCompleted,
    NodeCompleted,
    NodeFailed,
    RunCancelled,
    RunFailed,
    RunNotKept,
)
from engine.models.protocol import Finish, ModelError, ModelErrorKind, Reply, Usage
from engine.run_state.reducer import reduce_events
from engine.run_state.result import RESULT_EVENTS, result_of
from engine.runner.loop_variables import IterationRecord
from engine.store.resume import resume
from engine.store.run_file import head_of
from tests.engine.semantics.agents import agent, wants
from tests.engine.semantics.documents import around, entry, flow, for_each, leave, llm, loop, result, transform
from tests.engine.semantics.kit import Played, begin, finish, options, play
from tests.engine.semantics.models import Call, FakeModels, FunctionModel, by_node
from tests.engine.semantics.test_node_settings import asking
from tests.engine.store.memory_store import MemoryStore
from tests.wording import mentions

CUT = Reply("half", Finish.LENGTH, Usage(10, 5))


def cut_in(*iterations: int) -> Any:
    """A model whose replies are truncated in these iterations of the innermost loop."""

    def answer(call: Call) -> Reply:
        return CUT if call.iteration in iterations else Reply(f"draft {call.iteration}")

    return answer


def unread_judge(call: Call) -> str:
    return "hm" if call.node == "judge" else "x"


def places(warnings: Any) -> list[str]:
    """The paths of warnings; empty for those of the run."""
    return [text.split(": ", 1)[0] if ": " in text.split(". ")[0] else "" for text in warnings]


def _draft(**config: Any) -> Workflow:
    return around(llm("draft"), edges="loop -> draft -> exit", **config)


async def test_a_warning_of_a_node_is_in_its_iteration_and_in_the_run_once() -> None:
    played = await play(_draft(max_iterations=3), cut_in(1))

    (warning,) = played.result.warnings
    assert mentions(warning, "loop[1].draft: … cut off"), warning
    assert [record.warnings for record in played.loop.iterations] == [(), (warning,), ()]
    assert played.result.to_json()["warnings"] == [warning]
    assert played.result.to_json()["loops"]["loop"]["iterations"][1]["warnings"] == [warning]


async def test_loop_records_have_warnings() -> None:
    played = await play(_draft(max_iterations=2, until="size(loop.history) > 5"), cut_in(0))

    (records,) = [event.outputs["iterations"] for event in played.of(NodeCompleted, "loop")]
    assert isinstance(records, list)
    assert [len(record["warnings"]) for record in records if isinstance(record, dict)] == [1, 0]  # type: ignore[arg-type]


async def test_a_body_can_read_the_warnings_of_its_loop() -> None:
    workflow = around(
        llm("draft", "{{loop.history.map(one, size(one.warnings))}}"), edges="loop -> draft -> exit", max_iterations=3
    )

    played = await play(workflow, cut_in(0))

    assert [prompt.splitlines()[0] for prompt in played.model.prompts("draft")] == ["[]", "[1]", "[1,0]"]


async def test_nested_loops_do_not_duplicate_a_warning() -> None:
    workflow = flow(
        entry(),
        loop("outer", max_iterations=2),
        loop("inner", max_iterations=2),
        llm("draft"),
        leave("leave_inner", "inner"),
        leave("leave_outer", "outer"),
        result(),
        edges="text -> outer -> inner -> draft -> leave_inner -> leave_outer -> out",
    )

    played = await play(workflow, lambda call: CUT if call.indices == (1, 0) else "whole")

    assert places(played.result.warnings) == ["outer[1].inner[0].draft"]
    assert [len(record.warnings) for record in played.result.loops["outer"].iterations] == [0, 1]
    assert [len(record.warnings) for record in played.result.loops["outer[1].inner"].iterations] == [1, 0]


async def test_items_have_their_warnings() -> None:
    played = await play(for_each(llm("ask"), edges="each -> ask -> gather"), cut_in(0, 2))

    assert sorted(places(played.result.warnings)) == ["each[0].ask", "each[2].ask"]
    assert [len(record.warnings) for record in played.result.loops["each"].iterations] == [1, 0, 1]


FAILING = ModelError(ModelErrorKind.SERVER, "down")


SOURCES: list[tuple[Workflow, Any, list[str]]] = [
    (_draft(max_iterations=2, until="false", on_max_iterations="return_with_flag"), "x", ["loop"]),
    (_draft(max_iterations=99), by_node(draft=["x"]), ["loop"]),
    (flow(entry(), llm("a"), result(), edges="text -> a -> out"), CUT, ["a"]),
    (flow(entry(), llm("a"), result(), edges="text -> a -> out"), Reply("x", Finish.CONTENT_FILTER), ["a"]),
    (flow(entry(), llm("a"), result(), edges="text -> a -> out"), Reply("x", warnings=("No seed.",)), ["a"]),
    (asking("llm", on_error="continue", error_value="y"), FAILING, ["ask"]),
    (asking("router"), by_node(ask=["hm", "done"]), ["ask"]),
    (asking("judge"), unread_judge, ["loop[0].judge"] * 2),
    (
        flow(entry(), agent("a", max_turns=1, on_max_turns="flag"), result(), edges="text -> a -> out"),
        wants(("none", {}), text="thinking"),
        ["a"],
    ),
    (for_each(llm("ask"), edges="each -> ask -> gather", on_item_error="skip"), FAILING, ["each"]),
]


@pytest.mark.parametrize(("workflow", "answer", "expected"), SOURCES)
async def test_every_source_of_warnings_reaches_the_result(
    workflow: Workflow, answer: Any, expected: list[str]
) -> None:
    played = await play(workflow, answer)

    assert places(played.result.warnings)[: len(expected)] == expected
    assert len(set(played.result.warnings)) == len(played.result.warnings)


async def test_a_nearly_used_up_budget_is_a_warning() -> None:
    model = FunctionModel("x", usage=Usage(0, 90))

    played = await play(asking("llm", max_tokens=50), model, budget_tokens=100)

    (event,) = played.of(BudgetWarning)
    assert event.spent == 90
    assert ["budget" in warning for warning in played.result.warnings] == [True]


async def test_a_history_that_stops_storing_the_run_is_a_warning() -> None:
    log = reduce_events([RunNotKept("r", 0, 0.0, "", "The disk is full.", "Make room.")]).warnings

    assert "The disk is full." in log.all[0]


async def test_a_failed_or_cancelled_run_has_its_warnings_too() -> None:
    workflow = flow(entry(), llm("a"), llm("b"), result(), edges="text -> a -> b -> out")
    failed = await play(workflow, by_node(a=CUT, b=FAILING), ends="failed")

    run, models = begin(workflow, lambda call: CUT if call.node == "a" else _hang())
    async for event in run.events():
        if isinstance(event, NodeCompleted) and event.path == "a":
            break
    run.cancel()
    cancelled = await finish(run, models)

    for played, end in ((failed, RunFailed), (cancelled, RunCancelled)):
        (last,) = [event for event in played.events if isinstance(event, end)]
        assert places(last.warnings) == places(played.result.warnings) == ["a"]


async def _hang() -> str:
    import asyncio

    await asyncio.Event().wait()
    return ""


async def test_the_warnings_of_a_failed_node_are_stored_with_its_failure() -> None:
    schema = {"type": "object", "required": ["n"]}

    played = await play(asking("llm", reply_schema=schema), "no", ends="failed")

    (failed,) = played.of(NodeFailed, "ask")
    assert len(failed.warnings) == 1
    assert places(played.result.warnings) == ["ask"]


async def test_a_restarted_loop_drops_its_warnings() -> None:
    attempts: list[int] = []

    def answer(call: Call) -> Any:
        if call.iteration == 0:
            attempts.append(0)
            return CUT if len(attempts) == 1 else "whole"
        return FAILING if len(attempts) == 1 else "whole"

    played = await play(_draft(max_iterations=2, retries=1, retry_delay_s=0), answer)

    assert len(attempts) == 2
    assert played.result.warnings == ()


@pytest.mark.parametrize("at", ["loop.iteration.completed", "node.completed"])
async def test_a_resumed_run_has_all_warnings_once(at: str) -> None:
    store, workflow = MemoryStore(), _draft(max_iterations=3)
    whole = await play(workflow, cut_in(0, 2), store=store)
    past = list(store.events(whole.result.run_id))
    end = next(place for place, event in enumerate(past) if event.type == at)
    broken, models = MemoryStore(), FakeModels(FunctionModel(cut_in(0, 2)))
    run_id = broken.import_run(head_of(store, whole.result.run_id), past[: end + 1])

    resumed = await resume(broken, run_id, options(models, store=broken)).result()

    assert resumed.warnings == whole.result.warnings
    assert places(resumed.warnings) == ["loop[0].draft", "loop[2].draft"]


async def test_every_reader_of_events_finds_the_same_warnings() -> None:
    store = MemoryStore()
    workflow = _draft(max_iterations=3, until="false", on_max_iterations="return_with_flag")

    played = await play(workflow, cut_in(0), store=store)

    assert _read(store, played) == _reduced(played.events) == played.result.warnings
    assert places(played.result.warnings) == ["loop[0].draft", "loop"]


async def test_an_interrupted_run_has_the_warnings_of_what_had_ended() -> None:
    played = await play(_draft(max_iterations=3), cut_in(0, 2))
    ends = [event.seq for event in played.of(NodeCompleted, "loop[2].draft")]

    assert places(_reduced(played.events[: ends[0] + 1])) == ["loop[0].draft", "loop[2].draft"]


def _reduced(events: list[AnyEvent]) -> tuple[str, ...]:
    return reduce_events(events).warnings.all


def _read(store: MemoryStore, played: Played) -> tuple[str, ...]:
    return result_of(reduce_events(store.events(played.result.run_id, kinds=RESULT_EVENTS))).warnings


async def test_a_warning_of_an_old_history_gets_its_path() -> None:
    record = IterationRecord(2, None, None, None, None, None, None, None, Usage(), 0.0, 0.0, ("Several ended.",))
    old = LoopIterationCompleted("r", 1, 0.0, "loop", *record.fields())
    log = reduce_events([old]).warnings

    assert log.all == ("loop[2]: Several ended.",)
    assert log.inside("loop[2]") == log.all


async def test_warnings_are_not_part_of_values() -> None:
    workflow = around(
        llm("draft"), transform("t", "{{draft}}"), edges="loop -> draft -> t.draft\nt -> exit", max_iterations=2
    )

    played = await play(workflow, cut_in(0, 1))

    assert "cut off" not in json.dumps([played.out, played.results, played.iteration_inputs])
