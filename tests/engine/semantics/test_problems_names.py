"""Impossible names in templates and expressions: a problem before the run, not an empty text during it."""

from __future__ import annotations

import pytest

from engine import validate
from tests.engine.semantics.documents import (
    around,
    entry,
    flow,
    leave,
    llm,
    loop,
    result,
    transform,
)
from tests.engine.semantics.problem_checks import one_problem


@pytest.mark.parametrize(
    "template",
    [
        "{{loop.nothing}}",
        "{{loop.last.nobody}}",
        "{{loop.last.out}}",
        "{{loop.parent.index}}",
        "{{loop}}",
        "{{loop.last}}",
        "{{nodes.draft}}",
        "{{loop.index.more}}",
    ],
)
def test_an_impossible_name_in_a_body(template: str) -> None:
    problem = one_problem(around(llm("draft", "{{input}}" + template), edges="loop -> draft -> exit"))

    assert (problem.node, problem.field) == ("draft", "prompt")


@pytest.mark.parametrize(
    "template", ["{{loop.index}}", "{{loop.previous}}", "{{nodes.text}}", "{{item}}", "{{index}}", "{{state.x}}"]
)
def test_a_name_that_exists_only_in_a_body(template: str) -> None:
    problem = one_problem(flow(entry(), transform("t", "{{input}}" + template), result(), edges="text -> t -> out"))

    assert (problem.node, problem.field) == ("t", "template")


@pytest.mark.parametrize("field", ["until", "score"])
@pytest.mark.parametrize("expression", ["nodes.nobody == 1", "foo > 1", "loop.last.nobody == 1", "input == 1", "nodes"])
def test_an_impossible_name_after_an_iteration(field: str, expression: str) -> None:
    problem = one_problem(around(llm("draft"), edges="loop -> draft -> exit", **{field: expression}))

    assert (problem.node, problem.field) == ("loop", "stop_when.0.expression" if field == "until" else field)


@pytest.mark.parametrize(
    "expression", ["output == 1", "similarity > 0.5", "loop.index == 0", "nodes.draft == 1", "foo"]
)
def test_an_impossible_name_before_the_loop(expression: str) -> None:
    problem = one_problem(around(llm("draft"), edges="loop -> draft -> exit", condition=expression))

    assert (problem.node, problem.field) == ("loop", "condition")


def test_the_condition_of_an_inner_loop_can_name_the_outer_loop() -> None:
    workflow = flow(
        entry(),
        loop("outer"),
        loop("inner", condition="loop.index > 0"),
        transform("a", "{{loop.parent.index}}"),
        leave("inner_exit", "inner"),
        leave("outer_exit", "outer"),
        result(),
        edges="text -> outer -> inner -> a -> inner_exit -> outer_exit -> out",
    )

    assert validate(workflow) == []


def test_a_node_of_an_inner_body_cannot_be_named_in_the_outer_body() -> None:
    workflow = flow(
        entry(),
        loop("outer"),
        transform("b", "{{input}}{{loop.last.a}}"),
        loop("inner"),
        transform("a"),
        leave("inner_exit", "inner"),
        leave("outer_exit", "outer"),
        result(),
        edges="text -> outer -> b -> inner -> a -> inner_exit -> outer_exit -> out",
    )

    assert one_problem(workflow).node == "b"
