"""The exit condition `stable_output`: the result has stopped changing."""

from __future__ import annotations

import itertools
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
    compare,
)
from engine.formatting import format_percent
from engine.values import Value, is_empty

STABLE_OUTPUT: Final = "stable_output"


class StableOutputConfig(ConditionConfig):
    """Settings of the condition `stable_output`."""

    threshold: float = Field(
        default=0.95,
        ge=0,
        le=1,
        title="Similarity",
        description="Minimum similarity to the previous result; 1 means identical.",
    )
    patience: int = Field(
        default=1, ge=1, le=50, title="Times in a row", description="How many results in a row must be that similar."
    )


def is_stable(loop: dict[str, Any], key: str, similar: float | None, threshold: float, patience: int) -> bool:
    """Whether enough results in a row were similar to the one before. Copied into LangGraph exports."""
    in_a_row = loop["watched"].get(key, 0) + 1 if similar is not None and similar >= threshold else 0
    loop["watched"][key] = in_a_row
    return in_a_row >= patience


class StableOutput(ExitCondition):
    """Stops when the last `patience` results were each at least `threshold` similar to the one before."""

    def __init__(self, config: StableOutputConfig) -> None:
        self._config = config
        self._state: dict[str, Any] = {"watched": {}}
        self._is_stable = False

    def observe(self, iteration: EndedIteration) -> None:
        """Count similar results in a row. An empty result is never stable."""
        similarity = None if is_empty(iteration.result) else iteration.similarity
        config = self._config
        self._is_stable = is_stable(self._state, STABLE_OUTPUT, similarity, config.threshold, config.patience)

    def reason(self, iteration: EndedIteration) -> str | None:
        """Return `stable_output` after enough similar results in a row."""
        return STABLE_OUTPUT if self._is_stable else None

    def tested(self, iteration: EndedIteration) -> Value:
        """Record the similarity."""
        return iteration.similarity


def _explain(config: StableOutputConfig, evidence: Evidence) -> str:
    if evidence.similarity is None:
        return "no similarity: there is no previous result"
    text = f"similarity {compare(evidence.similarity, config.threshold, format_percent)}"
    if config.patience == 1:
        return text
    latest = (each.similarity for each in reversed(evidence.iterations))
    similar = itertools.takewhile(lambda one: one is not None and one >= config.threshold, latest)
    return f"{text}, {sum(1 for _ in similar)} of {config.patience} times in a row"


def _explain_stop(config: StableOutputConfig, evidence: Evidence) -> str:
    times = f", {config.patience} times in a row" if config.patience > 1 else ""
    threshold = f"(threshold {format_percent(config.threshold)}){times}"
    if evidence.similarity is None:
        return f"the result stopped changing {threshold}"
    return f"the result is {format_percent(evidence.similarity)} the same as the previous one {threshold}"


def _to_python(config: StableOutputConfig, writer: PythonWriter) -> PythonTest:
    source = f"is_stable(loop, {writer.key!r}, similar, {config.threshold!r}, {config.patience})"
    return PythonTest(source, observes=True, module=__name__)


SPEC = ConditionSpec(
    name=STABLE_OUTPUT,
    label="When the text stops changing",
    card_label="stable text",
    help="Stops when the result is similar enough to the previous one.",
    config=StableOutputConfig,
    make=StableOutput,
    explain=_explain,
    explain_stop=_explain_stop,
    exit_reason_label="the result stopped changing",
    needs=frozenset({Need.SIMILARITY}),
    series=ChartSeries(SeriesSource.SIMILARITY, lambda config: config.threshold, "stable at"),
    to_python=_to_python,
)
