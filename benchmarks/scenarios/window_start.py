"""From the start of a new process to a window that accepts clicks."""

from __future__ import annotations

import tempfile
import time
from functools import partial
from typing import Final

from benchmarks.effort import Effort
from benchmarks.processes import window_figures
from benchmarks.scenarios.window_canvas import missing_part
from benchmarks.tables import Table, aim, milliseconds, times
from benchmarks.timing import Span, take_turns

MOST_TIMES: Final = 1.4
"""Maximum time of the start, as a multiple of stock NodeGraphQt."""

_TIMEOUT_S: Final = 120

OURS: Final = "Loopwright"
STOCK: Final = "stock NodeGraphQt, an empty graph"
_OURS: Final = """
from PySide6.QtCore import QTimer
import app.entry, app.workbench

class Window(app.workbench.MainWindow):
    def paintEvent(self, event):
        super().paintEvent(event)
        QTimer.singleShot(0, report)

app.workbench.MainWindow = Window
app.entry.main([])
"""
_WITH_DOCUMENT: Final = """
import sys
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QGraphicsView
import app.entry, app.workbench

class Window(app.workbench.MainWindow):
    def showEvent(self, event):
        super().showEvent(event)
        self.look()

    def look(self):
        view = self.findChild(QGraphicsView)
        if view is None or not view.isVisible():
            QTimer.singleShot(5, self.look)
        else:
            view.grab()
            QTimer.singleShot(0, report)

app.workbench.MainWindow = Window
app.entry.main(["open", "templates/self-refine.loop.json"])
"""
_STOCK: Final = """
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication
application = QApplication([])
from NodeGraphQt import NodeGraph
graph = NodeGraph()
graph.widget.resize(1200, 800)
graph.widget.show()
application.processEvents()
QTimer.singleShot(0, report)
application.exec()
"""
_REPORT: Final = """
import json, os, sys, time
def report():
    print(json.dumps({{"wall_s": time.time() - {begin!r}, "cpu_s": time.process_time()}}), flush=True)
    os._exit(0)
"""


def tables(effort: Effort) -> list[Table]:
    """Measure both in new processes."""
    table = Table(
        "Start of a new process to a window that accepts clicks",
        ("Window", "wall, best, ms", "wall, median, ms", "CPU, best, ms", "CPU, × stock", "target"),
    )
    missing = missing_part()
    if missing:
        table.add("nothing was measured", *"–––––")
        table.notes.append(missing)
        return [table]
    with tempfile.TemporaryDirectory() as folder:
        turns = {
            OURS: partial(_start, _OURS, folder),
            "Loopwright, with a document on the canvas": partial(_start, _WITH_DOCUMENT, folder),
            STOCK: partial(_start, _STOCK, folder),
        }
        take_turns(turns, 1)  # compiles, and does not count
        spans = take_turns(turns, effort.rounds)
    for name, there in spans.items():
        ratio = there.cpu_s / spans[STOCK].cpu_s
        met = aim(ratio, MOST_TIMES, " ×") if name == OURS else "–"
        walls = (milliseconds(there.wall_s), milliseconds(there.median_wall_s))
        table.add(name, *walls, milliseconds(there.cpu_s), times(ratio), met)
    return [table]


def _start(program: str, bytecode: str) -> Span:
    text = _REPORT.format(begin=time.time()) + program
    variables = {"PYTHONPYCACHEPREFIX": bytecode, "PYTHONDONTWRITEBYTECODE": ""}
    answer = window_figures(["-c", text], timeout_s=_TIMEOUT_S, **variables)
    return Span(answer["wall_s"], answer["cpu_s"])
