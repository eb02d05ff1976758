"""Apply a theme to the running program: palette, style sheet, fonts and icons; elide texts; how values are shown.

Widgets ask `Style` for the current theme and follow its signal `changed`; they store no colors.

Icons are characters of the font Material Design Icons 6, in `resources/icons` with its list of names.
"""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Generator
from functools import cache, lru_cache
from pathlib import Path
from typing import ClassVar, Final

from PySide6.QtCore import QCoreApplication, QEvent, QObject, QPoint, QRect, QSize, Qt, QTimer, Signal
from PySide6.QtGui import (
    QAction,
    QColor,
    QFont,
    QFontDatabase,
    QFontMetricsF,
    QGuiApplication,
    QIcon,
    QIconEngine,
    QPainter,
    QPalette,
    QPixmap,
    QPixmapCache,
)
from PySide6.QtWidgets import QAbstractButton, QApplication, QLineEdit, QWidget
from shiboken6 import isValid

from app.theme.stylesheet import style_sheet
from app.theme.tokens import DARK, FONT_FAMILY, FONT_SIZE, LIGHT, Theme
from engine.bundled import resources_folder

FAMILY: Final = "mdi6"
"""Prefix of icon names, as in `mdi6.play`."""

UNKNOWN_ICON: Final = f"{FAMILY}.help-circle-outline"
_ICON_FILES: Final = "materialdesignicons6"
_FONT_SCALE: Final = 0.875
"""Font size as a share of the icon's height: the glyphs are taller than their line."""


@lru_cache(maxsize=256)
def glyph(name: str) -> str:
    """Return the character that draws an icon, or a question mark if the font lacks it.

    Plugins may ask for any name.

    Args:
        name: The icon's name, such as `mdi6.play`.
    """
    family, _, short = name.partition(".")
    codes = _code_points()
    code = codes.get(short) if family == FAMILY else None
    return chr(int(code or codes[UNKNOWN_ICON.partition(".")[2]], 16))


def glyph_font(size: int) -> QFont:
    """Return the icon font at a size in pixels."""
    font = QFont(_font_family())
    font.setPixelSize(size)
    return font


class GlyphEngine(QIconEngine):
    """Icon engine that draws a glyph at any size.

    Args:
        name: The icon's name.
        color: Its color.
        disabled: Its color on disabled controls.
    """

    def __init__(self, name: str, color: str, disabled: str) -> None:
        super().__init__()
        self._glyph = glyph(name)
        self._color = QColor(color)
        self._disabled = QColor(disabled)

    def paint(self, painter: QPainter, rect: QRect, mode: QIcon.Mode, _state: QIcon.State) -> None:
        """Draw the glyph centerd in a rectangle."""
        painter.save()
        painter.setPen(self._disabled if mode == QIcon.Mode.Disabled else self._color)
        painter.setFont(glyph_font(round(_FONT_SCALE * rect.height())))
        painter.drawText(rect, Qt.AlignmentFlag.AlignCenter, self._glyph)
        painter.restore()

    def pixmap(self, size: QSize, mode: QIcon.Mode, state: QIcon.State) -> QPixmap:
        """Draw the glyph on a transparent pixmap."""
        pixmap = QPixmap(size)
        pixmap.fill(Qt.GlobalColor.transparent)
        painter = QPainter(pixmap)
        self.paint(painter, QRect(QPoint(0, 0), size), mode, state)
        painter.end()
        return pixmap


@lru_cache(maxsize=1)
def _code_points() -> dict[str, str]:
    """Return the hexadecimal code point of each icon by name."""
    return json.loads(_icon_file("json").read_text("utf-8"))


@lru_cache(maxsize=1)
def _font_family() -> str:
    return QFontDatabase.applicationFontFamilies(QFontDatabase.addApplicationFont(str(_icon_file("ttf"))))[0]


def _icon_file(suffix: str) -> Path:
    return resources_folder() / "icons" / f"{_ICON_FILES}.{suffix}"


ICON_SIZE: Final = 16
"""Size of an icon in pixels at a text size of 100 %."""


def icon_size() -> QSize:
    """Return the size of an icon at the current text size."""
    side = round(ICON_SIZE * style().scale)
    return QSize(side, side)


class ThemedIcon(QObject):
    """Keeps the icon of a button or action in a color of the current theme.

    On buttons it scales with the text size. It is a child of its target.
    """

    def __init__(self, target: QAbstractButton | QAction, name: str, role: str = "text") -> None:
        """Set the icon.

        Args:
            target: The button or action.
            name: Name of the icon, such as `mdi6.play`.
            role: Name of a color of `Theme`.
        """
        super().__init__(target)
        self._target = target
        self._name = name
        self._role = role
        style().changed.connect(self._draw)
        self._draw()

    def show(self, name: str, role: str | None = None) -> None:
        """Change the icon."""
        self._name = name
        self._role = role or self._role
        self._draw()

    def _draw(self) -> None:
        if isinstance(self._target, QAbstractButton):
            self._target.setIconSize(icon_size())
        self._target.setIcon(icon(self._name, getattr(style().theme, self._role)))


SLICE_S: Final = 0.008
"""How long widgets are restyled before the window handles events again, in seconds."""


class Style(QObject):
    """The program's style; `app.main` creates the only one right after the application.

    Attributes:
        current: The only one; None before it is created.
        theme: The current colors.
        scale: Text size as a factor from 1.0 to 2.0.
    """

    changed = Signal()
    current: ClassVar[Style | None] = None

    def __init__(self, application: QApplication) -> None:
        super().__init__(application)
        Style.current = self
        self._application = application
        self.theme: Theme = DARK
        self.scale = 1.0
        self._choice = "system"
        self._restyling = _polish([])
        self._timer = QTimer(self, interval=0)
        self._timer.timeout.connect(self._take_step)
        application.setStyle("Fusion")
        _load_fonts()
        QGuiApplication.styleHints().colorSchemeChanged.connect(self._follow_system)
        self.choose("system")

    def choose(self, choice: str, scale: float | None = None, *, gradually: bool = False) -> None:
        """Apply the theme `dark`, `light` or `system`, and the text size.

        Args:
            choice: The theme.
            scale: The text size; unchanged by default.
            gradually: Whether to return at once and restyle the widgets while the window handles events. Another text
                size is never applied gradually, because layouts depend on it.
        """
        self._choice = choice
        self.scale = scale if scale is not None else self.scale
        self._apply(gradually=gradually)

    def font(self, size: float = FONT_SIZE, weight: QFont.Weight = QFont.Weight.Normal) -> QFont:
        """Return the program's font; `size` is in pixels at a text size of 100 %."""
        font = QFont(FONT_FAMILY)
        font.setPixelSize(round(size * self.scale))
        font.setWeight(weight)
        return font

    def _follow_system(self) -> None:
        if self._choice == "system":
            self._apply(gradually=True)

    def _apply(self, *, gradually: bool) -> None:
        light = self._choice == "light"
        if self._choice == "system":
            light = QGuiApplication.styleHints().colorScheme() == Qt.ColorScheme.Light
        self.theme = LIGHT if light else DARK
        sheet = style_sheet(self.theme, self.scale, _monospace_family())
        if sheet != self._application.styleSheet():
            self._restyling.close()
            is_resized = self._application.font().pixelSize() != self.font().pixelSize()
            self._restyling = self._restyle(sheet) if gradually and not is_resized else self._restyle_at_once(sheet)
        if gradually:
            self._take_step()
            self._timer.start()
        else:
            deque(self._restyling, maxlen=0)

    def _take_step(self) -> None:
        if next(self._restyling, True):
            self._timer.stop()

    def _restyle(self, sheet: str) -> Generator[None]:
        """Apply other colors step by step.

        The windows show their last frame until everything visible has the new colors: nobody sees a mixture of two
        themes. Hidden widgets follow.
        """
        windows = [window for window in self._application.topLevelWidgets() if window.isVisible()]
        try:
            for window in windows:
                window.setUpdatesEnabled(False)
            self._application.setPalette(_palette(self.theme))
            _replace_style_sheet(self._application, sheet)
            yield
            widgets = _all_widgets(self._application)
            shown = [widget for widget in widgets if widget.isVisible()]
            hidden = [widget for widget in widgets if not widget.isVisible()]
            yield
            yield from _polish(shown)
            yield
            self.changed.emit()
            yield
        finally:
            for window in filter(isValid, windows):
                window.setUpdatesEnabled(True)
                # Qt thinks that an earlier request is pending, although it arrived meanwhile and nothing was painted.
                QCoreApplication.postEvent(window, QEvent(QEvent.Type.UpdateRequest))
        yield
        yield from _polish(hidden)

    def _restyle_at_once(self, sheet: str) -> Generator[None]:
        """Apply other colors and another text size in a single step."""
        self._application.setPalette(_palette(self.theme))
        self._application.setFont(self.font())
        _replace_style_sheet(self._application, sheet)
        for widget in filter(isValid, _all_widgets(self._application)):
            _polish_widget(widget)
            QCoreApplication.sendEvent(widget, QEvent(QEvent.Type.StyleChange))
        self.changed.emit()
        # Lay out at once, or the first frame shows text of the new size in fields of the old size.
        QCoreApplication.sendPostedEvents(None, QEvent.Type.LayoutRequest)
        yield


def clear_style_cache() -> None:
    """Clear what Qt keeps for the style sheet: the rules of each widget, and their images. Painting fills it again.

    Qt removes the rules of deleted widgets, but not those of the widgets inside of fields, such as the text field of a
    spin box: about 1 kB each.
    """
    application = QApplication.instance()
    assert isinstance(application, QApplication)
    application.style().unpolish(application)
    QPixmapCache.clear()


def _replace_style_sheet(application: QApplication, sheet: str) -> None:
    """Set the application's style sheet without restyling the widgets, which Qt would do twice and without a pause.

    Qt restyles the widgets whose rules it has cached.
    """
    clear_style_cache()
    application.setStyleSheet(sheet)


def _all_widgets(application: QApplication) -> list[QWidget]:
    """Return all widgets, each after its parent."""
    roots = [widget for widget in application.topLevelWidgets() if widget.parentWidget() is None]
    return [widget for root in roots for widget in (root, *root.findChildren(QWidget))]


def _polish(widgets: list[QWidget]) -> Generator[None]:
    """Apply the style sheet to widgets."""
    pause_at = time.perf_counter() + SLICE_S
    for widget in filter(isValid, widgets):
        _polish_widget(widget)
        widget.update()
        if time.perf_counter() >= pause_at:
            yield
            pause_at = time.perf_counter() + SLICE_S


def _polish_widget(widget: QWidget) -> None:
    widget.style().polish(widget)
    if isinstance(widget, QLineEdit) and widget.isClearButtonEnabled():
        widget.setClearButtonEnabled(False)  # Qt takes the icon of this button only when it creates the button
        widget.setClearButtonEnabled(True)


def style() -> Style:
    """Return the style of the running program.

    Raises:
        RuntimeError: No `Style` exists.
    """
    if Style.current is None:
        raise RuntimeError("make a Style right after the QApplication")
    return Style.current


def icon(name: str, color: str | None = None) -> QIcon:
    """Return an icon (`mdi6.…`), by default in the theme's text color.

    Its color is fixed; `ThemedIcon` follows the theme.
    """
    theme = style().theme
    return _cached_icon(name, color or theme.text, theme.faint)


@lru_cache(maxsize=256)
def _cached_icon(name: str, color: str, disabled: str) -> QIcon:
    return QIcon(GlyphEngine(name, color, disabled))


def set_style_properties(widget: QWidget, **properties: bool | str) -> None:
    """Set properties that the style sheet selects by, and restyle the widget.

    False removes a property.
    """
    for name, value in properties.items():
        widget.setProperty(name, None if value is False else value)
    widget.style().unpolish(widget)
    widget.style().polish(widget)
    widget.update()


def _monospace_family() -> str:
    return QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont).family()


def _load_fonts() -> None:
    for file in sorted((resources_folder() / "fonts").glob("*.otf")):
        QFontDatabase.addApplicationFont(str(file))


def _palette(theme: Theme) -> QPalette:
    role = QPalette.ColorRole
    colors = {
        role.Window: theme.ground,
        role.WindowText: theme.text,
        role.Base: theme.panel,
        role.AlternateBase: theme.field,
        role.Text: theme.text,
        role.Button: theme.card,
        role.ButtonText: theme.text,
        role.BrightText: theme.bad,
        role.Highlight: theme.accent,
        role.HighlightedText: theme.on_accent,
        role.Accent: theme.accent,
        role.ToolTipBase: theme.card,
        role.ToolTipText: theme.text,
        role.PlaceholderText: theme.dim,
        role.Link: theme.accent,
        role.Mid: theme.line,
        role.Dark: theme.line,
        role.Light: theme.card,
    }
    palette = QPalette()
    for where, color in colors.items():
        palette.setColor(where, QColor(color))
    for where in (role.WindowText, role.Text, role.ButtonText):
        palette.setColor(QPalette.ColorGroup.Disabled, where, QColor(theme.faint))
    return palette


MAX_LENGTH: Final = 400


def first_line(text: str) -> str:
    """Return the first line of a text, at most 400 characters: measuring more is slow."""
    return text.partition("\n")[0][:MAX_LENGTH]


def elide(metrics: QFontMetricsF, text: str, width: float) -> str:
    """Return the first line of a text, ending in an ellipsis if it is too wide."""
    return metrics.elidedText(first_line(text), Qt.TextElideMode.ElideRight, width)


def elide_two_lines(metrics: QFontMetricsF, text: str, width: float) -> list[str]:
    """Break a text into at most two lines; the second ends in an ellipsis if it is too wide."""
    words = text[:200].split()
    first: list[str] = []
    while words and metrics.horizontalAdvance(" ".join((*first, words[0]))) <= width:
        first.append(words.pop(0))
    if not first:
        return [elide(metrics, text, width)]
    return [" ".join(first)] + ([elide(metrics, " ".join(words), width)] if words else [])


class ReadingMode(QObject):
    """Whether values are shown formatted or as plain text: one choice for all views, changed in any of them.

    Attributes:
        is_formatted: Whether Markdown is rendered and JSON is shown as a tree.

    Signals:
        changed: Another choice was made.
    """

    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.is_formatted = True

    def choose(self, *, is_formatted: bool) -> None:
        """Change the choice."""
        if is_formatted != self.is_formatted:
            self.is_formatted = is_formatted
            self.changed.emit()


@cache
def reading_mode() -> ReadingMode:
    """Return the choice of this program."""
    return ReadingMode()
