from __future__ import annotations

from pathlib import Path

import pytest

from tests.engine.cli.kit import Program


@pytest.fixture
def program(capsys: pytest.CaptureFixture[str]) -> Program:
    return Program(capsys)


@pytest.fixture(autouse=True)
def history_file(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A separate history for the test, also for processes that it starts."""
    file = tmp_path_factory.mktemp("history") / "history.sqlite3"
    monkeypatch.setenv("LOOPWRIGHT_STORE", str(file))
    return file
