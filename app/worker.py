"""Work that may take its time, such as that on a disk, done in a thread for the window's thread.

A worker does one thing after the other, in the order asked for. Its thread lives only while there is something to do,
and touches nothing of Qt: whoever asked may be gone by the time that an answer comes, and then nobody is called.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from typing import Any, Final, TypeVar

from PySide6.QtCore import QObject, QTimer

from engine.errors import EngineError

ResultT = TypeVar("ResultT")

THREAD_NAME: Final = "loopwright worker"
LOOK_MS: Final = 8
"""How often answers are looked for while some are outstanding."""

_PAUSE_S: Final = 0.001


class _Line:
    """What waits to be done. It outlives the worker: what was asked for is done all the same."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: deque[Callable[[], None]] = deque()
        self._has_thread = False

    def add(self, work: Callable[[], None]) -> None:
        with self._lock:
            self._waiting.append(work)
            if self._has_thread:
                return
            self._has_thread = True
        threading.Thread(target=self._work, name=THREAD_NAME, daemon=True).start()

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._has_thread = False
                    return
                work = self._waiting.popleft()
            work()


class Worker(QObject):
    """Does work for an owner."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._line = _Line()
        self._answers: SimpleQueue[Callable[[], object]] = SimpleQueue()
        self._outstanding = 0
        self._timer = QTimer(self)
        self._timer.setInterval(LOOK_MS)
        self._timer.timeout.connect(self._look)

    @property
    def is_busy(self) -> bool:
        """Whether an answer is outstanding."""
        return self._outstanding > 0

    def ask(
        self,
        work: Callable[[], ResultT],
        answered: Callable[[ResultT], object] = lambda _result: None,
        failed: Callable[[EngineError], object] = lambda _error: None,
    ) -> None:
        """Do work after what was asked for before, and call `answered` or `failed` in the window's thread."""
        answers = self._answers
        self._outstanding += 1
        self._timer.start()
        self._line.add(lambda: answers.put(_outcome(work, answered, failed)))

    def _look(self) -> None:
        while not self._answers.empty():
            answer = self._answers.get()
            self._outstanding -= 1
            if not self._outstanding:
                self._timer.stop()
            answer()


def _outcome(
    work: Callable[[], Any], answered: Callable[[Any], object], failed: Callable[[EngineError], object]
) -> Callable[[], object]:
    """What there is to call in the window's thread, once the work is done."""
    try:
        return partial(answered, work())
    except EngineError as error:
        return partial(failed, error)
    except Exception as error:  # a fault of ours: raised where the program's guard tells it
        return partial(_raise, error)


def _raise(error: Exception) -> None:
    raise error


def give_way() -> None:
    """Let the other threads go on in the midst of work that computes, and would else hold up each of their steps."""
    time.sleep(_PAUSE_S)


def wait_for_workers(timeout_s: float) -> None:
    """Let all workers finish what was asked for, at the end of the program.

    Args:
        timeout_s: How long to wait for one of them, in seconds; a disk that does not answer is given up.
    """
    for thread in threading.enumerate():
        if thread.name == THREAD_NAME:
            thread.join(timeout_s)
