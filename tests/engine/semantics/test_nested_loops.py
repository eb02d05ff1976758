"""Nested loops: paths, routers, and values between their bodies."""

from __future__ import annotations

from engine.events import LoopCompleted, NodeCompleted, NodeSkipped
from tests.engine.semantics.documents import (
    around,
    entry,
    flow,
    formula,
    judge,
    leave,
    llm,
    loop,
    part,
    result,
    rules,
    transform,
)
from tests.engine.semantics.kit import play
from tests.engine.semantics.models import by_node, numbered, verdict


async def test_an_edge_from_outside_leads_into_a_nested_body() -> None:
    workflow = flow(
        entry(),
        entry("style"),
        llm("guide"),
        loop("outer", max_iterations=2),
        loop("inner", max_iterations=2),
        transform("draft", "{{input}}{{guide}}"),
        leave("inner_exit", "inner"),
        leave("outer_exit", "outer"),
        result(),
        edges="text -> outer -> inner -> draft -> inner_exit -> outer_exit -> out\nstyle -> guide -> draft.guide",
    )

    played = await play(workflow, "!", {"text": "seed", "style": "s"})

    assert played.out == "seed!!!!"
    assert len(played.model.calls) == 1


async def test_a_value_of_the_outer_body_is_constant_for_the_inner_loop() -> None:
    workflow = flow(
        entry(),
        loop("outer", max_iterations=2),
        transform("plan", "{{loop.index}}"),
        loop("inner", max_iterations=2),
        transform("draft", "{{input}}{{plan}}"),
        leave("inner_exit", "inner"),
        leave("outer_exit", "outer"),
        result(),
        edges="text -> outer -> inner -> draft -> inner_exit -> outer_exit -> out\nouter -> plan -> draft.plan",
    )

    played = await play(workflow)

    assert played.out == "seed0011"
    assert [event.path for event in played.of(NodeCompleted) if event.path.endswith("plan")] == [
        "outer[0].plan",
        "outer[1].plan",
    ]


async def test_loops_nest_and_every_iteration_has_a_path() -> None:
    workflow = flow(
        entry(),
        loop("outer", max_iterations=2),
        llm("plan"),
        loop("inner", max_iterations=3),
        llm("draft"),
        leave("inner_exit", "inner"),
        llm("review"),
        leave("outer_exit", "outer"),
        result(),
        edges="text -> outer -> plan -> inner -> draft -> inner_exit -> review -> outer_exit -> out",
    )

    played = await play(workflow, numbered)

    assert played.model.paths == [
        path
        for i in range(2)
        for path in (
            f"outer[{i}].plan",
            *(f"outer[{i}].inner[{j}].draft" for j in range(3)),
            f"outer[{i}].review",
        )
    ]
    assert {path: loop_result.iterations_run for path, loop_result in played.result.loops.items()} == {
        "outer": 2,
        "outer[0].inner": 3,
        "outer[1].inner": 3,
    }
    assert [event.path for event in played.of(LoopCompleted)] == ["outer[0].inner", "outer[1].inner", "outer"]
    assert played.out == "review 1"


async def test_each_loop_is_controlled_by_its_own_router() -> None:
    workflow = flow(
        entry(),
        loop("outer", max_iterations=9, exit_condition="evaluator"),
        loop("inner", max_iterations=9, exit_condition="evaluator"),
        llm("draft"),
        judge("inner_check"),
        leave("inner_exit", "inner"),
        judge("outer_check"),
        leave("outer_exit", "outer"),
        result(),
        edges="""
            text -> outer -> inner -> draft -> inner_check
            inner_check.done -> inner_exit -> outer_check
            outer_check.done -> outer_exit -> out
        """,
    )
    more, done = verdict("continue"), verdict("done")

    played = await play(
        workflow,
        by_node(draft=numbered, inner_check=[more, done, done, more, more, done], outer_check=[more, more, done]),
    )

    assert [played.result.loops[f"outer[{index}].inner"].iterations_run for index in range(3)] == [2, 1, 3]
    assert played.result.loops["outer"].iterations_run == 3
    assert played.out == "draft 2.2"


async def test_an_inner_loop_at_max_iterations_does_not_end_the_outer_loop() -> None:
    workflow = flow(
        entry(),
        loop("outer", max_iterations=2),
        loop("inner", max_iterations=2, exit_condition="evaluator"),
        rules("check", {"done": "false", "continue": "else"}),
        transform("more", "{{input}}+"),
        leave("inner_exit", "inner"),
        leave("outer_exit", "outer"),
        result(),
        edges="text -> outer -> inner -> check\ncheck.done -> inner_exit -> outer_exit -> out\ncheck.continue -> more",
    )

    played = await play(workflow)

    assert played.result.loops["outer"].iterations_run == 2
    assert played.out == "seed++"


async def test_two_parallel_loops_in_a_body() -> None:
    workflow = around(
        loop("left", max_iterations=2),
        transform("l", "{{input}}l"),
        leave("left_exit", "left"),
        loop("right", max_iterations=3),
        transform("r", "{{input}}r"),
        leave("right_exit", "right"),
        formula("join", "a + '|' + b"),
        edges="loop -> left -> l -> left_exit -> join.a\nloop -> right -> r -> right_exit -> join.b\njoin -> exit",
        max_iterations=1,
    )

    assert (await play(workflow)).out == "seedll|seedrrr"


async def test_an_inner_loop_on_a_branch_not_taken_is_skipped_with_its_body() -> None:
    workflow = around(
        rules("pick", {"plain": "loop.index == 0", "deep": "else"}),
        transform("a", "{{input}}a"),
        loop("inner", max_iterations=2),
        transform("b", "{{input}}b"),
        leave("inner_exit", "inner"),
        edges="loop -> pick\npick.plain -> a -> exit\npick.deep -> inner -> b -> inner_exit -> exit",
        max_iterations=2,
    )

    played = await play(workflow)

    assert played.out == "seedabb"
    assert set(played.result.loops) == {"loop", "loop[1].inner"}
    assert "loop[0].inner" in {event.path for event in played.of(NodeSkipped)}


async def test_a_continue_branch_in_a_nested_body_belongs_to_the_inner_loop() -> None:
    workflow = flow(
        entry(),
        loop("outer", max_iterations=1),
        loop("inner", max_iterations=3, exit_condition="evaluator"),
        rules("check", {"done": "loop.index == 2", "continue": "else"}),
        transform("more", "{{input}}{{loop.parent.index}}{{loop.index}}"),
        leave("inner_exit", "inner"),
        leave("outer_exit", "outer"),
        result(),
        edges="text -> outer -> inner -> check\ncheck.done -> inner_exit -> outer_exit -> out\ncheck.continue -> more",
    )

    played = await play(workflow)

    assert played.out == "seed0001"
    assert "outer[0].inner[1].more" in played.ran


async def test_exits_that_name_no_loop_pair_with_their_loops_like_brackets() -> None:
    workflow = flow(
        entry(),
        loop("outer", max_iterations=2),
        loop("inner", max_iterations=3),
        transform("a", "{{input}}a"),
        part("first", "exit"),
        transform("b", "{{input}}b"),
        part("second", "exit"),
        result(),
        edges="text -> outer -> inner -> a -> first -> b -> second -> out",
    )

    assert (await play(workflow)).out == "seedaaabaaab"


async def test_loops_nest_thirty_deep() -> None:
    names = [f"l{level}" for level in range(30)]
    exits = [leave(f"{name}_exit", name) for name in reversed(names)]
    way = ["text", *names, "a", *(there.id for there in exits), "out"]
    workflow = flow(
        entry(),
        *(loop(name, max_iterations=1) for name in names[:-1]),
        loop(names[-1], max_iterations=2),
        transform("a", "{{input}}a"),
        *exits,
        result(),
        edges=" -> ".join(way),
    )

    played = await play(workflow)

    assert played.out == "seedaa"
    assert ".".join(f"{name}[0]" for name in names[:-1]) + ".l29[1].a" in played.ran
