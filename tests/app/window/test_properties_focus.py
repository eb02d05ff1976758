"""Keyboard focus from the canvas to the form of a node, and back."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from app.window.document_page import DocumentPage
from app.workbench import Workbench


def focus() -> QWidget:
    widget = QApplication.focusWidget()
    assert widget is not None
    return widget


def at_canvas(workbench: Workbench, document: DocumentPage, qtbot: QtBot) -> None:
    workbench.window.activateWindow()
    document.canvas.setFocus()
    qtbot.waitUntil(document.canvas.viewer.hasFocus)


@pytest.mark.parametrize("key", [Qt.Key.Key_Return, Qt.Key.Key_Enter])
def test_enter_focuses_the_first_field_and_escape_returns(
    workbench: Workbench, self_refine: DocumentPage, qtbot: QtBot, key: Qt.Key
) -> None:
    self_refine.session.select(["draft"])
    self_refine.inspector.show_result()
    at_canvas(workbench, self_refine, qtbot)

    QTest.keyClick(self_refine.canvas.viewer, key)

    page = self_refine.inspector.page
    first = page.form.row(next(iter(page.form.fields)))
    assert first.isVisible()
    assert first.isAncestorOf(focus())

    QTest.keyClick(focus(), Qt.Key.Key_Escape)
    assert self_refine.canvas.viewer.hasFocus()
    assert self_refine.session.selection == ("draft",)


def test_every_node_type_has_a_first_field(workbench: Workbench, self_refine: DocumentPage, qtbot: QtBot) -> None:
    for node in self_refine.session.workflow.nodes:
        at_canvas(workbench, self_refine, qtbot)
        self_refine.session.select([node.id])
        QTest.keyClick(self_refine.canvas.viewer, Qt.Key.Key_Return)
        assert self_refine.inspector.isAncestorOf(focus()), node.id
        assert self_refine.inspector.page.binding.node_id == node.id
        QTest.keyClick(focus(), Qt.Key.Key_Escape)
        assert self_refine.session.selection == (node.id,)


def test_enter_shows_a_hidden_inspector(workbench: Workbench, self_refine: DocumentPage, qtbot: QtBot) -> None:
    workbench.actions_by_name["show_inspector"].trigger()
    assert not self_refine.inspector.isVisible()
    self_refine.session.select(["critique"])
    at_canvas(workbench, self_refine, qtbot)

    QTest.keyClick(self_refine.canvas.viewer, Qt.Key.Key_Return)

    assert workbench.actions_by_name["show_inspector"].isChecked()
    assert self_refine.inspector.isAncestorOf(focus())


def test_enter_does_nothing_without_a_node(workbench: Workbench, self_refine: DocumentPage, qtbot: QtBot) -> None:
    self_refine.session.select([])
    at_canvas(workbench, self_refine, qtbot)
    QTest.keyClick(self_refine.canvas.viewer, Qt.Key.Key_Return)
    assert self_refine.canvas.viewer.hasFocus()


def test_several_nodes_are_edited_from_the_canvas_with_keys_alone(
    workbench: Workbench, self_refine: DocumentPage, qtbot: QtBot
) -> None:
    self_refine.session.select(["draft", "critique"])
    at_canvas(workbench, self_refine, qtbot)
    QTest.keyClick(self_refine.canvas.viewer, Qt.Key.Key_Return)
    QTest.keyClicks(focus(), "Be brief.")
    nodes = self_refine.session.workflow.nodes_by_id
    assert [nodes[name].config["prompt"] for name in ("draft", "critique")] == ["Be brief.", "Be brief."]
    QTest.keyClick(focus(), Qt.Key.Key_Escape)
    assert self_refine.canvas.viewer.hasFocus()


def test_shortcuts_dialog_lists_enter(workbench: Workbench, self_refine: DocumentPage) -> None:
    actions = dict(workbench.commands.groups())["Canvas"]
    [set_up] = [action for action in actions if action.text() == "Edit properties"]
    assert [keys.toString() for keys in set_up.shortcuts()] == ["Return", "Enter"]
