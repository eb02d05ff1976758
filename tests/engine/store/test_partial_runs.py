"""Partial runs: which nodes run, which stored outputs are used again, and which values are missing."""

from __future__ import annotations

from typing import Any

import pytest

from engine import DocumentError, EngineError, Workflow
from engine.document.operations import (
    Connect,
    Disconnect,
    Operation,
    RemoveNodes,
    SetConfig,
    SetEnabled,
    SetPinned,
    SetTitle,
)
from engine.events import LoopStarted, NodeCompleted, RunStarted
from engine.nodes.node_names import node_names
from engine.plan.partial_run import Extent, Part
from engine.runner.declared_inputs import InputError
from engine.store.partial_runs import MissingValuesError, last_run, plan_partial_run, start_partial_run
from engine.store.resume import fork, plan_fork, resume
from engine.store.store_protocol import RunSummary
from tests.engine.semantics.documents import (
    each,
    entry,
    flow,
    gather,
    leave,
    llm,
    loop,
    part,
    result,
    rules,
    transform,
)
from tests.engine.semantics.kit import Played, begin, finish, options
from tests.engine.semantics.models import Call, FakeModels, FunctionModel
from tests.engine.store.memory_store import MemoryStore
from tests.engine.store.test_resume import play_to_end

CHAIN = flow(
    entry(),
    llm("plan", "Plan: {{input}}"),
    llm("draft", "Draft: {{input}}"),
    llm("polish", "Polish: {{input}}"),
    llm("aside", "Aside: {{input}}"),
    result(),
    result("other"),
    edges="text -> plan -> draft -> polish -> out\ntext -> aside -> other",
)
NAMES = node_names(CHAIN)
LOOP = flow(
    entry(),
    llm("plan", "Plan: {{input}}"),
    loop(max_iterations=2),
    llm("draft", "Draft: {{input}}"),
    leave(),
    llm("polish", "Polish: {{input}}"),
    result(),
    edges="text -> plan -> loop -> draft -> exit -> polish -> out",
)


class Bench:
    """A history with the runs of one workflow, which can be edited between them."""

    def __init__(self, workflow: Workflow) -> None:
        self.workflow = workflow
        self.store = MemoryStore()
        self.said = 0

    def answer(self, call: Call) -> str:
        self.said += 1
        return f"{call.path} #{self.said}"

    def edit(self, *operations: Operation) -> None:
        for operation in operations:
            self.workflow, _ = operation.apply(self.workflow)

    async def run(self, ends: str = "completed", **more: Any) -> Played:
        given = {"store": self.store, "source": "w.loop.json", **more}
        played = await finish(*begin(self.workflow, self.answer, **given))
        assert played.result.status == ends, played.result.error
        return played

    @property
    def last(self) -> RunSummary | None:
        return last_run(self.store, "w.loop.json")

    async def part(self, extent: Extent, node: str, inputs: dict[str, Any] | None = None, **more: Any) -> Played:
        models = FakeModels(FunctionModel(self.answer))
        given = options(models, store=self.store, source="w.loop.json", **more)
        planned = plan_partial_run(self.store, self.workflow, Part(extent, node), inputs, given, last=self.last)
        played = await finish(start_partial_run(self.store, planned, given), models)
        assert played.result.status == "completed", played.result.error
        return played

    async def until(self, node: str, inputs: dict[str, Any] | None = None, **more: Any) -> Played:
        return await self.part(Extent.UNTIL, node, inputs, **more)


def called(played: Played) -> list[str]:
    return [call.path for call in played.model.calls]


async def test_until_runs_a_node_and_what_it_needs_if_there_is_no_run_yet() -> None:
    played = await Bench(CHAIN).until("draft", {"text": "seed"})
    assert called(played) == ["plan", "draft"]
    assert played.ran == {"text", "plan", "draft"}
    assert played.result.outputs == {}


async def test_the_first_node_runs_alone_with_given_inputs() -> None:
    bench = Bench(CHAIN)
    assert called(await bench.part(Extent.ONLY, "plan", {"text": "seed"})) == ["plan"]
    assert called(await bench.part(Extent.ONLY, "draft")) == ["draft"]


async def test_until_uses_stored_outputs_again_where_nothing_before_changed() -> None:
    bench = Bench(CHAIN)
    whole = await bench.run()
    played = await bench.until("draft")
    assert called(played) == ["draft"]
    assert played.output_of("plan") == whole.output_of("plan")


async def test_until_runs_what_was_edited_and_everything_between() -> None:
    bench = Bench(CHAIN)
    await bench.run()
    bench.edit(SetConfig(("prompt",), {"plan": "Plan better: {{input}}"}))
    assert called(await bench.until("polish")) == ["plan", "draft", "polish"]


async def test_only_runs_the_node_with_the_values_of_the_last_run() -> None:
    bench = Bench(CHAIN)
    whole = await bench.run()
    bench.edit(SetConfig(("prompt",), {"draft": "Write: {{input}}"}))
    played = await bench.part(Extent.ONLY, "draft")
    assert called(played) == ["draft"]
    assert played.model.calls[0].prompt == f"Write: {whole.output_of('plan')}"


async def test_from_runs_the_node_and_everything_after_it() -> None:
    bench = Bench(CHAIN)
    whole = await bench.run()
    played = await bench.part(Extent.FROM, "draft")
    assert called(played) == ["draft", "polish"]
    assert played.result.outputs == {"out": played.output_of("polish")}
    assert played.output_of("aside") == whole.output_of("aside")  # still there, though it takes no part


async def test_a_partial_run_is_the_last_run_of_the_next_one() -> None:
    bench = Bench(CHAIN)
    await bench.run()
    drafted = await bench.part(Extent.ONLY, "draft")
    assert called(await bench.part(Extent.ONLY, "polish")) == ["polish"]
    assert called(await bench.part(Extent.ONLY, "aside")) == ["aside"]
    polished = await bench.part(Extent.FROM, "polish")
    assert polished.output_of("draft") == drafted.output_of("draft")


async def test_outputs_that_depend_on_what_ran_again_are_not_carried_over() -> None:
    bench = Bench(CHAIN)
    await bench.run()
    played = await bench.part(Extent.ONLY, "plan")
    assert played.ran == {"text", "plan", "aside", "other"}
    with pytest.raises(MissingValuesError) as missing:
        await bench.part(Extent.ONLY, "polish")
    assert missing.value.nodes == ("draft",)
    assert f"“{NAMES['draft']}” has not run since “{NAMES['plan']}” did" in missing.value.message


async def test_an_input_with_the_same_value_leaves_the_outputs_after_it_valid() -> None:
    bench = Bench(CHAIN)
    whole = await bench.run(inputs={"text": "a"})
    alone = await bench.part(Extent.ONLY, "text")
    assert (called(alone), alone.output_of("polish")) == ([], whole.output_of("polish"))
    assert called(await bench.part(Extent.ONLY, "draft")) == ["draft"]
    await bench.part(Extent.ONLY, "text", {"text": "b"})
    with pytest.raises(MissingValuesError) as missing:
        await bench.part(Extent.ONLY, "draft")
    assert missing.value.nodes == ("plan",)


async def test_a_pinned_node_leaves_the_outputs_after_it_valid() -> None:
    bench = Bench(LOOP)
    bench.edit(SetPinned("plan", {"output": "p"}), SetPinned("loop", {"output": "l"}))
    await bench.run()
    for node in ("plan", "loop"):
        await bench.part(Extent.ONLY, node)
    assert called(await bench.part(Extent.ONLY, "polish")) == ["polish"]


@pytest.mark.parametrize("extent", [Extent.ONLY, Extent.FROM])
async def test_missing_values_are_refused_with_the_nodes_that_lack_them(extent: Extent) -> None:
    bench = Bench(CHAIN)
    with pytest.raises(MissingValuesError) as never:
        await bench.part(extent, "draft")
    assert never.value.nodes == ("plan",)
    assert f"“{NAMES['plan']}” has not run" in never.value.message
    await bench.run()
    bench.edit(SetConfig(("temperature",), {"plan": 1.0}))
    with pytest.raises(MissingValuesError) as changed:
        await bench.part(extent, "draft")
    assert changed.value.nodes == ("plan",)
    assert f"“{NAMES['plan']}” changed" in changed.value.message


EDITS: dict[str, tuple[Operation, ...]] = {
    "prompt": (SetConfig(("prompt",), {"plan": "{{input}}"}),),
    "disabled": (SetEnabled("plan", False),),
    "pinned": (SetPinned("plan", {"output": "p"}),),
    "connection": (Disconnect("text.value", "plan.input"), Connect.between("aside.output", "plan.input")),
    "model": (SetConfig(("model",), {"plan": "other"}),),
}


@pytest.mark.parametrize("edit", EDITS)
async def test_an_edit_makes_a_node_and_what_follows_it_stale(edit: str) -> None:
    bench = Bench(CHAIN)
    await bench.run()
    bench.edit(*EDITS[edit])
    played = await bench.until("polish")
    assert {"draft", "polish"} <= set(called(played))


async def test_a_new_title_position_or_node_beside_makes_nothing_stale() -> None:
    bench = Bench(CHAIN)
    await bench.run()
    bench.edit(
        SetTitle("plan", "The plan"),
        SetConfig(("prompt",), {"aside": "new"}),
        SetConfig(("description",), {"text": "d"}),
    )
    assert called(await bench.until("draft")) == ["draft"]


async def test_another_model_for_the_run_makes_all_model_nodes_stale() -> None:
    bench = Bench(CHAIN)
    await bench.run()
    assert called(await bench.until("polish", model="other")) == ["plan", "draft", "polish"]
    assert called(await bench.until("polish", model="other")) == ["polish"]


async def test_another_input_makes_what_depends_on_it_stale() -> None:
    bench = Bench(CHAIN)
    await bench.run()
    played = await bench.until("draft", {"text": "other"})
    assert called(played) == ["plan", "draft"]
    assert played.model.calls[0].prompt == "Plan: other"
    assert called(await bench.until("draft")) == ["draft"]  # with the input of the last run


@pytest.mark.parametrize("extent", Extent)
async def test_inputs_that_did_not_take_part_keep_their_values(extent: Extent) -> None:
    bench = Bench(
        flow(
            entry(),
            entry("given", name="more"),
            llm("plan"),
            llm("draft"),
            llm("prep"),
            llm("other", "Other: {{input}}"),
            edges="text -> plan -> draft\ngiven -> prep -> other",
        )
    )
    whole = await bench.run(inputs={"text": "a", "more": "b"})
    for _ in range(2):
        (started,) = (await bench.part(Extent.ONLY, "draft")).of(RunStarted)
        assert started.inputs == {"text": "a"}
    played = await bench.part(extent, "other")
    assert called(played) == ["other"]
    assert played.model.calls[0].prompt == f"Other: {whole.output_of('prep')}"
    assert played.of(RunStarted)[0].inputs == {"more": "b"}


@pytest.mark.parametrize("extent", Extent)
async def test_inputs_keep_their_values_behind_a_pinned_loop(extent: Extent) -> None:
    bench = Bench(LOOP)
    whole = await bench.run(inputs={"text": "a"})
    pin = SetPinned("loop", {"output": whole.output_of("loop")})
    unpin = SetPinned("loop", {})
    bench.edit(pin)
    assert called(await bench.part(Extent.ONLY, "polish")) == ["polish"]
    bench.edit(unpin)
    assert called(await bench.part(extent, "plan"))[0] == "plan"


async def test_a_default_that_was_used_follows_the_document() -> None:
    bench = Bench(CHAIN)
    bench.edit(SetConfig(("default",), {"text": "old"}))
    await bench.run(inputs={})
    bench.edit(SetConfig(("default",), {"text": "new"}))
    played = await bench.until("plan")
    assert played.model.calls[0].prompt == "Plan: new"


async def test_an_input_without_a_value_is_asked_for_only_if_it_takes_part() -> None:
    bench = Bench(flow(entry(), entry("tone"), llm("plan"), llm("sing"), edges="text -> plan\ntone -> sing"))
    assert called(await bench.until("plan", {"text": "seed"})) == ["plan"]
    with pytest.raises(InputError):
        await bench.until("sing")


@pytest.mark.parametrize("node", ["loop", "draft", "exit"])
async def test_a_node_in_a_loop_stands_for_its_loop(node: str) -> None:
    bench = Bench(LOOP)
    await bench.run()
    played = await bench.part(Extent.ONLY, node)
    assert called(played) == ["loop[0].draft", "loop[1].draft"]
    assert called(await bench.part(Extent.ONLY, "polish")) == ["polish"]
    assert len(played.of(LoopStarted)) == 1


async def test_the_iterations_of_a_loop_that_is_used_again_are_kept() -> None:
    bench = Bench(LOOP)
    whole = await bench.run()
    played = await bench.part(Extent.ONLY, "polish")
    assert called(played) == ["polish"]
    assert played.results == whole.results
    assert played.loop.cost_usd == 0.0


async def test_an_edit_in_a_body_makes_the_loop_stale() -> None:
    bench = Bench(LOOP)
    await bench.run()
    bench.edit(SetConfig(("prompt",), {"draft": "New: {{input}}"}))
    assert called(await bench.until("polish")) == ["loop[0].draft", "loop[1].draft", "polish"]


async def test_an_iterator_runs_with_its_aggregator() -> None:
    bench = Bench(
        flow(
            entry("items", type="json", default=["a", "b"]), each(), llm("draft"), gather(), llm("sum_up"), result(),
            edges="items -> each -> draft -> gather -> sum_up -> out",
        )
    )  # fmt: skip
    await bench.run(inputs={})
    assert sorted(called(await bench.part(Extent.ONLY, "draft"))) == ["each[0].draft", "each[1].draft"]
    assert called(await bench.part(Extent.ONLY, "sum_up")) == ["sum_up"]


async def test_an_iterator_runs_again_once_its_aggregator_is_unpinned() -> None:
    bench = Bench(
        flow(
            entry("items", type="json", default=["a", "b"]), each(), llm("draft"), gather(), llm("sum_up"), result(),
            edges="items -> each -> draft -> gather -> sum_up -> out",
        )
    )  # fmt: skip
    bench.edit(SetPinned("gather", {"output": ["pinned"]}))
    assert called(await bench.run(inputs={})) == ["sum_up"]
    bench.edit(SetPinned("gather", {}))
    assert sorted(called(await bench.until("gather"))) == ["each[0].draft", "each[1].draft"]


async def test_what_a_pinned_node_needs_does_not_run_for_it() -> None:
    bench = Bench(CHAIN)
    bench.edit(SetPinned("draft", {"output": "pinned"}))
    played = await bench.part(Extent.ONLY, "polish")
    assert called(played) == ["polish"]
    assert played.ran == {"draft", "polish"}
    assert played.model.calls[0].prompt == "Polish: pinned"


async def test_an_edit_before_a_pinned_node_makes_nothing_after_it_stale() -> None:
    bench = Bench(CHAIN)
    bench.edit(SetPinned("draft", {"output": "pinned"}))
    await bench.run()
    bench.edit(SetConfig(("prompt",), {"plan": "New: {{input}}"}))
    assert called(await bench.part(Extent.ONLY, "polish")) == ["polish"]


async def test_a_pin_to_the_stored_output_makes_nothing_stale() -> None:
    bench = Bench(CHAIN)
    whole = await bench.run()
    bench.edit(SetPinned("plan", {"output": whole.output_of("plan")}))
    assert called(await bench.part(Extent.ONLY, "polish")) == ["polish"]
    bench.edit(SetPinned("plan", {"output": "another plan"}))
    assert called(await bench.until("polish")) == ["draft", "polish"]


async def test_a_named_state_is_a_value_that_a_node_needs() -> None:
    workflow = flow(
        entry(),
        llm("plan", output_key="plan"),
        transform("wait", "{{input}}"),
        llm("draft", "About {{state.plan}}: {{input}}"),
        entry("more", default="m"),
        edges="text -> plan -> wait\nmore -> draft",
    )
    bench = Bench(workflow)
    whole = await bench.run()
    played = await bench.part(Extent.ONLY, "draft")
    assert played.model.calls[0].prompt == f"About {whole.output_of('plan')}: m"
    bench.edit(SetConfig(("temperature",), {"plan": 1.0}))
    with pytest.raises(MissingValuesError) as missing:
        await bench.part(Extent.ONLY, "draft")
    assert missing.value.nodes == ("plan",)


NAMED = flow(
    entry(),
    llm("plan", output_key="plan"),
    llm("another", output_key="plan"),
    llm("aside"),
    llm("draft", "About {{state.plan}}: {{input}}"),
    llm("polish"),
    entry("more", default="m"),
    edges="text -> plan\ntext -> another\nmore -> draft -> polish\nmore -> aside",
)


@pytest.mark.parametrize(
    "edits",
    [
        [RemoveNodes(("plan",))],
        [SetConfig(("output_key",), {"plan": "other"})],
        [SetConfig(("output_key",), {"aside": "plan"})],
        [SetConfig(("output_key",), {"plan": "other"}), SetPinned("plan", {"output": "plan #1"})],
    ],
    ids=["removed", "another name", "one more", "pinned to its output with another name"],
)
async def test_a_node_is_stale_if_other_nodes_set_the_state_that_it_reads(edits: list[Operation]) -> None:
    bench = Bench(NAMED)
    assert (await bench.run()).output_of("plan") == "plan #1"
    bench.edit(*edits)
    assert called(await bench.until("polish"))[-2:] == ["draft", "polish"]


async def test_a_node_that_only_gets_another_name_for_its_state_leaves_others_alone() -> None:
    bench = Bench(NAMED)
    await bench.run()
    bench.edit(SetConfig(("output_key",), {"aside": "other"}))
    assert called(await bench.until("polish")) == ["polish"]


async def test_a_skipped_node_is_used_again_as_skipped() -> None:
    workflow = flow(
        entry(),
        rules("way", {"left": "false", "right": "true"}),
        llm("one"),
        llm("two"),
        llm("both", "{{input}}"),
        edges="text -> way\nway.left -> one -> both\nway.right -> two -> both",
    )
    bench = Bench(workflow)
    await bench.run()
    assert called(await bench.part(Extent.ONLY, "both")) == ["both"]


async def test_a_failed_node_runs_again_and_what_was_before_it_does_not() -> None:
    bench = Bench(
        flow(
            entry(),
            llm("plan"),
            part("check", "validator", mode="expression", expression="1 + true"),
            edges="text -> plan -> check",
        )
    )
    await bench.run(ends="failed")
    bench.edit(SetConfig(("expression",), {"check": "true"}))
    played = await bench.part(Extent.ONLY, "check")
    assert called(played) == []
    assert played.ran == {"text", "plan", "check"}


async def test_the_value_of_a_node_that_failed_and_let_the_run_continue_is_not_used_again() -> None:
    bench = Bench(CHAIN)
    bench.edit(SetConfig(("retries",), {"plan": 0}), SetConfig(("on_error",), {"plan": "continue"}))
    models = FakeModels(FunctionModel(lambda call: "" if call.path == "plan" else bench.answer(call)))
    failing = await finish(*begin(bench.workflow, models, store=bench.store, source="w.loop.json"))
    assert failing.result.status == "completed"
    assert failing.of(NodeCompleted, "plan")[0].error
    with pytest.raises(MissingValuesError, match=f"“{NAMES['plan']}” failed") as missing:
        await bench.part(Extent.ONLY, "draft")
    assert missing.value.nodes == ("plan",)
    assert called(await bench.until("draft")) == ["plan", "draft"]
    assert called(await bench.part(Extent.ONLY, "draft")) == ["draft"]


async def test_errors_of_nodes_outside_of_the_part_do_not_matter() -> None:
    bench = Bench(CHAIN)
    bench.edit(SetConfig(("prompt",), {"polish": "{{input"}), SetConfig(("temperature",), {"aside": "warm"}))
    assert called(await bench.until("draft", {"text": "x"})) == ["plan", "draft"]
    with pytest.raises(DocumentError):
        await bench.until("polish", {"text": "x"})


async def test_an_unknown_node_is_refused() -> None:
    with pytest.raises(EngineError, match="nowhere"):
        await Bench(CHAIN).until("nowhere")


async def test_a_partial_run_is_a_fork_of_the_last_run_and_costs_only_what_it_runs() -> None:
    bench = Bench(CHAIN)
    whole = await bench.run()
    played = await bench.part(Extent.FROM, "polish")
    (started,) = played.of(RunStarted)
    assert (started.parent, started.extent, started.target) == (whole.result.run_id, "from", "polish")
    assert {event.path for event in played.of(NodeCompleted) if event.cached} == {
        "text", "plan", "draft", "aside", "other"
    }  # fmt: skip
    summary = bench.store.find(played.result.run_id)
    assert (summary.parent, summary.forked_at) == (whole.result.run_id, "polish")


async def test_a_resumed_partial_run_stays_partial() -> None:
    bench = Bench(CHAIN)
    bench.edit(SetConfig(("retries",), {"draft": 0}))
    failing = FakeModels(FunctionModel(lambda call: "" if call.path == "draft" else "fine"))
    given = options(failing, store=bench.store, source="w.loop.json")
    planned = plan_partial_run(bench.store, bench.workflow, Part(Extent.UNTIL, "draft"), {"text": "x"}, given)
    failed = await finish(start_partial_run(bench.store, planned, given), failing)
    assert failed.result.status == "failed"
    models = FakeModels(FunctionModel(bench.answer))
    resumed = await play_to_end(resume(bench.store, failed.result.run_id, options(models)), models)
    assert called(resumed) == ["draft"]
    assert resumed.result.status == "completed"
    assert resumed.ran == {"text", "plan", "draft"}


async def test_a_fork_of_a_partial_run_stays_partial() -> None:
    bench = Bench(LOOP)
    await bench.run()
    parent = await bench.part(Extent.ONLY, "loop")
    models = FakeModels(FunctionModel(bench.answer))
    plan = plan_fork(bench.store, parent.result.run_id, "loop[1]")
    forked = await play_to_end(fork(bench.store, plan, options(models)), models)
    assert called(forked) == ["loop[1].draft"]
    assert "polish" not in " ".join(plan.rerun)


def test_the_last_run_of_a_file_is_the_latest_that_is_not_running() -> None:
    assert last_run(MemoryStore(), "w.loop.json") is None
    assert last_run(MemoryStore(), "") is None


async def test_a_fork_from_a_place_is_not_the_last_run() -> None:
    bench = Bench(LOOP)
    first = await bench.run()
    models = FakeModels(FunctionModel(bench.answer))
    plan = plan_fork(bench.store, first.result.run_id, "loop[1]")
    await play_to_end(fork(bench.store, plan, options(models)), models)
    assert bench.last is not None
    assert bench.last.run_id == first.result.run_id


async def test_runs_of_other_files_are_not_the_last_run() -> None:
    bench = Bench(CHAIN)
    await bench.run(source="other.loop.json")
    assert bench.last is None
    mine = await bench.run()
    await bench.run(source="W.loop.json")
    assert bench.last is not None
    assert bench.last.run_id == mine.result.run_id
