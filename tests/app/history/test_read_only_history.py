"""The window shows a history that cannot be written, and says what it cannot do.

Permissions do not stop the root user, so the folder is mounted read-only, by a process with a mount namespace of its
own.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.engine.store.test_sqlite_read_only import can_mount

FILE = Path(__file__).with_name("read_only_tests.py")
ROOT = Path(__file__).parents[3]


@pytest.mark.slow
@pytest.mark.skipif(not can_mount(), reason="This test needs a read-only mount, by unshare of Linux.")
def test_history_in_a_read_only_folder() -> None:
    pytest_command = [sys.executable, "-m", "pytest", "-n", "0", "-p", "no:cacheprovider", str(FILE)]
    command = ["unshare", "--map-root-user", "--mount", *pytest_command]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
