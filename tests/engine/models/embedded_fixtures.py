"""Child processes of models in the embedded runtime, the real one or a program of the test."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from engine.models.embedded import EmbeddedModel
from engine.models.protocol import Message, ModelError, Request

HELLO = Request((Message("user", "Hi"),), max_tokens=2)
READY = "print(json.dumps({'tell': 'ready'}), flush=True)\n"
TAKE = "request = json.loads(sys.stdin.readline())\n"
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="uses Linux's own limits and ways to watch processes")

CloseLater = Callable[[EmbeddedModel], EmbeddedModel]
Worker = Callable[[str], Path]


@pytest.fixture(name="close_later")
async def close_later_fixture() -> AsyncIterator[CloseLater]:
    """Closes models after the test."""
    async with AsyncExitStack() as stack:

        def close_later(model: EmbeddedModel) -> EmbeddedModel:
            stack.push_async_callback(model.close)
            return model

        yield close_later


@pytest.fixture(name="worker")
def worker_fixture(tmp_path: Path) -> Worker:
    """Writes a program that the child runs instead of the real one; it has already read its settings."""

    def write(program: str) -> Path:
        file = tmp_path / "worker.py"
        file.write_text(f"import json, os, signal, sys, time\nsettings = json.loads(sys.stdin.readline())\n{program}")
        return file

    return write


async def failure_of(model: EmbeddedModel, request: Request = HELLO) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await model.complete(request)
    assert "\n" not in str(caught.value)
    return caught.value


def process_id(model: EmbeddedModel) -> int | None:
    """The id of the child process; None if none runs."""
    process = model._child._process if model._child else None
    return process.pid if process else None


def wait_for_end(process_id: int) -> None:
    """Wait until a process that need not be our child has ended."""
    try:
        descriptor = os.pidfd_open(process_id)
    except ProcessLookupError:
        return
    try:
        watcher = select.poll()
        watcher.register(descriptor, select.POLLIN)
        assert watcher.poll(20_000), f"process {process_id} is still there"
    finally:
        os.close(descriptor)
