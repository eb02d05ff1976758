"""Files of other programs in the window: offered for import, and what became of each thing in them."""

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
from engine.document.importing import Entry, Fate, Imported, import_file
from engine.document.model import Workflow
from engine.nodes.registry import builtin_registry

_Role = QMessageBox.ButtonRole
_TITLES: Final = {Fate.LEFT: "Left out", Fate.CHANGED: "Changed", Fate.CARRIED: "Carried over"}


class ImportController(QObject):
    """Reads foreign files in a thread and offers what they are.

    Args:
        window: Over which questions are asked.
        open_copy: Opens a document that is not saved yet, with what was found in it.
        refuse: Says that something could not be done.
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
        """Read a file, and ask whether it is to be imported. Nothing in it is run."""

        def read() -> tuple[Imported, Analysis]:
            imported = import_file(file)
            return imported, analyse_document(imported.workflow, builtin_registry())

        self._worker.ask(read, partial(self._ask, file), lambda error: self._refuse(str(error)))

    def _ask(self, file: Path, read: tuple[Imported, Analysis]) -> None:
        imported, found = read
        ask_question(
            self._window,
            f"Import “{file.name}”?",
            f"Another program has written it: {imported.form}. {imported.summary} The file stays as it is.",
            [
                ("Import", _Role.AcceptRole, lambda: self._take(file, imported, found)),
                ("Cancel", _Role.RejectRole, lambda: None),
            ],
        )

    def _take(self, file: Path, imported: Imported, found: Analysis) -> None:
        document = self._open_copy(imported.workflow, found)
        report = ("Show the report", lambda: ReportDialog(file.name, imported, self._window).open())
        document.bars.say("import", f"Imported from {file.name}: {imported.summary}", "info", [report])


class ReportDialog(QDialog):
    """What became of each thing of a foreign file: what needs a look first."""

    def __init__(self, name: str, imported: Imported, parent: QWidget | None = None) -> None:
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
        layout.addWidget(PlainLabel(imported.summary, look="dim", wrap=True))
        layout.addWidget(self.text, 1)
        layout.addWidget(buttons)


def report_text(entries: tuple[Entry, ...]) -> str:
    """The report as a text, in three parts."""
    parts: list[str] = []
    for fate, title in _TITLES.items():
        lines = [f"  {entry.place}: {entry.message}" for entry in entries if entry.fate is fate]
        if lines:
            parts.append("\n".join([f"{title} ({len(lines)})", *lines]))
    return "\n\n".join(parts)
