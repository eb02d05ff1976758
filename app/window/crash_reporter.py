"""Report unhandled exceptions: a message over the window, with details to copy."""

from __future__ import annotations

import os
import sys
import threading
import traceback
from types import TracebackType

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QGuiApplication, QShowEvent
from PySide6.QtWidgets import QDialog, QPlainTextEdit, QWidget

from app.theme.tokens import UNIT
from app.theme.widgets import SHARE_OF_SCREEN, STRETCH, CollapsibleSection, PlainLabel, hbox, push_button, vbox
from app.timers import call_later
from engine.errors import EngineError

DEBUG_VARIABLE = "LOOPWRIGHT_DEBUG"
"""If set, unhandled exceptions are also written to the terminal, as by the command line."""

MESSAGE = "Something went wrong in Loopwright. Your documents are still open; save them to be safe."


class CrashDialog(QDialog):
    """Shows the message. It is not modal."""

    def __init__(self, message: str, details: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("Loopwright")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.details = QPlainTextEdit(details, self, readOnly=True)
        self.details.setAccessibleName("Details")
        self.details.setMinimumSize(120 * UNIT, 20 * UNIT)
        self.fold = CollapsibleSection("Details", self.details, self)
        self.fold.toggled.connect(lambda: call_later(self, self._fit))  # once the layout has followed
        self.copy = push_button("Copy details", self._copy, self, auto_default=True)
        close = push_button("Close", self.accept, self, auto_default=True)
        close.setDefault(True)
        self._column = vbox(
            PlainLabel(message, self, wrap=True),
            (self.fold, 1),
            hbox(STRETCH, self.copy, close, spacing=2),
            spacing=4,
            margins=(6, 6, 6, 4),
            parent=self,
        )

    def showEvent(self, event: QShowEvent) -> None:
        """Resize to the content, whose size is known only now."""
        super().showEvent(event)
        self._fit()

    def _fit(self) -> None:
        """Resize to the content, as far as the screen has room."""
        height = self._column.totalHeightForWidth(self.width())
        self.resize(self.width(), min(height, round(self.screen().availableSize().height() * SHARE_OF_SCREEN)))

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self.details.toPlainText())

    def add(self, details: str) -> None:
        """Append the details of another error, unless they are shown already."""
        if details.rstrip() not in self.details.toPlainText():
            self.details.appendPlainText(details)


class CrashReporter(QObject):
    """Catches unhandled exceptions in all threads.

    Signals:
        crashed: The message and the details; emitted in the window's thread.
    """

    crashed = Signal(str, str)
    _caught = Signal(str, str)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._caught.connect(self.crashed, Qt.ConnectionType.QueuedConnection)

    def install(self) -> None:
        """Start catching."""
        sys.excepthook = self.catch
        threading.excepthook = lambda args: self.catch(args.exc_type, args.exc_value, args.exc_traceback)

    def uninstall(self) -> None:
        """Restore Python's handlers."""
        sys.excepthook = sys.__excepthook__
        threading.excepthook = threading.__excepthook__

    def catch(self, kind: type[BaseException], error: BaseException | None, trace: TracebackType | None) -> None:
        """Report one exception."""
        if issubclass(kind, KeyboardInterrupt | SystemExit):
            return
        details = "".join(traceback.format_exception(kind, error, trace))
        if os.environ.get(DEBUG_VARIABLE):
            sys.stderr.write(details)
        message = str(error) if isinstance(error, EngineError) else MESSAGE
        self._caught.emit(message, details)
