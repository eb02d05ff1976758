"""The exit condition `oscillation`: the result repeats an earlier one, so that the loop goes in circles."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final

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
    compare,
)
from engine.exits.similarity import as_text, similarity_from
from engine.formatting import format_percent
from engine.values import Value, is_empty

_NAME: Final = "oscillation"
COMPARED: Final = 20
"""The number of earlier results that a result is compared with; with all others it is only checked for equality.

So an iteration costs the same, however many there were before.
"""
COMPARED_IN_FULL: Final = 8
"""The number of these with which the similarity is always exact.

With the others it is computed only until it is known whether the threshold is reached.
"""
_LONG: Final = 10_000
"""Length in characters above which fewer similarities are exact, because the work grows with its square."""


class OscillationConfig(ConditionConfig):
    """Settings of the condition `oscillation`."""

    threshold: float = Field(
        default=0.95,
        ge=0,
        le=1,
        title="Similarity",
        description=(
            f"Minimum similarity to an earlier result; 1 means identical. The last {COMPARED} results before the "
            "previous one are compared, and all others for equality."
        ),
    )


class Oscillation(ExitCondition):
    """Stops when a result is at least `threshold` similar to one before the previous one."""

    def __init__(self, threshold: float) -> None:
        self._threshold = threshold
        self._texts: set[str] = set()
        self._latest: deque[str] = deque(maxlen=COMPARED)
        self._previous: str | None = None
        self._closest: float | None = None

    def observe(self, iteration: EndedIteration) -> None:
        """Compare the result with earlier ones. An empty or missing result repeats nothing."""
        self._closest = None
        if not iteration.has_result:
            return
        result = None if is_empty(iteration.result) else as_text(iteration.result)
        if result is not None:
            self._closest = self._closest_to(result)
        if self._previous is not None:
            self._texts.add(self._previous)
            self._latest.append(self._previous)
        self._previous = result

    def _closest_to(self, result: str) -> float | None:
        if result in self._texts:
            return 1.0
        closest: float | None = None
        in_full = max(COMPARED_IN_FULL * _LONG**2 // max(len(result), _LONG) ** 2, 1)
        for distance, earlier in enumerate(reversed(self._latest)):
            least = closest or 0.0
            if distance >= in_full:
                least = max(least, self._threshold)
            similar = similarity_from(least, earlier, result)
            closest = closest if similar is None else similar
        return closest

    def reason(self, iteration: EndedIteration) -> str | None:
        """Return `oscillation` if the result repeats an earlier one."""
        return _NAME if self._closest is not None and self._closest >= self._threshold else None

    def tested(self, iteration: EndedIteration) -> Value:
        """Record the similarity to the closest earlier result.

        Below the threshold it is the closest of the latest few.
        """
        return self._closest


def _explain(config: OscillationConfig, evidence: Evidence) -> str:
    closest = evidence.number(_NAME)
    if closest is None:
        return "no earlier result to repeat"
    return f"similarity to an earlier result {compare(closest, config.threshold, format_percent)}"


def _explain_stop(config: OscillationConfig, evidence: Evidence) -> str:
    closest = evidence.number(_NAME)
    threshold = f"(threshold {format_percent(config.threshold)})"
    if closest is None:
        return f"the result repeated an earlier one {threshold}"
    return f"the result is {format_percent(closest)} the same as an earlier one {threshold}"


def repeats_earlier(
    earlier: Sequence[Any], result: Any, threshold: float, similarity: Callable[[Any, Any, float], float]
) -> bool:
    """Whether a result repeats one before the previous one. Copied into LangGraph exports."""
    latest = any(similarity(one, result, threshold) >= threshold for one in earlier[-COMPARED:])
    return latest or any(similarity(one, result, 1.0) == 1.0 for one in earlier[:-COMPARED])


def _to_python(config: OscillationConfig, _writer: PythonWriter) -> PythonTest:
    call = f"repeats_earlier(loop['results'][:-1], result, {config.threshold!r}, similarity)"
    return PythonTest(f"result is not NOTHING and {call}", module=__name__)


SPEC = ConditionSpec(
    name=_NAME,
    label="When the text repeats an earlier one",
    card_label="repeated text",
    help="Stops when the result returns to an earlier one, so that the loop goes in circles.",
    config=OscillationConfig,
    make=lambda config: Oscillation(config.threshold),
    explain=_explain,
    explain_stop=_explain_stop,
    exit_reason_label="the result repeated an earlier one",
    series=ChartSeries(
        SeriesSource.TESTED, lambda config: config.threshold, "repeats at", "Similarity to an earlier result"
    ),
    to_python=_to_python,
)
