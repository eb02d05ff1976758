"""Every problem code of the validation once: place, severity and remedy."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import engine
from engine import validate
from engine.document.problems import Problem, Severity
from engine.plan.compiler import compile_workflow
from tests.engine.plan.broken import BROKEN, WARNINGS

_ENGINE = Path(engine.__file__).parent
_KINDS = {"input", "output"}
_OF_PLUGINS = {"condition-failed"}
"""Problems that only a plugin can have: `tests/engine/extensions/test_plugin_conditions.py` looks at them."""


def _codes_in_source() -> set[str]:
    """The first argument of every `Problem` and `FieldProblem` that nodes and plan make."""
    codes: set[str] = set()
    for folder in ("plan", "nodes", "exits"):
        for file in (_ENGINE / folder).rglob("*.py"):
            for call in ast.walk(ast.parse(file.read_text())):
                if isinstance(call, ast.Call) and getattr(call.func, "id", "") in {"Problem", "FieldProblem"}:
                    codes |= _texts(call.args[0])
    return codes


def _texts(argument: ast.expr) -> set[str]:
    if isinstance(argument, ast.Constant):
        return {str(argument.value)}
    if isinstance(argument, ast.JoinedStr):
        start = argument.values[0]
        assert isinstance(start, ast.Constant)
        return {f"{start.value}{kind}" for kind in _KINDS}
    return set()  # handed on from a problem that was made elsewhere


def found(code: str) -> list[Problem]:
    return [problem for problem in validate(BROKEN[code][0]) if problem.code == code]


def test_there_is_a_document_for_every_code() -> None:
    assert set(BROKEN) == _codes_in_source() - _OF_PLUGINS


@pytest.mark.parametrize("code", list(BROKEN))
def test_a_problem_is_reported_once_with_place_severity_and_remedy(code: str) -> None:
    _, place = BROKEN[code]

    (problem,) = found(code)

    named = {kind: getattr(problem, kind) for kind in ("node", "port", "field", "edge")}
    assert named == {"node": None, "port": None, "field": None, "edge": None, **place}
    assert problem.severity is (Severity.WARNING if code in WARNINGS else Severity.ERROR)
    assert problem.message[0].isupper() or problem.message[0] in '"`0123456789'
    assert problem.message.rstrip().endswith(".")
    assert problem.remedy.rstrip().endswith((".", ")"))
    assert str(problem).isprintable()


@pytest.mark.parametrize("code", sorted(set(BROKEN) - WARNINGS))
def test_a_document_with_an_error_has_no_plan_and_lists_all_problems(code: str) -> None:
    workflow, _ = BROKEN[code]

    with pytest.raises(engine.DocumentError) as caught:
        compile_workflow(workflow)

    assert list(caught.value.problems) == validate(workflow)
    assert caught.value.message.startswith("The workflow cannot run: ")


@pytest.mark.parametrize("code", sorted(WARNINGS))
def test_a_document_with_only_warnings_has_a_plan(code: str) -> None:
    workflow, _ = BROKEN[code]

    assert {problem.severity for problem in validate(workflow)} == {Severity.WARNING}
    assert compile_workflow(workflow).graph.nodes
