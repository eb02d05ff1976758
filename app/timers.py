"""Calls deferred to the event loop."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, QTimer


def call_later(owner: QObject, function: Callable[[], object], delay_ms: int = 0) -> None:
    """Call a function from the event loop, unless its owner is deleted first.

    `QTimer.singleShot` would then keep the function, and all that it refers to, until the program ends.

    Args:
        owner: The object that the call is for.
        function: What to call.
        delay_ms: Delay in milliseconds.
    """
    timer = QTimer(owner, singleShot=True, interval=delay_ms)
    timer.timeout.connect(timer.deleteLater)  # first, in case the function fails
    timer.timeout.connect(function)
    timer.start()
