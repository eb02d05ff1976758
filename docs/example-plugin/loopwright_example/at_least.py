"""Exit condition that stops a loop as soon as its result has a number of words.

A loop lists it under `stop_when` as {"condition": "at_least", "words": 100}. Form, checks, history, chart and export
are made from this declaration alone.
"""

from __future__ import annotations

from typing import Any

from pydantic import Field

from engine.exits.condition import (
    ChartSeries,
    ConditionConfig,
    ConditionSpec,
    EndedIteration,
    Evidence,
    ExitCondition,
    PythonTest,
    PythonWriter,
    SeriesSource,
)
from engine.formatting import format_count
from engine.values import Value, to_text


class AtLeastConfig(ConditionConfig):
    """Settings of the condition; each field becomes a row of the form, with its title, help and limits."""

    words: int = Field(ge=1, title="Words", description="The number of words at which the loop stops.")


class AtLeast(ExitCondition):
    """Stops when the result has enough words. Each run of a loop creates its own, so it may have state."""

    def __init__(self, words: int) -> None:
        self._words = words

    def reason(self, iteration: EndedIteration) -> str | None:
        """Return the loop's exit reason if it stops."""
        return "at_least" if _count(iteration) >= self._words else None

    def tested(self, iteration: EndedIteration) -> Value:
        """Record the number of words in the history of the iteration."""
        return _count(iteration)


def _count(iteration: EndedIteration) -> int:
    return len(to_text(iteration.result).split())


def _explain(config: AtLeastConfig, evidence: Evidence) -> str:
    count = evidence.number("at_least")
    return f"{'?' if count is None else f'{count:g}'} of {config.words} words"


def has_words(result: Any, words: int) -> bool:
    """Whether a result has enough words. Copied into LangGraph exports."""
    return len(str(result).split()) >= words


def _to_python(config: AtLeastConfig, _writer: PythonWriter) -> PythonTest:
    return PythonTest(f"result is not NOTHING and has_words(result, {config.words})", module=__name__)


AT_LEAST = ConditionSpec(
    name="at_least",
    label="When the result is long enough",
    help="Stops when the result has at least a number of words.",
    config=AtLeastConfig,
    make=lambda config: AtLeast(config.words),
    explain=_explain,
    exit_reason_label="the result is long enough",
    series=ChartSeries(SeriesSource.TESTED, lambda config: config.words, "enough at", "Words", format_count),
    to_python=_to_python,
)
