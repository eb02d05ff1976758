"""An event loop whose clock jumps to the next timer when there is nothing else to do.

A wait of an hour takes no time and ends exactly when it should, so waits can be compared to the second. Only for
coroutines without threads: the clock does not wait for a thread.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _JumpingSelector(selectors.DefaultSelector):  # type: ignore[misc, valid-type]
    now = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is None or timeout <= 0:
            return super().select(timeout)
        ready = super().select(0)
        if not ready:
            self.now += timeout
        return ready


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """An event loop with its own clock, which starts at 0."""

    def __init__(self) -> None:
        self._clock = _JumpingSelector()
        super().__init__(self._clock)

    def time(self) -> float:
        return self._clock.now

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:  # noqa: ASYNC109 - asyncio's
        """Wait for threads without a timeout: since Python 3.12 there is one, which this clock reaches at once."""
        await super().shutdown_default_executor()


def virtually(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on a loop whose waits take no time."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(main)
