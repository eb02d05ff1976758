"""Event loops of the engine."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from concurrent.futures import Future, wait
from typing import Any

import pytest

from engine.runner import event_loop
from engine.runner.event_loop import run_in_background_loop


def test_wait_of_limited_steps_lasts_until_the_coroutine_ends(monkeypatch: pytest.MonkeyPatch):
    steps: list[float] = []
    enough = asyncio.Event()

    def step(futures: Collection[Future[Any]], timeout: float) -> None:
        steps.append(timeout)
        if len(steps) == 3:
            event_loop._background_loop().call_soon_threadsafe(enough.set)
        wait(futures, timeout)

    async def work() -> str:
        await asyncio.wait_for(enough.wait(), 60)
        return "done"

    monkeypatch.setattr(event_loop, "WAIT_S", 0.001)
    monkeypatch.setattr(event_loop, "wait", step)
    assert run_in_background_loop(work()) == "done"
    assert set(steps) == {0.001}
