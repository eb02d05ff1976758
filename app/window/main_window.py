"""The main window: palette, documents, inspector and the panels below, tied to the document that is shown."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QCloseEvent, QDragEnterEvent, QDropEvent, QShowEvent
from PySide6.QtWidgets import QMainWindow, QSplitter, QStackedWidget, QVBoxLayout, QWidget

from app.bridge import EngineThread
from app.gallery.gallery import Gallery
from app.history.store_client import StoreAccess
from app.settings.preferences import Preferences
from app.window import late_parts
from app.window.actions import make_actions
from app.window.bars import Bars
from app.window.choosers import Asker, DialogAsker
from app.window.commands import Commands
from app.window.drawer import Drawer
from app.window.drawer_room import DrawerRoom
from app.window.menus import Menus
from app.window.parts import Parts, real_parts
from app.window.program_icon import program_icon
from app.window.reading_order import put_in_reading_order
from app.window.recovery import usual_folder
from app.window.run_bar import RunBar
from app.window.side_widths import SideWidths
from app.window.status_line import StatusLine
from app.window.tabs import Tabs
from app.window.window_state import open_files, remember, restore

if TYPE_CHECKING:
    from app.window.document import Document


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
        asker: Asker | None = None,
        parts: Parts | None = None,
        data_folder: Path | None = None,
        store: Path | None = None,
    ) -> None:
        super().__init__()
        self.setWindowTitle("Loopwright")
        self.setWindowIcon(program_icon())
        self.setAcceptDrops(True)
        self.engine = engine
        self.preferences = preferences
        self.asker = asker or DialogAsker()
        self.parts = parts or real_parts()
        self.data_folder = data_folder or usual_folder()
        self.store_access = StoreAccess(store, self)
        self.is_starting = False
        self.actions_by_name = make_actions(self)
        self.iterations_layout: dict[str, Any] = {}
        self.gallery = Gallery()
        if self.gallery.cards:  # so that Enter opens the first template
            self.gallery.setFocusProxy(self.gallery.cards[0].button)
        self.tabs = Tabs(self.gallery)
        self.inspectors = QStackedWidget()
        self.drawer = Drawer({"runs": lambda: self.history.panel})
        self.notices = Bars()
        self.run_bar = RunBar(self.actions_by_name)
        self.status = StatusLine()
        self.menus = Menus(self, self.actions_by_name, self.open_file)
        self.commands = Commands(self)
        self._arrange()
        self._connect()
        restore(self)
        self._follow_preferences(frozenset({"recent_files"}))
        self.show_current()
        if preferences.notice:
            self.status.refuse(preferences.notice)

    @property
    def current(self) -> Document | None:
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
        self.drawer_room = DrawerRoom(self.middle, self.drawer)
        self.sides = QSplitter(Qt.Orientation.Horizontal)
        for widget in (QWidget(), self.middle, self.inspectors):  # the first keeps the palette's place
            self.sides.addWidget(widget)
        for splitter, stretched in ((self.middle, 0), (self.sides, 1)):
            splitter.setChildrenCollapsible(False)
            splitter.setHandleWidth(1)
            for place in range(splitter.count()):
                splitter.setStretchFactor(place, int(place == stretched))
        SideWidths(self.sides)
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

    def close_document(self, document: Document) -> None:
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
        put_in_reading_order(parts)
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
