from __future__ import annotations

import re
import subprocess
import sys

import pytest
from PySide6.QtCore import QEvent, QObject, Qt, QTimer
from PySide6.QtGui import QAction, QColor, QFontDatabase, QFontInfo, QGuiApplication, QIcon, QImage, QPalette
from PySide6.QtWidgets import (
    QApplication,
    QDialog,
    QGridLayout,
    QLabel,
    QLineEdit,
    QMainWindow,
    QMenu,
    QPlainTextEdit,
    QPushButton,
    QStackedWidget,
    QStyle,
    QTableWidget,
    QTableWidgetItem,
    QToolButton,
    QWidget,
)
from pytestqt.qtbot import QtBot
from shiboken6 import delete

from app.theme.style import ICON_SIZE, Style, ThemedIcon, icon, set_style_properties
from app.theme.stylesheet import style_sheet
from app.theme.tokens import DARK, FONT_SIZE_SMALL, LIGHT, Theme
from engine.bundled import resources_folder

themes = pytest.mark.parametrize("theme", [DARK, LIGHT], ids=lambda theme: theme.name)


def ink(icon: QIcon, mode: QIcon.Mode = QIcon.Mode.Normal) -> str:
    """The color in which an icon is drawn: that of its most opaque dot."""
    image = icon.pixmap(64, 64, mode).toImage()
    dots = (image.pixelColor(x, y) for x in range(image.width()) for y in range(image.height()))
    return max(dots, key=QColor.alpha).name()


def ground_of(widget: QWidget) -> str:
    """The color of a widget a little left of its middle, above its text."""
    image = widget.grab().toImage()
    return image.pixelColor(image.width() // 2, 4).name()


def test_theme_change_restyles_existing_widgets(qtbot: QtBot, style: Style) -> None:
    field = QLineEdit()
    qtbot.addWidget(field)
    field.resize(120, 30)
    field.show()
    before = ground_of(field)
    style.choose("light")
    assert (before, ground_of(field)) == (DARK.field, LIGHT.field)
    assert QApplication.palette().color(QPalette.ColorRole.Window).name() == LIGHT.ground


def test_theme_change_emits_changed_once(qtbot: QtBot, style: Style) -> None:
    reported: list[str] = []
    style.changed.connect(lambda: reported.append(style.theme.name))
    style.choose("light", 1.25)
    assert reported == ["light"]


def test_system_theme_is_followed_only_if_chosen(style: Style) -> None:
    reported: list[str] = []
    style.changed.connect(lambda: reported.append(style.theme.name))
    hints = QGuiApplication.styleHints()
    style.choose("light")
    hints.colorSchemeChanged.emit(Qt.ColorScheme.Dark)
    assert reported == ["light"]
    style.choose("system")
    style.scale = 1.25  # following the system again has something to apply
    hints.colorSchemeChanged.emit(Qt.ColorScheme.Dark)
    assert reported == ["light", "dark", "dark"]


def test_same_look_is_not_applied_again(style: Style) -> None:
    style.choose("light", 1.25)
    reported: list[str] = []
    style.changed.connect(lambda: reported.append(style.theme.name))
    style.choose("light")
    assert reported == []
    style.choose("light", 1.0)
    assert reported == ["light"]


def test_text_size_scales_all_fonts(qtbot: QtBot, style: Style) -> None:
    normal, small = QLabel("words"), QLabel("words")
    small.setProperty("small", True)
    for label in (normal, small):
        qtbot.addWidget(label)
        label.show()
    style.choose("dark", 1.5)
    assert normal.fontInfo().pixelSize() == round(13 * 1.5)
    assert small.fontInfo().pixelSize() == round(FONT_SIZE_SMALL * 1.5)


def test_explicit_font_of_a_widget_is_preserved(qtbot: QtBot, style: Style) -> None:
    label = QLabel("words")
    qtbot.addWidget(label)
    label.setFont(style.font(30))
    label.show()
    assert label.fontInfo().pixelSize() == 30


@themes
def test_style_sheet_refers_only_to_existing_images(theme: Theme) -> None:
    paths = re.findall(r'url\("([^"]+)"\)', style_sheet(theme, 1.0))
    folder = resources_folder() / "marks" / theme.name
    assert paths
    assert {path.rpartition("/")[2] for path in paths} <= {file.name for file in folder.iterdir()}


@themes
def test_images_have_colors_of_their_theme(theme: Theme) -> None:
    allowed = {"none", theme.dim, theme.on_accent, theme.text}
    for file in (resources_folder() / "marks" / theme.name).iterdir():
        used = set(re.findall(r'(?:stroke|fill)="([^"]+)"', file.read_text(encoding="utf-8")))
        assert used <= allowed, file.name


def test_style_property_applies_at_once_and_can_be_removed(qtbot: QtBot, style: Style) -> None:
    button = QPushButton("Run")
    qtbot.addWidget(button)
    button.resize(120, 32)
    button.show()
    assert ground_of(button) == DARK.card
    set_style_properties(button, primary=True)
    assert ground_of(button) == DARK.accent
    set_style_properties(button, primary=False)
    assert ground_of(button) == DARK.card


def test_themed_icon_follows_theme_and_text_size(qtbot: QtBot, style: Style) -> None:
    button = QToolButton()
    qtbot.addWidget(button)
    ThemedIcon(button, "mdi6.square", "accent")
    before = ink(button.icon())
    style.choose("light", 1.5)
    assert (before, ink(button.icon())) == (DARK.accent, LIGHT.accent)
    assert button.iconSize().width() == round(ICON_SIZE * 1.5)


def test_headers_stand_above_the_texts_of_their_columns(qtbot: QtBot, style: Style) -> None:
    table = QTableWidget(1, 1)
    qtbot.addWidget(table)
    table.setHorizontalHeaderLabels(["I"])
    table.setItem(0, 0, QTableWidgetItem("I"))
    table.verticalHeader().hide()
    table.horizontalHeader().setHighlightSections(False)
    table.horizontalHeader().setDefaultAlignment(Qt.AlignmentFlag.AlignLeft)
    table.show()
    header = table.horizontalHeader().viewport()
    drawn = (
        left_edge(header.grab().toImage(), header.height() // 2),
        left_edge(table.viewport().grab().toImage(), table.rowHeight(0) // 2),
    )
    assert abs(drawn[0] - drawn[1]) <= 1


def left_edge(image: QImage, y: int) -> int:
    """The first pixel of a line that differs from those before it."""
    return next(x for x in range(3, image.width()) if image.pixel(x, y) != image.pixel(2, y))


def test_icons_in_menus_follow_the_text_size(qtbot: QtBot, style: Style) -> None:
    menu = QMenu()
    qtbot.addWidget(menu)
    sizes: list[int] = []
    for scale in (1.0, 1.5):
        style.choose("dark", scale)
        menu.ensurePolished()
        sizes.append(menu.style().pixelMetric(QStyle.PixelMetric.PM_SmallIconSize, None, menu))
    assert sizes == [ICON_SIZE, round(ICON_SIZE * 1.5)]


@pytest.mark.parametrize("gradually", [False, True])
def test_button_that_clears_a_field_follows_the_theme(qtbot: QtBot, style: Style, gradually: bool) -> None:
    field = QLineEdit("text")
    field.setClearButtonEnabled(True)
    qtbot.addWidget(field)
    field.show()

    def button() -> QToolButton:
        found = field.findChild(QToolButton)
        assert isinstance(found, QToolButton)
        return found

    assert ink(button().icon()) == DARK.dim
    style.choose("light", gradually=gradually)
    qtbot.waitUntil(lambda: ink(button().icon()) == LIGHT.dim)
    assert button().isVisible()
    qtbot.mouseClick(button(), Qt.MouseButton.LeftButton)
    assert field.text() == ""


def test_disabled_icon_is_faint(qtbot: QtBot, style: Style) -> None:
    button = QToolButton()
    qtbot.addWidget(button)
    ThemedIcon(button, "mdi6.square")
    assert ink(button.icon(), QIcon.Mode.Disabled) == DARK.faint


def test_icon_of_an_action_can_be_changed(qapp: QApplication, style: Style) -> None:
    action = QAction("Pause")
    themed = ThemedIcon(action, "mdi6.square")
    themed.show("mdi6.square", "bad")
    assert ink(action.icon()) == DARK.bad
    style.choose("light")
    assert ink(action.icon()) == LIGHT.bad


def test_themed_icon_is_deleted_with_its_button(qtbot: QtBot, style: Style) -> None:
    button = QToolButton()
    ThemedIcon(button, "mdi6.square")
    with qtbot.waitSignal(button.destroyed):
        button.deleteLater()
    style.choose("light")  # a slot left behind would fail here, and with it the test


def test_style_is_required_first() -> None:
    program = (
        "from PySide6.QtWidgets import QApplication\n"
        "application = QApplication([])\n"
        "import app.theme.widgets, app.theme.style\n"
        "from app.theme.style import style\n"
        "try:\n"
        "    style()\n"
        "except RuntimeError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert "QApplication" in done.stdout


@pytest.fixture
def window(qtbot: QtBot, style: Style) -> QMainWindow:
    """A window that was painted, with two pages of fields: enough for several steps of a gradual change."""
    window = QMainWindow()
    qtbot.addWidget(window)
    pages = QStackedWidget()
    for _ in range(2):
        pages.addWidget(page_of_fields())
    window.setCentralWidget(pages)
    window.resize(900, 700)
    frames = Frames(window)
    with qtbot.waitExposed(window):
        window.show()
    qtbot.waitUntil(lambda: bool(frames.seen))
    return window


def page_of_fields() -> QWidget:
    page = QWidget()
    grid = QGridLayout(page)
    for place in range(200):
        grid.addWidget(QLineEdit(), place // 10, place % 10)
    return page


def fields_of(root: QWidget) -> set[str]:
    """The colors of all fields of a window, visible or not."""
    return {field.palette().color(QPalette.ColorRole.Base).name() for field in root.findChildren(QLineEdit)}


class Frames(QObject):
    """Notes the colors of the fields of a window whenever it is painted."""

    def __init__(self, window: QMainWindow) -> None:
        super().__init__(window)
        self._window = window
        self.seen: list[set[str]] = []
        window.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() is QEvent.Type.Paint:
            visible = [field for field in self._window.findChildren(QLineEdit) if field.isVisible()]
            self.seen.append({field.palette().color(QPalette.ColorRole.Base).name() for field in visible})
        return False


def test_gradual_change_shows_no_mixture_of_themes(window: QMainWindow, style: Style, qtbot: QtBot) -> None:
    frames = Frames(window)
    steps: list[int] = []
    timer = QTimer(window, interval=0)
    timer.timeout.connect(lambda: steps.append(len(frames.seen)))
    timer.start()
    style.choose("light", gradually=True)
    qtbot.waitUntil(lambda: bool(frames.seen))
    assert {color for seen in frames.seen for color in seen} == {LIGHT.field}
    assert steps.count(0) > 1  # the window handled events meanwhile


def test_hidden_widgets_follow_a_gradual_change(window: QMainWindow, style: Style, qtbot: QtBot) -> None:
    style.choose("light", gradually=True)
    qtbot.waitUntil(lambda: fields_of(window) == {LIGHT.field})


def test_page_shown_during_a_gradual_change_has_the_new_theme(window: QMainWindow, style: Style, qtbot: QtBot) -> None:
    style.choose("light", gradually=True)
    pages = window.centralWidget()
    assert isinstance(pages, QStackedWidget)
    pages.setCurrentIndex(1)
    pages.addWidget(page_of_fields())
    qtbot.waitUntil(lambda: fields_of(window) == {LIGHT.field})


@pytest.mark.parametrize("is_open", [True, False], ids=["open", "hidden"])
def test_dialog_follows_a_gradual_change(window: QMainWindow, style: Style, qtbot: QtBot, is_open: bool) -> None:
    dialog = QDialog(window)
    field = QLineEdit(dialog)
    field.resize(120, 30)
    dialog.setVisible(is_open)
    style.choose("light", gradually=True)
    if not is_open:
        dialog.show()
    qtbot.waitUntil(lambda: fields_of(window) == {LIGHT.field} and window.updatesEnabled())
    assert ground_of(field) == LIGHT.field


def test_dialog_may_be_deleted_during_a_gradual_change(window: QMainWindow, style: Style, qtbot: QtBot) -> None:
    dialog = QDialog(window)
    for _ in range(50):
        QLineEdit(dialog)
    dialog.show()
    style.choose("light", gradually=True)
    delete(dialog)
    qtbot.waitUntil(lambda: fields_of(window) == {LIGHT.field})


@pytest.mark.parametrize("is_painted", [False, True], ids=["before its first frame", "with a field to be painted"])
def test_window_is_painted_after_a_gradual_change(qtbot: QtBot, style: Style, is_painted: bool) -> None:
    window, page = QMainWindow(), page_of_fields()
    qtbot.addWidget(window)
    window.setCentralWidget(page)
    frames = Frames(window)
    window.show()
    if is_painted:
        qtbot.waitUntil(lambda: bool(frames.seen))
        page.findChildren(QLineEdit)[0].update()
    style.choose("light", gradually=True)
    qtbot.waitUntil(lambda: frames.seen[-1:] == [{LIGHT.field}])


@pytest.mark.parametrize("gradually", [True, False])
def test_theme_may_change_again_during_a_gradual_change(
    window: QMainWindow, style: Style, qtbot: QtBot, gradually: bool
) -> None:
    frames = Frames(window)
    style.choose("light", gradually=True)
    style.choose("dark", gradually=gradually)
    qtbot.waitUntil(lambda: fields_of(window) == {DARK.field} and frames.seen[-1:] == [{DARK.field}])


def test_gradual_change_can_be_finished_at_once(window: QMainWindow, style: Style) -> None:
    style.choose("light", gradually=True)
    style.choose("light")
    assert fields_of(window) == {LIGHT.field}
    assert window.updatesEnabled()


def test_text_size_is_applied_at_once(window: QMainWindow, style: Style) -> None:
    style.choose("light", 1.5, gradually=True)
    fields = window.findChildren(QLineEdit)
    assert {field.fontInfo().pixelSize() for field in fields} == {round(13 * 1.5)}
    assert {ground_of(field) for field in fields} == {LIGHT.field}


def test_monospaced_text_scales_and_stays_so_in_an_invalid_field(qtbot: QtBot, style: Style) -> None:
    field = QPlainTextEdit()
    field.setProperty("monospace", True)
    qtbot.addWidget(field)
    field.show()
    style.choose("dark", 1.5)
    set_style_properties(field, invalid=True)
    assert field.font().pixelSize() == round(13 * 1.5)
    assert (
        QFontInfo(field.font()).family()
        == QFontInfo(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont)).family()
    )


def test_text_size_applies_after_returning_to_the_first_theme(qtbot: QtBot, style: Style) -> None:
    """A sheet that had been taken off a window and put on again left buttons and menus with small texts."""
    window = QMainWindow()
    qtbot.addWidget(window)
    button, menu = QPushButton("Run", window), window.menuBar()
    window.show()
    for theme, scale in (("light", 1.0), ("dark", 1.0), ("dark", 1.5)):
        style.choose(theme, scale)
    assert button.fontInfo().pixelSize() == menu.fontInfo().pixelSize() == round(13 * 1.5)
    style.choose("dark", 1.0)
    assert button.fontInfo().pixelSize() == menu.fontInfo().pixelSize() == 13


def test_separate_widget_follows_the_theme_beside_a_main_window(qtbot: QtBot, style: Style) -> None:
    window, alone = QMainWindow(), QLineEdit()
    for widget in (window, alone):
        qtbot.addWidget(widget)
        widget.resize(120, 30)
        widget.show()
    field = QLineEdit(window)
    field.resize(120, 30)
    field.show()
    style.choose("light")
    assert ground_of(alone) == ground_of(field) == LIGHT.field


@pytest.mark.parametrize("name", ["mdi6.no-such-icon", "no.such-family", "rubbish", "a.b.c", ""])
def test_unknown_icon_is_a_question_mark(qtbot: QtBot, style: Style, name: str) -> None:
    shown, known = (icon(wanted).pixmap(16).toImage() for wanted in (name, "mdi6.help-circle-outline"))
    assert shown == known
