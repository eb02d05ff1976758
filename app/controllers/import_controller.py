"""Offer files of other programs for import, and show the import report."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from PySide6.QtCore import QObject, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QMessageBox, QPlainTextEdit, QVBoxLayout, QWidget

from app.dialogs import ask_question
from app.session import Analysis, analyse_document
from app.theme.tokens import UNIT
from app.theme.widgets import PlainLabel
from app.window.document_page import DocumentPage
from app.worker import Worker
from engine.document.model import Workflow
from engine.importing.reader import ImportResult, import_file
from engine.importing.report import Outcome, ReportEntry
from engine.nodes.node_registry import builtin_registry

_Role = QMessageBox.ButtonRole
_TITLES: Final = {Outcome.LEFT_OUT: "Left out", Outcome.CHANGED: "Changed", Outcome.CARRIED_OVER: "Carried over"}


class ImportController(QObject):
    """Reads foreign files in a thread and offers to import them.

    Args:
        window: Parent of the dialogs.
        open_copy: Opens a document that is not saved yet, with its analysis.
        refuse: Shows an error message.
    """

    def __init__(
        self, window: QWidget, open_copy: Callable[[Workflow, Analysis], DocumentPage], refuse: Callable[[str], object]
    ) -> None:
        super().__init__(window)
        self._window = window
        self._open_copy = open_copy
        self._refuse = refuse
        self._worker = Worker(self)

    def offer(self, file: Path) -> None:
        """Convert a file and ask whether to open the result. Nothing in the file is executed."""

        def read() -> tuple[ImportResult, Analysis]:
            imported = import_file(file)
            return imported, analyse_document(imported.workflow, builtin_registry())

        self._worker.ask(read, partial(self._ask, file), lambda error: self._refuse(str(error)))

    def _ask(self, file: Path, read: tuple[ImportResult, Analysis]) -> None:
        imported, found = read
        ask_question(
            self._window,
            f"Import “{file.name}”?",
            f"File of another program: {imported.importer.label}. {imported.summary} The file stays unchanged.",
            [
                ("Import", _Role.AcceptRole, lambda: self._open(file, imported, found)),
                ("Cancel", _Role.RejectRole, lambda: None),
            ],
        )

    def _open(self, file: Path, imported: ImportResult, found: Analysis) -> None:
        document = self._open_copy(imported.workflow, found)
        report = ("Show report", lambda: ReportDialog(file.name, imported, self._window).open())
        document.bars.say("import", f"Imported from {file.name}: {imported.summary}", "info", [report])


class ReportDialog(QDialog):
    """The import report: entries that need attention come first."""

    def __init__(self, name: str, imported: ImportResult, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle("Import report")
        self.resize(160 * UNIT, 120 * UNIT)
        self.text = QPlainTextEdit(report_text(imported.entries))
        self.text.setReadOnly(True)
        self.text.setAccessibleName("Import report")
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        copy = buttons.addButton("Copy", QDialogButtonBox.ButtonRole.ActionRole)
        copy.clicked.connect(lambda: QGuiApplication.clipboard().setText(self.text.toPlainText()))
        buttons.rejected.connect(self.reject)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(4 * UNIT, 4 * UNIT, 4 * UNIT, 4 * UNIT)
        layout.setSpacing(3 * UNIT)
        layout.addWidget(PlainLabel(name, look="title"))
        layout.addWidget(PlainLabel(f"{imported.summary} {imported.importer.review}", look="dim", wrap=True))
        layout.addWidget(self.text, 1)
        layout.addWidget(buttons)


def report_text(entries: tuple[ReportEntry, ...]) -> str:
    """The report as text, grouped by outcome."""
    parts: list[str] = []
    for outcome, title in _TITLES.items():
        lines = [f"  {entry.place}: {entry.message}" for entry in entries if entry.outcome is outcome]
        if lines:
            parts.append("\n".join([f"{title} ({len(lines)})", *lines]))
    return "\n\n".join(parts)
