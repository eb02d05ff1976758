"""Background workers: slow work, such as disk access, in a thread, with callbacks in the window's thread.

A worker does its tasks in order. Its thread exists only while there are tasks, and does not touch Qt: if the worker is
deleted meanwhile, no callback is called.
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
"""Interval in which results are collected while tasks are outstanding."""

_PAUSE_S: Final = 0.001


class _Queue:
    """The queue of tasks. It outlives the worker: all tasks are done."""

    def __init__(self, thread_name: str) -> None:
        self._thread_name = thread_name
        self._lock = threading.Lock()
        self._waiting: deque[Callable[[], None]] = deque()
        self._has_thread = False

    def add(self, work: Callable[[], None]) -> None:
        with self._lock:
            self._waiting.append(work)
            if self._has_thread:
                return
            self._has_thread = True
        threading.Thread(target=self._work, name=self._thread_name, daemon=True).start()

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._has_thread = False
                    return
                work = self._waiting.popleft()
            work()


class Worker(QObject):
    """Does tasks for its parent.

    Args:
        parent: The parent.
        is_awaited: Whether `wait_for_workers` waits for its tasks.
    """

    def __init__(self, parent: QObject, *, is_awaited: bool = True) -> None:
        super().__init__(parent)
        self._queue = _Queue(THREAD_NAME if is_awaited else f"{THREAD_NAME} in the background")
        self._answers: SimpleQueue[Callable[[], object]] = SimpleQueue()
        self._outstanding = 0
        self._superseded = threading.Event()
        self._timer = QTimer(self, interval=LOOK_MS)
        self._timer.timeout.connect(self._collect)

    @property
    def is_busy(self) -> bool:
        """Whether a task is outstanding."""
        return self._outstanding > 0

    def ask(
        self,
        work: Callable[[], ResultT],
        answered: Callable[[ResultT], object] = lambda _result: None,
        failed: Callable[[EngineError], object] = lambda _error: None,
    ) -> None:
        """Do a task after the earlier ones, and call `answered` or `failed` in the window's thread."""
        answers, superseded = self._answers, self._superseded

        def unless_superseded(act: Callable[[Any], object]) -> Callable[[Any], object]:
            return lambda result: None if superseded.is_set() else act(result)

        self._outstanding += 1
        self._timer.start()
        self._queue.add(lambda: answers.put(_outcome(work, unless_superseded(answered), unless_superseded(failed))))

    def supersede(self) -> Callable[[], bool]:
        """Ignore the answers to all tasks so far, because the next ones ask for something else.

        Returns:
            A function that returns whether the next tasks have been superseded as well; a task may call it.
        """
        self._superseded.set()
        self._superseded = threading.Event()
        return self._superseded.is_set

    def _collect(self) -> None:
        while not self._answers.empty():
            answer = self._answers.get()
            self._outstanding -= 1
            if not self._outstanding:
                self._timer.stop()
            answer()


def _outcome(
    work: Callable[[], Any], answered: Callable[[Any], object], failed: Callable[[EngineError], object]
) -> Callable[[], object]:
    """Do the task, and return what to call in the window's thread."""
    try:
        return partial(answered, work())
    except EngineError as error:
        return partial(failed, error)
    except Exception as error:  # a bug: raised in the window's thread, where it is reported
        return partial(_raise, error)


def _raise(error: Exception) -> None:
    raise error


def yield_to_other_threads() -> None:
    """Sleep briefly during a long computation, so that other threads get the interpreter lock."""
    time.sleep(_PAUSE_S)


def wait_for_workers(timeout_s: float) -> None:
    """Wait until all awaited workers have done their tasks, at the end of the program.

    Args:
        timeout_s: How long to wait for each of them, in seconds.
    """
    for thread in threading.enumerate():
        if thread.name == THREAD_NAME:
            thread.join(timeout_s)
