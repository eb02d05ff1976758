"""`python -m benchmarks.window.worker CONTENDER SIZES`: do everything once, and print the figures as a line of JSON."""

from __future__ import annotations

import importlib
import json
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
os.environ.setdefault("QT_PREFERRED_BINDING", "PySide6")

from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from benchmarks.window.graphs import laid_out
from benchmarks.window.measure import frame_ms, growth_mb, memory_mb, settle


def figures(contender: Any, sizes: Mapping[str, Any]) -> dict[str, float | None]:
    """Measure a contender.

    Args:
        contender: The contender, just made.
        sizes: `nodes`, `edges`, `frames`, `dragged`, `flood` (nodes, pieces, seconds between two pieces) and `reopened`
            (nodes, edges, times).
    """
    workflow = laid_out(sizes["nodes"], sizes["edges"])
    before = memory_mb()
    found: dict[str, float | None] = {"open_s": contender.open(workflow)}
    settle(500)
    found["memory_mb"] = growth_mb(before)
    view, frames = contender.viewport, sizes["frames"]
    contender.fit_all()  # of a large document, the window shows its start once it is open
    settle()
    found["pan_all_ms"] = frame_ms(view, lambda place: contender.pan(5 if place % 2 else -5, 3), frames)
    found["zoom_all_ms"] = frame_ms(view, lambda place: contender.zoom(1.02 if place % 2 else 1 / 1.02), frames)
    contender.look_closely()
    settle()
    found["pan_close_ms"] = frame_ms(view, lambda _: contender.pan(9, 2), frames)
    contender.look_closely()
    contender.prepare_keystroke()
    found["keystroke_ms"] = frame_ms(view, contender.keystroke, frames)
    contender.fit_all()
    found["drag_ms"] = _drag_ms(contender, [node.id for node in workflow.nodes][: sizes["dragged"]], frames)
    # Immediately, because the autosave of the large changed document happens during the run.
    found["gap_ms"], found["events_a_second"] = contender.flood(*sizes["flood"])
    found["reopened_mb"] = contender.open_and_close(*sizes["reopened"])
    found.update(contender.steps_ms())
    return found


def _drag_ms(contender: Any, ids: list[str], frames: int) -> float:
    start = contender.select(ids)
    view = contender.viewport
    QTest.mousePress(view, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, start)

    def move(place: int) -> None:
        QTest.mouseMove(view, start + QPoint(8 + 2 * place, 8 + place))

    span = frame_ms(view, move, frames)
    QTest.mouseRelease(view, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, start + QPoint(2 * frames, 0))
    return span


def main() -> None:
    """Measure, and print the figures."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    application = QApplication(sys.argv[:1])
    with tempfile.TemporaryDirectory() as folder:
        contender = importlib.import_module(f"benchmarks.window.{sys.argv[1]}").Contender(application, Path(folder))
        found = figures(contender, json.loads(sys.argv[2]))
        contender.close()
    answers.write(json.dumps(found) + "\n")
    answers.flush()
    os._exit(0)  # the work of the bindings at exit is not measured


if __name__ == "__main__":
    main()
