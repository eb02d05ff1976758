"""Measure frames, gaps and memory, for both workers of the window."""

from __future__ import annotations

import gc
import os
import statistics
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

from PySide6.QtCore import QCoreApplication, QEvent, QEventLoop, QObject, Qt, QTimer
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget

_STATM = Path("/proc/self/statm")
STEP_AFTER_MS = 20
"""Delay of a measured step, so that the timer that measures is running."""


class Paints(QObject):
    """Counts how often a widget is painted."""

    def __init__(self, widget: QWidget) -> None:
        super().__init__(widget)
        self.number = 0
        widget.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802 - Qt's name
        """Count."""
        self.number += event.type() is QEvent.Type.Paint
        return False


def frame_ms(view: QWidget, step: Callable[[int], object], frames: int) -> float:
    """The median time of a step and of painting what it changed, in milliseconds.

    Raises:
        RuntimeError: Not every step was painted.
    """
    for place in range(3):  # the first drawing does not count
        step(place)
        QApplication.processEvents()
    paints, spans = Paints(view), list[float]()
    for place in range(frames):
        begin = time.perf_counter()
        step(place)
        QApplication.processEvents()
        spans.append(time.perf_counter() - begin)
    if paints.number < frames:
        raise RuntimeError(f"Of {frames} frames {paints.number} were painted.")
    return statistics.median(spans) * 1e3


def largest_gap_ms(while_: Callable[[], bool]) -> float:
    """The longest time in which the window's thread handled no event, in milliseconds."""
    ticks = [time.perf_counter()]
    timer = QTimer()
    timer.setTimerType(Qt.TimerType.PreciseTimer)
    timer.timeout.connect(lambda: ticks.append(time.perf_counter()))
    timer.start(1)
    while while_():
        QApplication.processEvents(QEventLoop.ProcessEventsFlag.WaitForMoreEvents)
    timer.stop()
    ticks.append(time.perf_counter())
    return max(after - before for before, after in pairwise(ticks)) * 1e3


def gap_of_ms(step: Callable[[], object], *, watched_s: float = 1.0) -> float:
    """The longest time in which a step, and what follows it, blocks the window's thread, in milliseconds."""
    end = time.perf_counter() + watched_s
    timer = QTimer(singleShot=True, interval=STEP_AFTER_MS)
    timer.timeout.connect(step)
    timer.start()
    return largest_gap_ms(lambda: time.perf_counter() < end)


def settle(milliseconds: int = 100) -> None:
    """Process all pending events and deletions, and collect garbage."""
    QTest.qWait(milliseconds)
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    gc.collect()


def memory_mb() -> float | None:
    """Resident memory of the process in megabytes; None if unknown."""
    if not _STATM.exists():
        return None
    return int(_STATM.read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def growth_mb(before: float | None) -> float | None:
    """The growth of memory since then."""
    now = memory_mb()
    return None if now is None or before is None else now - before
