"""The series of the chart of iterations: their values, formats, thresholds and scales. No Qt here."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from app.history.similarity_worker import Similarities
from app.runs.run_view_model import NO_LOOP
from app.theme.tokens import Theme
from engine.events import LoopIterationCompleted
from engine.exits.condition import SeriesSource
from engine.exits.registry import condition_specs
from engine.formatting import format_count, format_duration, format_money, format_percent, format_score
from engine.nodes.loop_config import LoopConfig
from engine.nodes.spec import Category
from engine.run_state.state import LoopExecution


class Kind(StrEnum):
    """The series that every loop has. A condition may add one, called by its name."""

    SIMILARITY = "similarity"
    SCORE = "score"
    COST = "cost"
    TOKENS = "tokens"
    TIME = "time"


@dataclass(frozen=True, slots=True)
class Series:
    """One line of the chart.

    Attributes:
        title: Its title.
        colour: Its colour in a theme.
        corners: The corners of its points, which tell lines apart without colour; 0 for a circle.
        format: Formats a value.
        value: Returns the value of an iteration; None where it has none.
    """

    title: str
    colour: Callable[[Theme], str]
    corners: int
    format: Callable[[float], str]
    value: Callable[[LoopIterationCompleted], float | None]


@dataclass(frozen=True, slots=True)
class Threshold:
    """The value of a series at which the loop stops, and what the line at it says."""

    value: float
    label: str


_BASE: Final = {
    Kind.SIMILARITY: Series("Similarity", lambda theme: theme.accent, 0, format_percent, lambda it: it.similarity),
    Kind.SCORE: Series("Score", lambda theme: theme.good, 3, format_score, lambda it: it.score),
    Kind.COST: Series("Cost", lambda theme: theme.warning, 4, format_money, lambda it: it.cost_usd),
    Kind.TOKENS: Series(
        "Tokens",
        lambda theme: theme.category[Category.IO],
        5,
        format_count,
        lambda it: float(it.usage.total_tokens),
    ),
    Kind.TIME: Series(
        "Time", lambda theme: theme.category[Category.TOOLS], 6, format_duration, lambda it: it.duration_s
    ),
}


def all_series() -> dict[str, Series]:
    """The series by name: those of every loop, then those that conditions declare."""
    found: dict[str, Series] = {str(kind): series for kind, series in _BASE.items()}
    for name, spec in condition_specs().items():
        if spec.series is not None and spec.series.source is SeriesSource.TESTED:
            found[name] = Series(
                spec.series.title or spec.label,
                lambda theme: theme.category[Category.LOGIC],
                7,
                spec.series.format,
                lambda it, name=name: _number(it, name),
            )
    return found


def _number(iteration: LoopIterationCompleted, condition: str) -> float | None:
    value = iteration.tested.get(condition)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def thresholds(config: LoopConfig) -> dict[str, Threshold]:
    """The values at which a loop stops, by series."""
    found: dict[str, Threshold] = {}
    for condition in config.leaf_conditions:
        series = condition.spec.series
        value = series.threshold(condition.config) if series is not None else None
        if series is not None and value is not None:
            name = condition.spec.name if series.source is SeriesSource.TESTED else str(series.source)
            found.setdefault(name, Threshold(value, f"{series.threshold_label} {series.format(value)}".strip()))
    return found


class Figures:
    """The figures of one run of a loop, read from its iterations once.

    Args:
        similarities: Knows those that the run has not recorded.

    Attributes:
        series: The series by name.
        loop: The run of the loop.
        unit: What one figure belongs to: an `iteration`, or an `item` of an iterator.
        version: Changes whenever the chart must be redrawn.
    """

    def __init__(self, similarities: Similarities) -> None:
        self._similarities = similarities
        self.loop = NO_LOOP
        self.unit = "iteration"
        self.version = 0
        self._returned: int | None = None
        self.series = all_series()
        self._values: dict[str, list[float | None]] = {name: [] for name in self.series}

    def __len__(self) -> int:
        return len(self._values[Kind.TIME])

    def of(self, kind: str) -> Sequence[float | None]:
        """The figures of one kind, an iteration each."""
        return self._values[kind]

    def has(self, kind: str) -> bool:
        """Whether there is anything to draw; a loop without a model call has no tokens and costs nothing."""
        if kind in {Kind.COST, Kind.TOKENS}:
            return any(self._values[Kind.TOKENS]) or any(self._values[Kind.COST])
        if kind == Kind.SIMILARITY:
            return self.unit != "item"
        return kind == Kind.TIME or any(value is not None for value in self._values[kind])

    def take(self, loop: LoopExecution, unit: str = "iteration") -> None:
        """Read what is new."""
        self.unit = unit
        known = len(self)
        if loop is not self.loop or known > len(loop.iterations):
            self.loop, known = loop, 0
            self.version += 1
            self.series = all_series()
            self._values = {name: [] for name in self.series}
        if loop.returned != self._returned:
            self._returned = loop.returned
            self.version += 1
        new = loop.iterations[known:]
        for name, series in self.series.items():
            self._values[name].extend(map(series.value, new))
        if known < len(self):
            self.take_similarities(known, len(self) - 1)

    def take_similarities(self, first: int, last: int) -> None:
        """Read the similarities of some iterations again: they have been worked out."""
        self.version += 1
        for index in range(first, min(last, len(self) - 1) + 1):
            self._values[Kind.SIMILARITY][index] = self._similarities.of(self.loop, index)

    def words(self, kind: str, index: int) -> str:
        """One figure for people; empty where there is none."""
        value = self._values[kind][index] if 0 <= index < len(self) else None
        return self.series[kind].format(value) if value is not None else ""


def scale(series: Series, values: Sequence[float | None], threshold: float | None = None) -> tuple[float, float]:
    """The least and the greatest value of the axis: round numbers around all figures.

    Args:
        series: What is drawn.
        values: Its figures.
        threshold: A share that is drawn too.
    """
    known = [value for value in values if value is not None]
    if series.format is format_percent:
        least = min([*known, threshold if threshold is not None else 1.0])
        return (0.9 if least >= 0.92 else 0.5 if least >= 0.55 else 0.0), 1.0
    least, greatest = min([0.0, *known]), max([0.0, *known])
    return (-_round_up(-least) if least < 0 else 0.0), _round_up(greatest) or (0.0 if least < 0 else 1.0)


def _round_up(value: float) -> float:
    """The next number of 1, 2, 2.5 or 5 times a power of ten."""
    if value <= 0 or not math.isfinite(value):
        return 0.0
    power = 10.0 ** math.floor(math.log10(value))
    return next((factor * power for factor in (1, 2, 2.5, 5) if value <= factor * power * (1 + 1e-9)), 10 * power)


def ticks(count: int, most: int) -> list[int]:
    """Numbers of iterations to write below the axis, from 1 on.

    Args:
        count: The number of the last iteration.
        most: How many there is room for.
    """
    if count <= max(most, 1):
        return list(range(1, count + 1))
    steps = (factor * 10**power for power in range(10) for factor in (1, 2, 5))
    step = next(step for step in steps if count <= step * max(most, 1))
    return [1, *(number for number in range(step, count + 1, step) if number - 1 > step / 2)]
