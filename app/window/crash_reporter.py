"""What becomes of a fault of the program: one sentence over the window, the details to copy, and the work kept."""

from __future__ import annotations

import os
import sys
import threading
import traceback
from types import TracebackType

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QDialog, QHBoxLayout, QPlainTextEdit, QPushButton, QVBoxLayout, QWidget

from app.theme.tokens import UNIT
from app.theme.widgets import CollapsibleSection, PlainLabel
from engine.errors import EngineError

DEBUG_VARIABLE = "LOOPWRIGHT_DEBUG"
"""Set, faults are written to the terminal too, as those of the command line are."""

SENTENCE = "Something in the program went wrong. Your documents are still here; save them to be safe."


class CrashDialog(QDialog):
    """Says that something went wrong. It blocks nothing."""

    def __init__(self, sentence: str, details: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("Loopwright")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setModal(False)
        self.details = QPlainTextEdit(details, self)
        self.details.setReadOnly(True)
        self.details.setAccessibleName("Details")
        self.details.setMinimumSize(120 * UNIT, 50 * UNIT)
        self.fold = CollapsibleSection("Details", self.details, self)
        self.copy = QPushButton("Copy the details", self)
        self.copy.clicked.connect(
            lambda _checked=False: QGuiApplication.clipboard().setText(self.details.toPlainText())
        )
        close = QPushButton("Close", self)
        close.setDefault(True)
        close.clicked.connect(self.accept)
        row = QHBoxLayout()
        row.setSpacing(2 * UNIT)
        row.addStretch(1)
        row.addWidget(self.copy)
        row.addWidget(close)
        column = QVBoxLayout(self)
        column.setContentsMargins(6 * UNIT, 6 * UNIT, 6 * UNIT, 4 * UNIT)
        column.setSpacing(4 * UNIT)
        column.addWidget(PlainLabel(sentence, self, wrap=True))
        column.addWidget(self.fold, 1)
        column.addLayout(row)
        self.setMinimumWidth(120 * UNIT)

    def add(self, details: str) -> None:
        """Show the details of another fault too, unless they are there already."""
        if details.rstrip() not in self.details.toPlainText():
            self.details.appendPlainText(details)


class CrashReporter(QObject):
    """Catches what nobody caught, in the window's thread and in others, while the program runs.

    Signals:
        told: A fault came: its sentence and its details. In the window's thread, whichever thread it came from.
    """

    told = Signal(str, str)
    _caught = Signal(str, str)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._caught.connect(self.told, Qt.ConnectionType.QueuedConnection)

    def install(self) -> None:
        """Begin to catch."""
        sys.excepthook = self.catch
        threading.excepthook = lambda found: self.catch(found.exc_type, found.exc_value, found.exc_traceback)

    def uninstall(self) -> None:
        """Leave it to Python again."""
        sys.excepthook = sys.__excepthook__
        threading.excepthook = threading.__excepthook__

    def catch(self, kind: type[BaseException], fault: BaseException | None, trace: TracebackType | None) -> None:
        """Tell one fault."""
        if issubclass(kind, KeyboardInterrupt | SystemExit):
            return
        details = "".join(traceback.format_exception(kind, fault, trace))
        if os.environ.get(DEBUG_VARIABLE):
            sys.stderr.write(details)
        sentence = str(fault) if isinstance(fault, EngineError) else SENTENCE
        self._caught.emit(sentence, details)
