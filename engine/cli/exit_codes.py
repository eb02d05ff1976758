"""Exit codes, on which scripts rely, and the handling of Ctrl+C and SIGTERM during a run."""

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
    """Exit code of a command."""

    DONE = 0
    FAILED = 1
    REFUSED = 2
    """Wrong usage, or an invalid document, input or model name; nothing was started."""
    WAITING = 3
    """The run is stored and waits for a person's answer."""
    INTERRUPTED = 130
    TERMINATED = 143
    """By SIGTERM, or SIGBREAK on Windows."""


_SHOW_CURSOR = "\x1b[?25h\n"
_CODES: Final = {signal.SIGINT: ExitCode.INTERRUPTED, signal.SIGTERM: ExitCode.TERMINATED}
_BREAK: Final[signal.Signals | None] = getattr(signal, "SIGBREAK", None)
if _BREAK is not None:  # on Windows: Ctrl+Break, and what a program sends to stop one that it started
    _CODES[_BREAK] = ExitCode.TERMINATED


class Interrupts:
    """Context manager: the first Ctrl+C or SIGTERM calls `stop`, the second ends the process.

    Has no effect outside of the main thread, which alone may handle signals.

    Args:
        stop: Cancels the run. Called as a signal handler.

    Attributes:
        code: The exit code for a process that was stopped.
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
        # No clean-up, which may hang; only make the terminal usable again.
        for stream in (sys.stdout, sys.stderr):
            if stream.isatty():
                os.write(stream.fileno(), _SHOW_CURSOR.encode())
        os._exit(self.code)
