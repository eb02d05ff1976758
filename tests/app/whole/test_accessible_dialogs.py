"""All widgets of dialogs, questions and messages have names for screen readers and are reached with Tab."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QDialog, QPushButton, QWidget

from app.inspector.prompt_editor import PromptEditor
from app.settings.key_dialog import KeyDialog
from app.window.command_palette import CommandPalette
from app.window.crash_reporter import CrashDialog
from app.window.run_dialog import InputField
from engine.document.operations import SetText
from engine.events import NodeStarted, NodeWaiting
from engine.runner.options import RunOptions
from tests.app.whole.conftest import CTRL, TEMPLATE, Whole
from tests.app.whole.test_accessible_window import controls, gone_up, nameless, top_left, unreached, walked

LEFT = Qt.MouseButton.LeftButton


def action(name: str) -> Callable[[Whole], None]:
    return lambda whole: whole.workbench.actions_by_name[name].trigger()


def fault(whole: Whole) -> None:
    dialog = CrashDialog("Something went wrong.", "Traceback: all of it", whole.workbench.window)
    dialog.show()
    for button in dialog.findChildren(QPushButton):
        if button.isCheckable() or "etails" in button.text():
            button.click()


def unsaved(whole: Whole) -> None:
    whole.document.session.do(SetText("description", "another"))
    whole.press(Qt.Key.Key_W, CTRL)


def prompt(whole: Whole) -> None:
    whole.document.session.select(["draft"])
    QApplication.processEvents()
    editor = whole.editor("prompt", lambda _fold: None)
    assert isinstance(editor, PromptEditor)
    QTest.mouseClick(editor.expand, LEFT)


def key(whole: Whole) -> None:
    KeyDialog(whole.workbench.engine, "openai", whole.workbench.window).show()


OPENERS: dict[str, Callable[[Whole], None]] = {
    "the form that a run is started with": action("run_with"),
    "the command palette": action("command_palette"),
    "the finder of nodes": action("find_node"),
    "the sheet of keys": action("shortcuts"),
    "about": action("about"),
    "a fault": fault,
    "the question about unsaved work": unsaved,
    "the larger prompt editor": prompt,
    "the form for a key": key,
}


def the_dialog(whole: Whole) -> QDialog:
    """The one dialog that is open, with the keyboard in it."""
    open_now = [widget for widget in QApplication.topLevelWidgets() if isinstance(widget, QDialog)]
    (dialog,) = (dialog for dialog in open_now if dialog.isVisible())
    dialog.activateWindow()
    whole.qtbot.waitUntil(dialog.isActiveWindow)
    return dialog


def whole_field(widget: QWidget) -> QWidget:
    """Of an input of a run, its field as a whole: the keyboard is in the text first, then on the button over it."""
    parent = widget.parentWidget()
    return parent if isinstance(parent, InputField) else widget


@pytest.mark.parametrize("what", OPENERS)
def test_a_dialog(whole: Whole, what: str) -> None:
    whole.workbench.documents.open_template(TEMPLATE)
    OPENERS[what](whole)
    dialog = the_dialog(whole)

    assert controls(dialog), "there is something in it"
    assert dialog.windowTitle() or dialog.accessibleName() or dialog.text()
    assert nameless(dialog) == []
    assert dialog.focusWidget() is not None, "the keyboard is somewhere as soon as it is open"
    if isinstance(dialog, CommandPalette):  # its list is driven from the field, as that of a combo box is
        row = dialog.list.currentRow()
        QTest.keyClick(dialog.field, Qt.Key.Key_Down)
        assert dialog.list.currentRow() == row + 1
    else:
        assert unreached(dialog) == []
        assert gone_up([whole_field(widget) for widget in walked(dialog, top_left(dialog))], dialog) == []
    QTest.keyClick(dialog, Qt.Key.Key_Escape)
    whole.qtbot.waitUntil(lambda: not dialog.isVisible())


def test_question_of_a_run_in_the_log(whole: Whole) -> None:
    whole.workbench.documents.open_template(TEMPLATE)
    session = whole.document.session
    whole.document.session.start_run({"task": "A note"}, RunOptions(), paused=True)
    assert session.shown.view_model is not None
    for seq, (path, kind, choices) in enumerate(
        (("task", "approval", ("approve", "reject")), ("text", "question", ()))
    ):
        session.shown.view_model.apply(NodeStarted("run", 2 * seq, 0.0, path, "input", {}))
        session.shown.view_model.apply(
            NodeWaiting("run", 2 * seq + 1, 0.0, path, "input", kind, "Well?", "A note.", choices)
        )
    session.shown.updated.emit({"task", "text"})
    QTest.mouseClick(whole.workbench.status_bar.question, LEFT)
    QApplication.processEvents()

    for _ in range(2):
        assert nameless(whole.workbench.window) == []
        whole.workbench.run_bar.pause.setFocus()
        assert unreached(whole.workbench.window) == []
        QTest.mouseClick(whole.document.questions.after, LEFT)
