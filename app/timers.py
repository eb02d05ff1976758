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


def call_between_frames(owner: QObject, *functions: Callable[[], object]) -> None:
    """Call functions one after another, each after a frame is painted and with time for events before the next.

    Args:
        owner: The object that the calls are for: none follows after it is deleted.
        functions: What to call.
    """
    waiting = iter(functions)

    def call_next() -> None:
        function = next(waiting, None)
        if function is not None:
            wait()  # first, in case the function fails
            function()

    def wait() -> None:
        # Timers elapse right after the frame, in the same turn of the event loop; a second one elapses in the next.
        call_later(owner, lambda: call_later(owner, call_next))

    wait()
