"""Heights and layout of the bottom panels, which survive a restart."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from app.history.iteration_chart import BaseSeries
from app.theme.style import style
from app.window.document_page import DocumentPage
from app.workbench import Workbench
from tests.app.window.conftest import MakeWindow


def drag(workbench: Workbench, by: int) -> None:
    """Move the splitter between documents and bottom panel down."""
    handle = workbench.window.middle.handle(1)
    start = handle.rect().center()
    QTest.mousePress(handle, Qt.MouseButton.LeftButton, pos=start)
    to = start.__class__(start.x(), start.y() + by)
    QTest.mouseMove(handle, to)
    QTest.mouseRelease(handle, Qt.MouseButton.LeftButton, pos=to)


def height(workbench: Workbench) -> int:
    return workbench.window.middle.sizes()[1]


def test_each_bottom_panel_keeps_its_height(workbench: Workbench, self_refine: DocumentPage) -> None:
    workbench.bottom_panel.unfold("log")
    log = height(workbench)
    workbench.bottom_panel.unfold("iterations")
    iterations = height(workbench)
    assert iterations > log
    drag(workbench, -40)
    wanted = height(workbench)
    assert wanted > iterations + 30
    workbench.bottom_panel.unfold("log")
    assert height(workbench) == log
    workbench.bottom_panel.fold()
    workbench.bottom_panel.unfold("iterations")
    assert height(workbench) == wanted


def test_heights_follow_the_text_size(workbench: Workbench, self_refine: DocumentPage) -> None:
    panel = workbench.bottom_panel
    panel.unfold("iterations")
    drag(workbench, -40)
    chosen = height(workbench)
    panel.unfold("log")
    first = height(workbench)
    try:
        style().choose("dark", 1.5)
        assert height(workbench) == pytest.approx(1.5 * first, abs=1)
        panel.fold()
        assert height(workbench) >= panel.buttons["log"].sizeHint().height()
        style().choose("dark", 1.0)
        row = height(workbench)
        style().choose("dark", 1.5)
        assert height(workbench) > row, "the row of buttons alone"
    finally:
        style().choose("dark", 1.0)
    panel.unfold("iterations")
    assert height(workbench) == pytest.approx(chosen, abs=2)


def test_heights_and_chart_settings_survive_a_restart(make_window: MakeWindow, qtbot: QtBot) -> None:
    first = make_window()
    one, two = first.documents.new(), first.documents.new()
    first.bottom_panel.unfold("iterations")
    drag(first, -40)
    wanted = height(first)
    two.iterations.legend.buttons[BaseSeries.TIME].click()
    assert one.iterations.chart.shown == [BaseSeries.SIMILARITY, BaseSeries.TIME], "all documents are arranged alike"
    first.window.close()
    qtbot.waitUntil(lambda: not first.closing.background)

    second = make_window()
    third = second.documents.new()
    assert third.iterations.chart.shown == [BaseSeries.SIMILARITY, BaseSeries.TIME]
    second.bottom_panel.fold()
    second.bottom_panel.unfold("iterations")
    assert height(second) == wanted


def test_a_panel_of_a_document_is_created_when_it_is_first_opened(workbench: Workbench) -> None:
    first, second = workbench.documents.new(), workbench.documents.new()
    assert first.created_panels == second.created_panels == {}
    workbench.bottom_panel.unfold("iterations")
    assert list(second.created_panels) == ["iterations"]
    assert second.iterations.isVisible()
    workbench.tabs.show_document(first)
    assert list(first.created_panels) == ["iterations"]
    assert first.iterations.isVisible()
    assert not second.iterations.isVisible()


def test_the_log_has_the_refusals_of_before_it_was_opened(workbench: Workbench) -> None:
    document = workbench.documents.new()
    document.session.refused.emit("It cannot be.")
    workbench.bottom_panel.unfold("log")
    assert [line.text for line in document.log.lines] == ["It cannot be."]
    assert document.log.view.isVisible()
