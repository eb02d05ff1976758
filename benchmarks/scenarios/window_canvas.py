"""The window with a large document, compared with stock NodeGraphQt and the same graph."""

from __future__ import annotations

import json
import subprocess
import sys
from statistics import median
from typing import Final

from benchmarks.effort import Effort
from benchmarks.processes import offscreen, window_figures
from benchmarks.tables import Table, aim

WORKERS: Final = ("ours", "stock")
_ROWS: Final = (
    ("open_s", "open, to the first full paint", 1.5, " s"),
    ("pan_all_ms", "pan, all in view, a frame", 33, " ms"),
    ("zoom_all_ms", "zoom, all in view, a frame", 33, " ms"),
    ("pan_close_ms", "pan at 100 %, a frame", 16, " ms"),
    ("drag_ms", "drag of {dragged} selected nodes, a frame", 33, " ms"),
    ("keystroke_ms", "a keystroke in a prompt, to the canvas", 16, " ms"),
    ("gap_ms", "largest gap while nodes stream", 50, " ms"),
    ("events_a_second", "events a second in that run", None, ""),
    ("new_tab_ms", "largest gap at a new tab", 50, " ms"),
    ("theme_ms", "largest gap at a change of the theme", 50, " ms"),
    ("settings_ms", "largest gap at the first opening of the settings", 50, " ms"),
    ("guide_ms", "largest gap at the first opening of the guide", 50, " ms"),
    ("delete_ms", "largest gap at the deletion of all nodes", 50, " ms"),
    ("undo_ms", "largest gap at the undo of deleting all nodes", 50, " ms"),
    ("duplicate_ms", "largest gap at the duplication of all nodes", 50, " ms"),
    ("undo_duplicate_ms", "largest gap at the undo of the duplication", 50, " ms"),
    ("paste_ms", "largest gap at the paste of all nodes", 50, " ms"),
    ("open_ms", "largest gap at the import of the document, read before", 50, " ms"),
    ("memory_mb", "memory for the document", 40, " MB"),
    ("reopened_mb", "memory that stays of {times} documents of {small} nodes", 30, " MB"),
)
_FLOOD_NODES: Final = 25
_FLOOD_PAUSE_S: Final = 0.01
_REOPENED_NODES: Final = 100


def tables(effort: Effort) -> list[Table]:
    """Measure both in separate processes, in turns."""
    size = f"{effort.nodes:,} nodes and {effort.edges:,} edges"
    table = Table(f"The window, {size} in loops of ten", ("Operation", "Loopwright", "stock NodeGraphQt", "target"))
    missing = missing_part()
    if missing:
        table.add("nothing was measured", "–", "–", "–")
        table.notes.append(missing)
        return [table]
    reopened = (min(_REOPENED_NODES, effort.nodes), min(_REOPENED_NODES * 3 // 2, effort.edges), effort.reopened)
    sizes = {
        "nodes": effort.nodes,
        "edges": effort.edges,
        "frames": effort.frames,
        "dragged": min(100, effort.nodes // 2),
        "flood": (_FLOOD_NODES, effort.pieces, _FLOOD_PAUSE_S),
        "reopened": reopened,
    }
    found: dict[str, list[dict[str, float | None]]] = {worker: [] for worker in WORKERS}
    for _ in range(min(effort.rounds, effort.window_rounds)):
        for worker in WORKERS:
            found[worker].append(_measured(worker, json.dumps(sizes)))
    words = {"dragged": sizes["dragged"], "times": effort.reopened, "small": reopened[0]}
    for name, what, most, unit in _ROWS:
        ours, stock = (_middle([figures.get(name) for figures in found[worker]]) for worker in WORKERS)
        met = "–" if most is None or ours is None else aim(ours, most, unit)
        table.add(what.format(**words), _shown(ours, unit), _shown(stock, unit), met)
    return [table]


def missing_part() -> str:
    """Why the window cannot be measured; empty if it can."""
    done = subprocess.run(
        [sys.executable, "-c", "import PySide6.QtWidgets, PySide6.QtTest, NodeGraphQt"],
        env=offscreen(),
        capture_output=True,
        text=True,
        check=False,
    )
    lines = done.stderr.strip().splitlines()
    return f"The window cannot be measured here: {lines[-1]}." if done.returncode and lines else ""


def _measured(worker: str, sizes: str) -> dict[str, float | None]:
    return window_figures(["-m", "benchmarks.window.worker", worker, sizes])


def _middle(figures: list[float | None]) -> float | None:
    known = [figure for figure in figures if figure is not None]
    return median(known) if known else None


def _shown(figure: float | None, unit: str) -> str:
    if figure is None:
        return "–"
    return f"{figure:.2f}{unit}" if unit == " s" else f"{figure:,.0f}" if not unit else f"{figure:.1f}{unit}"
