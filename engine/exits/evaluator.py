"""The exit condition `evaluator`: the router that controls the loop chose `done`."""

from __future__ import annotations

from typing import Final

from engine.exits.condition import (
    ConditionConfig,
    ConditionSpec,
    EndedIteration,
    Evidence,
    ExitCondition,
    Need,
    PythonTest,
    PythonWriter,
)
from engine.values import Value

EVALUATOR: Final = "evaluator"
DONE: Final = "done"
"""The branch of a router that ends its loop."""
_REASON: Final = "evaluator_done"


class EvaluatorConfig(ConditionConfig):
    """The condition has no settings; the loop's `evaluator` names the router."""


class Evaluator(ExitCondition):
    """Stops when the controlling router chose `done`."""

    def reason(self, iteration: EndedIteration) -> str | None:
        """Return `evaluator_done` if the router chose `done`."""
        return _REASON if iteration.branch == DONE else None

    def tested(self, iteration: EndedIteration) -> Value:
        """Record the chosen branch."""
        return iteration.branch


def _explain(_config: EvaluatorConfig, evidence: Evidence) -> str:
    if evidence.last.branch is None:
        return "the evaluator chose nothing"
    return f"the evaluator chose '{evidence.last.branch}'{evidence.quoted_reason}"


def _to_python(_config: EvaluatorConfig, _writer: PythonWriter) -> PythonTest:
    return PythonTest(f"verdict and verdict['selected_branch'] == {DONE!r}")


SPEC = ConditionSpec(
    name=EVALUATOR,
    label="A router chooses 'done'",
    help="Stops when the router that controls the loop chooses its branch 'done'.",
    config=EvaluatorConfig,
    make=lambda _config: Evaluator(),
    explain=_explain,
    exit_reason=_REASON,
    exit_reason_label="the evaluator chose 'done'",
    needs=frozenset({Need.EVALUATOR}),
    to_python=_to_python,
)
