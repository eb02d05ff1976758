"""Garbage collection in the window's thread only.

Python collects cycles in whatever thread allocates. If a cycle holds a Qt object, another thread destroys it, and can
wait forever for the window's thread, which waits for the interpreter.
"""

from __future__ import annotations

import gc
import time
from typing import Final

from PySide6.QtCore import QObject, QTimer

INTERVAL_MS: Final = 100
_FULL_SHARE: Final = 0.01
"""Largest part of the time for full collections, which take longer the more objects there are."""


class GarbageCollector(QObject):
    """Turns Python's automatic collections off, and collects with the same thresholds on a timer.

    Args:
        parent: An object of the window's thread.
    """

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        gc.disable()
        self._next_full = 0.0
        self._timer = QTimer(self, interval=INTERVAL_MS)
        self._timer.timeout.connect(self.collect)
        self._timer.start()

    def collect(self) -> int | None:
        """Collect the oldest generation whose threshold is exceeded.

        Returns:
            The generation; None if no threshold is exceeded.
        """
        exceeded = [count > most for count, most in zip(gc.get_count(), gc.get_threshold(), strict=True)]
        if not exceeded[0]:
            return None
        generation = 0
        if exceeded[1]:
            generation = 2 if exceeded[2] and time.monotonic() >= self._next_full else 1
        started = time.monotonic()
        gc.collect(generation)
        if generation == 2:
            now = time.monotonic()
            self._next_full = now + (now - started) / _FULL_SHARE
        return generation
