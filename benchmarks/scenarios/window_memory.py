"""What stays in memory of documents that were opened, run and closed."""

from __future__ import annotations

import json
from typing import Final

from benchmarks.effort import Effort
from benchmarks.processes import window_figures
from benchmarks.scenarios.window_canvas import missing_part
from benchmarks.tables import Table, aim

MOST_MB: Final = 10.0
"""Maximum growth over the rounds of the published figures."""


def tables(effort: Effort) -> list[Table]:
    """Measure in a separate process."""
    title = f"Memory after {effort.closed} documents that were opened, run and closed"
    table = Table(title, ("", "Loopwright", "target"))
    missing = missing_part()
    if missing:
        table.add("nothing was measured", "–", "–")
        table.notes.append(missing)
        return [table]
    sizes = json.dumps({"first": min(20, effort.closed), "rounds": effort.closed})
    found = window_figures(["-m", "benchmarks.window.memory", sizes])
    grown = found["grown_mb"]
    if grown is not None:
        table.add("growth of the process", f"{grown:.1f} MB", aim(grown, MOST_MB, " MB"))
    table.add("widgets that stay", f"{found['widgets']}", aim(found["widgets"], 0))
    return [table]
