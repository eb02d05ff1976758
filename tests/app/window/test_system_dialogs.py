"""System dialogs and notifications, as far as they can be tested without a desktop."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QFileDialog, QSystemTrayIcon
from pytestqt.qtbot import QtBot

from app.dialogs import FILTER, FileDialogs, file_name_of
from app.window.document_page import DocumentPage
from app.workbench import Workbench
from tests.app.window.conftest import ended, saved


def dialog(workbench: Workbench) -> QFileDialog:
    (found,) = (dialog for dialog in workbench.window.findChildren(QFileDialog) if dialog.isVisible())
    return found


def test_files_are_chosen_in_the_system_dialog(workbench: Workbench, tmp_path: Path, qtbot: QtBot) -> None:
    path = saved(tmp_path)
    chosen: list[list[Path]] = []
    FileDialogs().open_files(workbench.window, chosen.append)

    box = dialog(workbench)
    assert not box.isModal() or box.windowModality() is Qt.WindowModality.WindowModal
    box.setDirectory(str(tmp_path))
    box.selectFile(str(path))
    box.accept()

    assert chosen == [[path]]


def test_text_file_is_chosen_in_the_system_dialog(workbench: Workbench, tmp_path: Path) -> None:
    path = tmp_path / "value.txt"
    path.write_text("x")
    chosen: list[Path] = []
    FileDialogs().open_text(workbench.window, chosen.append)

    dialog(workbench).selectFile(str(path))
    dialog(workbench).accept()

    assert chosen == [path]


def test_save_dialog_suggests_a_path(workbench: Workbench, tmp_path: Path) -> None:
    chosen: list[Path] = []
    FileDialogs().save_file(workbench.window, tmp_path / "mine.loop.json", FILTER, chosen.append)

    assert dialog(workbench).selectedFiles() == [str(tmp_path / "mine.loop.json")]
    dialog(workbench).accept()

    assert chosen == [tmp_path / "mine.loop.json"]


def test_cancelled_dialog_chooses_nothing(workbench: Workbench) -> None:
    chosen: list[list[Path]] = []
    FileDialogs().open_files(workbench.window, chosen.append)

    dialog(workbench).reject()

    assert chosen == []


def test_end_of_a_run_is_shown_by_the_system_tray(
    workbench: Workbench, self_refine: DocumentPage, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    reported: list[str] = []
    monkeypatch.setattr(workbench.window, "isActiveWindow", lambda: False)
    monkeypatch.setattr(QSystemTrayIcon, "isSystemTrayAvailable", lambda: True)
    monkeypatch.setattr(QSystemTrayIcon, "show", lambda _self: None)
    monkeypatch.setattr(QSystemTrayIcon, "showMessage", lambda _self, _title, text, _icon: reported.append(text))

    for _ in range(2):
        QTest.keyClick(workbench.window, Qt.Key.Key_F5)
        ended(self_refine, qtbot)

    assert len(reported) == 2
    assert reported[0].startswith("“Self-Refine” is done after ")


def test_notifications_can_be_disabled(
    workbench: Workbench, self_refine: DocumentPage, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workbench.window, "isActiveWindow", lambda: False)
    workbench.preferences.set(notify_when_done=False)

    QTest.keyClick(workbench.window, Qt.Key.Key_F5)
    ended(self_refine, qtbot)

    assert workbench.notifier.last_text == ""


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("Self-Refine", "self-refine"),
        (" a/b:c ", "a-b-c"),
        ("…", "workflow"),
        ("CON", "con-workflow"),
        ("日本", "日本"),
    ],
)
def test_title_becomes_a_file_name_that_every_system_allows(title: str, name: str) -> None:
    assert file_name_of(title, "workflow") == name
