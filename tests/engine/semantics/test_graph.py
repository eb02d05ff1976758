"""Running a graph: readiness, live and dead edges, skipped and disabled nodes, concurrency."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from engine.events import NodeCompleted, NodeSkipped, NodeStarted
from tests.engine.semantics.documents import (
    entry,
    flow,
    formula,
    judge,
    leave,
    llm,
    loop,
    off,
    part,
    result,
    rules,
    transform,
)
from tests.engine.semantics.kit import begin, finish, play
from tests.engine.semantics.models import Call, verdict


async def test_a_node_runs_as_soon_as_its_inputs_are_ready_whatever_the_order_in_the_file() -> None:
    workflow = flow(
        result(),
        transform("c", "{{input}}c"),
        transform("b", "{{input}}b"),
        entry(),
        edges="c -> out\nb -> c\ntext -> b",
    )

    played = await play(workflow)

    assert played.out == "seedbc"
    assert [event.path for event in played.of(NodeCompleted)] == ["text", "b", "c", "out"]


async def test_a_slow_branch_delays_no_other() -> None:
    follower_ran = asyncio.Event()

    async def answer(call: Call) -> str:
        if call.node == "slow":
            await follower_ran.wait()
        if call.node == "follower":
            follower_ran.set()
        return call.node

    workflow = flow(
        entry(),
        llm("slow"),
        llm("fast"),
        llm("follower"),
        result(),
        edges="text -> slow -> out\ntext -> fast -> follower -> out",
    )

    assert (await play(workflow, answer)).out == "slow\n\nfollower"


class _Crowd:
    """Calls that wait until the expected number of calls are running."""

    def __init__(self, expected: int) -> None:
        self.expected = expected
        self.inside = 0
        self.most = 0
        self._full = asyncio.Event()

    async def __call__(self, call: Call) -> str:
        self.inside += 1
        self.most = max(self.most, self.inside)
        if self.inside >= self.expected:
            self._full.set()
        await self._full.wait()
        for _ in range(20):
            await asyncio.sleep(0)
        self.inside -= 1
        return call.node


@pytest.mark.parametrize(("setting", "at_once"), [({"max_concurrency": 1}, 1), ({"max_concurrency": 2}, 2), ({}, 4)])
async def test_max_concurrency_limits_the_running_nodes(setting: dict[str, Any], at_once: int) -> None:
    crowd = _Crowd(at_once)
    names = [f"n{index}" for index in range(6)]
    edges = "\n".join(f"text -> {name} -> out" for name in names)
    workflow = flow(entry(), *(llm(name) for name in names), result(), edges=edges, settings=setting)

    played = await play(workflow, crowd)

    assert crowd.most == at_once
    assert played.out == "\n\n".join(names)


async def test_a_loop_takes_no_concurrency_slot_from_its_body() -> None:
    workflow = flow(
        entry(),
        loop("outer", max_iterations=2),
        loop("inner", max_iterations=2),
        llm("draft"),
        leave("inner_exit", "inner"),
        leave("outer_exit", "outer"),
        result(),
        edges="text -> outer -> inner -> draft -> inner_exit -> outer_exit -> out",
        settings={"max_concurrency": 1},
    )

    assert len((await play(workflow, "x")).model.calls) == 4


async def test_a_branch_not_taken_is_skipped_with_the_nodes_only_it_reaches() -> None:
    workflow = flow(
        entry(),
        rules("pick", {"left": "true", "right": "else"}),
        transform("a", "a"),
        transform("b"),
        transform("c"),
        result("x"),
        result("y"),
        edges="text -> pick\npick.left -> a -> x\npick.right -> b -> c -> y",
    )

    played = await play(workflow)

    assert {event.path for event in played.of(NodeSkipped)} == {"b", "c", "y"}
    assert all(event.reason for event in played.of(NodeSkipped))
    assert played.ran == {"text", "pick", "a", "x"}
    assert played.result.outputs == {"x": "a"}
    assert played.result.warnings == ()


@pytest.mark.parametrize("branch", ["left", "right"])
async def test_branches_join_at_a_port_with_several_edges(branch: str) -> None:
    workflow = flow(
        entry(),
        rules("pick", {"left": "input == 'left'", "right": "else"}),
        transform("a", "a:{{input}}"),
        transform("b", "b:{{input}}"),
        transform("join", "<{{input}}>"),
        result(),
        edges="text -> pick\npick.left -> a -> join\npick.right -> b -> join\njoin -> out",
    )

    played = await play(workflow, inputs={"text": branch})

    assert played.out == {"left": "<a:left>", "right": "<b:right>"}[branch]


async def test_a_node_with_one_dead_and_one_live_required_input_is_skipped() -> None:
    workflow = flow(
        entry(),
        rules("pick", {"left": "true", "right": "else"}),
        transform("both", "{{one}} {{two}}"),
        result(),
        result("other"),
        edges="text -> pick\npick.left -> both.one\npick.right -> both.two\nboth -> out\npick.left -> other",
    )

    played = await play(workflow)

    assert [event.path for event in played.of(NodeSkipped)] == ["both", "out"]
    assert played.result.outputs == {"other": "seed"}


async def test_a_node_on_a_branch_not_taken_is_skipped_even_if_its_text_does_not_name_the_input() -> None:
    workflow = flow(
        entry(),
        rules("pick", {"left": "true", "right": "else"}),
        transform("greet", "hello {{name}}"),
        result(),
        edges="text -> pick\npick.right -> greet.input\npick.left -> greet.name\ngreet -> out",
    )

    played = await play(workflow)

    assert played.result.outputs == {}
    assert [event.path for event in played.of(NodeSkipped)] == ["greet", "out"]


async def test_a_node_only_reached_by_a_dead_branch_is_skipped_even_if_it_needs_no_input() -> None:
    workflow = flow(
        entry(),
        rules("pick", {"left": "true", "right": "else"}),
        transform("fixed", "always the same"),
        result(),
        result("other"),
        edges="text -> pick\npick.right -> fixed\nfixed -> out\npick.left -> other",
    )

    played = await play(workflow)

    assert {event.path for event in played.of(NodeSkipped)} == {"fixed", "out"}


async def test_a_diamond_joins_once() -> None:
    workflow = flow(
        entry(),
        transform("top", "{{input}}"),
        transform("a", "a {{input}}"),
        transform("b", "b {{input}}"),
        transform("join", "{{left}} + {{right}}"),
        result(),
        edges="text -> top -> a -> join.left\ntop -> b -> join.right\njoin -> out",
    )

    played = await play(workflow)

    assert played.out == "a seed + b seed"
    assert len(played.of(NodeCompleted, "join")) == 1


async def test_a_skipped_node_never_starts() -> None:
    workflow = flow(
        entry(),
        judge(),
        result("good"),
        transform("more"),
        result("again"),
        edges="text -> check\ncheck.done -> good\ncheck.continue -> more -> again",
    )

    played = await play(workflow, verdict("done"))

    assert "more" not in {event.path for event in played.of(NodeStarted)}


async def test_a_disabled_node_with_one_input_and_one_output_passes_its_input_on() -> None:
    workflow = flow(entry(), off(transform("loud", "{{input}}!")), result(), edges="text -> loud -> out")

    assert (await play(workflow)).out == "seed"


async def test_a_disabled_node_with_several_outputs_is_skipped() -> None:
    workflow = flow(
        entry(),
        off(part("v", "validator", mode="expression", expression="true")),
        result(),
        result("other"),
        edges="text -> v\nv.valid -> out\ntext -> other",
    )

    played = await play(workflow)

    assert {event.path for event in played.of(NodeSkipped)} == {"v", "out"}
    assert played.result.outputs == {"other": "seed"}


async def test_a_disabled_node_with_several_inputs_is_skipped() -> None:
    workflow = flow(
        entry(),
        off(transform("both", "{{left}} {{right}}")),
        result(),
        result("other"),
        edges="text -> both.left\ntext -> both.right\nboth -> out\ntext -> other",
    )

    played = await play(workflow)

    assert {event.path for event in played.of(NodeSkipped)} == {"both", "out"}


async def test_a_disabled_model_node_makes_no_call() -> None:
    workflow = flow(entry(), off(llm("draft")), result(), result("other"), edges="text -> draft -> out\ntext -> other")

    assert (await play(workflow)).model.calls == []


async def test_the_same_document_inputs_and_replies_emit_the_same_events() -> None:
    workflow = flow(
        entry(),
        llm("a"),
        llm("b"),
        loop(max_iterations=3, exit_condition="stable_output"),
        llm("draft", "{{input}} {{loop.iteration}}"),
        formula("size", "size(input)"),
        leave(),
        result(),
        edges="text -> a -> loop\ntext -> b -> loop\nloop -> draft -> size -> exit -> out",
    )

    async def story() -> list[dict[str, Any]]:
        run, models = begin(workflow, lambda call: call.prompt[::-1])
        passing = {"run_id", "time", "duration_s"}
        played = await finish(run, models)
        return [_without(event.to_json(), passing) for event in played.events]

    assert await story() == await story()


def _without(value: Any, keys: set[str]) -> Any:
    if isinstance(value, dict):
        return {key: _without(item, keys) for key, item in value.items() if key not in keys}
    if isinstance(value, list):
        return [_without(item, keys) for item in value]
    return value


async def test_a_workflow_of_a_thousand_nodes_in_a_row_runs() -> None:
    names = [f"n{index}" for index in range(1000)]
    workflow = flow(
        entry(), *(transform(name) for name in names), result(), edges=f"text -> {' -> '.join(names)} -> out"
    )

    assert (await play(workflow)).out == "seed"


async def test_layout_never_changes_a_run() -> None:
    workflow = flow(entry(), transform("b", "{{input}}!"), result(), edges="text -> b -> out")
    drawn = workflow.model_copy(update={"layout": {"nodes": {"b": {"x": 900.0, "y": -40.0, "color": "#ff0000"}}}})

    assert (await play(workflow)).out == (await play(drawn)).out == "seed!"
