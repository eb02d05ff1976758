"""Files of other programs are offered for import, with a report."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication, QPushButton
from pytestqt.qtbot import QtBot

from app.controllers.document_controller import ReportDialog
from app.workbench import Workbench
from tests.app.window.conftest import Answers, answer, press, question
from tests.engine.importing.samples import DEV_CYCLE, evaluated
from tests.wording import mentions


def has_question(workbench: Workbench) -> bool:
    try:
        question(workbench.window)
    except AssertionError:
        return False
    return True


@pytest.mark.parametrize(
    ("name", "text", "node"), [("a.json", evaluated(), "loop_1"), ("a.yaml", DEV_CYCLE, "dev_cycle")]
)
def test_foreign_file_is_imported_as_an_unsaved_document(
    workbench: Workbench, qtbot: QtBot, tmp_path: Path, name: str, text: str, node: str
) -> None:
    file = tmp_path / name
    file.write_text(text, encoding="utf-8")
    workbench.documents.open_files([file])
    qtbot.waitUntil(lambda: has_question(workbench))
    assert question(workbench.window).text() == f"Import “{name}”?"
    assert workbench.current is None
    answer(workbench.window, "Import")
    assert workbench.current is not None
    assert workbench.current.session.path is None
    assert node in workbench.current.session.workflow.nodes_by_id
    assert workbench.current.bars.text("import").startswith(f"Imported from {name}: ")
    assert file.read_text(encoding="utf-8") == text


def test_import_report_lists_every_item(workbench: Workbench, qtbot: QtBot, tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(DEV_CYCLE + "secrets: {}\n", encoding="utf-8")
    workbench.documents.open_file(file)
    qtbot.waitUntil(lambda: has_question(workbench))
    answer(workbench.window, "Import")
    assert workbench.current is not None
    press(workbench.current.bars, "Show report")
    (dialog,) = workbench.window.findChildren(ReportDialog)
    lines = dialog.text.toPlainText().splitlines()
    assert lines[0] == "Left out (1)"
    assert mentions(lines[1], "  secrets: … no counterpart"), lines[1]
    (copy,) = [button for button in dialog.findChildren(QPushButton) if button.text() == "Copy"]
    copy.click()
    assert QApplication.clipboard().text() == dialog.text.toPlainText()
    dialog.reject()


def test_cancelled_import_opens_nothing(workbench: Workbench, qtbot: QtBot, tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text(evaluated(), encoding="utf-8")
    workbench.documents.open_file(file)
    qtbot.waitUntil(lambda: has_question(workbench))
    answer(workbench.window, "Cancel")
    assert workbench.current is None


def test_import_command_asks_for_a_file(workbench: Workbench, answers: Answers, qtbot: QtBot, tmp_path: Path) -> None:
    answers.to_read = tmp_path / "a.txt"  # whatever its name is
    answers.to_read.write_text(evaluated(), encoding="utf-8")

    workbench.actions_by_name["import"].trigger()
    qtbot.waitUntil(lambda: has_question(workbench))
    answer(workbench.window, "Import")

    assert workbench.current is not None
    assert "loop_1" in workbench.current.session.workflow.nodes_by_id


@pytest.mark.parametrize(("text", "reason"), [("a: !!binary aGk=", "tag:yaml.org,2002:binary"), ("a: 1", "is unknown")])
def test_file_that_cannot_be_imported_is_reported(
    workbench: Workbench, qtbot: QtBot, tmp_path: Path, text: str, reason: str
) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(text, encoding="utf-8")
    workbench.documents.open_file(file)
    qtbot.waitUntil(lambda: has_question(workbench))
    assert question(workbench.window).text() == "“a.yaml” cannot be imported."
    assert reason in question(workbench.window).informativeText()
