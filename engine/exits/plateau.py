"""The exit condition `plateau`: the best score has stopped rising."""

from __future__ import annotations

from typing import Any, Final

from pydantic import Field

from engine.exits.condition import (
    ChartSeries,
    ConditionConfig,
    ConditionSpec,
    EndedIteration,
    Evidence,
    ExitCondition,
    Need,
    PythonTest,
    PythonWriter,
    SeriesSource,
)
from engine.formatting import format_count, format_score
from engine.values import Value, is_empty

_NAME: Final = "plateau"


class PlateauConfig(ConditionConfig):
    """Settings of the condition `plateau`."""

    patience: int = Field(
        default=1,
        ge=1,
        le=50,
        title="Iterations without improvement",
        description="Number of iterations in a row that do not improve the best score.",
    )
    epsilon: float = Field(
        default=0.0,
        ge=0,
        allow_inf_nan=False,
        title="Minimum improvement",
        description="A smaller rise of the best score does not count as an improvement.",
    )


def reached_plateau(loop: dict[str, Any], key: str, score: float | None, epsilon: float, patience: int) -> bool:
    """Whether the best score has stopped rising; the state is in the loop. Copied into LangGraph exports."""
    best, without_rise = loop["watched"].get(key, (None, 0))
    if best is None:
        best = score
    else:
        without_rise = 0 if score is not None and score > best + epsilon else without_rise + 1
        best = best if score is None else max(best, score)
    loop["watched"][key] = (best, without_rise)
    return without_rise >= patience


class Plateau(ExitCondition):
    """Stops when the best score has risen by no more than `epsilon` in each of the last `patience` iterations."""

    def __init__(self, config: PlateauConfig) -> None:
        self._config = config
        self._state: dict[str, Any] = {"watched": {}}
        self._is_reached = False

    def observe(self, iteration: EndedIteration) -> None:
        """Compare the score with the best so far. An iteration without a score counts as one without improvement.

        An iteration with an empty result is ignored: a loop that produces nothing has not reached a plateau.
        """
        if not (iteration.has_result and is_empty(iteration.result)):
            config = self._config
            self._is_reached = reached_plateau(self._state, _NAME, iteration.score, config.epsilon, config.patience)

    def reason(self, iteration: EndedIteration) -> str | None:
        """Return `plateau` after enough iterations without improvement."""
        return _NAME if self._is_reached else None

    def tested(self, iteration: EndedIteration) -> Value:
        """Record the best score so far."""
        return self._state["watched"].get(_NAME, (None, 0))[0]


def _explain(_config: PlateauConfig, evidence: Evidence) -> str:
    best = evidence.number(_NAME)
    return "no score" if best is None else f"best score {format_score(best)}"


def _explain_stop(config: PlateauConfig, evidence: Evidence) -> str:
    best = evidence.number(_NAME)
    at = "" if best is None else f" ({format_score(best)})"
    iterations = format_count(config.patience, "iteration")
    return f"the best score{at} has risen by no more than {config.epsilon:g} in {iterations}"


def _to_python(config: PlateauConfig, writer: PythonWriter) -> PythonTest:
    source = f"reached_plateau(loop, {writer.key!r}, {writer.score}, {config.epsilon!r}, {config.patience})"
    return PythonTest(source, observes=True, module=__name__)


SPEC = ConditionSpec(
    name=_NAME,
    label="When the best score stops rising",
    card_label="score plateau",
    help="Stops when the best score has not risen for some iterations.",
    config=PlateauConfig,
    make=Plateau,
    explain=_explain,
    explain_stop=_explain_stop,
    exit_reason_label="the best score stopped rising",
    needs=frozenset({Need.SCORE}),
    series=ChartSeries(SeriesSource.SCORE),
    to_python=_to_python,
)
