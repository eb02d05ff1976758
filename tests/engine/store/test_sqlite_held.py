"""Two stores of one process at one file do not lose what other processes write, nor these what they write."""

from __future__ import annotations

import subprocess
import sys
from contextlib import closing
from pathlib import Path

from engine.store.sqlite import SqliteStore
from tests.architecture.project import ROOT
from tests.engine.store.kept import head, keep, whole


def test_a_second_store_of_a_process_leaves_the_first_ones_locks(tmp_path: Path):
    path = tmp_path / "h.sqlite3"
    command = [sys.executable, "-m", "tests.engine.store.child", str(path), "other", "20"]
    with closing(SqliteStore(path)) as first, closing(SqliteStore(path)) as second:
        keep(first, head("mine"), whole("mine"))
        subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, check=True)
        keep(first, head("later"), whole("later"))
        for store in (first, second):
            assert {run.run_id for run in store.runs()} == {"mine", "other", "later"}
    with closing(SqliteStore(path)) as again:
        assert {run.run_id for run in again.runs()} == {"mine", "other", "later"}
