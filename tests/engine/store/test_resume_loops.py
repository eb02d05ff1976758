"""Resume and fork in special places: forks of forks, failed scores, loops in subflows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.events import LoopIterationCompleted, PlaceError, RunStarted
from engine.store.resume import Changes, plan_fork, resume
from engine.store.run_file import head_of
from tests.engine.semantics.documents import around, entry, flow, leave, llm, loop, off, result, transform
from tests.engine.semantics.kit import options, play
from tests.engine.semantics.models import FakeModels, FunctionModel
from tests.engine.semantics.test_subflow import around_part, nested, one
from tests.engine.store.memory_store import MemoryStore
from tests.engine.store.test_resume import forked, play_to_end, stored_run

EDITED = Changes(value="my own words", has_value=True)
TWICE = around(
    llm("draft", "Write: {{input}}"),
    llm("polish", "Polish: {{input}} ({{given}})"),
    edges="loop -> draft -> polish -> exit\nloop.body -> polish.given",
    max_iterations=3,
)


@pytest.mark.parametrize("at", ["loop[1].polish", "loop[1]", "loop[2]"])
async def test_fork_of_a_fork_keeps_an_edited_iteration_input(at: str) -> None:
    store = MemoryStore()
    whole = await stored_run(store, TWICE)
    first = await forked(store, whole.result.run_id, "loop[1]", EDITED)

    second = await forked(store, first.result.run_id, at)

    assert second.iteration_inputs[1] == "my own words"
    assert second.results == first.results
    (started,) = second.of(RunStarted)
    assert started.edits == {"loop[1]": "my own words"}


async def test_edited_input_of_a_later_iteration_is_dropped_by_an_earlier_fork() -> None:
    store = MemoryStore()
    whole = await stored_run(store)
    first = await forked(store, whole.result.run_id, "loop[2]", EDITED)

    second = await forked(store, first.result.run_id, "loop[1]")

    assert second.iteration_inputs[2] == second.results[1]


async def test_edited_node_output_is_forgotten_once_the_node_runs_again() -> None:
    store = MemoryStore()
    whole = await stored_run(store)
    first = await forked(store, whole.result.run_id, "loop[1].draft", EDITED)

    second = await forked(store, first.result.run_id, "loop[1].draft")

    (started,) = second.of(RunStarted)
    assert started.edits == {}


async def test_failed_score_fails_again_after_resume() -> None:
    store = MemoryStore()
    score = "loop.index == 0 ? double(output) : 1.0"
    workflow = around(transform("draft", "no number"), edges="loop -> draft -> exit", max_iterations=2, score=score)
    failed = await play(workflow, "", store=store, ends="failed")
    models = FakeModels(FunctionModel(""))

    again = await play_to_end(resume(store, failed.result.run_id, options(models)), models)

    assert again.result.status == "failed"
    assert again.result.error == failed.result.error
    assert again.loop.iterations_run == 1


async def test_fork_of_a_loop_in_a_subflow_is_estimated_and_runs() -> None:
    store = MemoryStore()
    inner = one(
        loop(max_iterations=3),
        llm("draft"),
        leave(),
        llm("polish"),
        edges="given -> loop -> draft -> exit -> polish -> made",
    )
    whole = await stored_run(store, around_part(inner))

    plan = plan_fork(store, whole.result.run_id, "part.loop[1]")
    other = await forked(store, whole.result.run_id, "part.loop[1]")

    assert (plan.max_reruns, plan.estimate_usd) == (2, 30.0)
    assert [call.path for call in other.model.calls] == ["part.loop[1].draft", "part.loop[2].draft", "part.polish"]
    assert other.result.cost_usd == 30.0
    with pytest.raises(PlaceError, match="did not reach"):
        plan_fork(store, whole.result.run_id, "part.loop[7]")


async def test_estimate_includes_subflows_after_the_fork_point() -> None:
    store = MemoryStore()
    inner = one(llm("draft"), edges="given -> draft -> made")
    workflow = flow(
        entry(), llm("first"), nested(inner), result(), edges="text -> first -> part.given\npart.made -> out"
    )
    whole = await stored_run(store, workflow)

    assert plan_fork(store, whole.result.run_id, "first").estimate_usd == 20.0


async def test_max_iterations_of_a_loop_in_a_subflow_cannot_be_changed() -> None:
    store = MemoryStore()
    inner = one(loop(max_iterations=2), llm("draft"), leave(), edges="given -> loop -> draft -> exit -> made")
    whole = await stored_run(store, around_part(inner))

    with pytest.raises(PlaceError, match=r"part.loop\[1\] is in a subflow"):
        plan_fork(store, whole.result.run_id, "part.loop[1]", Changes(max_iterations=5))
    with pytest.raises(PlaceError, match=r"nowhere\[1\] is not in a loop"):
        plan_fork(store, whole.result.run_id, "nowhere[1]", Changes(max_iterations=5))


async def test_run_resumes_with_a_document_in_which_an_input_is_disabled() -> None:
    store = MemoryStore()
    parts = (llm("draft"), result())
    first = flow(entry(), entry("tone", default="warm"), *parts, edges="text -> draft -> out")
    run_id = (await stored_run(store, first, inputs={"text": "seed", "tone": "cold"})).result.run_id
    now = flow(entry(), off(entry("tone")), *parts, edges="text -> draft -> out")

    again = await forked(store, run_id, "draft", Changes(document=now))

    (started,) = again.of(RunStarted)
    assert started.inputs == {"text": "seed"}
    assert again.out == "again: draft after seed"


@pytest.mark.parametrize(
    ("earlier_s", "count", "reason", "calls"),
    [(100.0, 1, "timeout", []), (10.0, 3, "max_iterations", ["loop[1].draft", "loop[2].draft"])],
)
async def test_time_of_a_loop_before_an_interruption_counts_for_its_timeout(
    earlier_s: float, count: int, reason: str, calls: list[str]
) -> None:
    store = MemoryStore()
    limits = {"max_iterations": 3, "timeout_s": 90, "on_timeout": "return_last"}
    whole = await stored_run(store, around(llm("draft"), edges="loop -> draft -> exit", **limits))
    run_id = whole.result.run_id
    head, log = head_of(store, run_id), list(store.events(run_id))
    first = next(number for number, event in enumerate(log) if isinstance(event, LoopIterationCompleted))
    assert isinstance(log[first], LoopIterationCompleted)
    events = [*log[:first], replace(log[first], duration_s=earlier_s)]
    models = FakeModels(FunctionModel("anew"))

    broken = store.import_run(head, events)
    again = await play_to_end(resume(store, broken, options(models)), models)

    assert [call.path for call in models.model.calls] == calls
    assert (again.result.status, again.loop.iterations_run, again.loop.exit_reason) == ("completed", count, reason)
