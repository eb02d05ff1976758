"""The window in both themes and with large text: nothing is clipped, and colors are the theme's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import fields

import pytest
from PySide6.QtCore import QPoint, QRect
from PySide6.QtGui import QColor, QIcon, QImage
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractSpinBox,
    QApplication,
    QComboBox,
    QDialog,
    QLabel,
    QLineEdit,
    QListWidget,
    QPlainTextEdit,
    QPushButton,
    QTabBar,
    QToolButton,
    QWidget,
)
from pytestqt.qtbot import QtBot

from app.settings.preferences import Preferences
from app.theme.style import reading_mode, style
from app.theme.tokens import DARK, LIGHT, Theme
from app.window.bottom_panel import PANELS
from app.window.document_page import DocumentPage
from app.window.main_window import DEFAULT_WIDTHS, MIN_DOCUMENT_WIDTH
from app.workbench import Workbench
from engine.document.operations import SetConfig, SetSettings, SetText
from tests.app.window.conftest import SELF_REFINE, MakeWindow, ended


@pytest.fixture(
    params=[(DARK, 1.0), pytest.param((LIGHT, 1.0), marks=pytest.mark.slow), (LIGHT, 1.5)],
    ids=["dark", "light", "large"],
)
def look(request: pytest.FixtureRequest, workbench: Workbench, qtbot: QtBot) -> Iterator[Theme]:
    theme, scale = request.param
    workbench.preferences.set(theme=theme.name)
    style().choose(theme.name, scale)
    yield theme
    style().choose("dark", 1.0)


def test_surfaces_have_the_theme_colors(workbench: Workbench, look: Theme, self_refine: DocumentPage) -> None:
    workbench.bottom_panel.unfold("problems")
    picture = workbench.window.grab().toImage()

    for panel in (workbench.run_bar, workbench.status_bar, workbench.bottom_panel):
        corner = panel.mapTo(workbench.window, panel.rect().bottomRight()) * picture.devicePixelRatio()
        assert picture.pixelColor(corner.x() - 2, corner.y() - 2) == QColor(look.panel)


def test_no_text_of_run_bar_and_bottom_panel_is_clipped(
    workbench: Workbench, look: Theme, self_refine: DocumentPage
) -> None:
    workbench.window.resize(1440, 900)
    workbench.bottom_panel.unfold("log")
    for root in (workbench.run_bar, workbench.bottom_panel):
        for widget in root.findChildren(QLabel) + root.findChildren(QPushButton) + root.findChildren(QToolButton):
            if widget.isVisible() and widget.text() and not widget.property("title"):
                needed = widget.fontMetrics().horizontalAdvance(widget.text().strip())
                assert widget.width() >= needed, (widget.text(), widget.width(), needed)
                assert widget.height() >= widget.fontMetrics().height(), widget.text()


def test_collapsed_bottom_panel_leaves_its_space_to_the_document(
    workbench: Workbench, qtbot: QtBot, self_refine: DocumentPage
) -> None:
    workbench.bottom_panel.unfold("log")
    qtbot.waitUntil(lambda: workbench.bottom_panel.height() > 100)

    workbench.bottom_panel.fold()

    qtbot.waitUntil(lambda: workbench.bottom_panel.height() < 60)
    assert workbench.bottom_panel.geometry().bottom() >= workbench.window.middle.height() - 2


@pytest.fixture
def _usual_size_again(make_window: MakeWindow) -> Iterator[None]:
    yield
    style().choose("dark", 1.0)


@pytest.mark.usefixtures("_usual_size_again")
def test_side_panels_grow_with_the_text_size(workbench: Workbench, self_refine: DocumentPage) -> None:
    workbench.window.resize(1600, 900)
    style().choose("dark", 1.0)
    palette, inspector = workbench.palette_panel.width(), workbench.inspectors.width()
    style().choose("dark", 1.5)
    assert workbench.palette_panel.width() == round(palette * 1.5)
    assert workbench.inspectors.width() == round(inspector * 1.5)
    style().choose("dark", 1.0)
    assert (workbench.palette_panel.width(), workbench.inspectors.width()) == (palette, inspector)


@pytest.mark.usefixtures("_usual_size_again")
@pytest.mark.parametrize("has_dialog", [False, True], ids=["alone", "beside the settings"])
def test_no_field_is_clipped_in_the_first_frame_after_a_text_size_change(
    workbench: Workbench, qtbot: QtBot, self_refine: DocumentPage, has_dialog: bool
) -> None:
    workbench.window.resize(1440, 900)
    if has_dialog:  # then the look is put on another way
        dialog = QDialog(workbench.window)
        qtbot.addWidget(dialog)
        dialog.show()
    self_refine.session.select(())
    form = self_refine.inspector.workflow_page
    kinds = (QLineEdit, QComboBox, QAbstractSpinBox, QPlainTextEdit, QPushButton)
    fields = [field for root in (form, workbench.run_bar) for kind in kinds for field in root.findChildren(kind)]
    # A part of another field has the space that the field leaves it.
    seen = [field for field in fields if field.isVisible() and not isinstance(field.parentWidget(), kinds)]
    assert len(seen) >= 8
    for scale in (1.5, 1.0, 1.25, 2.0, 1.0):
        style().choose("light", scale)
        needed = {field: min(field.sizeHint().height(), field.maximumHeight()) for field in seen}
        cut = [(scale, field) for field in seen if field.height() < needed[field]]
        assert cut == []


@pytest.mark.usefixtures("_usual_size_again")
def test_icons_of_the_run_bar_and_the_tabs_grow_with_the_text_size(
    workbench: Workbench, self_refine: DocumentPage
) -> None:
    bar, tabs = workbench.run_bar, workbench.tabs

    def sides() -> list[int]:
        close = tabs.tabBar().tabButton(tabs.indexOf(self_refine), QTabBar.ButtonPosition.RightSide)
        assert close is not None
        assert close.geometry().right() <= tabs.tabBar().tabRect(tabs.indexOf(self_refine)).right()
        icons = [button.iconSize() for button in (bar.run, bar.pause, bar.step, bar.stop)]
        return [size.height() for size in (*icons, tabs.tabBar().iconSize(), close.size())]

    assert sides() == [16, 16, 16, 16, 16, 20]
    style().choose("dark", 1.5)
    assert sides() == [24, 24, 24, 24, 24, 30]
    self_refine = workbench.documents.new()
    assert sides() == [24, 24, 24, 24, 24, 30]


@pytest.mark.usefixtures("_usual_size_again")
def test_hidden_side_panels_grow_with_the_text_size(workbench: Workbench) -> None:
    workbench.window.resize(1600, 900)
    assert not workbench.palette_panel.isVisible()
    style().choose("dark", 1.5)
    assert workbench.documents.open_template(SELF_REFINE) is not None
    QApplication.processEvents()
    left, _, right = DEFAULT_WIDTHS
    assert (workbench.palette_panel.width(), workbench.inspectors.width()) == (round(left * 1.5), round(right * 1.5))


@pytest.mark.usefixtures("_usual_size_again", "self_refine")
def test_side_panels_leave_space_for_the_canvas_buttons(workbench: Workbench) -> None:
    workbench.window.resize(1280, 720)
    style().choose("dark", 1.0)
    QApplication.processEvents()
    style().choose("dark", 1.5)
    QApplication.processEvents()
    assert workbench.current is not None
    canvas = workbench.current.canvas
    assert canvas.width() >= 1.5 * MIN_DOCUMENT_WIDTH
    assert canvas.controls.geometry().right() < canvas.width()


@pytest.mark.usefixtures("_usual_size_again")
def test_hidden_parts_of_the_bars_take_no_room(workbench: Workbench, self_refine: DocumentPage) -> None:
    workbench.window.resize(1280, 720)
    style().choose("dark", 1.5)
    self_refine.session.do(SetText("name", "Converging summary"))
    self_refine.session.do(SetSettings(("budget_usd",), 0.0001))
    state = workbench.status_bar.state
    state.set_full_text("Running: Draft, iteration 2 of 3 · ~129 tokens · < $0.0001 · 13.2 s")
    QApplication.processEvents()
    assert workbench.run_bar.name.text() == workbench.run_bar.name.full_text
    assert state.text() == state.full_text
    workbench.status_bar.refuse("It cannot be.")
    QApplication.processEvents()
    assert workbench.status_bar.refusal.text() == "It cannot be."


@pytest.mark.parametrize("theme", ["dark", "light"])
@pytest.mark.usefixtures("_usual_size_again", "self_refine")
def test_icons_of_menus_have_the_color_of_their_texts(workbench: Workbench, theme: str) -> None:
    style().choose(theme, 1.0)
    for name, action in workbench.actions_by_name.items():
        image = action.icon().pixmap(32, 32, QIcon.Mode.Normal).toImage()
        colors = {image.pixelColor(x, y).name() for x in range(32) for y in range(32) if image.width()}
        assert not colors or style().theme.text in colors, name


@pytest.mark.usefixtures("_usual_size_again", "self_refine")
def test_side_panels_regain_their_width_in_a_wider_window(workbench: Workbench) -> None:
    workbench.window.resize(1600, 900)
    style().choose("dark", 1.0)
    QApplication.processEvents()
    before = workbench.palette_panel.width(), workbench.inspectors.width()
    workbench.bottom_panel.unfold("runs")  # which is wide, with large texts
    for _ in range(3):
        style().choose("dark", 1.5)
        QApplication.processEvents()
        style().choose("dark", 1.0)
        QApplication.processEvents()
    assert (workbench.palette_panel.width(), workbench.inspectors.width()) == before


@pytest.mark.usefixtures("self_refine")
def test_panels_do_not_enlarge_a_small_window(workbench: Workbench) -> None:
    for name in PANELS:
        workbench.window.resize(960, 600)  # half of a usual screen
        workbench.bottom_panel.unfold(name)
        QApplication.processEvents()
        assert (workbench.window.width(), workbench.window.height()) == (960, 600), name
        panel = workbench.bottom_panel.stack.currentWidget()
        cut = [
            button.text()
            for button in panel.findChildren(QPushButton)
            if button.isVisible()
            and not workbench.window.rect().contains(QRect(button.mapTo(workbench.window, QPoint()), button.size()))
        ]
        assert not cut, name


def test_many_tabs_show_part_of_their_names_and_scroll(workbench: Workbench, look: Theme) -> None:
    workbench.window.resize(1000, 700)
    for _ in range(6):
        workbench.documents.open_template(SELF_REFINE)
    QApplication.processEvents()
    bar = workbench.tabs.tabBar()
    widths = [bar.tabRect(place).width() for place in range(bar.count())]
    scroll = [button for button in bar.findChildren(QToolButton) if button.isVisible()]
    assert min(widths) >= bar.fontMetrics().horizontalAdvance("Self-R…")
    assert len(scroll) == 2
    assert all(bar.rect().contains(button.geometry()) for button in scroll)
    assert scroll[1].x() - scroll[0].x() >= 20


def test_choice_of_plain_text_is_remembered(workbench: Workbench, preferences: Preferences) -> None:
    assert reading_mode().is_formatted
    reading_mode().choose(is_formatted=False)
    assert preferences.formatted_results is False
    preferences.set(formatted_results=True)
    assert reading_mode().is_formatted


def visible_icons(root: QWidget) -> dict[str, str]:
    """The color of each icon that is shown in a window, by its place."""
    found: dict[str, QIcon] = {}
    for button in root.findChildren(QAbstractButton):
        if button.isVisible() and button.isEnabled():
            found[f"button {button.accessibleName() or button.text()}"] = button.icon()
    for bar in root.findChildren(QTabBar):
        if bar.isVisible():
            found |= {f"tab {bar.tabText(index)}": bar.tabIcon(index) for index in range(bar.count())}
    for listed in root.findChildren(QListWidget):
        if listed.isVisible():
            items = (listed.item(row) for row in range(listed.count()))
            found |= {f"item {item.text()}": item.icon() for item in items}
    colors: dict[str, str] = {}
    for place, shown in found.items():
        if not shown.isNull():
            colors[place] = main_color(shown.pixmap(32, 32).toImage())
    for label in root.findChildren(QLabel):
        if label.isVisible() and not label.pixmap().isNull():
            colors[f"label {label.accessibleName()}"] = main_color(label.pixmap().toImage())
    return colors


def main_color(image: QImage) -> str:
    """The most frequent color of the opaque pixels."""
    pixels = (image.pixelColor(x, y) for x in range(image.width()) for y in range(image.height()))
    return Counter(color.name() for color in pixels if color.alpha() == 255).most_common(1)[0][0]


@pytest.mark.usefixtures("_usual_size_again")
@pytest.mark.parametrize("panel", ["iterations", "problems"])
def test_icons_follow_the_theme(workbench: Workbench, self_refine: DocumentPage, qtbot: QtBot, panel: str) -> None:
    workbench.runs.run(self_refine)
    ended(self_refine, qtbot)
    self_refine.session.do(SetConfig(("loop",), {"exit": "nothing"}))
    self_refine.session.select(["draft"])
    workbench.bottom_panel.unfold(panel)
    qtbot.waitUntil(lambda: len(visible_icons(workbench.window)) > 12)
    for theme in (LIGHT, DARK):
        style().choose(theme.name)
        values = [getattr(theme, each.name) for each in fields(theme)]
        colors = {value for value in values if isinstance(value, str)} | set(theme.category.values())
        qtbot.waitUntil(lambda colors=colors: wrong_icons(workbench, colors) == {})


def wrong_icons(workbench: Workbench, colors: set[str]) -> dict[str, str]:
    return {place: color for place, color in visible_icons(workbench.window).items() if color not in colors}


def test_a_hidden_document_has_the_theme_when_it_is_shown(workbench: Workbench, self_refine: DocumentPage) -> None:
    def edge_colors(theme: Theme) -> tuple[set[str], set[str]]:
        edges = self_refine.canvas.view.edge_items.values()
        found = {edge.pen().color().name() for edge in edges}
        return found, {theme.port[edge.ports[0].content.type] for edge in edges}

    style().choose("dark")
    workbench.documents.new()
    style().choose("light")
    workbench.tabs.show_document(self_refine)
    found, wanted = edge_colors(LIGHT)
    style().choose("dark")
    assert found == {QColor(color).name() for color in wanted}


@pytest.mark.usefixtures("_usual_size_again")
@pytest.mark.parametrize("panel", ["problems", "iterations"])
def test_window_changed_at_run_time_looks_like_one_started_in_the_theme(
    make_window: MakeWindow, preferences: Preferences, qtbot: QtBot, panel: str
) -> None:
    def start(theme: str) -> QWidget:
        style().choose(theme)
        preferences.set(window_state="", window_geometry="")  # every window starts with the default layout
        workbench = make_window()
        document = workbench.documents.open_template(SELF_REFINE)
        assert document is not None
        document.session.select(["draft"])
        workbench.bottom_panel.unfold(panel)
        return workbench.window

    started = start("light")
    wanted = settled_picture(started, qtbot)
    started.hide()
    changed = start("dark")
    assert settled_picture(changed, qtbot) != wanted
    style().choose("light", gradually=True)
    qtbot.waitUntil(lambda: changed.grab().toImage() == wanted)


def settled_picture(window: QWidget, qtbot: QtBot) -> QImage:
    """A picture of a window once it no longer changes."""
    pictures = [QImage()]

    def is_settled() -> bool:
        pictures.append(window.grab().toImage())
        return pictures[-1] == pictures[-2]

    qtbot.waitUntil(is_settled)
    return pictures[-1]
