"""Telling that a run has ended or waits for the person, by the system's means, while another window is in front."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from PySide6.QtCore import QObject
from PySide6.QtGui import QIcon
from PySide6.QtWidgets import QApplication, QSystemTrayIcon, QWidget

from app.run_status import progress, question_line
from app.session import Session
from app.settings.preferences import Preferences
from engine.formatting import format_duration, format_money


class RunNotifier(QObject):
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
            text += f" after {format_duration(picture.duration_s)}, {format_money(picture.cost_usd)}."
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


INTERFACE: Final = "com.canonical.Unity.LauncherEntry"
PLACE: Final = "/io/loopwright/taskbar"
DESKTOP_FILE: Final = "application://loopwright.desktop"

Show = Callable[[float | None], None]


class TaskbarProgress(QObject):
    """Follows the runs of all documents, also of those that are closed and go on.

    Args:
        show: Shows a share from 0 to 1, or None for nothing; the platform's means unless given.

    Attributes:
        shown: What is shown, in whole percents; None where nothing is.
    """

    def __init__(self, parent: QObject | None = None, show: Show | None = None) -> None:
        super().__init__(parent)
        self._show = show or means_of(sys.platform, os.environ)
        self._running: list[Session] = []
        self.shown: int | None = None

    def follow(self, session: Session) -> None:
        """Show the runs of a document from now on."""
        if self._show is None:
            return
        session.shown.started.connect(lambda: self._begin(session))
        session.shown.updated.connect(lambda _touched: self._refresh())
        session.shown.ended.connect(lambda: self._end(session))

    def _begin(self, session: Session) -> None:
        if session.shown.live is not None:  # not where a run of the history is shown
            self._running.append(session)
            self._refresh()

    def _end(self, session: Session) -> None:
        self._running = [other for other in self._running if other is not session]
        self._refresh()

    def _refresh(self) -> None:
        shares = [_share(session) for session in self._running]
        percent = round(100 * sum(shares) / len(shares)) if shares else None
        if percent != self.shown and self._show is not None:
            self.shown = percent
            self._show(None if percent is None else percent / 100)


def _share(session: Session) -> float:
    if session.shown.picture is None or session.shown.workflow is None:
        return 0.0
    done, total = progress(session.shown.picture, session.shown.workflow)
    return min(done / total, 1.0)


def means_of(platform: str, environment: Mapping[str, str]) -> Show | None:
    """How a platform shows progress on the program's icon; None where it does not, or no dock can hear of it."""
    runtime = environment.get("XDG_RUNTIME_DIR", "")
    # Asked for first: without an address the library would look for a bus by starting programs.
    has_bus = bool(environment.get("DBUS_SESSION_BUS_ADDRESS")) or bool(runtime and Path(runtime, "bus").exists())
    return _tell_docks if platform.startswith("linux") and has_bus else None


def _tell_docks(share: float | None) -> None:
    # Here, since it is needed with the first run only.
    from PySide6.QtDBus import QDBusConnection, QDBusMessage

    bus = QDBusConnection.sessionBus()
    if not bus.isConnected():
        return
    message = QDBusMessage.createSignal(PLACE, INTERFACE, "Update")
    message.setArguments([DESKTOP_FILE, {"progress": share or 0.0, "progress-visible": share is not None}])
    bus.send(message)
