"""Apply a theme to the running program: palette, style sheet, fonts and icons; elide texts; how values are shown.

Widgets ask `Style` for the current theme and follow its signal `changed`; they store no colors.

Icons are characters of the font Material Design Icons 6, in `resources/icons` with its list of names.
"""

from __future__ import annotations

import json
from functools import cache, lru_cache
from pathlib import Path
from typing import ClassVar, Final

from PySide6.QtCore import QCoreApplication, QEvent, QObject, QPoint, QRect, QSize, Qt, Signal
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
)
from PySide6.QtWidgets import QAbstractButton, QApplication, QMainWindow, QWidget

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
        application.setStyle("Fusion")
        _load_fonts()
        QGuiApplication.styleHints().colorSchemeChanged.connect(self._follow_system)
        self.choose("system")

    def choose(self, choice: str, scale: float | None = None) -> None:
        """Apply the theme `dark`, `light` or `system`, and the text size."""
        self._choice = choice
        self.scale = scale if scale is not None else self.scale
        self._apply()

    def font(self, size: float = FONT_SIZE, weight: QFont.Weight = QFont.Weight.Normal) -> QFont:
        """Return the program's font; `size` is in pixels at a text size of 100 %."""
        font = QFont(FONT_FAMILY)
        font.setPixelSize(round(size * self.scale))
        font.setWeight(weight)
        return font

    def _follow_system(self) -> None:
        if self._choice == "system":
            self._apply()

    def _apply(self) -> None:
        light = self._choice == "light"
        if self._choice == "system":
            light = QGuiApplication.styleHints().colorScheme() == Qt.ColorScheme.Light
        self.theme = LIGHT if light else DARK
        sheet = style_sheet(self.theme, self.scale)
        if self._is_applied(sheet):
            return
        self._application.setPalette(_palette(self.theme))
        self._application.setFont(self.font())
        self._apply_stylesheet(sheet)
        self.changed.emit()
        # Lay out at once, or the first frame shows text of the new size in fields of the old size.
        QCoreApplication.sendPostedEvents(None, QEvent.Type.LayoutRequest)

    def _is_applied(self, sheet: str) -> bool:
        """Return whether nothing has another style sheet; applying the same again would take as long as another one."""
        own = {widget.styleSheet() for widget in self._application.topLevelWidgets()}
        return self._application.styleSheet() == sheet and own <= {"", sheet}

    def _apply_stylesheet(self, sheet: str) -> None:
        """Set the style sheet on the visible main windows, or else on the application.

        Setting it on the application makes Qt polish each widget and then its children again, which takes four times as
        long with an open document. A window's own style sheet takes precedence.
        """
        application = self._application
        alone = [widget for widget in application.topLevelWidgets() if widget.parentWidget() is None]
        windows = [widget for widget in alone if isinstance(widget, QMainWindow)]
        shown = [widget for widget in alone if widget.isVisible()]
        if not (shown and all(isinstance(widget, QMainWindow) for widget in shown) and application.styleSheet()):
            application.setStyleSheet(sheet)
            windows = [window for window in windows if window.styleSheet()]
        # A window's own style sheet is never removed: fonts would not follow the next one.
        for window in windows:
            if window.styleSheet() != sheet:
                window.setStyleSheet(sheet)


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


def _load_fonts() -> None:
    for file in sorted((resources_folder() / "fonts").glob("*.otf")):
        QFontDatabase.addApplicationFont(str(file))


def fixed_font() -> QFont:
    """Return the system's monospaced font at the program's text size."""
    font = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont)
    font.setPixelSize(style().font().pixelSize())
    return font


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
