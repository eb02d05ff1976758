"""The main window: its layout, and the state of it that survives a restart."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from PySide6.QtCore import QByteArray, QObject, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import (
    QAction,
    QCloseEvent,
    QColor,
    QDragEnterEvent,
    QDragMoveEvent,
    QDropEvent,
    QIcon,
    QPainter,
    QPen,
    QPixmap,
    QPolygonF,
    QResizeEvent,
    QShowEvent,
)
from PySide6.QtWidgets import QApplication, QMainWindow, QSplitter, QStackedWidget, QWidget

from app.file_drops import accept_copy, dropped_files
from app.theme.style import style
from app.theme.tokens import LIGHT
from app.theme.widgets import MessageBars, set_tab_order, vbox
from app.window.autosave import has_autosave
from app.window.bottom_panel import BottomPanel, BottomPanelHeight
from app.window.document_tabs import DocumentTabs
from app.window.run_bar import RunBar
from app.window.status_bar import StatusBar
from engine.safe_file_io import path_exists

if TYPE_CHECKING:
    from app.history.iterations_panel import IterationsPanel
    from app.settings.preferences import Preferences


DEFAULT_WIDTHS: Final = (216, 900, 320)
"""Widths of palette, documents and inspector at a text scale of 1."""

MIN_DOCUMENT_WIDTH: Final = 440
"""The width that the side panels leave the documents when they grow with the text; the Iterations panel fits in it."""

ICON_SIZES: Final = (16, 32, 64, 128, 256)


class SidePanelWidths(QObject):
    """Scales the widths of palette and inspector with the text size, as far as the window has room for them.

    Args:
        sides: The splitter with palette, documents and inspector.
    """

    def __init__(self, sides: QSplitter) -> None:
        super().__init__(sides)
        self._sides = sides
        self._scale = style().scale
        self._wanted = [float(DEFAULT_WIDTHS[0]), float(DEFAULT_WIDTHS[2])]
        self._distribute(sum(DEFAULT_WIDTHS))
        sides.splitterMoved.connect(lambda *_: self.note_widths())
        style().changed.connect(self._rescale)

    def fit(self) -> None:
        """Give palette and inspector their widths in a window of another size, or after one of them was shown."""
        self._distribute(sum(self._sides.sizes()))

    def note_widths(self) -> None:
        """Note the widths that the user chose, at a text scale of 1; a hidden panel has a width of 0."""
        now = self._sides.sizes()[::2]
        self._wanted = [width / self._scale or before for width, before in zip(now, self._wanted, strict=True)]

    def _rescale(self) -> None:
        """Start from the chosen widths, not the present ones: a narrow window may have cut those."""
        if style().scale != self._scale:
            self._scale = style().scale
            self.fit()

    def _distribute(self, available: int) -> None:
        left, right = (width * self._scale for width in self._wanted)
        visible = [width for width, index in ((left, 0), (right, 2)) if not self._is_hidden(index)]
        shown = sum(visible)
        # A narrow window shrinks both in proportion.
        share = min(1.0, max(0.0, available - MIN_DOCUMENT_WIDTH * self._scale) / shown) if shown else 1.0
        left, right = round(left * share), round(right * share)
        self._sides.setSizes([left, max(1, available - round(shown * share)), right])

    def _is_hidden(self, index: int) -> bool:
        widget = self._sides.widget(index)
        return widget is None or widget.isHidden()


def program_icon() -> QIcon:
    """Draw the program's icon: a loop on the accent color."""
    icon = QIcon()
    for size in ICON_SIZES:
        icon.addPixmap(_drawn(size))
    return icon


def _drawn(size: int) -> QPixmap:
    pixmap = QPixmap(size, size)
    pixmap.fill(Qt.GlobalColor.transparent)
    painter = QPainter(pixmap)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.scale(size / 32, size / 32)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(QColor(LIGHT.accent))
    painter.drawRoundedRect(QRectF(1, 1, 30, 30), 8, 8)
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.setPen(QPen(QColor(LIGHT.on_accent), 3, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap))
    painter.drawArc(QRectF(8, 8, 16, 16), 50 * 16, 280 * 16)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(QColor(LIGHT.on_accent))
    painter.drawPolygon(QPolygonF([QPointF(18, 6), QPointF(26, 9.5), QPointF(19, 15)]))
    painter.end()
    return pixmap


class MainWindow(QMainWindow):
    """Lays out the parts of the window; it knows nothing of what they do.

    Args:
        run_bar: The bar at the top.
        notices: Messages about the program as a whole.
        tabs: The open documents and the start page.
        inspectors: The inspectors of the documents.
        bottom_panel: Iterations, log, problems and runs.
        status_bar: The bar at the bottom.
        may_close: Says whether the window may close now; it may ask the user and close the window later.

    Attributes:
        sides: The splitter between palette, documents and inspector.
        middle: The splitter between documents and bottom panel.
        panel_height: The height of the bottom panel.
        side_widths: The widths of palette and inspector.

    Signals:
        files_dropped: The user dropped these files on the window.
        closed: The window was closed.
    """

    files_dropped = Signal(list)
    closed = Signal()

    def __init__(
        self,
        *,
        run_bar: RunBar,
        notices: MessageBars,
        tabs: DocumentTabs,
        inspectors: QStackedWidget,
        bottom_panel: BottomPanel,
        status_bar: StatusBar,
        may_close: Callable[[], bool],
    ) -> None:
        super().__init__()
        self.setWindowTitle("Loopwright")
        self.setWindowIcon(program_icon())
        self.setAcceptDrops(True)
        self._may_close = may_close
        self.bottom_panel = bottom_panel
        self._tabs = tabs
        self._inspectors = inspectors
        self._palette = QWidget()  # a placeholder until `install_palette`
        self.middle = QSplitter(Qt.Orientation.Vertical)
        self.sides = QSplitter(Qt.Orientation.Horizontal)
        # From the outside in: Qt restyles a whole widget tree whenever its parent changes.
        central = QWidget()
        self.setCentralWidget(central)
        vbox(run_bar, notices, (self.sides, 1), status_bar, spacing=0, parent=central)
        for widget in (self._palette, self.middle, inspectors):
            self.sides.addWidget(widget)
        self.middle.addWidget(tabs)
        self.middle.addWidget(bottom_panel)
        tabs.show_start()
        self._no_inspector = QWidget()
        self._no_inspector.setProperty("panel", True)
        inspectors.addWidget(self._no_inspector)
        inspectors.setProperty("panel", True)
        self.panel_height = BottomPanelHeight(self.middle, bottom_panel)
        for splitter, stretched in ((self.middle, 0), (self.sides, 1)):
            splitter.setChildrenCollapsible(False)
            splitter.setHandleWidth(1)
            for index in range(splitter.count()):
                splitter.setStretchFactor(index, int(index == stretched))
        self.side_widths = SidePanelWidths(self.sides)
        self._before_palette = (run_bar, notices)
        self._after_palette = (tabs, inspectors, bottom_panel, status_bar)

    def install_palette(self, palette: QWidget) -> None:
        """Put the node palette in its place at the left."""
        palette.setVisible(not self._palette.isHidden())
        self.sides.replaceWidget(0, palette)
        self._palette.deleteLater()
        self._palette = palette

    def show_side_panels(self, *, palette: bool, inspector: bool) -> None:
        """Show or hide the palette and the inspector."""
        self._palette.setVisible(palette)
        self._inspectors.setVisible(inspector)
        self.side_widths.fit()

    def show_inspector(self, inspector: QWidget | None) -> None:
        """Show a document's inspector; an empty panel until it is created."""
        self._inspectors.setCurrentWidget(inspector or self._no_inspector)

    def show_title(self, document: str, *, is_modified: bool) -> None:
        """Show the name of the current document in the title bar; empty where there is none."""
        self.setWindowTitle(f"{document}[*]" if document else "Loopwright")  # Qt adds the program
        self.setWindowModified(is_modified)

    def come_to_front(self) -> None:
        """Show this window in front of the others, restoring a minimized one."""
        self.setWindowState(self.windowState() & ~Qt.WindowState.WindowMinimized)
        self.raise_()
        self.activateWindow()
        QApplication.alert(self)  # where the desktop keeps another window in front

    def focusNextPrevChild(self, next: bool) -> bool:  # noqa: A002 - Qt's own
        """Move the focus in the order in which the widgets are laid out now."""
        set_tab_order((*self._before_palette, self._palette, *self._after_palette))
        return super().focusNextPrevChild(next)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        """Accept files."""
        if dropped_files(event.mimeData()):
            accept_copy(event)

    def dragMoveEvent(self, event: QDragMoveEvent) -> None:
        """Accept files."""
        accept_copy(event)

    def dropEvent(self, event: QDropEvent) -> None:
        """Report the dropped files."""
        accept_copy(event)
        self.files_dropped.emit(dropped_files(event.mimeData()))

    def showEvent(self, event: QShowEvent) -> None:
        """Give the start page the focus, rather than the first widget that was created."""
        super().showEvent(event)
        if self._tabs.current is None:
            self._tabs.start.setFocus()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Let palette and inspector give way in a narrow window."""
        super().resizeEvent(event)
        self.side_widths.fit()

    def closeEvent(self, event: QCloseEvent) -> None:
        """Close, unless the user has to be asked first."""
        if not self._may_close():
            event.ignore()
            return
        event.accept()
        self.closed.emit()


DEFAULT_SIZE: Final = (1440, 900)


class WindowState:
    """Saves and restores the state of one window in the preferences.

    Args:
        preferences: The user's settings, in which the state is stored.
    """

    def __init__(self, preferences: Preferences, window: MainWindow, actions: Mapping[str, QAction]) -> None:
        self._preferences, self._window, self._actions = preferences, window, actions
        self._iterations: dict[str, Any] = {}
        self._panels: list[IterationsPanel] = []

    def save(self, open_paths: Iterable[Path | None]) -> None:
        """Write the state to disk at once, so that it survives a crash."""
        state = {
            "open": [str(path) for path in dict.fromkeys(open_paths) if path is not None],
            "sides": _to_text(self._window.sides.saveState()),
            "palette": self._actions["show_palette"].isChecked(),
            "inspector": self._actions["show_inspector"].isChecked(),
            "drawer": self._window.bottom_panel.open_panel,
            "drawer_heights": self._window.panel_height.chosen,
            "iterations": self._iterations,
        }
        geometry = _to_text(self._window.saveGeometry())
        self._preferences.set(window_state=json.dumps(state), window_geometry=geometry)
        self._preferences.save()

    def restore(self) -> None:
        """Apply the stored state to a new window."""
        self._window.resize(*DEFAULT_SIZE)
        stored = _stored(self._preferences)
        if self._preferences.window_geometry:
            self._window.restoreGeometry(_from_text(self._preferences.window_geometry))
        if isinstance(stored.get("sides"), str):
            self._window.sides.restoreState(_from_text(stored["sides"]))
            self._window.side_widths.note_widths()
        for name in ("palette", "inspector"):
            self._actions[f"show_{name}"].setChecked(stored.get(name) is not False)
        self._window.panel_height.restore(stored.get("drawer_heights"))
        layout = stored.get("iterations")
        self._iterations = layout if isinstance(layout, dict) else {}
        if stored.get("drawer") in list(
            self._window.bottom_panel.buttons
        ):  # a list: the stored value may not be hashable
            self._window.bottom_panel.unfold(stored["drawer"])

    def share_layout(self, panel: IterationsPanel) -> None:
        """Keep the layout of a new Iterations panel the same as that of all others."""

        def apply_to_others() -> None:
            self._iterations = panel.layout_state()
            for other in self._panels:
                if other is not panel:
                    other.restore_layout(self._iterations)

        panel.restore_layout(self._iterations)
        panel.layout_changed.connect(apply_to_others)
        self._panels.append(panel)
        panel.destroyed.connect(lambda: self._panels.remove(panel))


def open_files(preferences: Preferences, data_folder: Path) -> list[Path]:
    """Return the files that were open last and still exist, or have unsaved work left by a crash.

    Args:
        preferences: The user's settings, in which they are stored.
        data_folder: The folder of autosave files that cannot be written beside their document.
    """
    names = _stored(preferences).get("open")
    found = [Path(name) for name in names if isinstance(name, str)] if isinstance(names, list) else []
    return [path for path in found if path_exists(path) or has_autosave(path, data_folder)]


def _stored(preferences: Preferences) -> dict[str, Any]:
    try:
        stored = json.loads(preferences.window_state or "{}")
    except ValueError:
        return {}
    return stored if isinstance(stored, dict) else {}


def _to_text(state: QByteArray) -> str:
    return bytes(state.toBase64().data()).decode("ascii")


def _from_text(text: str) -> QByteArray:
    return QByteArray.fromBase64(QByteArray(text.encode("ascii", "replace")))
