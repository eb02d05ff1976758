"""Two stores of one process on one file keep each other's locks."""

from __future__ import annotations

import subprocess
import sys
from contextlib import closing
from pathlib import Path

from engine.store.sqlite import SqliteStore
from tests.architecture.project import ROOT
from tests.engine.store.run_samples import complete_run, head, store_run


def test_second_store_in_a_process_keeps_the_locks_of_the_first(tmp_path: Path):
    path = tmp_path / "h.sqlite3"
    command = [sys.executable, "-m", "tests.engine.store.writing_process", str(path), "other", "20"]
    with closing(SqliteStore(path)) as first, closing(SqliteStore(path)) as second:
        store_run(first, head("mine"), complete_run("mine"))
        subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, check=True)
        store_run(first, head("later"), complete_run("later"))
        for store in (first, second):
            assert {run.run_id for run in store.runs()} == {"mine", "other", "later"}
    with closing(SqliteStore(path)) as again:
        assert {run.run_id for run in again.runs()} == {"mine", "other", "later"}
