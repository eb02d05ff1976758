"""A history that cannot be opened: the window says so in its own terms, and offers what helps as buttons."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from app.workbench import Workbench
from engine.store import open_store
from tests.app.window.conftest import Answers, MakeWindow, ended, open_file, press, saved


def damaged(path: Path) -> None:
    path.write_bytes(b"no database" * 500)


def newer(path: Path) -> None:
    open_store(path).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 1000")
        connection.commit()


def other_program(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE notes (text)")
        connection.commit()


def folder(path: Path) -> None:
    path.mkdir()


@pytest.fixture
def without_history(make_window: MakeWindow, store_path: Path, qtbot: QtBot) -> Callable[[], Workbench]:
    def open_window() -> Workbench:
        workbench = make_window()
        workbench.store_access.path = store_path.with_name("other.sqlite3")
        workbench.history.access.close()
        workbench.history.access.open()
        qtbot.waitUntil(lambda: bool(workbench.notices.text("history")))
        workbench.bottom_panel.unfold("runs")
        return workbench

    return open_window


@pytest.mark.parametrize("spoil", [damaged, newer, other_program, folder])
def test_failure_names_no_command_and_offers_buttons(
    without_history: Callable[[], Workbench], store_path: Path, spoil: Callable[[Path], None]
) -> None:
    path = store_path.with_name("other.sqlite3")
    spoil(path)
    workbench = without_history()

    texts = [workbench.notices.text("history"), workbench.history.panel.empty.text()]
    for text in texts:
        assert str(path) in text
        assert not any(word in text for word in ("--", "LOOPWRIGHT", "environment", "'loopwright"))
    titles = {button.text() for button in workbench.notices.findChildren(QPushButton) if button.isVisible()}
    assert titles >= {"Try again", "Choose another history…", "Open folder"}
    assert workbench.history.panel.other_history.isVisible()


def test_another_history_can_be_chosen(
    without_history: Callable[[], Workbench], store_path: Path, answers: Answers, qtbot: QtBot
) -> None:
    damaged(store_path.with_name("other.sqlite3"))
    workbench = without_history()

    press(workbench.notices, "Choose another history…")  # and cancelled: the message stays
    assert workbench.notices.text("history")
    answers.to_read = store_path
    press(workbench.history.panel, "Choose another history…")
    qtbot.waitUntil(lambda: workbench.history.access.store is not None)
    qtbot.waitUntil(lambda: not workbench.notices.text("history"))
    assert not workbench.history.panel.other_history.isVisible()


def test_history_that_cannot_be_opened_does_not_replace_another(
    without_history: Callable[[], Workbench], store_path: Path, answers: Answers, qtbot: QtBot
) -> None:
    own, chosen = store_path.with_name("other.sqlite3"), store_path.with_name("chosen.sqlite3")
    damaged(own)
    damaged(chosen)
    workbench = without_history()

    answers.to_read = chosen
    press(workbench.notices, "Choose another history…")
    qtbot.waitUntil(lambda: str(chosen) in workbench.notices.text("history"))
    assert workbench.store_access.path == own

    own.unlink()
    press(workbench.notices, "Try again")
    qtbot.waitUntil(lambda: workbench.store_access.writable is not None)
    assert own.exists()


def test_run_from_before_the_history_was_opened_is_not_in_it(
    without_history: Callable[[], Workbench], store_path: Path, answers: Answers, tmp_path: Path, qtbot: QtBot
) -> None:
    damaged(store_path.with_name("other.sqlite3"))
    workbench = without_history()
    document = open_file(workbench, saved(tmp_path))
    workbench.runs.run(document)
    ended(document, qtbot)
    answers.to_read = store_path
    press(workbench.notices, "Choose another history…")
    qtbot.waitUntil(lambda: workbench.store_access.writable is not None)

    workbench.history.export_run(document)
    assert "Only a stored run" in workbench.status_bar.refusal.text()
    assert not document.is_stored()
    workbench.runs.run(document)
    ended(document, qtbot)
    assert document.is_stored()


def test_folder_of_the_history_can_be_opened(
    without_history: Callable[[], Workbench], store_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    damaged(store_path.with_name("other.sqlite3"))
    workbench = without_history()
    opened: list[str] = []
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda url: opened.append(url.toLocalFile()))

    press(workbench.notices, "Open folder")
    assert opened == [str(store_path.parent)]
    assert workbench.notices.text("history")
