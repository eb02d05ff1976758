"""Dialog that installs an optional part of the program, and the button that opens it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from PySide6.QtCore import QTimer, Signal
from PySide6.QtWidgets import QDialog, QPushButton, QWidget

from app.theme.style import style
from app.theme.widgets import STRETCH, ElidedLabel, PlainLabel, ProgressBar, StatusLabel, hbox, push_button, vbox
from app.worker import Worker
from engine.errors import EngineError, Fix
from engine.package_installer import InstallCanceledError, InstallError, OptionalPart, install_part, optional_part

WIDTH: Final = 520
_UPDATE_MS: Final = 100
_TITLES: Final = {
    "batch": "Install Dask",
    "embedded": "Install the runtime for local models",
    "mcp": "Install the client for MCP servers",
    "web": "Install web search",
}


class InstallDialog(QDialog):
    """The dialog. It names the packages and their folder; nothing is installed before the user clicks the button.

    Closing it cancels the installation.

    Args:
        extra: The name of the part: an extra of the program's distribution.

    Signals:
        installed: The part can be used, without a restart.
    """

    installed = Signal()

    def __init__(self, extra: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        title = _TITLES.get(extra, f"Install {extra}")
        self._part: OptionalPart | None = None
        self._canceled: threading.Event | None = None
        self._output = ""
        self._worker = Worker(self)
        self._timer = QTimer(self, interval=_UPDATE_MS)
        self.setWindowTitle(title)
        self.setFixedWidth(round(WIDTH * style().scale))
        self.requirements = PlainLabel(wrap=True, selectable=True)
        self.requirements.setAccessibleName("Packages")
        self.folder = PlainLabel(wrap=True, selectable=True)
        self.folder.setAccessibleName("Folder")
        self._about = PlainLabel("These packages, and those that they require, are downloaded:", look="dim", wrap=True)
        self._target = PlainLabel("They are installed into the folder:", look="dim", wrap=True)
        self.bar = ProgressBar(maximum=0, textVisible=False)
        self.bar.setAccessibleName("Progress of the installation")
        self.output = ElidedLabel(look="dim small")
        self.status = StatusLabel()
        self.start = push_button("Install", self._install, look="primary")
        self.start.setDefault(True)
        self.cancel = push_button("Cancel", self.reject)
        self._layout = vbox(
            PlainLabel(title, look="title"),
            vbox(self._about, self.requirements, spacing=1),
            vbox(self._target, self.folder, spacing=1),
            self.bar,
            self.output,
            self.status,
            hbox(STRETCH, self.cancel, self.start, spacing=2),
            spacing=3,
            margins=(6, 5, 6, 5),
            parent=self,
        )
        self._timer.timeout.connect(lambda: self.output.set_full_text(self._output))
        self.finished.connect(self.deleteLater)
        self._look_up(extra)

    @property
    def is_running(self) -> bool:
        """Whether packages are being installed."""
        return self._canceled is not None

    def reject(self) -> None:
        """Close the dialog, after canceling a running installation."""
        if self._canceled is None:
            super().reject()
            return
        self._canceled.set()
        self.cancel.setEnabled(False)
        self.status.say("Canceling…")

    def _look_up(self, extra: str) -> None:
        try:
            part = self._part = optional_part(extra)
        except InstallError as error:
            self._fail(error)
        else:
            self.requirements.setText("\n".join(part.requirements))
            self.folder.setText(str(part.folder))
        self._update()

    def _update(self) -> None:
        for widget in (self._about, self.requirements, self._target, self.folder):
            widget.setVisible(self._part is not None)
        for widget in (self.bar, self.output):
            widget.setVisible(self.is_running)
        self.start.setVisible(self._part is not None)
        self.start.setEnabled(not self.is_running)
        self._layout.activate()
        self.resize(self.width(), self._layout.totalHeightForWidth(self.width()))

    def _install(self) -> None:
        assert self._part is not None
        part, canceled = self._part, threading.Event()
        self._canceled, self._output = canceled, "Starting…"
        self.destroyed.connect(canceled.set)
        self.status.say("")
        self._timer.start()
        self._worker.ask(lambda: install_part(part, self._note, canceled), self._finish, self._fail)
        self._update()

    def _note(self, line: str) -> None:
        """Keep the client's last line; called in the worker's thread."""
        self._output = line or self._output

    def _end(self) -> None:
        self._canceled = None
        self._timer.stop()
        self.cancel.setEnabled(True)

    def _finish(self, needs_restart: bool) -> None:
        self._end()
        if needs_restart:
            self._part = None
            self.status.say("✓ Installed. Restart Loopwright to use it.", "good")
            self.cancel.setText("Close")
            self._update()
        else:
            self.accept()
            self.installed.emit()

    def _fail(self, error: EngineError) -> None:
        self._end()
        if isinstance(error, InstallCanceledError):
            self.reject()
            return
        self.status.say(str(error), "bad")
        self.start.setText("Try again")
        self._update()


def is_install(fix: str) -> bool:
    """Return whether the fix of an error is to install a part."""
    return fix.partition(":")[0] == Fix.INSTALL


class InstallButton(QPushButton):
    """Button *Install…*, visible while an error is shown that installing a part fixes.

    Args:
        installed: Called when the part was installed.
    """

    def __init__(self, installed: Callable[[], object]) -> None:
        super().__init__("Install…")
        self._extra = ""
        self._installed = installed
        self.setAutoDefault(False)
        self.clicked.connect(self._open)
        self.hide()

    def offer(self, fix: str) -> None:
        """Show the button if the fix of an error is to install a part; hide it otherwise."""
        self._extra = fix.partition(":")[2]
        self.setVisible(is_install(fix))

    def _open(self) -> None:
        dialog = InstallDialog(self._extra, self.window())
        dialog.installed.connect(self._finish)
        dialog.open()

    def _finish(self) -> None:
        self.hide()
        self._installed()
