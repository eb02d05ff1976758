"""The system's own dialogs and notifications, as far as they can be driven without a desktop."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QFileDialog, QSystemTrayIcon
from pytestqt.qtbot import QtBot

from app.dialogs import FILTER, SystemFileDialogs
from app.window.document_page import DocumentPage
from app.window.main_window import MainWindow
from tests.app.window.conftest import ended, saved


def dialog(window: MainWindow) -> QFileDialog:
    (found,) = (dialog for dialog in window.findChildren(QFileDialog) if dialog.isVisible())
    return found


def test_files_are_chosen_in_the_system_s_dialog(window: MainWindow, tmp_path: Path, qtbot: QtBot) -> None:
    path = saved(tmp_path)
    chosen: list[list[Path]] = []
    SystemFileDialogs().open_files(window, chosen.append)

    box = dialog(window)
    assert not box.isModal() or box.windowModality() is Qt.WindowModality.WindowModal
    box.setDirectory(str(tmp_path))
    box.selectFile(str(path))
    box.accept()

    assert chosen == [[path]]


def test_one_file_is_chosen_to_be_read(window: MainWindow, tmp_path: Path) -> None:
    path = tmp_path / "value.txt"
    path.write_text("x")
    chosen: list[Path] = []
    SystemFileDialogs().open_text(window, chosen.append)

    dialog(window).selectFile(str(path))
    dialog(window).accept()

    assert chosen == [path]


def test_a_place_to_save_is_suggested(window: MainWindow, tmp_path: Path) -> None:
    chosen: list[Path] = []
    SystemFileDialogs().save_file(window, tmp_path / "mine.loop.json", FILTER, chosen.append)

    assert dialog(window).selectedFiles() == [str(tmp_path / "mine.loop.json")]
    dialog(window).accept()

    assert chosen == [tmp_path / "mine.loop.json"]


def test_a_dialog_that_is_cancelled_chooses_nothing(window: MainWindow) -> None:
    chosen: list[list[Path]] = []
    SystemFileDialogs().open_files(window, chosen.append)

    dialog(window).reject()

    assert chosen == []


def test_the_end_of_a_run_is_told_by_the_tray_where_there_is_one(
    window: MainWindow, self_refine: DocumentPage, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    monkeypatch.setattr(window, "isActiveWindow", lambda: False)
    monkeypatch.setattr(QSystemTrayIcon, "isSystemTrayAvailable", lambda: True)
    monkeypatch.setattr(QSystemTrayIcon, "show", lambda _self: None)
    monkeypatch.setattr(QSystemTrayIcon, "showMessage", lambda _self, _title, text, _icon: told.append(text))

    for _ in range(2):
        QTest.keyClick(window, Qt.Key.Key_F5)
        ended(self_refine, qtbot)

    assert len(told) == 2
    assert told[0].startswith("“Self-Refine” is done after ")


def test_no_end_is_told_where_it_is_not_wanted(
    window: MainWindow, self_refine: DocumentPage, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(window, "isActiveWindow", lambda: False)
    window.preferences.set(notify_when_done=False)

    QTest.keyClick(window, Qt.Key.Key_F5)
    ended(self_refine, qtbot)

    assert window.notifier.told == ""
