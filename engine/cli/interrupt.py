"""Ctrl+C during a run: the first one stops it in good order, the second one ends the program at once."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Self

from engine.cli.exit_codes import ExitCode

_SHOW_CURSOR = "\x1b[?25h\n"


class Interrupts:
    """While it is entered, Ctrl+C calls `stop` first, and ends the process when it comes again.

    Only the main thread of a process may listen to signals; in any other one nothing is changed.

    Args:
        stop: Stops the run in good order. It is called between two instructions of the main thread.
    """

    def __init__(self, stop: Callable[[], object]) -> None:
        self._stop = stop
        self._before: object = None
        self._count = 0

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._interrupted)
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)  # pyright: ignore[reportArgumentType] - what it was before

    def _interrupted(self, _number: int, _frame: FrameType | None) -> None:
        self._count += 1
        if self._count == 1:
            self._stop()
            return
        # Whatever hangs must not keep the process alive: no clean-up, but a terminal that can be used.
        for stream in (sys.stdout, sys.stderr):
            if stream.isatty():
                os.write(stream.fileno(), _SHOW_CURSOR.encode())
        os._exit(ExitCode.INTERRUPTED)
