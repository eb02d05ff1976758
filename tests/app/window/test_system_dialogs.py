"""System dialogs and notifications, as far as they can be tested without a desktop."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QComboBox, QFileDialog, QLineEdit, QSystemTrayIcon
from pytestqt.qtbot import QtBot

from app.dialogs import SAVE_FILTER, FileDialogs, file_name_of
from app.window.document_page import DocumentPage
from app.workbench import Workbench
from engine.document.model import is_workflow_file
from tests.app.window.conftest import answer, ended, saved


def dialog(workbench: Workbench) -> QFileDialog:
    (found,) = (dialog for dialog in workbench.window.findChildren(QFileDialog) if dialog.isVisible())
    return found


def name_filters(box: QFileDialog) -> QComboBox:
    filters = box.findChild(QComboBox, "fileTypeCombo")
    assert filters is not None
    return filters


def choose_filter(box: QFileDialog, name_filter: str) -> None:
    """Choose a type of files as a person does: the combo box changes, then reports it."""
    filters = name_filters(box)
    filters.setCurrentIndex(filters.findText(f"({name_filter})", Qt.MatchFlag.MatchEndsWith))
    filters.activated.emit(filters.currentIndex())
    filters.textActivated.emit(filters.currentText())


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
    FileDialogs().save_file(workbench.window, tmp_path / "mine.loop.json", SAVE_FILTER, chosen.append)

    assert dialog(workbench).selectedFiles() == [str(tmp_path / "mine.loop.json")]
    dialog(workbench).accept()

    assert chosen == [tmp_path / "mine.loop.json"]


def test_only_a_file_that_would_be_replaced_is_asked_about(workbench: Workbench, tmp_path: Path) -> None:
    chosen: list[Path] = []
    file = tmp_path / "results.csv"
    file.touch()
    FileDialogs().save_file(workbench.window, file, "All files (*)", chosen.append, is_replaced=False)
    box = dialog(workbench)
    assert box.testOption(QFileDialog.Option.DontConfirmOverwrite)
    box.accept()
    assert chosen == [file]

    FileDialogs().save_file(workbench.window, file, "All files (*)", chosen.append)
    assert not dialog(workbench).testOption(QFileDialog.Option.DontConfirmOverwrite)


@pytest.mark.parametrize(
    ("suggested", "chosen_filter", "name"),
    [
        ("mine.loop.json", "*.loopwright", "mine.loopwright"),
        ("mine.loopwright", "*.loop.json", "mine.loop.json"),
        ("v1.2.loop.json", "*.loopwright", "v1.2.loopwright"),
        ("mine.loopwright", "*", "mine.loopwright"),
        ("my.draft", "*.loopwright", "my.draft.loopwright"),
        ("plain.json", "*.loopwright", "plain.loopwright"),
        ("X.LOOPWRIGHT", "*.loop.json", "X.loop.json"),
    ],
)
def test_both_suffixes_of_workflows_can_be_chosen(
    workbench: Workbench, tmp_path: Path, suggested: str, chosen_filter: str, name: str
) -> None:
    chosen: list[Path] = []
    FileDialogs().save_file(workbench.window, tmp_path / suggested, SAVE_FILTER, chosen.append)
    box = dialog(workbench)
    if is_workflow_file(suggested):
        assert suggested.lower().endswith(name_filters(box).currentText().partition("*")[2].rstrip(")"))
    choose_filter(box, chosen_filter)
    box.accept()

    assert chosen == [tmp_path / name]


def test_type_chosen_before_a_name_names_nothing(workbench: Workbench, tmp_path: Path) -> None:
    chosen: list[Path] = []
    FileDialogs().save_file(workbench.window, tmp_path / "mine.loop.json", SAVE_FILTER, chosen.append)
    box = dialog(workbench)
    field = box.findChild(QLineEdit, "fileNameEdit")
    assert field is not None
    field.clear()

    choose_filter(box, "*.loopwright")
    assert field.text() == ""
    QTest.keyClicks(field, "other")
    box.accept()

    assert chosen == [tmp_path / "other.loopwright"]


def test_name_with_a_dot_gets_the_suffix_of_the_filter_and_overwrites_nothing(
    workbench: Workbench, tmp_path: Path
) -> None:
    (tmp_path / "v1.6.loopwright").write_text("precious")
    chosen: list[Path] = []
    for name in ("v1.5", "v1.6"):
        FileDialogs().save_file(workbench.window, tmp_path / "mine.loopwright", SAVE_FILTER, chosen.append)
        dialog(workbench).selectFile(name)
        dialog(workbench).accept()

    assert chosen == [tmp_path / "v1.5.loopwright"]
    answer(workbench.window, "Replace")
    assert chosen == [tmp_path / "v1.5.loopwright", tmp_path / "v1.6.loopwright"]


def test_name_without_a_suffix_gets_that_of_the_filter(workbench: Workbench, tmp_path: Path) -> None:
    chosen: list[Path] = []
    FileDialogs().save_file(workbench.window, tmp_path / "mine.loopwright", SAVE_FILTER, chosen.append)

    dialog(workbench).selectFile("other")
    dialog(workbench).accept()

    assert chosen == [tmp_path / "other.loopwright"]


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
