"""The body of a loop: what belongs to it, what reaches it from outside, and loops inside loops."""

from __future__ import annotations

import pytest

from engine.events import NodeCompleted, NodeSkipped
from tests.engine.semantics.documents import (
    around,
    entry,
    flow,
    leave,
    llm,
    loop,
    off,
    part,
    result,
    rules,
    transform,
)
from tests.engine.semantics.kit import play
from tests.engine.semantics.models import by_node, numbered


async def test_a_value_from_outside_is_constant_and_computed_once() -> None:
    workflow = flow(
        entry(),
        entry("style"),
        llm("guide"),
        loop(max_iterations=3),
        llm("draft", "{{input}} as {{guide}}"),
        leave(),
        result(),
        edges="style -> guide\ntext -> loop -> draft -> exit -> out\nguide -> draft.guide",
    )

    played = await play(workflow, by_node(guide="dry", draft=numbered), {"text": "seed", "style": "s"})

    assert played.model.prompts("draft") == ["seed as dry", "draft 0 as dry", "draft 1 as dry"]
    assert played.model.prompts("guide") == ["s"]


async def test_a_node_that_feeds_the_body_but_does_not_depend_on_the_loop_runs_once() -> None:
    workflow = flow(
        loop(max_iterations=3),
        entry(),
        transform("fixed", "made of nothing"),
        transform("join", "{{input}} {{fixed}}"),
        leave(),
        result(),
        edges="text -> loop -> join -> exit -> out\nfixed -> join.fixed",
    )

    played = await play(workflow)

    assert [event.path for event in played.of(NodeCompleted) if "fixed" in event.path] == ["fixed"]
    assert str(played.out).count("made of nothing") == 3


async def test_a_loop_waits_for_values_from_outside_its_body() -> None:
    workflow = flow(
        entry(),
        loop(max_iterations=1),
        llm("inside", "{{input}}"),
        transform("join", "{{input}} {{late}}"),
        llm("late"),
        leave(),
        result(),
        edges="text -> late -> join.late\ntext -> loop -> inside -> join -> exit -> out",
    )

    played = await play(workflow, numbered)

    assert played.model.paths == ["late", "loop[0].inside"]
    assert played.out == "inside 0 late"


async def test_a_body_node_reached_from_the_loop_and_an_outer_input_gets_both() -> None:
    workflow = flow(
        entry(),
        loop(max_iterations=2),
        transform("draft", "{{input}}+{{original}}"),
        leave(),
        result(),
        edges="text -> loop -> draft -> exit -> out\ntext -> draft.original",
    )

    assert (await play(workflow)).out == "seed+seed+seed"


async def test_a_diamond_in_the_body_joins_once_per_iteration() -> None:
    workflow = around(
        transform("left", "l({{input}})"),
        transform("right", "r({{input}})"),
        transform("join", "{{left}}{{right}}"),
        edges="loop -> left -> join.left\nloop -> right -> join.right\njoin -> exit",
        max_iterations=2,
    )

    played = await play(workflow)

    assert played.results == ["l(seed)r(seed)", "l(l(seed)r(seed))r(l(seed)r(seed))"]
    assert len([event for event in played.of(NodeCompleted) if event.path.endswith(".join")]) == 2


async def test_branches_join_in_a_body() -> None:
    workflow = around(
        rules("pick", {"even": "loop.index % 2 == 0", "odd": "else"}),
        transform("a", "{{input}}a"),
        transform("b", "{{input}}b"),
        transform("join", "{{input}}."),
        edges="loop -> pick\npick.even -> a -> join\npick.odd -> b -> join\njoin -> exit",
        max_iterations=4,
    )

    played = await play(workflow)

    assert played.out == "seeda.b.a.b."
    assert [event.path for event in played.of(NodeSkipped)] == ["loop[0].b", "loop[1].a", "loop[2].b", "loop[3].a"]


async def test_branches_can_join_at_the_exit() -> None:
    workflow = around(
        rules("pick", {"even": "loop.index % 2 == 0", "odd": "else"}),
        transform("a", "{{input}}a"),
        transform("b", "{{input}}b"),
        edges="loop -> pick\npick.even -> a -> exit\npick.odd -> b -> exit",
        max_iterations=3,
    )

    assert (await play(workflow)).out == "seedaba"


async def test_a_disabled_node_in_a_body_passes_its_input_on() -> None:
    workflow = around(
        off(transform("loud", "{{input}}!")),
        transform("dot", "{{input}}."),
        edges="loop -> loud -> dot -> exit",
        max_iterations=3,
    )

    assert (await play(workflow)).out == "seed..."


async def test_an_iteration_without_a_result_continues_with_null() -> None:
    workflow = around(
        rules("pick", {"through": "loop.index == 1", "away": "else"}),
        transform("a", "passed"),
        transform("b", "stayed"),
        edges="loop -> pick\npick.through -> a -> exit\npick.away -> b",
        max_iterations=2,
    )
    # Only an evaluator's router stands in for a result that did not come.
    played = await play(workflow)

    assert played.results[1] == "passed"
    assert played.results[0] in {None, "seed"}


async def test_a_loop_on_a_branch_not_taken_never_runs() -> None:
    workflow = flow(
        entry(),
        rules("pick", {"away": "true", "loop": "else"}),
        loop(),
        llm("draft"),
        leave(),
        result(),
        result("other"),
        edges="text -> pick\npick.loop -> loop -> draft -> exit -> out\npick.away -> other",
    )

    played = await play(workflow)

    assert played.result.outputs == {"other": "seed"}
    assert played.result.loops == {}
    assert played.model.calls == []


@pytest.mark.parametrize("named", [True, False])
async def test_an_exit_need_not_name_its_loop_if_it_is_unambiguous(named: bool) -> None:
    exits = leave() if named else part("exit", "exit")
    workflow = flow(
        entry(),
        loop(max_iterations=2),
        transform("a", "{{input}}a"),
        exits,
        result(),
        edges="text -> loop -> a -> exit -> out",
    )

    assert (await play(workflow)).out == "seedaa"
