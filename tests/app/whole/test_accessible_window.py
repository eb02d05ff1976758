"""All widgets in the window have names for screen readers, are reached by keyboard, and are laid out on purpose."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QAccessible
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QAbstractSlider,
    QAbstractSpinBox,
    QApplication,
    QComboBox,
    QDialog,
    QGraphicsView,
    QLineEdit,
    QMenu,
    QMenuBar,
    QPlainTextEdit,
    QScrollBar,
    QTabBar,
    QWidget,
)

from app.inspector.inspector import PROPERTIES
from app.window.bottom_panel import PANELS
from tests.app.whole.conftest import TEMPLATE, Whole

CONTROLS = (
    QAbstractButton,
    QAbstractItemView,
    QAbstractSlider,
    QAbstractSpinBox,
    QComboBox,
    QGraphicsView,
    QLineEdit,
    QPlainTextEdit,
    QTabBar,
)


def controls(root: QWidget) -> list[QWidget]:
    """What one can use and see in a window; parts of a control and scroll bars belong to it."""
    return [
        widget
        for widget in root.findChildren(QWidget)
        if isinstance(widget, CONTROLS)
        and not isinstance(widget, QScrollBar)
        and widget.window() is root
        and widget.isVisible()
        and widget.isEnabled()
        and not _is_part(widget)
    ]


def _is_part(widget: QWidget) -> bool:
    parent = widget.parentWidget()
    while parent is not None and not parent.isWindow():
        if isinstance(parent, (QMenuBar, QComboBox, QAbstractSpinBox, QLineEdit, QTabBar, QAbstractItemView)):
            return True
        parent = parent.parentWidget()
    return False


def spoken(widget: QWidget) -> str:
    """What a screen reader calls it."""
    interface = QAccessible.queryAccessibleInterface(widget)
    return interface.text(QAccessible.Text.Name).strip() if interface is not None else ""


def words(widgets: Iterable[QWidget]) -> list[str]:
    return sorted(
        f"{type(w).__name__} {w.accessibleName() or w.objectName()!r} in {type(w.parentWidget()).__name__}"
        for w in widgets
    )


def reached_by_tab(root: QWidget) -> set[QWidget]:
    """What has the keyboard, one after the other, while Tab is pressed; Shift+Tab where Tab has a use of its own."""
    reached: set[QWidget] = set()
    for key, modifiers in (
        (Qt.Key.Key_Tab, Qt.KeyboardModifier.NoModifier),
        (Qt.Key.Key_Backtab, Qt.KeyboardModifier.ShiftModifier),
    ):
        seen: set[QWidget] = set()
        while (widget := root.focusWidget()) is not None and widget not in seen:
            seen.add(widget)
            if isinstance(widget, QGraphicsView) and key == Qt.Key.Key_Tab:
                break
            QTest.keyClick(widget, key, modifiers)
            QApplication.processEvents()
        reached |= seen
    return reached


def is_reached(widget: QWidget, reached: set[QWidget]) -> bool:
    """Whether it, what stands for it, or a part of it has had the keyboard."""
    if any(one is widget or widget.isAncestorOf(one) for one in reached):
        return True
    proxy = widget.focusProxy()
    return proxy is not None and is_reached(proxy, reached)


def walked(root: QWidget, start: QWidget) -> list[QWidget]:
    """What has the keyboard while Tab is pressed, from one widget round to it again.

    It is walked backwards and told forwards, since Tab itself adds a node on the canvas.
    """
    start.setFocus()
    visited: list[QWidget] = []
    while (widget := root.focusWidget()) is not None and widget not in visited:
        visited.append(widget)
        QTest.keyClick(widget, Qt.Key.Key_Backtab, Qt.KeyboardModifier.ShiftModifier)
        QApplication.processEvents()
    return visited[:1] + visited[:0:-1]


def gone_up(widgets: list[QWidget], root: QWidget) -> list[str]:
    """Each that stands wholly above the one that has the keyboard before it."""

    def top(widget: QWidget) -> int:
        return widget.mapTo(root, QPoint(0, 0)).y()

    return words(second for first, second in pairwise(widgets) if top(second) + second.height() <= top(first))


def top_left(root: QWidget) -> QWidget:
    """What takes the keyboard and is read first."""
    there = (widget for widget in root.findChildren(QWidget) if widget.isVisible() and widget.window() is root)
    takers = (widget for widget in there if widget.focusPolicy() & Qt.FocusPolicy.TabFocus)
    return min(takers, key=lambda widget: widget.mapTo(root, QPoint(0, 0)).toTuple()[::-1])


def nameless(root: QWidget) -> list[str]:
    return words(widget for widget in controls(root) if not spoken(widget))


def unreached(root: QWidget) -> list[str]:
    reached = reached_by_tab(root)
    return words(widget for widget in controls(root) if not is_reached(widget, reached))


def test_the_start_page(whole: Whole) -> None:
    workbench = whole.workbench
    assert nameless(workbench.window) == []
    workbench.gallery.cards[0].button.setFocus()
    assert unreached(workbench.window) == []


@pytest.fixture
def ran(whole: Whole) -> Whole:
    """Self-Refine, run to its end."""
    whole.workbench.documents.open_template(TEMPLATE)
    with whole.qtbot.waitSignal(whole.document.session.shown.ended):
        whole.press(Qt.Key.Key_F5)
    return whole


@pytest.mark.parametrize("panel", PANELS)
def test_a_document_with_a_panel(ran: Whole, panel: str) -> None:
    ran.workbench.bottom_panel.unfold(panel)
    QApplication.processEvents()
    assert nameless(ran.workbench.window) == []
    ran.workbench.run_bar.run.setFocus()
    assert unreached(ran.workbench.window) == []


@pytest.mark.parametrize("node", ["task", "loop", "draft", "critique", "merge", "exit", "text"])
def test_the_inspector(ran: Whole, node: str) -> None:
    ran.document.session.select([node])
    QApplication.processEvents()
    inspector = ran.document.inspector
    inspector.tabs.setCurrentIndex(PROPERTIES)
    inspector.page.form.advanced_button.click()
    QApplication.processEvents()
    assert nameless(ran.workbench.window) == []
    inspector.tabs.setFocus()
    assert unreached(ran.workbench.window) == []
    inspector.show_result()
    QApplication.processEvents()
    assert nameless(ran.workbench.window) == []
    inspector.tabs.setFocus()
    assert unreached(ran.workbench.window) == []


def test_the_settings(whole: Whole) -> None:
    whole.workbench.actions_by_name["settings"].trigger()
    dialog = whole.workbench.commands.settings
    assert dialog is not None
    whole.qtbot.waitExposed(dialog)
    dialog.activateWindow()
    whole.qtbot.waitUntil(dialog.isActiveWindow)
    for row in range(dialog.navigation.count()):
        dialog.navigation.setCurrentRow(row)
        QApplication.processEvents()
        assert nameless(dialog) == []
        dialog.navigation.setFocus()
        assert unreached(dialog) == []
    dialog.close()


def test_no_stray_widgets_in_the_window(ran: Whole) -> None:
    """A widget that nobody laid out has Qt's usual size; one without a parent is a window."""
    app_windows = {w for w in QApplication.topLevelWidgets() if w.isVisible()}
    assert words(w for w in app_windows if not isinstance(w, (QDialog, QMenu)) and w is not ran.workbench.window) == []
    stray = [
        widget
        for widget in ran.workbench.window.findChildren(QWidget)
        if widget.isVisible() and not widget.isWindow() and widget.size().toTuple() in {(100, 30), (640, 480)}
    ]
    assert words(stray) == []
