"""Desktop notifications about runs, and their progress in the taskbar.

Qt has no taskbar progress. On Linux it is a signal on the session bus (Unity's launcher interface), which KDE Plasma,
Ubuntu Dock, Dash to Dock and Plank understand; nobody answers it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from PySide6.QtCore import QObject
from PySide6.QtGui import QIcon
from PySide6.QtWidgets import QApplication, QSystemTrayIcon, QWidget

from app.runs.run_status import progress, question_line
from app.session import Session
from app.settings.preferences import Preferences
from engine.formatting import format_duration, format_money


class RunNotifier(QObject):
    """Notifies of ended runs and of questions while another window is active.

    Args:
        preferences: The user's settings, for whether to notify.

    Attributes:
        last_text: The last notification; empty before the first.
    """

    def __init__(self, window: QWidget, preferences: Preferences, icon: QIcon) -> None:
        super().__init__(window)
        self._window = window
        self._preferences = preferences
        self._icon = icon
        self._tray: QSystemTrayIcon | None = None
        self.last_text = ""

    def notify_question(self, session: Session) -> None:
        """Notify that a run waits for an answer."""
        view_model, workflow = session.shown.view_model, session.shown.workflow
        if view_model is None or workflow is None or not view_model.questions:
            return
        if not self._window.isActiveWindow() and self._preferences.notify_when_done:
            self._notify(f"“{session.name}” – {question_line(view_model, workflow)}.")

    def notify_end(self, session: Session) -> None:
        """Notify how a run has ended, unless the user stopped it."""
        view_model = session.shown.view_model
        if view_model is None or not view_model.is_over or view_model.status == "cancelled":
            return
        if self._window.isActiveWindow() or not self._preferences.notify_when_done:
            return
        outcome = "is done" if view_model.status == "completed" else f"failed: {view_model.error}"
        text = f"“{session.name}” {outcome}"
        if view_model.duration_s is not None and view_model.status == "completed":
            text += f" after {format_duration(view_model.duration_s)}, {format_money(view_model.cost_usd)}."
        self._notify(text)

    def _notify(self, text: str) -> None:
        self.last_text = text
        QApplication.alert(self._window)
        if QSystemTrayIcon.isSystemTrayAvailable():
            if self._tray is None:
                self._tray = QSystemTrayIcon(self._icon, self)
                self._tray.messageClicked.connect(self._window.activateWindow)
            self._tray.show()
            self._tray.showMessage("Loopwright", self.last_text, self._icon)


INTERFACE: Final = "com.canonical.Unity.LauncherEntry"
OBJECT_PATH: Final = "/io/loopwright/taskbar"
DESKTOP_FILE: Final = "application://loopwright.desktop"

Show = Callable[[float | None], None]


class TaskbarProgress(QObject):
    """Shows the progress of all runs, also of closed documents whose runs continue.

    Args:
        show: Shows a share from 0 to 1, or None for nothing; the platform's by default.

    Attributes:
        shown: The percentage shown; None where none is.
    """

    def __init__(self, parent: QObject | None = None, show: Show | None = None) -> None:
        super().__init__(parent)
        self._show = show or platform_progress(sys.platform, os.environ)
        self._running: list[Session] = []
        self.shown: int | None = None

    def follow(self, session: Session) -> None:
        """Include the runs of a document."""
        if self._show is None:
            return
        session.shown.started.connect(lambda: self._begin(session))
        session.shown.updated.connect(lambda _touched: self._refresh())
        session.shown.ended.connect(lambda: self._end(session))

    def _begin(self, session: Session) -> None:
        if session.shown.live is not None:  # not for a stored run
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
    if session.shown.view_model is None or session.shown.workflow is None:
        return 0.0
    done, total = progress(session.shown.view_model, session.shown.workflow)
    return min(done / total, 1.0)


def platform_progress(platform: str, environment: Mapping[str, str]) -> Show | None:
    """Return the function that shows progress on a platform; None where there is none."""
    runtime = environment.get("XDG_RUNTIME_DIR", "")
    # Checked first: without an address the library would start programs to find a bus.
    has_bus = bool(environment.get("DBUS_SESSION_BUS_ADDRESS")) or bool(runtime and Path(runtime, "bus").exists())
    return _signal_docks if platform.startswith("linux") and has_bus else None


def _signal_docks(share: float | None) -> None:
    from PySide6.QtDBus import QDBusConnection, QDBusMessage

    bus = QDBusConnection.sessionBus()
    if not bus.isConnected():
        return
    message = QDBusMessage.createSignal(OBJECT_PATH, INTERFACE, "Update")
    message.setArguments([DESKTOP_FILE, {"progress": share or 0.0, "progress-visible": share is not None}])
    bus.send(message)
