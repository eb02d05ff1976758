"""Telling that a run has ended or waits for the person, by the system's means, while another window is in front."""

from __future__ import annotations

from PySide6.QtCore import QObject
from PySide6.QtGui import QIcon
from PySide6.QtWidgets import QApplication, QSystemTrayIcon, QWidget

from app.session import Session
from app.settings.preferences import Preferences
from app.window.run_facts import question_line
from engine.runner.words import money, seconds


class Notifier(QObject):
    """Tells the ends of runs, and their questions.

    Args:
        window: The window that may be in front.
        preferences: Whether the person wants to be told.
        icon: The program's icon.

    Attributes:
        told: What was told last; empty before the first time.
    """

    def __init__(self, window: QWidget, preferences: Preferences, icon: QIcon) -> None:
        super().__init__(window)
        self._window = window
        self._preferences = preferences
        self._icon = icon
        self._tray: QSystemTrayIcon | None = None
        self.told = ""

    def tell_question(self, session: Session) -> None:
        """Tell that a run waits for the person, unless they see it."""
        picture, workflow = session.shown.picture, session.shown.workflow
        if picture is None or workflow is None or not picture.questions:
            return
        if not self._window.isActiveWindow() and self._preferences.notify_when_done:
            self._tell(f"“{session.name}” – {question_line(picture, workflow)}.")

    def tell_end(self, session: Session) -> None:
        """Tell how a run has ended, unless the person sees it."""
        picture = session.shown.picture
        if picture is None or not picture.is_over or picture.status == "cancelled":
            return
        if self._window.isActiveWindow() or not self._preferences.notify_when_done:
            return
        how = "is done" if picture.status == "completed" else f"failed: {picture.error}"
        text = f"“{session.name}” {how}"
        if picture.duration_s is not None and picture.status == "completed":
            text += f" after {seconds(picture.duration_s)}, {money(picture.cost_usd)}."
        self._tell(text)

    def _tell(self, text: str) -> None:
        self.told = text
        QApplication.alert(self._window)
        if QSystemTrayIcon.isSystemTrayAvailable():
            if self._tray is None:
                self._tray = QSystemTrayIcon(self._icon, self)
                self._tray.messageClicked.connect(self._window.activateWindow)
            self._tray.show()
            self._tray.showMessage("Loopwright", self.told, self._icon)
