"""The main window: palette, documents, inspector and the panels below, tied to the document that is shown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property, cmp_to_key
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from PySide6.QtCore import QObject, QPointF, QRect, QRectF, Qt, Signal
from PySide6.QtGui import (
    QCloseEvent,
    QColor,
    QDragEnterEvent,
    QDropEvent,
    QIcon,
    QPainter,
    QPen,
    QPixmap,
    QPolygonF,
    QShowEvent,
)
from PySide6.QtWidgets import QMainWindow, QSplitter, QStackedWidget, QVBoxLayout, QWidget

from app.controllers.command_controller import CommandController
from app.dialogs import FileDialogs, SystemFileDialogs
from app.engine_thread import EngineThread
from app.gallery.gallery import Gallery
from app.history.store_client import StoreAccess
from app.settings.preferences import Preferences
from app.theme.style import style
from app.theme.tokens import LIGHT
from app.window import late_parts
from app.window.actions import WindowMenus, make_actions
from app.window.autosave import default_autosave_folder
from app.window.bottom_panel import BottomPanel, BottomPanelHeight
from app.window.document_page import PageFactories, default_factories
from app.window.document_tabs import DocumentTabs
from app.window.message_bars import MessageBars
from app.window.run_bar import RunBar
from app.window.status_bar import StatusBar
from app.window.window_state import open_files, remember, restore

if TYPE_CHECKING:
    from app.window.document_page import DocumentPage

WIDTHS: Final = (216, 900, 320)
"""Palette, documents and inspector with texts of the usual size, until a person moves the borders."""

LEAST: Final = 240
"""What larger texts beside them leave the documents, with texts of the usual size: the zoom buttons have room there."""


class SidePanelWidths(QObject):
    """Keeps the widths.

    Args:
        sides: The splitter with palette, documents and inspector.
    """

    def __init__(self, sides: QSplitter) -> None:
        super().__init__(sides)
        self._sides = sides
        self._scale = style().scale
        self._wanted = [float(WIDTHS[0]), float(WIDTHS[2])]
        self._give(sum(WIDTHS))
        sides.splitterMoved.connect(lambda *_: self._remember())
        style().changed.connect(self._follow)

    def _remember(self) -> None:
        """Note what a person wants, as it is with texts of the usual size; of what is not seen Qt says no width."""
        now = self._sides.sizes()[::2]
        self._wanted = [width / self._scale or before for width, before in zip(now, self._wanted, strict=True)]

    def _follow(self) -> None:
        """Give both sides more room, or less, as the texts have grown.

        It goes by what a person wants and not by how wide they are: where the window is too narrow they have had less.
        """
        if style().scale != self._scale:
            self._scale = style().scale
            self._give(sum(self._sides.sizes()))

    def _give(self, room: int) -> None:
        left, right = (width * self._scale for width in self._wanted)
        shown = sum(width for width, place in ((left, 0), (right, 2)) if not self._sides.widget(place).isHidden())
        # In a narrow window both have less, in proportion.
        share = min(1.0, max(0.0, room - LEAST * self._scale) / shown) if shown else 1.0
        left, right = round(left * share), round(right * share)
        self._sides.setSizes([left, max(1, room - round(shown * share)), right])


def set_tab_order(parts: Sequence[QWidget]) -> None:
    """Let Tab go through the parts in their order, and in each through what is seen, from the top to the bottom.

    Args:
        parts: PageFactories of one window, which are seen or not.
    """
    reached = [widget for part in parts if part.isVisible() for widget in _in_reading_order(part)]
    for widget, following in pairwise(reached):
        QWidget.setTabOrder(widget, following)


def _in_reading_order(root: QWidget) -> Iterator[QWidget]:
    """What takes the keyboard in a part, and the part itself if it does."""
    if bool(root.focusPolicy() & Qt.FocusPolicy.TabFocus) and root.focusProxy() is None and root.isEnabled():
        yield root
    inside = [child for child in root.children() if isinstance(child, QWidget)]
    for child in sorted((child for child in inside if child.isVisible() and not child.isWindow()), key=_PLACE):
        yield from _in_reading_order(child)


def _compare(first: QWidget, second: QWidget) -> int:
    """Below zero where the first is read before the second: it is higher up, or further left in the same line."""
    one, other = first.geometry(), second.geometry()
    if _is_above(one, other) or _is_above(other, one):
        return -1 if one.top() < other.top() else 1
    return one.left() - other.left()


def _is_above(one: QRect, other: QRect) -> bool:
    return one.bottom() < other.top()


_PLACE = cmp_to_key(_compare)


SIZES = (16, 32, 64, 128, 256)


def program_icon() -> QIcon:
    """The icon, in all usual sizes."""
    icon = QIcon()
    for size in SIZES:
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
    """The window.

    Args:
        engine: The engine's thread.
        preferences: The person's settings.
        asker: Asks for files; the system's dialogs unless given.
        parts: Makes canvases and inspectors; the real ones unless given.
        data_folder: Where unsaved work is kept; the user's data folder unless given.
        store: The file of the history; the usual one unless given. It is opened by `store_access.open`.

    Attributes:
        is_starting: Whether what was open last is still to be opened; until then it stays remembered as it was.

    Signals:
        finished: It was closed for good.
        models_wanted: A document was opened or changed that names these models.
    """

    finished = Signal()
    models_wanted = Signal(tuple)

    documents = cached_property(late_parts.make_documents)
    history = cached_property(late_parts.make_history)
    runs = cached_property(late_parts.make_runs)
    facts = cached_property(late_parts.make_facts)
    closing = cached_property(late_parts.make_closing)
    notifier = cached_property(late_parts.make_notifier)
    taskbar = cached_property(late_parts.make_taskbar)
    additions = cached_property(late_parts.make_additions)
    palette_panel = cached_property(late_parts.make_palette)

    def __init__(
        self,
        engine: EngineThread,
        preferences: Preferences,
        *,
        asker: FileDialogs | None = None,
        parts: PageFactories | None = None,
        data_folder: Path | None = None,
        store: Path | None = None,
    ) -> None:
        super().__init__()
        self.setWindowTitle("Loopwright")
        self.setWindowIcon(program_icon())
        self.setAcceptDrops(True)
        self.engine = engine
        self.preferences = preferences
        self.asker = asker or SystemFileDialogs()
        self.parts = parts or default_factories()
        self.data_folder = data_folder or default_autosave_folder()
        self.store_access = StoreAccess(store, self)
        self.is_starting = False
        self.actions_by_name = make_actions(self)
        self.iterations_layout: dict[str, Any] = {}
        self.gallery = Gallery()
        if self.gallery.cards:  # so that Enter opens the first template
            self.gallery.setFocusProxy(self.gallery.cards[0].button)
        self.tabs = DocumentTabs(self.gallery)
        self.inspectors = QStackedWidget()
        self.drawer = BottomPanel({"runs": lambda: self.history.panel})
        self.notices = MessageBars()
        self.run_bar = RunBar(self.actions_by_name)
        self.status = StatusBar()
        self.menus = WindowMenus(self, self.actions_by_name, self.open_file)
        self.commands = CommandController(self)
        self._arrange()
        self._connect()
        restore(self)
        self._follow_preferences(frozenset({"recent_files"}))
        self.show_current()
        if preferences.notice:
            self.status.refuse(preferences.notice)

    @property
    def current(self) -> DocumentPage | None:
        """The document that is shown; None where the start page is."""
        return self.tabs.current

    def _arrange(self) -> None:
        self._empty = QWidget()
        self._empty.setProperty("panel", True)
        self.inspectors.addWidget(self._empty)
        self.inspectors.setProperty("panel", True)
        self.middle = QSplitter(Qt.Orientation.Vertical)
        self.middle.addWidget(self.tabs)
        self.middle.addWidget(self.drawer)
        self.drawer_room = BottomPanelHeight(self.middle, self.drawer)
        self.sides = QSplitter(Qt.Orientation.Horizontal)
        for widget in (QWidget(), self.middle, self.inspectors):  # the first keeps the palette's place
            self.sides.addWidget(widget)
        for splitter, stretched in ((self.middle, 0), (self.sides, 1)):
            splitter.setChildrenCollapsible(False)
            splitter.setHandleWidth(1)
            for place in range(splitter.count()):
                splitter.setStretchFactor(place, int(place == stretched))
        SidePanelWidths(self.sides)
        central = QWidget()
        column = QVBoxLayout(central)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.run_bar)
        column.addWidget(self.notices)
        column.addWidget(self.sides, 1)
        column.addWidget(self.status)
        self.setCentralWidget(central)

    def _connect(self) -> None:
        gallery = self.gallery
        gallery.template_chosen.connect(self.open_template)
        gallery.open_requested.connect(self.actions_by_name["open"].trigger)
        gallery.new_requested.connect(self.actions_by_name["new"].trigger)
        gallery.recent_chosen.connect(self.open_file)
        gallery.models_requested.connect(self.commands.open_settings)
        self.tabs.current_changed.connect(self.show_current)
        self.tabs.close_requested.connect(self.close_document)
        self.run_bar.model_clicked.connect(self.commands.open_settings)
        self.run_bar.ask_and_run.connect(self.actions_by_name["run_with"].trigger)
        self.status.problems_clicked.connect(lambda: self.drawer.toggle("problems"))
        self.status.question_clicked.connect(self._show_question)
        self.status.kept_clicked.connect(self._show_kept)
        self.drawer.unfolded.connect(lambda _name: self.commands.refresh())
        self.preferences.changed.connect(self._follow_preferences)
        self.preferences.refused.connect(self.status.refuse)

    def open_template(self, file: Path) -> None:
        """Open a copy of a template."""
        self.documents.open_template(file)

    def open_file(self, file: Path) -> None:
        """Open a file."""
        self.documents.open_file(file)

    def open_run(self, run_id: str) -> None:
        """Show a run that is kept."""
        self.history.open_run(run_id)

    def close_document(self, document: DocumentPage) -> None:
        """Close a document, after the questions that it takes."""
        self.closing.close_document(document)

    def show_current(self) -> None:
        """Tie everything to the document that is shown."""
        document = self.current
        session = document.session if document is not None else None
        self.run_bar.show_session(session)
        self.status.show_session(session)
        self.inspectors.setVisible(document is not None and self.actions_by_name["show_inspector"].isChecked())
        with_palette = document is not None and self.actions_by_name["show_palette"].isChecked()
        if with_palette:
            self.palette_panel.show()
        else:
            self.sides.widget(0).hide()
        if document is not None:
            self.inspectors.setCurrentWidget(document.inspector)
            self.show_count()
            self.drawer.mark_log(document.log.questions.count)
        self.drawer.show_panels(document.panels if document is not None else {})
        self.menus.show_canvas(document.canvas.actions_by_name if document is not None else {})
        self.show_title()
        self.commands.refresh()
        self.show_facts()

    def remember_open(self) -> None:
        """Note which files are open, so that the next start opens them again, also after a crash."""
        if not self.closing.is_under_way and not self.is_starting:
            remember(self)

    def reopen(self) -> None:
        """Open what was open when the program ended, and offer what a crash left."""
        self.documents.open_files(open_files(self.preferences, self.data_folder))

    def keep_everything(self) -> None:
        """Keep all unsaved work now: something is going wrong."""
        for document in self.documents.all:
            document.autosave.keep_now()

    def _follow_preferences(self, names: frozenset[str]) -> None:
        if "recent_files" in names:
            files = [Path(file) for file in self.preferences.recent_files]
            self.menus.show_recent(files)
            self.gallery.set_recent(files)
        if names & {"default_model", "budget_usd", "budget_tokens"}:
            self.show_facts()

    def show_facts(self) -> None:
        """Say what the run of the document that is shown has spent, and what can be done now."""
        document = self.current
        if document is None:
            self.run_bar.show_budget(None)
            return
        self.facts.show(document)
        self.commands.refresh()

    def show_count(self) -> None:
        """Say how many problems the document that is shown has."""
        if self.current is not None:
            errors, warnings = self.current.problems.numbers
            self.drawer.count(errors, warnings)
            self.status.count(errors, warnings)

    def show_title(self) -> None:
        """Say what the document that is shown is called, and whether it has changed."""
        session = self.current.session if self.current is not None else None
        self.setWindowTitle(f"{session.name}[*] – Loopwright" if session is not None else "Loopwright")
        self.setWindowModified(session is not None and session.is_modified)

    def _show_question(self) -> None:
        """Go where the run that is shown waits for its answer."""
        if self.current is not None:
            self.drawer.unfold("log")
            self.current.log.questions.setFocus()

    def _show_kept(self, run_id: str) -> None:
        self.history.show_in_list(run_id)

    def focusNextPrevChild(self, next: bool) -> bool:  # noqa: A002 - Qt's own
        """Tab goes through the parts of the window as they stand now."""
        parts = (self.run_bar, self.notices, self.sides.widget(0), self.tabs, self.inspectors, self.drawer, self.status)
        set_tab_order(parts)
        return super().focusNextPrevChild(next)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        """Take files."""
        if _files(event):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        """Open files."""
        event.acceptProposedAction()
        self.open_dropped(_files(event))

    def open_dropped(self, files: Sequence[Path]) -> None:
        """Open the workflows among files, and run the current one for a table."""
        from engine.batch.read_table import TABLE_SUFFIXES

        tables = [file for file in files if file.suffix.casefold() in TABLE_SUFFIXES]
        self.documents.open_files([file for file in files if file not in tables])
        if not tables:
            return
        if self.current is None:
            self.status.refuse("Open a workflow first. Then drop the table again to run it for each row.")
        elif self.current.session.is_past:
            self.status.refuse("This is a stored run. Choose “Open as new document”, then drop the table again.")
        else:
            self.runs.run_batch(self.current, tables[0])

    def showEvent(self, event: QShowEvent) -> None:
        """The start page has the keyboard at first, and not whatever was made first."""
        super().showEvent(event)
        if self.current is None:
            self.gallery.setFocus()

    def closeEvent(self, event: QCloseEvent) -> None:
        """Ask first, where something would be lost."""
        if not self.closing.may_close():
            event.ignore()
            return
        event.accept()
        if not self.closing.background:
            self.finished.emit()


def _files(event: QDropEvent) -> list[Path]:
    return [Path(url.toLocalFile()) for url in event.mimeData().urls() if url.isLocalFile()]
