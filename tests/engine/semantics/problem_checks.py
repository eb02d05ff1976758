"""Checks of documents with errors: what `validate` reports, and that they do not start."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from engine import DocumentError, Problem, Workflow, start, validate
from engine.document.problems import Severity
from tests.engine.semantics.documents import Part, entry, flow, result
from tests.engine.semantics.kit import options
from tests.engine.semantics.models import FunctionModel


def refused(workflow: Workflow) -> list[Problem]:
    """The errors of a workflow, after checking that each has a remedy and that the workflow does not start."""
    problems = validate(workflow)
    assert all(problem.message and "\n" not in problem.message for problem in problems)
    errors = [problem for problem in problems if problem.severity is Severity.ERROR]
    assert errors
    assert all(problem.remedy for problem in errors), "an error without a remedy"
    with pytest.raises(DocumentError) as caught:
        start(workflow, {}, options(FunctionModel("")))
    assert [problem for problem in caught.value.problems if problem.severity is Severity.ERROR] == errors
    return errors


def one_problem(workflow: Workflow) -> Problem:
    """The only error of a workflow."""
    (problem,) = refused(workflow)
    return problem


def nodes_of(problems: Iterable[Problem]) -> set[str | None]:
    """The nodes that the problems name."""
    return {problem.node for problem in problems}


def line(*parts: Part, edges: str) -> Workflow:
    """Nodes between an input `text` and an output `out`."""
    return flow(entry(), *parts, result(), edges=edges)
