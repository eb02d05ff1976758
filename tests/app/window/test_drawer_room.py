"""How high the panels below the documents are and how they are arranged: as a person left them, at every start."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from app.history.series import Kind
from app.window.document_page import DocumentPage
from app.window.main_window import MainWindow
from tests.app.window.conftest import MakeWindow


def drag(window: MainWindow, by: int) -> None:
    """Move the line between documents and drawer down by so many pixels."""
    handle = window.middle.handle(1)
    start = handle.rect().center()
    QTest.mousePress(handle, Qt.MouseButton.LeftButton, pos=start)
    to = start.__class__(start.x(), start.y() + by)
    QTest.mouseMove(handle, to)
    QTest.mouseRelease(handle, Qt.MouseButton.LeftButton, pos=to)


def height(window: MainWindow) -> int:
    return window.middle.sizes()[1]


def test_each_panel_has_its_height_and_keeps_the_one_that_it_was_given(
    window: MainWindow, self_refine: DocumentPage
) -> None:
    window.drawer.unfold("log")
    log = height(window)
    window.drawer.unfold("iterations")
    iterations = height(window)
    assert iterations > log
    drag(window, -40)
    wanted = height(window)
    assert wanted > iterations + 30
    window.drawer.unfold("log")
    assert height(window) == log
    window.drawer.fold()
    window.drawer.unfold("iterations")
    assert height(window) == wanted


def test_heights_and_what_the_chart_draws_are_the_same_at_the_next_start(make_window: MakeWindow, qtbot: QtBot) -> None:
    first = make_window()
    one, two = first.documents.new(), first.documents.new()
    first.drawer.unfold("iterations")
    drag(first, -40)
    wanted = height(first)
    two.iterations.legend.buttons[Kind.TIME].click()
    assert one.iterations.chart.shown == [Kind.SIMILARITY, Kind.TIME], "all documents are arranged alike"
    first.close()
    qtbot.waitUntil(lambda: not first.closing.background)

    second = make_window()
    third = second.documents.new()
    assert third.iterations.chart.shown == [Kind.SIMILARITY, Kind.TIME]
    second.drawer.fold()
    second.drawer.unfold("iterations")
    assert height(second) == wanted
