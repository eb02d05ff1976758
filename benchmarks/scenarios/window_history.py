"""The Iterations panel: during a run, when a run is opened, and while a user browses it."""

from __future__ import annotations

import json
from statistics import median
from typing import Final

from benchmarks.effort import Effort
from benchmarks.processes import window_figures
from benchmarks.scenarios.window_canvas import missing_part
from benchmarks.tables import Table, aim

_ROWS: Final = (
    ("panel_ms", "the run's panel, made, filled and painted, CPU", 300, " ms"),
    ("open_run_ms", "the run, opened from the history in a tab of its own, with its canvas", None, " ms"),
    ("scroll_ms", "scroll of the table, a frame", 16, " ms"),
    ("step_ms", "a step to another iteration, everywhere", 50, " ms"),
    ("large_step_ms", "the same where results have 1 MB", 50, " ms"),
    ("gap_ms", "largest gap while it runs and the panel fills", 50, " ms"),
    ("events_a_second", "events a second in that run", None, ""),
)


def tables(effort: Effort) -> list[Table]:
    """Measure in separate processes."""
    table = Table(f"Iterations panel, {effort.iterations:,} iterations of three nodes", ("", "Loopwright", "target"))
    missing = missing_part()
    if missing:
        table.add("nothing was measured", "–", "–")
        table.notes.append(missing)
        return [table]
    sizes = json.dumps({"iterations": effort.iterations, "frames": effort.frames})
    found = [_measured(sizes) for _ in range(min(effort.rounds, effort.window_rounds))]
    for name, what, most, unit in _ROWS:
        figure = median(figures[name] for figures in found)
        shown = f"{figure:.1f}{unit}" if unit else f"{figure:,.0f}"
        table.add(what, shown, "–" if most is None else aim(figure, most, unit))
    return [table]


def _measured(sizes: str) -> dict[str, float]:
    return window_figures(["-m", "benchmarks.window.history", sizes])
