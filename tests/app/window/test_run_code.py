"""Code of a document runs only once a person has ticked the box for it."""

from __future__ import annotations

import json
from pathlib import Path

from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from app.window.main_window import MainWindow
from tests.app.window.test_runs import ended, form

SHIFT = Qt.KeyboardModifier.ShiftModifier


def test_the_first_run_asks_and_what_was_answered_counts_for_the_next(
    window: MainWindow, tmp_path: Path, qtbot: QtBot
) -> None:
    nodes = [
        {"id": "code", "type": "tool", "config": {"tool": "python", "arguments": {"code": "print(6 * 7)"}}},
        {"id": "out", "type": "output", "config": {}},
    ]
    edges = [{"from": "code.output", "to": "out.value"}]
    file = tmp_path / "code.loop.json"
    content = {"format": "loopwright.workflow", "version": 1, "name": "Code", "nodes": nodes, "edges": edges}
    file.write_text(json.dumps(content))
    window.documents.open_file(file)
    document = window.current
    assert document is not None
    document.session.is_trusted = True  # that it is no stranger's is another question than whether it may run code

    QTest.keyClick(window, Qt.Key.Key_F5)
    dialog = form(window)
    assert dialog.code.isVisible()
    assert not dialog.code.isChecked()
    QTest.mouseClick(dialog.code, Qt.MouseButton.LeftButton, pos=QPoint(8, dialog.code.height() // 2))
    QTest.mouseClick(dialog.run, Qt.MouseButton.LeftButton)
    ended(document, qtbot)
    assert document.session.picture is not None
    assert document.session.picture.outputs == {"out": {"exit_code": 0, "stdout": "42\n", "stderr": ""}}

    QTest.keyClick(window, Qt.Key.Key_F5)
    ended(document, qtbot)
    assert document.session.picture.status == "completed"


def test_a_document_without_code_shows_no_such_box(window: MainWindow, self_refine: object) -> None:
    QTest.keyClick(window, Qt.Key.Key_F5, SHIFT)
    assert not form(window).code.isVisible()
