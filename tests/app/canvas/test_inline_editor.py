"""Text typed into a title or note is committed before anything else happens."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QEvent, QObject, QPoint, Qt
from PySide6.QtGui import QAction, QContextMenuEvent, QKeySequence
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLineEdit, QMenu

from tests.app.canvas.conftest import Hand


@pytest.fixture
def line(hand: Hand) -> QLineEdit:
    """The field over a card's title, with another one typed into it."""
    hand.double_click(hand.title("draft"))
    QTest.keyClicks(hand.canvas.popups.text.line, "Kept")
    return hand.canvas.popups.text.line


def title(hand: Hand) -> str:
    return hand.session.workflow.node("draft").title


def test_shortcut_commits_the_typed_text(hand: Hand, line: QLineEdit) -> None:
    found: list[str] = []
    save = QAction("Save", hand.canvas)
    save.setShortcut(QKeySequence("Ctrl+S"))
    save.triggered.connect(lambda: found.append(title(hand)))
    hand.canvas.addAction(save)
    QTest.keyClick(line, Qt.Key.Key_S, Qt.KeyboardModifier.ControlModifier)
    assert found == ["Kept"]
    assert not line.isVisible()


def test_button_without_focus_commits_the_typed_text(hand: Hand, line: QLineEdit) -> None:
    found: list[str] = []
    button = hand.canvas.controls.buttons["zoom_100"]
    button.setFocusPolicy(Qt.FocusPolicy.NoFocus)
    button.pressed.connect(lambda: found.append(title(hand)))
    QTest.mouseClick(button, Qt.MouseButton.LeftButton)
    assert found == ["Kept"]


def test_closing_the_window_commits_the_typed_text(hand: Hand, line: QLineEdit) -> None:
    found: list[str] = []

    class Window(QObject):
        def eventFilter(self, _watched: QObject, event: QEvent) -> bool:
            if event.type() == QEvent.Type.Close:  # now it is asked whether there is anything to save
                found.append(title(hand))
            return False

    window = Window()
    hand.canvas.installEventFilter(window)
    hand.canvas.close()
    assert found == ["Kept"]


def test_click_into_the_field_and_its_keys_continue_the_edit(hand: Hand, line: QLineEdit) -> None:
    QTest.mouseClick(line, Qt.MouseButton.LeftButton)
    QTest.keyClick(line, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    assert line.isVisible()
    assert title(hand) == "Draft"


def test_context_menu_of_the_field_keeps_it_open(hand: Hand, line: QLineEdit) -> None:
    at = QPoint(6, 6)
    QApplication.sendEvent(line, QContextMenuEvent(QContextMenuEvent.Reason.Mouse, at, line.mapToGlobal(at)))
    menu = QApplication.activePopupWidget()
    assert isinstance(menu, QMenu)
    assert line.isVisible()
    menu.close()
    QTest.keyClick(line, Qt.Key.Key_End)
    QTest.keyClicks(line, " too")
    QTest.keyClick(line, Qt.Key.Key_Return)
    assert title(hand) == "Kept too"


def test_cancelled_edit_is_not_committed_on_closing(hand: Hand, line: QLineEdit) -> None:
    QTest.keyClick(line, Qt.Key.Key_Escape)
    hand.canvas.close()
    assert title(hand) == "Draft"
