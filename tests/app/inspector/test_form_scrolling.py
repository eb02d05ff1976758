"""The form does not jump: what a person edits stays where it is on the screen."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QScrollArea, QWidget

from engine.document.model import Node, Workflow
from engine.document.operations import SetConfig
from tests.app.inspector.conftest import Bench, OpenInspector


def scroll_area(bench: Bench) -> QScrollArea:
    widget: QWidget | None = bench.page
    while not isinstance(widget, QScrollArea):
        assert widget is not None
        widget = widget.parentWidget()
    return widget


def place(bench: Bench, widget: QWidget) -> int:
    """Where the top of a widget is in the visible part of the form."""
    QApplication.processEvents()
    return widget.mapTo(scroll_area(bench).viewport(), QPoint(0, 0)).y()


@pytest.fixture
def low(open_inspector: OpenInspector) -> Bench:
    """A low inspector with a model node, whose last settings are scrolled into view."""
    bench = open_inspector(Workflow(nodes=(Node(id="it", type="llm", config={"prompt": "{{input}}"}),)))
    bench.inspector.resize(340, 420)
    bench.select("it")
    bench.analyzed()
    number = bench.editor("seed").number
    number.setFocus()
    bench.qtbot.waitUntil(lambda: 0 < place(bench, number) < scroll_area(bench).viewport().height() - number.height())
    return bench


def await_height(bench: Bench, change: Callable[[], object]) -> None:
    """Make a change, and wait until the form has another height."""
    bar = scroll_area(bench).verticalScrollBar()
    before = bar.maximum()
    change()
    bench.qtbot.waitUntil(lambda: bar.maximum() != before)


def broken_prompt(bench: Bench) -> None:
    await_height(bench, lambda: bench.session.do(SetConfig(("prompt",), {"it": "{{input"})))


def long_prompt(bench: Bench) -> None:
    await_height(bench, lambda: bench.session.do(SetConfig(("prompt",), {"it": "line\n" * 9})))


def undone_prompt(bench: Bench) -> None:
    long_prompt(bench)
    await_height(bench, bench.session.undo)


def own_problem(bench: Bench) -> None:
    await_height(bench, lambda: QTest.keyClicks(QApplication.focusWidget(), "x"))


@pytest.mark.parametrize("change", [broken_prompt, long_prompt, undone_prompt, own_problem])
def test_the_field_with_the_focus_stays_where_it_is(low: Bench, change: Callable[[Bench], None]) -> None:
    number = low.editor("seed").number
    before = place(low, number)
    change(low)
    low.qtbot.waitUntil(lambda: place(low, number) == before)
    assert number.hasFocus()


def test_scrolling_moves_the_field_and_then_it_stays_there(low: Bench) -> None:
    number, bar = low.editor("seed").number, scroll_area(low).verticalScrollBar()
    before = place(low, number)
    bar.setValue(bar.value() - 40)
    assert place(low, number) == before + 40
    broken_prompt(low)
    low.qtbot.waitUntil(lambda: place(low, number) == before + 40)


def test_a_click_into_a_field_does_not_scroll(low: Bench) -> None:
    area, number = scroll_area(low), low.editor("temperature").number
    bar, cut_off = area.verticalScrollBar(), area.viewport().height() - 12
    bar.setValue(bar.value() + place(low, number) - cut_off)
    assert place(low, number) == cut_off
    before = bar.value()
    QTest.mouseClick(number.lineEdit(), Qt.MouseButton.LeftButton, pos=QPoint(9, 2))
    QApplication.processEvents()
    assert number.hasFocus()
    assert bar.value() == before
    low.editor("seed").number.setFocus()
    number.setFocus()
    low.qtbot.waitUntil(lambda: place(low, number) < cut_off)


def test_the_line_that_is_typed_is_visible(low: Bench) -> None:
    low.inspector.resize(340, 300)
    scroll_area(low).verticalScrollBar().setValue(0)
    edit = low.editor("prompt").edit
    edit.setFocus(Qt.FocusReason.MouseFocusReason)
    for _ in range(14):
        QTest.keyClick(edit, Qt.Key.Key_Return)
        QApplication.processEvents()
        cursor = edit.cursorRect()
        top = edit.viewport().mapTo(scroll_area(low).viewport(), cursor.topLeft()).y()
        assert 0 <= top <= scroll_area(low).viewport().height() - cursor.height()


def test_a_field_that_disappears_passes_the_focus_to_the_one_before(open_inspector: OpenInspector) -> None:
    bench = open_inspector(Workflow(nodes=(Node(id="it", type="loop"),)))
    bench.select("it")
    bench.session.do(SetConfig(("feedback_mode",), {"it": "append_window"}))
    bench.editor("append_window").focus_path("")
    bench.session.undo()
    assert bench.editor("feedback_mode").combo.hasFocus()
