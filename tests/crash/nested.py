"""The run that is killed: nested loops, and a model that logs the start and end of each call in a file.

As a program it is a small server: for each line `FOLDER SECONDS` it forks a process that runs the workflow, kept in
that folder, kills it after that time, and answers `killed` or `ended`. It starts no thread, so that it may fork.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from engine import RunOptions, Workflow, start
from engine.events import NodeCompleted
from engine.models.protocol import OnText, Price, Reply, Request, Usage
from engine.store import open_store
from tests.engine.semantics.documents import entry, flow, leave, llm, loop, result, transform

HISTORY = "history.sqlite3"
CALLS = "calls"
ACKNOWLEDGED = "acknowledged"
CALLS_S = (0.001, 0.008)
"""Durations of calls in turn: too short for the history to write anything meanwhile, and long enough."""


def nested() -> Workflow:
    """A workflow with nested loops, and a branch beside them."""
    return flow(
        entry(default="seed"),
        loop("outer", max_iterations=3),
        llm("plan"),
        loop("inner", max_iterations=3, feedback_mode="append"),
        llm("draft"),
        transform("mark", "{{input}}!"),
        llm("check"),
        leave("leave_inner", "inner"),
        leave("leave_outer", "outer"),
        llm("aside"),
        llm("last"),
        result(),
        result("other"),
        edges="""
            text -> outer -> plan -> inner -> draft -> mark -> check -> leave_inner -> leave_outer -> last -> out
            text -> aside -> other
        """,
    )


class CountingModel:
    """Replies by the call's path and prompt, and logs each call in a file, which a kill does not lose."""

    name = "counting/model"
    note = ""

    def __init__(self, folder: Path) -> None:
        self._notes = os.open(folder / CALLS, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._durations = itertools.cycle(CALLS_S)

    async def price(self) -> Price | None:
        return Price(0.0, 0.001)

    async def complete(self, request: Request, on_text: OnText | None = None) -> Reply:
        os.write(self._notes, f"begin {request.path}\n".encode())
        await asyncio.sleep(next(self._durations))
        text = f"{request.path} of {len(request.messages[-1].text)}"
        os.write(self._notes, f"end {request.path}\n".encode())
        return Reply(text, usage=Usage(3, 2), model=self.name)

    async def close(self) -> None:
        os.close(self._notes)


class CountingModels:
    """The one model, under any name."""

    def __init__(self, folder: Path) -> None:
        self._model = CountingModel(folder)

    def get(self, name: str, api_base: str | None = None) -> CountingModel:
        return self._model

    async def close(self) -> None:
        await self._model.close()


def options(folder: Path) -> RunOptions:
    """The options of the run."""
    return RunOptions(models=CountingModels(folder), default_model="counting/model")


async def _run(folder: Path) -> None:
    store = open_store(folder / HISTORY)
    acknowledged = os.open(folder / ACKNOWLEDGED, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    run = start(nested(), {}, replace(options(folder), store=store))
    async for event in run.events():
        if isinstance(event, NodeCompleted):
            os.write(acknowledged, f"{event.path}\n".encode())
    store.close()


async def _warm_up() -> None:
    """Import in this process what its forks need, to save their time."""
    import engine.store.sqlite.store  # noqa: F401

    with tempfile.TemporaryDirectory() as folder:
        await start(nested(), {}, options(Path(folder))).result()


def _serve() -> None:
    asyncio.run(_warm_up())
    for line in sys.stdin:
        folder, seconds = line.split()
        child = os.fork()
        if child == 0:
            code = 1
            try:
                asyncio.run(_run(Path(folder)))
                code = 0
            finally:
                os._exit(code)
        time.sleep(float(seconds))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        outcome = "killed" if os.WIFSIGNALED(status) else f"ended {os.WEXITSTATUS(status)}"
        sys.stdout.write(f"{outcome}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    _serve()
