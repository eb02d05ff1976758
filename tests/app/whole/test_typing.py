"""What a person types goes into fields, never to the nodes: real keys in the whole window."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QWidget

from engine.document.model import Node
from tests.app.whole.conftest import CTRL, Whole, focus

KEYS = "ecoan"
"""Letters that are shortcuts of the canvas."""


@pytest.fixture
def window(whole: Whole) -> Whole:
    """A window with two model nodes, of which the last is selected."""
    whole.press(Qt.Key.Key_N, CTRL)
    for _ in range(2):
        whole.document.canvas.commands.add_node("llm")
    whole.settle()
    return whole


def shape(whole: Whole) -> list[tuple[str, bool]]:
    """The nodes, and whether each is enabled."""
    return [(node.id, node.enabled) for node in whole.workflow.nodes]


def config(whole: Whole) -> dict[str, object]:
    (selected,) = whole.document.session.selection
    node: Node = whole.workflow.nodes_by_id[selected]
    return node.config


def click(widget: QWidget) -> None:
    QTest.mouseClick(widget, Qt.MouseButton.LeftButton)


@pytest.mark.parametrize("field", ["prompt", "system", "model", "temperature", "max_tokens"])
def test_select_all_and_typing_change_the_field_alone(window: Whole, field: str) -> None:
    before, selection = shape(window), window.document.session.selection
    editor = window.editor(field, click)
    editor.focus_path("")
    window.write("x")
    window.press(Qt.Key.Key_A, CTRL)
    window.write(KEYS)
    assert config(window)[field] == KEYS
    window.press(Qt.Key.Key_A, CTRL)
    window.press(Qt.Key.Key_Backspace)
    window.press(Qt.Key.Key_Delete)
    assert not config(window).get(field)
    assert (shape(window), window.document.session.selection) == (before, selection)


def test_select_all_on_the_canvas_and_a_click_into_a_field(window: Whole) -> None:
    window.document.canvas.setFocus()
    window.press(Qt.Key.Key_A, CTRL)
    assert len(window.document.session.selection) == 2
    window.document.inspector.focus_first_field()
    window.press(Qt.Key.Key_A, CTRL)
    window.write(KEYS)
    assert [node.config["prompt"] for node in window.workflow.nodes] == [KEYS, KEYS]
    assert all(enabled for _, enabled in shape(window))


@pytest.mark.parametrize("panel", ["iterations", "log", "problems", "runs"])
def test_keys_of_the_canvas_do_nothing_while_the_keyboard_is_in_a_panel(window: Whole, panel: str) -> None:
    before, selection = shape(window), window.document.session.selection
    window.workbench.bottom_panel.unfold(panel)
    window.workbench.bottom_panel.buttons[panel].setFocus(Qt.FocusReason.TabFocusReason)
    for key in (Qt.Key.Key_E, Qt.Key.Key_C, Qt.Key.Key_Backspace, Qt.Key.Key_Delete):
        window.press(key)
    assert (shape(window), window.document.session.selection) == (before, selection)
    assert not window.document.canvas.isAncestorOf(focus())


def test_keys_typed_on_after_a_field_has_closed_are_no_shortcuts(window: Whole) -> None:
    canvas, before = window.document.canvas, shape(window)
    guard = canvas.viewer.typing_guard
    canvas.viewer.setFocus(Qt.FocusReason.TabFocusReason)
    window.press(Qt.Key.Key_F2)
    window.write("Draft")
    window.press(Qt.Key.Key_Return)
    assert canvas.viewer.hasFocus()
    for _ in range(3):
        window.write(KEYS)
        window.press(Qt.Key.Key_Backspace)
    assert canvas.viewer.hasFocus(), "no list is open"
    assert shape(window) == before
    window.qtbot.waitUntil(lambda: not guard.is_active)
    window.press(Qt.Key.Key_E)
    assert [enabled for _, enabled in shape(window)] == [True, False]


def test_shortcuts_act_at_once_when_a_person_turns_to_the_canvas(window: Whole) -> None:
    canvas = window.document.canvas
    editor = window.editor("prompt", click)
    for turn in (Qt.FocusReason.TabFocusReason, Qt.FocusReason.MouseFocusReason):
        editor.focus_path("")
        window.write("x")
        before = shape(window)
        canvas.viewer.setFocus(turn)
        window.press(Qt.Key.Key_E)
        assert shape(window) != before
    editor.focus_path("")
    window.press(Qt.Key.Key_Escape)
    assert canvas.viewer.hasFocus()
    before = shape(window)
    window.press(Qt.Key.Key_E)
    assert shape(window) != before


def test_an_action_of_the_command_palette_acts_at_once(window: Whole) -> None:
    before = shape(window)
    window.document.canvas.viewer.setFocus(Qt.FocusReason.TabFocusReason)
    window.press(Qt.Key.Key_K, CTRL)
    window.write("Enable or disable")
    QTest.keyClick(focus(), Qt.Key.Key_Return)
    window.qtbot.waitUntil(lambda: shape(window) != before)
