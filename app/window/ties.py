"""What ties each open document to the window: its parts have their places there, and what it tells is shown."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from app.window.document_page import DocumentPage
from app.window.window_state import share_layout

if TYPE_CHECKING:
    from app.window.main_window import MainWindow


class Ties(QObject):
    """Ties them, and lets go of them.

    Args:
        window: The window.
    """

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._window = window

    def take_in(self, document: DocumentPage) -> None:
        """Make room for a document that was opened, and show it."""
        window, session, canvas = self._window, document.session, document.canvas
        window.taskbar.follow(session)
        window.inspectors.addWidget(document.inspector)
        window.drawer.add(document.panels)
        share_layout(window, document.iterations)
        canvas.files_dropped.connect(window.open_dropped)
        canvas.template_dropped.connect(lambda text: window.documents.open_template(Path(text)))
        canvas.properties_requested.connect(lambda: window.commands.set_up(document))
        document.fresh_run_wanted.connect(lambda: window.runs.run(document))
        document.problems.counted.connect(lambda *_: self._count(document))
        self._follow(document)
        window.history.follow(document)
        document.log.questions.changed.connect(lambda: self._note_question(document))
        window.tabs.add(document)
        canvas.setFocus()
        window.remember_open()
        window.models_wanted.emit(window.facts.models(session))

    def let_go(self, document: DocumentPage) -> None:
        """Take out a document that was closed."""
        window = self._window
        window.tabs.remove(document)
        window.inspectors.removeWidget(document.inspector)
        window.history.forget(document)
        window.remember_open()
        window.closing.let_go(document)

    def _follow(self, document: DocumentPage) -> None:
        window, session, shown = self._window, document.session, document.session.shown
        session.refused.connect(lambda text: self._refuse(document, text))
        session.save_failed.connect(lambda text: self._tell_unsaved(document, text))
        session.saved_state_changed.connect(lambda: self._name(document))
        session.changed.connect(lambda *_: window.show_facts())
        for signal in (shown.started, shown.ended):
            signal.connect(lambda: self._run_changed(document))
        shown.updated.connect(lambda _touched: window.show_facts())
        shown.started.connect(lambda: window.facts.remember_models(session))
        shown.ended.connect(lambda: window.notifier.tell_end(session))

    def _run_changed(self, document: DocumentPage) -> None:
        self._window.tabs.name(document)
        document.tell_end()
        if document is self._window.current:
            self._window.show_facts()

    def _name(self, document: DocumentPage) -> None:
        self._window.tabs.name(document)
        if document is self._window.current:
            self._window.show_title()
        self._window.remember_open()
        self._window.commands.refresh()

    def _count(self, document: DocumentPage) -> None:
        if document is self._window.current:
            self._window.show_count()

    def _note_question(self, document: DocumentPage) -> None:
        self._window.notifier.tell_question(document.session)
        if document is self._window.current:
            self._window.drawer.mark_log(document.log.questions.count)

    def _refuse(self, document: DocumentPage, text: str) -> None:
        is_shown = document is self._window.current
        self._window.status.refuse(text if is_shown else f"“{document.session.name}”: {text}")

    def _tell_unsaved(self, document: DocumentPage, text: str) -> None:
        if document is not self._window.current:  # over the document that is shown, its bar says it
            self._refuse(document, text)
