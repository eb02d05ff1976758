"""Problems of loops: pairing, bodies, controlling routers, and names that cannot exist."""

from __future__ import annotations

import pytest

from engine import validate
from engine.document.problems import has_errors
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
from tests.engine.semantics.problem_checks import nodes_of, one_problem, refused


def test_a_loop_without_an_exit() -> None:
    problems = refused(flow(entry(), loop(), llm("draft"), result(), edges="text -> loop -> draft -> out"))

    assert "loop" in nodes_of(problems)
    assert any("exit" in problem.remedy.lower() for problem in problems)


def test_an_exit_without_a_loop() -> None:
    problems = refused(flow(entry(), part("exit", "exit"), result(), edges="text -> exit -> out"))

    assert "exit" in nodes_of(problems)


def test_an_exit_of_a_missing_loop() -> None:
    problems = refused(flow(entry(), leave(of="nobody"), result(), edges="text -> exit -> out"))

    assert ("exit", "loop") in {(problem.node, problem.field) for problem in problems}
    assert any("nobody" in problem.message for problem in problems)


def test_an_exit_that_names_a_node_that_is_not_a_loop() -> None:
    problems = refused(flow(entry(), leave(of="text"), result(), edges="text -> exit -> out"))

    assert ("exit", "loop") in {(problem.node, problem.field) for problem in problems}


def test_two_exits_of_one_loop() -> None:
    workflow = flow(
        entry(),
        loop(),
        transform("a"),
        leave("one"),
        leave("two"),
        result(),
        edges="text -> loop -> a -> one -> out\na -> two",
    )

    assert nodes_of(refused(workflow)) & {"one", "two", "loop"}


def test_two_loops_and_one_exit() -> None:
    workflow = flow(
        entry(),
        loop("one"),
        loop("two"),
        transform("a"),
        leave(of="two"),
        result(),
        edges="text -> one -> two -> a -> exit -> out",
    )

    assert "one" in nodes_of(refused(workflow))


def test_an_empty_body() -> None:
    problems = refused(flow(entry(), loop(), leave(), result(), edges="text -> loop -> exit -> out"))

    assert "loop" in nodes_of(problems)


def test_a_body_that_does_not_lead_to_the_exit() -> None:
    workflow = flow(
        entry(), loop(), transform("a"), leave(), result(), edges="text -> loop -> a\ntext -> exit\nexit -> out"
    )

    assert refused(workflow)


def test_an_unconnected_body_port() -> None:
    workflow = flow(entry(), loop(), transform("a"), leave(), result(), edges="text -> loop\ntext -> a -> exit -> out")

    assert "loop" in nodes_of(refused(workflow))


def test_an_edge_out_of_a_body_is_reported_with_the_remedy() -> None:
    workflow = flow(
        entry(),
        loop(),
        transform("a"),
        transform("b"),
        leave(),
        result(),
        result("early"),
        edges="text -> loop -> a -> b -> exit -> out\na -> early",
    )

    problem = one_problem(workflow)

    assert problem.edge == "a.output -> early.value"
    assert "exit" in problem.remedy.lower()
    assert "iterations" in problem.remedy


def test_an_edge_out_of_an_inner_body_into_the_outer_body() -> None:
    workflow = flow(
        entry(),
        loop("outer"),
        loop("inner"),
        transform("a"),
        leave("inner_exit", "inner"),
        transform("join", "{{input}}{{early}}"),
        leave("outer_exit", "outer"),
        result(),
        edges="text -> outer -> inner -> a -> inner_exit -> join -> outer_exit -> out\na -> join.early",
    )

    assert "a.output -> join.early" in {problem.edge for problem in refused(workflow)}


async def test_a_dangling_node_outside_of_router_branches_is_not_the_feedback() -> None:
    workflow = around(
        transform("a", "{{input}}a"),
        transform("loose", "loose"),
        edges="loop -> a -> exit\na -> loose",
        max_iterations=3,
    )

    if not has_errors(validate(workflow)):
        assert (await play(workflow)).iteration_inputs == ["seed", "seeda", "seedaa"]


def test_overlapping_loops() -> None:
    workflow = flow(
        entry(),
        loop("one"),
        transform("a"),
        loop("two"),
        transform("b"),
        leave("one_exit", "one"),
        transform("c"),
        leave("two_exit", "two"),
        result(),
        edges="text -> one -> a -> two -> b -> one_exit -> c -> two_exit -> out",
    )

    problems = refused(workflow)

    assert nodes_of(problems) & {"one", "two", "one_exit", "two_exit"}


def test_an_output_in_a_body() -> None:
    workflow = around(transform("a"), result("inside"), edges="loop -> a -> exit\na -> inside")

    problems = refused(workflow)

    assert "inside" in nodes_of(problems) or "a.output -> inside.value" in {problem.edge for problem in problems}


async def test_an_input_that_leads_into_a_body_is_outside_of_it() -> None:
    workflow = flow(
        entry(),
        entry("inside"),
        loop(max_iterations=2),
        transform("a", "{{input}}{{b}}"),
        leave(),
        result(),
        edges="text -> loop -> a -> exit -> out\ninside -> a.b",
    )

    assert (await play(workflow, inputs={"text": "seed", "inside": "!"})).out == "seed!!"


def test_an_output_on_a_routers_branch_in_a_body() -> None:
    workflow = around(
        rules("check", {"done": "true", "continue": "else"}),
        result("inside"),
        edges="loop -> check\ncheck.done -> exit\ncheck.continue -> inside",
        exit_condition="evaluator",
    )

    problems = refused(workflow)

    assert "inside" in nodes_of(problems) or "check.continue -> inside.value" in {problem.edge for problem in problems}


def test_a_cycle_instead_of_a_loop() -> None:
    workflow = flow(
        entry(),
        loop(),
        transform("a"),
        transform("b"),
        leave(),
        result(),
        edges="text -> loop -> a -> b -> exit -> out\nb -> loop",
    )

    assert refused(workflow)


async def test_a_disabled_loop_is_skipped_or_passed_through_and_never_runs_its_body() -> None:
    workflow = flow(
        entry(),
        off(loop()),
        llm("draft"),
        leave(),
        result(),
        edges="text -> loop -> draft -> exit -> out",
    )

    played = await play(workflow, "x")

    assert played.model.calls == []


@pytest.mark.parametrize("port", ["output", "iterations", "count", "exit_reason", "converged"])
def test_an_output_of_a_loop_cannot_lead_into_its_own_body(port: str) -> None:
    workflow = around(transform("a", "{{input}}{{late}}"), edges=f"loop -> a -> exit\nloop.{port} -> a.late")

    assert f"loop.{port} -> a.late" in {problem.edge for problem in refused(workflow)}
