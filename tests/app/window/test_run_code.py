"""Code of a document runs only with permission."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QMessageBox, QPlainTextEdit
from pytestqt.qtbot import QtBot

from app.workbench import Workbench
from tests.app.window.conftest import answer, open_file, question
from tests.app.window.test_runs import ended, form

SHIFT = Qt.KeyboardModifier.ShiftModifier


def test_permission_to_run_code_is_asked_once(workbench: Workbench, tmp_path: Path, qtbot: QtBot) -> None:
    nodes = [
        {"id": "code", "type": "tool", "config": {"tool": "python", "arguments": {"code": "print(6 * 7)"}}},
        {"id": "out", "type": "output", "config": {}},
    ]
    edges = [{"from": "code.output", "to": "out.value"}]
    file = tmp_path / "code.loop.json"
    content = {"format": "loopwright.workflow", "version": 1, "name": "Code", "nodes": nodes, "edges": edges}
    file.write_text(json.dumps(content))
    open_file(workbench, file)
    document = workbench.current
    assert document is not None
    document.session.is_trusted = True  # that it is no stranger's is another question than whether it may run code

    QTest.keyClick(workbench.window, Qt.Key.Key_F5)
    dialog = form(workbench)
    assert dialog.code.isVisible()
    assert not dialog.code.isChecked()
    QTest.mouseClick(dialog.code, Qt.MouseButton.LeftButton, pos=QPoint(8, dialog.code.height() // 2))
    QTest.mouseClick(dialog.run, Qt.MouseButton.LeftButton)
    ended(document, qtbot)
    assert document.session.shown.view_model is not None
    assert document.session.shown.view_model.outputs == {"out": {"exit_code": 0, "stdout": "42\n", "stderr": ""}}

    QTest.keyClick(workbench.window, Qt.Key.Key_F5)
    ended(document, qtbot)
    assert document.session.shown.view_model.status == "completed"


def test_code_in_a_subflow_needs_permission(
    workbench: Workbench, tmp_path: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOOPWRIGHT_APPROVED", str(tmp_path / "approved.json"))
    nodes = [
        {"id": "code", "type": "tool", "config": {"tool": "python", "arguments": {"code": "print(6 * 7)"}}},
        {"id": "out", "type": "output", "config": {}},
    ]
    edges = [{"from": "code.output", "to": "out.value"}]
    head = {"format": "loopwright.workflow", "version": 1}
    inner = {**head, "name": "Inner", "nodes": nodes, "edges": edges}
    nodes = [
        {"id": "part", "type": "subflow", "config": {"file": "inner.loop.json", "workflow": inner}},
        {"id": "out", "type": "output", "config": {}},
    ]
    (tmp_path / "inner.loop.json").write_text(json.dumps(inner))
    file = tmp_path / "outer.loop.json"
    file.write_text(
        json.dumps({**head, "name": "Outer", "nodes": nodes, "edges": [{"from": "part.out", "to": "out.value"}]})
    )
    document = open_file(workbench, file)

    QTest.keyClick(workbench.window, Qt.Key.Key_F5)
    dialog = form(workbench)
    assert dialog.code.isVisible()
    QTest.mouseClick(dialog.code, Qt.MouseButton.LeftButton, pos=QPoint(8, dialog.code.height() // 2))
    QTest.mouseClick(dialog.run, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: any(box.isVisible() for box in workbench.window.findChildren(QMessageBox)))
    (field,) = question(workbench.window).findChildren(QPlainTextEdit)
    listed = field.toPlainText()
    assert "Tool: python (" in listed
    assert "Command: print(6 * 7)" in listed
    assert "Workflow: inner.loop.json" in listed
    answer(workbench.window, "Trust and run")
    ended(document, qtbot)
    assert document.session.shown.view_model is not None
    assert document.session.shown.view_model.outputs == {"out": {"exit_code": 0, "stdout": "42\n", "stderr": ""}}


def test_no_code_checkbox_without_code(workbench: Workbench, self_refine: object) -> None:
    QTest.keyClick(workbench.window, Qt.Key.Key_F5, SHIFT)
    assert not form(workbench).code.isVisible()
