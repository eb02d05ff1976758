"""The exit condition `judge`: the loop's judge, a model, accepts the result."""

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
from engine.formatting import format_score
from engine.values import Value

JUDGE: Final = "judge"
_REASON: Final = "judge_done"


class JudgeConditionConfig(ConditionConfig):
    """The condition has no settings; the loop's `judge` says how the judge decides."""


class Judged(ExitCondition):
    """Stops when the judge accepts the result."""

    def reason(self, iteration: EndedIteration) -> str | None:
        """Return `judge_done` if the judge accepted the result."""
        return _REASON if iteration.is_judged_done else None

    def tested(self, iteration: EndedIteration) -> Value:
        """Record the verdict."""
        return iteration.is_judged_done


def _explain(_config: JudgeConditionConfig, evidence: Evidence) -> str:
    last = evidence.last
    score = "" if last.score is None else f" (score {format_score(last.score)})"
    verdict = "accepted" if last.tested.get(JUDGE) is True else "did not accept"
    return f"the judge {verdict} the result{score}{evidence.quoted_reason}"


def _to_python(_config: JudgeConditionConfig, _writer: PythonWriter) -> PythonTest:
    return PythonTest("judged and judged['done']")


SPEC = ConditionSpec(
    name=JUDGE,
    label="The judge accepts the result",
    help="Stops when the loop's judge accepts the result.",
    config=JudgeConditionConfig,
    make=lambda _config: Judged(),
    explain=_explain,
    exit_reason=_REASON,
    exit_reason_label="the judge accepted the result",
    needs=frozenset({Need.JUDGE}),
    to_python=_to_python,
)
