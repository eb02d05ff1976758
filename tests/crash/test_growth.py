"""A process killed at any page of the history: the next start resumes with everything acknowledged."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from engine.store import open_store
from tests.architecture.project import ROOT
from tests.crash.growing import ACKNOWLEDGED, HISTORY
from tests.engine.store.run_samples import complete_run, head, store_run

STEP = 8_192
COUNT = 36
"""With the last limits, no process is killed."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="it forks, and limits files as POSIX systems do"),
]


def test_process_killed_at_any_page_leaves_a_usable_history(tmp_path: Path):
    command = [sys.executable, "-m", "tests.crash.growing", str(tmp_path), str(STEP), str(COUNT)]
    killed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout

    assert COUNT / 2 < int(killed) < COUNT, "from the first page to the end"
    for number in range(1, COUNT + 1):
        _check(tmp_path / str(number))


def _check(folder: Path) -> None:
    acknowledged = (folder / ACKNOWLEDGED).read_text().split()
    with closing(open_store(folder / HISTORY)) as store:
        runs = {run.run_id for run in store.runs()}
        assert runs <= ({"a"} if "deleted" in acknowledged else {"a", "b"}), folder
        stored = [event.seq for event in store.events("a")] if "a" in runs else []
        safe = [int(word) for word in acknowledged if word.isdecimal()]
        assert stored[: len(safe)] == safe, folder
        store_run(store, head("next"), complete_run("next"))
        assert list(store.events("next")) == complete_run("next")
    with closing(sqlite3.connect(folder / HISTORY)) as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)], folder
        assert database.execute("PRAGMA auto_vacuum").fetchone() == (2,), folder
    assert {file.name for file in folder.iterdir()} == {HISTORY, ACKNOWLEDGED}
