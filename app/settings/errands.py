"""Work for a widget in the engine's thread: calls, keys, servers, whatever may take its time."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

from PySide6.QtCore import QObject
from shiboken6 import isValid

from app.bridge import EngineThread
from engine.errors import EngineError

ResultT = TypeVar("ResultT")


def send(
    owner: QObject,
    engine: EngineThread,
    work: Coroutine[Any, Any, ResultT],
    answered: Callable[[ResultT], None],
    failed: Callable[[EngineError], None],
) -> Future[ResultT]:
    """Do it, and tell the owner's functions what came of it, unless the owner is gone by then."""

    def to_answer(result: ResultT) -> None:
        if isValid(owner):
            answered(result)

    def to_fail(error: EngineError) -> None:
        if isValid(owner):
            failed(error)

    return engine.ask(work, to_answer, to_fail)
