"""Tab moves through the parts of the window, and through each part and dialog in reading order."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication

from app.inspector.inspector import PROPERTIES
from app.window.bottom_panel import PANELS
from tests.app.whole.conftest import TEMPLATE, Whole
from tests.app.whole.test_accessible_window import gone_up, walked


@pytest.fixture
def opened(whole: Whole) -> Whole:
    """Self-Refine, with another document opened and closed before it: widgets were not made in their order."""
    whole.workbench.documents.new()
    whole.workbench.documents.open_template(TEMPLATE)
    whole.workbench.documents.drop(whole.workbench.documents.all[0])
    QApplication.processEvents()
    return whole


@pytest.mark.parametrize("panel", PANELS)
def test_tab_moves_through_the_parts_of_the_window(opened: Whole, panel: str) -> None:
    workbench, document = opened.workbench, opened.document
    document.session.select(["draft"])
    workbench.bottom_panel.unfold(panel)
    QApplication.processEvents()
    parts = {
        "bar": workbench.run_bar,
        "palette": workbench.palette_panel,
        "canvas": workbench.tabs,
        "inspector": workbench.inspectors,
        "drawer": workbench.bottom_panel,
        "status": workbench.status_bar,
    }

    visited = walked(workbench.window, workbench.run_bar.run)

    places = [name for widget in visited for name, part in parts.items() if part.isAncestorOf(widget)]
    assert list(dict.fromkeys(places)) == list(parts)
    assert places == sorted(places, key=list(parts).index), "nobody is thrown from one side to the other and back"


@pytest.mark.parametrize("node", ["loop", "draft", "exit"])
def test_tab_moves_through_a_form_from_top_to_bottom(opened: Whole, node: str) -> None:
    document = opened.document
    document.session.select(["task"])
    document.session.select([node])
    document.inspector.tabs.setCurrentIndex(PROPERTIES)
    document.inspector.page.form.advanced_button.click()
    QApplication.processEvents()

    visited = walked(opened.workbench.window, opened.workbench.run_bar.run)

    fields = [widget for widget in visited if document.inspector.page.isAncestorOf(widget)]
    assert len(fields) > 3
    assert gone_up(fields, document.inspector.page) == []


def test_shift_tab_reverses_tab(opened: Whole) -> None:
    workbench = opened.workbench
    workbench.palette_panel.filter.setFocus()
    opened.press(Qt.Key.Key_Tab)
    assert workbench.window.focusWidget() is workbench.palette_panel.list
    opened.press(Qt.Key.Key_Backtab, Qt.KeyboardModifier.ShiftModifier)
    assert workbench.window.focusWidget() is workbench.palette_panel.filter


def test_menus_survive_reading_the_tab_order(opened: Whole) -> None:
    """Asking Qt for its chain once took the menus' wrappers away with a closed document."""
    workbench = opened.workbench
    walked(workbench.window, workbench.run_bar.run)
    workbench.documents.drop(opened.document)
    QApplication.processEvents()
    assert workbench.run_bar.step.menu().actions() == [
        workbench.actions_by_name["step_node"],
        workbench.actions_by_name["step_iteration"],
    ]
    assert all(action.menu().title() for action in workbench.window.menuBar().actions())
