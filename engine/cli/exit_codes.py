"""What the program's exit codes mean; scripts rely on them."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from enum import IntEnum
from types import FrameType
from typing import Any, Final, Self


class ExitCode(IntEnum):
    """How a command ended."""

    DONE = 0
    FAILED = 1
    REFUSED = 2
    """Wrong use, or a document, an input or a model name with which nothing can be started."""
    WAITING = 3
    """The run waits for a person; it is kept, and goes on with their answer."""
    INTERRUPTED = 130
    TERMINATED = 143
    """By SIGTERM, as a shell or a service manager sends it."""


_SHOW_CURSOR = "\x1b[?25h\n"
_CODES: Final = {signal.SIGINT: ExitCode.INTERRUPTED, signal.SIGTERM: ExitCode.TERMINATED}


class Interrupts:
    """While it is entered, Ctrl+C or SIGTERM calls `stop` first, and ends the process when one comes again.

    Only the main thread of a process may listen to signals; in any other one nothing is changed.

    Args:
        stop: Cancels the run. It is called between two instructions of the main thread.

    Attributes:
        code: The exit code by which the process tells that it was stopped.
    """

    def __init__(self, stop: Callable[[], object]) -> None:
        self.code = ExitCode.INTERRUPTED
        self._stop = stop
        self._before: dict[signal.Signals, Any] = {}
        self._count = 0

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in _CODES:
                self._before[number] = signal.signal(number, self._interrupted)
        return self

    def __exit__(self, *_: object) -> None:
        for number, before in self._before.items():
            if before is not None:
                signal.signal(number, before)

    def _interrupted(self, number: int, _frame: FrameType | None) -> None:
        self._count += 1
        if self._count == 1:
            self.code = _CODES[signal.Signals(number)]
            self._stop()
            return
        # Whatever hangs must not keep the process alive: no clean-up, but a terminal that can be used.
        for stream in (sys.stdout, sys.stderr):
            if stream.isatty():
                os.write(stream.fileno(), _SHOW_CURSOR.encode())
        os._exit(self.code)
