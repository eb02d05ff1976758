"""A run killed at any moment: everything acknowledged is stored, and it resumes without paying twice."""

from __future__ import annotations

import random
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from engine import start
from engine.events import NodeCalled, NodeCompleted
from engine.store import open_store
from engine.store.resume import resume, unknown_calls
from engine.store.store_protocol import RunStatus, Store
from tests.crash.nested import ACKNOWLEDGED, CALLS, HISTORY, nested, options

KILLS = 200
LONGEST_S = 0.35
"""A little longer than the whole run."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="it forks and kills as POSIX systems do"),
]


class Killer:
    """Runs the workflow in processes, and kills them."""

    def __init__(self) -> None:
        self._server = subprocess.Popen(
            [sys.executable, "-m", "tests.crash.nested"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(self, folder: Path, seconds: float) -> str:
        """Run it in a process, kill it after that time unless it has ended, and return the exit status."""
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(f"{folder} {seconds}\n")
        self._server.stdin.flush()
        return self._server.stdout.readline().strip()

    def close(self) -> None:
        assert self._server.stdin is not None
        self._server.stdin.close()
        assert self._server.wait(30) == 0
        assert self._server.stdout is not None
        self._server.stdout.close()


@pytest.fixture
def killer() -> Iterator[Killer]:
    with closing(Killer()) as one:
        yield one


def noted(folder: Path, what: str) -> Counter[str]:
    """The number of logged starts or ends of the calls of each path."""
    file = folder / CALLS
    lines = file.read_text().splitlines() if file.exists() else []
    return Counter(path for kind, _, path in (line.partition(" ") for line in lines) if kind == what)


def acknowledged(folder: Path) -> list[str]:
    file = folder / ACKNOWLEDGED
    return file.read_text().splitlines() if file.exists() else []


def completed(store: Store, run_id: str) -> list[str]:
    return [event.path for event in store.events(run_id, kinds={NodeCompleted})]


def finished_calls(store: Store, run_id: str) -> set[str]:
    return {event.path for event in store.events(run_id, kinds={NodeCalled})}


async def test_run_killed_at_any_moment_loses_nothing_and_pays_nothing_twice(killer: Killer, tmp_path: Path) -> None:
    whole_folder = tmp_path / "whole"
    whole_folder.mkdir()
    expected = (await start(nested(), {}, options(whole_folder)).result()).outputs
    chance = random.Random(20261128)
    outcomes: Counter[str] = Counter()
    for number in range(KILLS):
        folder = tmp_path / str(number)
        folder.mkdir()
        killer.run(folder, chance.uniform(0, LONGEST_S))
        outcomes[await check(folder, expected)] += 1

    assert outcomes["resumed"] > KILLS / 4, outcomes
    assert sum(outcomes.values()) == KILLS


async def check(folder: Path, expected: dict[str, Any]) -> str:
    """Compare a folder with what was acknowledged, and resume the run."""
    with closing(open_store(folder / HISTORY)) as store:
        with closing(sqlite3.connect(folder / HISTORY)) as database:
            assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        runs = store.runs()
        if not runs:
            assert acknowledged(folder) == []
            assert noted(folder, "begin") == Counter()
            return "not begun"
        (run,) = runs
        assert set(acknowledged(folder)) <= set(completed(store, run.run_id))
        if run.status is RunStatus.COMPLETED:
            return "had ended"
        assert run.status is RunStatus.INTERRUPTED
        unknown = {call.path for call in unknown_calls(store, run.run_id)}
        assert set(noted(folder, "begin")) <= unknown | finished_calls(store, run.run_id)
        going_on = resume(store, run.run_id, options(folder), retry_in_flight=True)
        result = await going_on.result()
        assert (result.status, result.outputs) == ("completed", expected)
        for path, times in noted(folder, "end").items():
            assert times == 1 or (times == 2 and path in unknown), path
        paths = completed(store, run.run_id)
        assert len(paths) == len(set(paths))
        assert store.find(run.run_id).status is RunStatus.COMPLETED
        return "resumed"
