"""The exit condition `score`: the score of the iteration is high enough."""

from __future__ import annotations

from typing import Final

from pydantic import Field

from engine.exits.condition import (
    ChartSeries,
    ConditionConfig,
    ConditionSpec,
    Evidence,
    Need,
    PythonTest,
    PythonWriter,
    SeriesSource,
    compare,
    stateless,
)
from engine.formatting import format_score

SCORE: Final = "score"
_REASON: Final = "score_reached"


class ScoreConfig(ConditionConfig):
    """Settings of the condition `score`."""

    minimum: float = Field(
        default=8.0,
        allow_inf_nan=False,
        title="Minimum score",
        description="The loop stops after the iteration that scores at least this. A judge scores from 0 to 10.",
    )


def _explain(config: ScoreConfig, evidence: Evidence) -> str:
    score = evidence.last.score
    return "no score" if score is None else f"score {compare(score, config.minimum, format_score)}"


def _to_python(config: ScoreConfig, writer: PythonWriter) -> PythonTest:
    return PythonTest(f"reaches({writer.score}, {config.minimum!r})", module=__name__)


def reaches(score: float | None, minimum: float) -> bool:
    """Whether there is a score and it is high enough. Copied into LangGraph exports."""
    return score is not None and score >= minimum


SPEC = ConditionSpec(
    name=SCORE,
    label="When a score is high enough",
    card_label="score reached",
    help="Stops when the score of the iteration, by the judge or the loop's Score, reaches a minimum.",
    config=ScoreConfig,
    make=stateless(_REASON, lambda config, iteration: reaches(iteration.score, config.minimum)),
    explain=_explain,
    exit_reason=_REASON,
    exit_reason_label="the score is high enough",
    needs=frozenset({Need.SCORE}),
    series=ChartSeries(SeriesSource.SCORE, lambda config: config.minimum, "enough at"),
    to_python=_to_python,
)
