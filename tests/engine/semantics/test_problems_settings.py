"""Invalid settings, and keys that this version does not know."""

from __future__ import annotations

from typing import Any

import pytest

from engine import validate
from engine.document.problems import Severity
from tests.engine.semantics.documents import (
    Part,
    entry,
    flow,
    formula,
    judge,
    llm,
    part,
    raw,
    result,
    rules,
    transform,
)
from tests.engine.semantics.kit import play
from tests.engine.semantics.problem_checks import line, one_problem, refused

_GOOD = [{"id": "text", "type": "input"}, {"id": "out", "type": "output"}]


_GOOD_EDGE = {"from": "text.value", "to": "out.value"}


@pytest.mark.parametrize(
    ("node", "field"),
    [
        (llm("a", temperature="hot"), "temperature"),
        (llm("a", temperature=3), "temperature"),
        (llm("a", max_tokens=0), "max_tokens"),
        (llm("a", retries=-1), "retries"),
        (llm("a", prompt=["x"]), "prompt"),
        (llm("a", timeout_s=0), "timeout_s"),
        (llm("a", on_error="ignore"), "on_error"),
        (llm("a", reply_schema={"type": "nonsense"}), "reply_schema"),
        (transform("a", "{{input"), "template"),
        (transform("a", "{{}} {{input}}"), "template"),
        (formula("a", "input +"), "expression"),
        (formula("a", "input." + "x" * 1000), "expression"),
        (part("a", "validator", json_schema={"type": 7}), "json_schema"),
        (part("a", "validator", mode="magic"), "mode"),
        (judge("a", criteria=""), "criteria"),
        (judge("a", branches=[]), "branches"),
        (judge("a", branches=[{"name": "Not A Name"}]), "branches.0.name"),
        (judge("a", branches=[{"name": "x"}, {"name": "x"}]), "branches.1.name"),
        (rules("a", {"x": "else", "y": "true"}), "branches.0.when"),
        (rules("a", {"x": ""}), "branches.0.when"),
        (rules("a", {"x": "1 +"}), "branches.0.when"),
    ],
)
def test_an_invalid_setting_is_named_by_its_field(node: Part, field: str) -> None:
    problems = refused(line(node, edges="text -> a.input\ntext -> out"))

    assert ("a", field) in {(problem.node, problem.field) for problem in problems}


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ({"tool": "serch_files"}, "tool"),
        ({"tool": ""}, "tool"),
        ({"tool": "read_file", "arguments": {"path": "a", "pth": 1}}, "arguments.pth"),
    ],
)
def test_an_unknown_tool_or_tool_parameter(config: dict[str, Any], field: str) -> None:
    problem = one_problem(line(part("a", "tool", **config), edges="text -> out"))

    assert (problem.node, problem.field) == ("a", field)


@pytest.mark.parametrize("node", [judge("a"), part("a", "validator")])
def test_on_error_continue_needs_a_port_for_the_given_value(node: Part) -> None:
    choosing = Part(node.id, node.type, {**node.config, "on_error": "continue", "error_value": "x"})

    problem = one_problem(line(choosing, edges="text -> a.input\ntext -> out"))

    assert (problem.node, problem.field) == ("a", "on_error")


@pytest.mark.parametrize("value", [3, "text", [1], None])
def test_a_default_that_does_not_fit_its_type(value: Any) -> None:
    workflow = flow(entry(type="boolean", default=value), result(), edges="text -> out")

    if value is None:
        assert validate(workflow) == []
    else:
        assert [(problem.node, problem.field) for problem in refused(workflow)] == [("text", "default")]


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"max_concurrency": 0}, "settings.max_concurrency"),
        ({"max_concurrency": "many"}, "settings.max_concurrency"),
        ({"budget_usd": -1}, "settings.budget_usd"),
        ({"budget_tokens": 1.5}, "settings.budget_tokens"),
        ({"prices": {"m": {"input_usd_per_million": 1}}}, "settings.prices.m.output_usd_per_million"),
    ],
)
def test_an_invalid_workflow_setting_is_named(settings: dict[str, Any], field: str) -> None:
    problem = one_problem(flow(entry(), result(), edges="text -> out", settings=settings))

    assert (problem.node, problem.field) == (None, field)


_WARNED: list[tuple[dict[str, Any], str | None, str]] = [
    ({"nodes": [{"id": "text", "type": "input", "config": {"colour": "red"}}, _GOOD[1]]}, "text", "colour"),
    ({"nodes": [{"id": "text", "type": "input", "colour": "red"}, _GOOD[1]]}, "text", "colour"),
    ({"settings": {"colour": "red"}}, None, "colour"),
    ({"version": 99}, None, "version"),
    ({"colour": "red"}, None, "colour"),
]


@pytest.mark.parametrize(("change", "node", "named"), _WARNED)
async def test_unknown_keys_are_a_warning_and_the_workflow_runs(
    change: dict[str, Any], node: str | None, named: str
) -> None:
    document: dict[str, Any] = {"nodes": _GOOD, "edges": [_GOOD_EDGE], **change}
    workflow = raw(document.pop("nodes"), document.pop("edges"), **document)

    (problem,) = validate(workflow)

    assert problem.severity is Severity.WARNING
    assert problem.node == node
    assert named in str(problem)
    assert (await play(workflow)).out == "seed"
