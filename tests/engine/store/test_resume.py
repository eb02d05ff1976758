"""Resume and fork through a store: changes, refusals and fork plans."""

from __future__ import annotations

import re
from typing import Any

import pytest

from engine import EngineError, Run, RunOptions, Workflow, dumps, loads
from engine.events import (
    AnyEvent,
    LoopIterationCompleted,
    NodeCalled,
    NodeCompleted,
    PlaceError,
    RunPaused,
    RunResumed,
    RunStarted,
)
from engine.runner.run_storage import RunHead
from engine.store.resume import Changes, fork, plan_fork, resume, resume_with, unknown_calls
from engine.store.store_protocol import RunStatus, StoreError
from tests.engine.semantics.documents import around, entry, flow, leave, llm, loop, result, transform
from tests.engine.semantics.kit import Played, begin, finish, options, play
from tests.engine.semantics.models import DOLLAR_A_TOKEN_OUT, TEN_OUT, Call, FakeModels, FunctionModel
from tests.engine.store.memory_store import MemoryStore
from tests.wording import mentions

LOOP = around(
    llm("draft", "Write: {{input}}"),
    llm("polish", "Polish: {{input}}"),
    edges="loop -> draft -> polish -> exit",
    max_iterations=3,
)
NESTED = flow(
    entry(),
    transform("aside", "aside of {{input}}"),
    loop("outer", max_iterations=2),
    llm("plan"),
    loop("inner", max_iterations=2),
    llm("draft"),
    llm("check"),
    leave("leave_inner", "inner"),
    llm("sum_up"),
    leave("leave_outer", "outer"),
    llm("last"),
    result(),
    result("other"),
    edges="""
        text -> outer -> plan -> inner -> draft -> check -> leave_inner -> sum_up -> leave_outer -> last -> out
        text -> aside -> other
    """,
)


def prompt_of(call: Call) -> str:
    return f"{call.path} after {call.prompt[-24:]}"


def paid_models(answer: Any = prompt_of) -> FakeModels:
    return FakeModels(FunctionModel(answer, price=DOLLAR_A_TOKEN_OUT, usage=TEN_OUT))


async def stored_run(store: MemoryStore, workflow: Workflow = LOOP, **more: Any) -> Played:
    return await play(workflow, paid_models(), store=store, **more)


async def play_to_end(run: Run, models: FakeModels) -> Played:
    events = [event async for event in run.events()]
    return Played(await run.result(), events, models.model, models)


async def forked(store: MemoryStore, run_id: str, at: str, changes: Changes | None = None) -> Played:
    models = paid_models(lambda call: f"again: {prompt_of(call)}")
    plan = plan_fork(store, run_id, at, changes)
    return await play_to_end(fork(store, plan, options(models)), models)


def calls_of(played: Played) -> list[str]:
    return [call.path for call in played.model.calls]


async def test_fork_reuses_earlier_iterations_and_runs_the_rest_again() -> None:
    store = MemoryStore()
    whole = await stored_run(store)

    other = await forked(store, whole.result.run_id, "loop[1]")

    assert calls_of(other) == [f"loop[{index}].{node}" for index in (1, 2) for node in ("draft", "polish")]
    assert other.results[0] == whole.results[0]
    assert all(text.startswith("again: ") for text in other.results[1:])
    assert other.iteration_inputs[1] == whole.iteration_inputs[1]
    assert other.result.run_id != whole.result.run_id
    assert (whole.result.cost_usd, other.result.cost_usd) == (60.0, 40.0)


async def test_reused_parts_of_a_fork_cost_nothing() -> None:
    store = MemoryStore()
    whole = await stored_run(store)

    other = await forked(store, whole.result.run_id, "loop[1].polish")

    nodes = {event.path: event for event in other.of(NodeCompleted)}
    for path in ("loop[0].draft", "loop[0].polish", "loop[1].draft"):
        assert nodes[path].cached
        assert (nodes[path].cost_usd, nodes[path].usage) == (0.0, None)
        assert nodes[path].outputs == whole.of(NodeCompleted, path)[0].outputs
        assert nodes[path].calls
    assert not nodes["loop[1].polish"].cached
    assert [event.cost_usd for event in other.of(LoopIterationCompleted)] == [0.0, 10.0, 20.0]


async def test_runs_know_their_parents() -> None:
    store = MemoryStore()
    first = (await stored_run(store)).result.run_id
    second = (await forked(store, first, "loop[2]")).result.run_id
    third = (await forked(store, second, "loop[1].polish")).result.run_id

    assert [run.run_id for run in store.children(first)] == [second]
    assert [run.run_id for run in store.children(second)] == [third]
    run = store.find(third)
    assert (run.parent, run.forked_at, run.status) == (second, "loop[1].polish", RunStatus.COMPLETED)
    started = next(event for event in store.events(third) if isinstance(event, RunStarted))
    assert (started.parent, started.forked_at) == (second, "loop[1].polish")


async def test_input_of_an_iteration_is_edited_in_a_fork() -> None:
    store = MemoryStore()
    whole = await stored_run(store)

    other = await forked(store, whole.result.run_id, "loop[1]", Changes(value="my own words", has_value=True))

    assert other.iteration_inputs[:2] == ["seed", "my own words"]
    assert other.model.calls[0].prompt == "Write: my own words"
    assert other.iteration_inputs[2] == other.results[1]


async def test_edited_node_output_reruns_only_what_depends_on_it() -> None:
    store = MemoryStore()
    whole = await stored_run(store)

    other = await forked(store, whole.result.run_id, "loop[1].draft", Changes(value="my draft", has_value=True))

    assert calls_of(other)[0] == "loop[1].polish"
    assert other.model.calls[0].prompt == "Polish: my draft"
    assert other.output_of("loop[1].draft") == "my draft"
    (started,) = other.of(RunStarted)
    assert started.edits == {"loop[1].draft": "my draft"}


async def test_changed_prompt_applies_from_the_fork_point_on() -> None:
    store = MemoryStore()
    whole = await stored_run(store)
    changes = Changes(settings={"draft": {"prompt": "Shout: {{input}}"}})

    other = await forked(store, whole.result.run_id, "loop[2]", changes)

    assert other.model.calls[0].prompt.startswith("Shout: ")
    assert other.results[:2] == whole.results[:2]
    assert "Shout" in store.document(other.result.run_id)
    assert "Shout" not in store.document(whole.result.run_id)


async def test_fork_continues_beyond_the_end_with_more_max_iterations() -> None:
    store = MemoryStore()
    whole = await stored_run(store)

    other = await forked(store, whole.result.run_id, "loop[3]", Changes(max_iterations=5))

    assert other.results[:3] == whole.results
    assert len(other.results) == 5
    assert calls_of(other)[0] == "loop[3].draft"
    assert other.iteration_inputs[3] == whole.results[2]


async def test_fork_in_nested_loops_reuses_everything_independent() -> None:
    store = MemoryStore()
    whole = await stored_run(store, NESTED)

    other = await forked(store, whole.result.run_id, "outer[0].inner[1].check")

    assert calls_of(other) == [
        "outer[0].inner[1].check",
        "outer[0].sum_up",
        "outer[1].plan",
        *(f"outer[1].inner[{index}].{node}" for index in (0, 1) for node in ("draft", "check")),
        "outer[1].sum_up",
        "last",
    ]
    assert other.result.outputs["other"] == "aside of seed"
    assert other.of(NodeCompleted, "aside")[0].cached


async def test_fork_of_a_fork_keeps_edits_before_the_fork_point() -> None:
    store = MemoryStore()
    first = (await stored_run(store)).result.run_id
    second = await forked(store, first, "loop[1]", Changes(value="my own words", has_value=True))

    third = await forked(store, second.result.run_id, "loop[2]")
    fork = await forked(store, second.result.run_id, "loop[0]")

    assert third.iteration_inputs[:2] == ["seed", "my own words"]
    assert "my own words" not in fork.iteration_inputs


async def test_fork_plan_lists_reused_and_rerun_parts_and_cost() -> None:
    store = MemoryStore()
    whole = await stored_run(store, NESTED)

    plan = plan_fork(store, whole.result.run_id, "outer[1].inner[1].check")

    assert plan.reused == (
        "“Input”, “Transform”, “Output 2”",
        "iteration 1 of “Loop”",
        "“LLM”",
        "iteration 1 of “Loop 2”",
        "“LLM 2”",
    )
    assert plan.rerun == ("“LLM 3”", "“LLM 4”", "“LLM 5”, “Output”")
    assert plan.max_reruns == 1
    assert plan.estimate_usd == 70.0  # an iteration of the outer loop cost 60, "last" 10
    assert plan.warnings == ()


@pytest.mark.parametrize(
    ("model", "estimate"),
    [
        *((model, 0.0) for model in ("gguf:tiny", "embedded:smollm2-135m", "ollama_chat/llama3", "lm_studio/x")),
        ("openai/gpt-4o", None),
    ],
)
async def test_fork_with_a_model_on_this_machine_is_free(model: str, estimate: float | None) -> None:
    store = MemoryStore()
    whole = await stored_run(store, NESTED)

    plan = plan_fork(store, whole.result.run_id, "outer[1].inner[1].check", Changes(model=model))

    assert plan.estimate_usd == estimate


async def test_fork_with_a_model_that_the_workflow_prices_has_no_estimate() -> None:
    store = MemoryStore()
    whole = await stored_run(store, NESTED)
    price = {"input_usd_per_million": 1, "output_usd_per_million": 2}
    priced = loads(store.document(whole.result.run_id)).model_copy(
        update={"settings": {"prices": {"gguf:tiny": price}}}
    )

    plan = plan_fork(store, whole.result.run_id, "outer[1]", Changes(model="gguf:tiny", document=priced))

    assert plan.estimate_usd is None


async def test_fork_plan_warns_of_a_change_without_effect() -> None:
    store = MemoryStore()
    whole = await stored_run(store, NESTED)
    changes = Changes(settings={"aside": {"template": "x"}, "draft": {"prompt": "y"}})

    plan = plan_fork(store, whole.result.run_id, "outer[1]", changes)

    (warning,) = plan.warnings
    assert mentions(warning, '"Transform" has no effect'), warning


async def test_refused_fork_point_names_the_last_iteration() -> None:
    store = MemoryStore()
    whole = await stored_run(store)

    with pytest.raises(PlaceError) as caught:
        plan_fork(store, whole.result.run_id, "loop[7]")

    assert "loop[2]" in caught.value.remedy


@pytest.mark.parametrize(
    ("at", "says"),
    [
        ("loop[4]", "did not reach loop"),
        ("loop[3]", "has at most 3 iterations"),
        ("nowhere", 'no node "nowhere"'),
        ("loop[1].nowhere", 'no node "nowhere"'),
        ("draft", 'no node "draft"'),
        ("text[1]", '"text" is not a loop'),
        ("loop[-1]", "is not a place"),
        ("loop.draft", "is not a place"),
        ("", "is not a place"),
    ],
)
async def test_missing_fork_point_is_refused(at: str, says: str) -> None:
    store = MemoryStore()
    whole = await stored_run(store)

    with pytest.raises(PlaceError) as caught:
        plan_fork(store, whole.result.run_id, at)

    assert says in caught.value.message
    assert caught.value.remedy


async def test_fork_with_an_invalid_document_is_refused() -> None:
    store = MemoryStore()
    whole = await stored_run(store)

    with pytest.raises(EngineError, match="cannot run"):
        plan_fork(store, whole.result.run_id, "loop[1]", Changes(settings={"draft": {"prompt": "{{nothing}}"}}))


async def broken_off(store: MemoryStore, cut: int, workflow: Workflow = LOOP) -> tuple[str, Played]:
    """A stored run that was interrupted after this many events, and its remaining events."""
    whole_store = MemoryStore()
    whole = await stored_run(whole_store, workflow)
    run_id = whole.result.run_id
    events: list[AnyEvent] = list(whole_store.events(run_id))[:cut]
    head = RunHead(run_id, dumps(workflow), whole_store.options(run_id))
    return store.import_run(head, events), whole


async def test_resumed_run_keeps_its_id_and_events() -> None:
    store = MemoryStore()
    run_id, whole = await broken_off(store, 30)
    assert store.find(run_id).status is RunStatus.INTERRUPTED
    models = paid_models()

    again = await play_to_end(resume(store, run_id, options(models), retry_in_flight=True), models)

    assert again.result.outputs == whole.result.outputs
    assert again.result.cost_usd == whole.result.cost_usd
    assert store.find(run_id).status is RunStatus.COMPLETED
    log = list(store.events(run_id))
    assert [type(event) for event in log].count(RunResumed) == 1
    assert [event.seq for event in log] == sorted({event.seq for event in log})
    assert len(again.model.calls) < len(whole.model.calls)


async def test_call_with_unknown_outcome_is_repeated_only_on_request() -> None:
    store = MemoryStore()
    whole_store = MemoryStore()
    whole = await stored_run(whole_store)
    events = list(whole_store.events(whole.result.run_id))
    cut = next(place for place, event in enumerate(events) if event.type == "node.calling" and "[1]" in event.path)
    run_id, _ = await broken_off(store, cut + 1)
    models = paid_models()

    (unknown,) = unknown_calls(store, run_id)
    assert (unknown.path, unknown.model) == ("loop[1].draft", models.model.name)
    with pytest.raises(EngineError) as caught:
        resume(store, run_id, options(models))
    assert "may have been billed: loop[1].draft" in caught.value.message
    assert caught.value.fix == "repeat_calls"
    assert models.model.calls == []

    again = await play_to_end(resume(store, run_id, options(models), retry_in_flight=True), models)
    assert calls_of(again) == [path for path in calls_of(whole) if not path.startswith("loop[0]")]


@pytest.mark.parametrize("how", ["stopped", "paused"])
async def test_stopped_or_paused_run_resumes_where_it_was(how: str) -> None:
    store = MemoryStore()
    run, first = begin(LOOP, paid_models(), store=store)
    async for event in run.events():
        if isinstance(event, NodeCompleted) and event.path == "loop[0].polish":
            (run.cancel if how == "stopped" else run.pause)()
        if isinstance(event, RunPaused):  # and then its process ends
            head = RunHead(run.run_id, dumps(LOOP), store.options(run.run_id))
            events, store = list(store.events(run.run_id)), MemoryStore()
            store.import_run(head, events)
            run.cancel()
    await finish(run, first)
    assert store.find(run.run_id).status is (RunStatus.CANCELLED if how == "stopped" else RunStatus.INTERRUPTED)
    finished = {event.path for event in store.events(run.run_id, kinds={NodeCalled})}

    models = paid_models()
    again = await play_to_end(resume(store, run.run_id, options(models), retry_in_flight=True), models)

    assert {"loop[0].draft", "loop[0].polish"} <= finished
    assert finished.isdisjoint(calls_of(again))
    assert again.result.outputs == (await stored_run(MemoryStore())).result.outputs


async def test_failed_run_resumes_where_it_failed() -> None:
    store = MemoryStore()
    failing = FakeModels(FunctionModel(lambda call: RuntimeError("broken") if call.node == "polish" else "a draft"))
    broken = await play(LOOP, failing, store=store, ends="failed")
    models = paid_models()

    again = await play_to_end(resume(store, broken.result.run_id, options(models)), models)

    assert again.result.status == "completed"
    assert calls_of(again)[0] == "loop[0].polish"
    assert len(calls_of(again)) == 5


async def test_run_without_budget_left_resumes_with_a_larger_one() -> None:
    store = MemoryStore()
    workflow = flow(
        entry(),
        llm("a", max_tokens=10),
        llm("b", max_tokens=10),
        result(),
        edges="text -> a -> b -> out",
        settings={"budget_tokens": 38},
    )
    poor = await play(workflow, paid_models(), store=store, ends="failed")
    assert "budget" in poor.result.error
    models = paid_models()

    again = await play_to_end(resume(store, poor.result.run_id, RunOptions(models=models, budget_tokens=20000)), models)

    assert calls_of(again) == ["b"]
    assert (again.result.status, again.result.cost_usd) == ("completed", 20.0)


async def test_completed_run_cannot_be_resumed() -> None:
    store = MemoryStore()
    whole = await stored_run(store)

    with pytest.raises(StoreError, match="has completed") as caught:
        resume(store, whole.result.run_id)

    assert "Fork it" in caught.value.remedy


async def test_loop_ended_by_the_budget_says_where_to_fork_and_the_fork_continues() -> None:
    store = MemoryStore()
    workflow = flow(
        entry(),
        loop(max_iterations=4),
        llm("draft", max_tokens=10),
        leave(),
        result(),
        edges="text -> loop -> draft -> exit -> out",
        settings={"budget_usd": 25},
    )
    poor = await play(workflow, paid_models(), store=store)
    run_id = poor.result.run_id
    assert (poor.loop.exit_reason, poor.loop.iterations_run) == ("budget", 2)

    with pytest.raises(StoreError, match="budget") as caught:
        resume(store, run_id)
    place = re.search(r"Fork it at (\S+) with a larger budget", caught.value.remedy)
    assert place is not None

    models = paid_models()
    options = RunOptions(models=models, budget_usd=100)
    rich = await play_to_end(fork(store, plan_fork(store, run_id, place[1]), options), models)
    assert (rich.loop.exit_reason, rich.loop.iterations_run) == ("max_iterations", 4)
    assert calls_of(rich) == ["loop[2].draft", "loop[3].draft"]


async def test_run_resumed_with_another_document_is_a_new_run() -> None:
    store = MemoryStore()
    run_id, _ = await broken_off(store, 20)
    shorter = around(
        llm("draft", "Write: {{input}}"),
        llm("polish", "Polish: {{input}}"),
        edges="loop -> draft -> polish -> exit",
        max_iterations=2,
    )
    models = paid_models()

    again = await play_to_end(resume_with(store, run_id, shorter, options(models), retry_in_flight=True), models)

    assert again.result.run_id != run_id
    assert store.find(again.result.run_id).parent == run_id
    assert len(again.results) == 2
    assert store.find(run_id).status is RunStatus.INTERRUPTED


async def test_fork_from_the_judge_judges_the_stored_result_again() -> None:
    store = MemoryStore()
    workflow = around(
        llm("draft"),
        edges="loop -> draft -> exit",
        exit_condition="judge",
        judge={"criteria": "It rhymes.", "retries": 0},
        max_iterations=2,
    )
    verdict = '{"done": %s, "score": 5, "reason": "so"}'
    harsh = FakeModels(FunctionModel(lambda call: verdict % "false" if call.node == "judge" else "a text"))

    def mild_models() -> FakeModels:
        return FakeModels(FunctionModel(lambda call: verdict % "true" if call.node == "judge" else "another"))

    whole = await play(workflow, harsh, store=store)

    plan = plan_fork(store, whole.result.run_id, "loop[0].judge")
    mild = mild_models()
    other = await play_to_end(fork(store, plan, options(mild)), mild)
    later = mild_models()
    second = plan_fork(store, whole.result.run_id, "loop[1].draft")
    earlier = await play_to_end(fork(store, second, options(later)), later)

    assert plan.reused == ("“Input”", "“LLM”")
    assert plan.rerun[0] == "“Judge”"
    assert calls_of(other) == ["loop[0].judge"]
    assert (other.result.outputs, other.loop.exit_reason) == ({"out": "a text"}, "judge_done")
    assert calls_of(earlier) == ["loop[1].draft", "loop[1].judge"]
    assert earlier.of(NodeCompleted, "loop[0].judge")[0].cached
