"""Putting a theme on: palette, style sheet, fonts and icons of the running program.

Widgets ask `Style` for the theme that is on now and follow its signal `changed`; they hold no colour of their own.
"""

from __future__ import annotations

from functools import lru_cache

from PySide6.QtCore import QCoreApplication, QEvent, QObject, Qt, Signal
from PySide6.QtGui import QColor, QFont, QFontDatabase, QGuiApplication, QIcon, QPalette
from PySide6.QtWidgets import QApplication, QMainWindow, QWidget

from app.theme.glyphs import GlyphEngine
from app.theme.sheet import style_sheet
from app.theme.tokens import DARK, FONT_FAMILY, FONT_SIZE, LIGHT, Theme
from engine.bundled import resources_folder


class Style(QObject):
    """The look of the program; there is one, made by `app.main` right after the application.

    Attributes:
        theme: The colours that are on now.
        scale: How much larger than usual texts are, from 1.0 to 2.0.
    """

    changed = Signal()

    def __init__(self, application: QApplication) -> None:
        super().__init__(application)
        self._application = application
        self.theme: Theme = DARK
        self.scale = 1.0
        self._choice = "system"
        application.setStyle("Fusion")
        _load_fonts()
        QGuiApplication.styleHints().colorSchemeChanged.connect(self._follow_system)
        self.choose("system")

    def choose(self, choice: str, scale: float | None = None) -> None:
        """Put on `dark`, `light` or what the `system` has, and set the size of texts."""
        self._choice = choice
        self.scale = scale if scale is not None else self.scale
        self._put_on()

    def font(self, size: float = FONT_SIZE, weight: QFont.Weight = QFont.Weight.Normal) -> QFont:
        """The program's font at a size in pixels of the usual scale."""
        font = QFont(FONT_FAMILY)
        font.setPixelSize(round(size * self.scale))
        font.setWeight(weight)
        return font

    def _follow_system(self) -> None:
        if self._choice == "system":
            self._put_on()

    def _put_on(self) -> None:
        light = self._choice == "light"
        if self._choice == "system":
            light = QGuiApplication.styleHints().colorScheme() == Qt.ColorScheme.Light
        self.theme = LIGHT if light else DARK
        self._application.setPalette(_palette(self.theme))
        self._application.setFont(self.font())
        self._put_on_sheet()
        self.changed.emit()
        # At once, or a first frame shows letters of the new size in fields of the old one, their edges cut.
        QCoreApplication.sendPostedEvents(None, QEvent.Type.LayoutRequest)

    def _put_on_sheet(self) -> None:
        """Put the sheet on the main windows that are seen, each with all that is in it, else on the application.

        Qt puts a new sheet of the application on each widget by itself and on its children again: with an open document
        that takes some four times as long. A window's own sheet counts before the application's.
        """
        sheet, application = style_sheet(self.theme, self.scale), self._application
        alone = [widget for widget in application.topLevelWidgets() if widget.parentWidget() is None]
        windows = [widget for widget in alone if isinstance(widget, QMainWindow)]
        shown = [widget for widget in alone if widget.isVisible()]
        if not (shown and all(isinstance(widget, QMainWindow) for widget in shown) and application.styleSheet()):
            application.setStyleSheet(sheet)
            windows = [window for window in windows if window.styleSheet()]
        # A sheet of its own is never taken off: fonts would stay as they were when another is put on after that.
        for window in windows:
            if window.styleSheet() != sheet:
                window.setStyleSheet(sheet)


def style() -> Style:
    """The style of the running program.

    Raises:
        RuntimeError: None has been made.
    """
    application = QApplication.instance()
    found = application.findChild(Style) if application is not None else None
    if found is None:
        raise RuntimeError("make a Style right after the QApplication")
    return found


def icon(name: str, colour: str | None = None) -> QIcon:
    """An icon of the one icon family (`mdi6.…`), in the theme's text colour unless another is given.

    It keeps its colour; `app.theme.icons.ThemedIcon` follows the theme.
    """
    theme = style().theme
    return _drawn(name, colour or theme.text, theme.faint)


@lru_cache(maxsize=256)
def _drawn(name: str, colour: str, disabled: str) -> QIcon:
    return QIcon(GlyphEngine(name, colour, disabled))


def mark(widget: QWidget, **properties: bool | str) -> None:
    """Set properties that the style sheet asks for, and show the widget accordingly at once.

    A value of False takes a property away.
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
    """The system's font with letters of one width, in the size of the program's texts."""
    font = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont)
    font.setPixelSize(style().font().pixelSize())
    return font


def _palette(theme: Theme) -> QPalette:
    role = QPalette.ColorRole
    colours = {
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
    for where, colour in colours.items():
        palette.setColor(where, QColor(colour))
    for where in (role.WindowText, role.Text, role.ButtonText):
        palette.setColor(QPalette.ColorGroup.Disabled, where, QColor(theme.faint))
    return palette
