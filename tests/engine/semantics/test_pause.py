"""Pausing, stepping and resuming a running run."""

from __future__ import annotations

import asyncio

from engine.events import (
    LoopIterationStarted,
    NodeCompleted,
    NodeStarted,
    RunPaused,
    RunResumed,
)
from tests.engine.semantics.documents import around, entry, flow, leave, llm, loop, result
from tests.engine.semantics.kit import begin, finish, settle
from tests.engine.semantics.models import Gate

_ROW = flow(
    entry(), llm("a"), llm("b"), llm("c"), result(), result("early"), edges="text -> a -> b -> c -> out\na -> early"
)


async def test_pause_lets_running_nodes_finish_and_starts_no_more() -> None:
    gate = Gate("a")
    started, models = begin(_ROW, gate)
    await gate.reached.wait()

    started.pause()
    gate.open.set()
    async with asyncio.timeout(30):
        async for event in started.events():
            if isinstance(event, NodeCompleted) and event.path == "a":
                break
    await settle()
    assert models.model.paths == ["a"]

    started.resume()
    played = await finish(started, models)

    assert played.result.status == "completed"
    assert played.model.paths == ["a", "b", "c"]
    kinds = [type(event) for event in played.events if isinstance(event, (RunPaused, RunResumed))]
    assert kinds == [RunPaused, RunResumed]
    (resumed,) = played.of(RunResumed)
    assert all(event.seq > resumed.seq for event in played.of(NodeStarted) if event.path in {"b", "c", "out"})


async def test_pause_works_between_iterations_and_inside_a_body() -> None:
    gate = Gate("loop[1].draft")
    workflow = around(llm("draft"), llm("polish"), edges="loop -> draft -> polish -> exit", max_iterations=3)
    started, models = begin(workflow, gate)
    await gate.reached.wait()

    started.pause()
    gate.open.set()
    await settle()
    assert models.model.paths[-1] == "loop[1].draft"

    started.resume()
    played = await finish(started, models)
    assert len(played.model.calls) == 6


async def test_a_paused_run_can_be_cancelled() -> None:
    gate = Gate("a")
    started, models = begin(_ROW, gate)
    await gate.reached.wait()
    started.pause()
    gate.open.set()
    await settle()

    started.cancel()
    played = await finish(started, models)

    assert played.result.status == "cancelled"
    assert played.model.paths == ["a"]


async def test_pausing_and_resuming_repeatedly_is_harmless() -> None:
    started, models = begin(_ROW, "x")
    started.resume()
    started.pause()
    started.pause()
    started.resume()
    started.resume()

    played = await finish(started, models)

    assert played.result.status == "completed"
    assert len(played.of(RunPaused)) == len(played.of(RunResumed)) <= 1


async def test_pause_holds_a_node_that_waits_for_a_concurrency_slot() -> None:
    gate = Gate("a")
    workflow = flow(
        entry(),
        llm("a"),
        llm("b"),
        result(),
        edges="text -> a -> out\ntext -> b -> out",
        settings={"max_concurrency": 1},
    )
    started, models = begin(workflow, gate)
    await gate.reached.wait()
    await settle()

    started.pause()
    gate.open.set()
    await settle()
    assert models.model.paths == ["a"]

    started.resume()
    assert (await finish(started, models)).out == "a\n\nb"


async def test_pause_holds_a_loop_before_it_starts() -> None:
    gate = Gate("before")
    workflow = flow(
        entry(),
        llm("before"),
        loop(max_iterations=1),
        llm("draft"),
        leave(),
        result(),
        edges="text -> before -> loop -> draft -> exit -> out",
    )
    started, models = begin(workflow, gate)
    await gate.reached.wait()

    started.pause()
    gate.open.set()
    await settle()
    started.resume()
    played = await finish(started, models)

    (resumed,), (began,) = played.of(RunResumed), played.of(LoopIterationStarted)
    assert began.seq > resumed.seq


async def test_a_step_starts_one_node_and_the_next_waits() -> None:
    started, models = begin(_ROW, "x")
    started.pause()
    await settle()

    started.step_node()
    await settle()
    started.step_node()
    await settle()

    assert models.model.paths == ["a"], "the first step was the input's"
    started.resume()
    assert (await finish(started, models)).model.paths == ["a", "b", "c"]


async def test_steps_taken_in_advance_count_for_the_next_nodes() -> None:
    started, models = begin(_ROW, "x")
    started.pause()
    started.step_node()
    started.step_node()
    await settle()

    assert models.model.paths == ["a"]
    started.step_node()
    started.step_node()
    started.resume()
    assert (await finish(started, models)).result.status == "completed"


async def test_a_step_of_a_run_that_is_not_paused_changes_nothing() -> None:
    started, models = begin(_ROW, "x")
    started.step_node()
    started.pause()
    await settle()

    assert models.model.paths == []
    started.resume()
    await finish(started, models)


async def test_an_iteration_step_pauses_before_the_next_iteration() -> None:
    workflow = around(llm("draft"), edges="loop -> draft -> exit", max_iterations=3)
    started, models = begin(workflow, "x")
    started.pause()

    for count in (1, 2):
        started.step_iteration()
        await settle()
        assert models.model.paths == [f"loop[{index}].draft" for index in range(count)]
    started.resume()
    assert len((await finish(started, models)).model.calls) == 3


async def test_resuming_and_pausing_again_at_once_starts_nothing() -> None:
    gate = Gate("a")
    started, models = begin(_ROW, gate)
    await gate.reached.wait()
    started.pause()
    gate.open.set()
    await settle()

    started.resume()
    started.pause()
    await settle()
    assert models.model.paths == ["a"]

    started.step_node()
    await settle()
    assert models.model.paths == ["a", "b"]
    started.resume()
    played = await finish(started, models)
    assert played.model.paths == ["a", "b", "c"]
