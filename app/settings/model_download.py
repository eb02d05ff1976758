"""Dialog that downloads the weights of the built-in demo model."""

from __future__ import annotations

import asyncio
import threading
from functools import partial

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QDialog, QProgressBar, QVBoxLayout, QWidget

from app.engine_thread import EngineThread
from app.settings.settings_widgets import StatusLabel, make_button, run_in_engine
from app.theme.style import style
from app.theme.tokens import UNIT
from app.theme.widgets import STRETCH, PlainLabel, hbox
from engine.errors import EngineError
from engine.models.demo_weights import FILE_BYTES, download_weights

WIDTH = 460
TITLE = "Download the demo model"
_ABOUT = (
    "SmolLM2-135M is a tiny model that runs on this computer, without a key and for free. It is good for trying the "
    f"program, not for good answers. The download has {FILE_BYTES // 10**6} MB; the license is Apache 2.0."
)


class ModelDownloadDialog(QDialog):
    """The dialog. Nothing is downloaded before the user clicks the button.

    Signals:
        downloaded: The model can be used.
    """

    downloaded = Signal()
    _progressed = Signal(int)

    def __init__(self, engine: EngineThread, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._engine = engine
        self._canceled = threading.Event()
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(TITLE)
        self.setMinimumWidth(round(WIDTH * style().scale))
        self.bar = QProgressBar(maximum=FILE_BYTES, textVisible=False)
        self.bar.setAccessibleName("Progress of the download")
        self.bar.hide()
        self.error = StatusLabel()
        self.download = make_button("Download", self._start, primary=True)
        self.download.setDefault(True)
        self.cancel = make_button("Cancel", self.reject)
        self._progressed.connect(self.bar.setValue)
        self.finished.connect(self._canceled.set)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(6 * UNIT, 5 * UNIT, 6 * UNIT, 5 * UNIT)
        layout.setSpacing(3 * UNIT)
        for widget in (PlainLabel(TITLE, look="title"), PlainLabel(_ABOUT, wrap=True), self.bar, self.error):
            layout.addWidget(widget)
        layout.addLayout(hbox(STRETCH, self.cancel, self.download, spacing=2))

    def _start(self) -> None:
        self.download.setEnabled(False)
        self.error.say("", "bad")
        self.bar.setValue(0)
        self.bar.show()
        work = partial(download_weights, self._note_progress, self._canceled)
        run_in_engine(self, self._engine, asyncio.to_thread(work), lambda _file: self._finish(), self._fail)

    def _note_progress(self, size: int) -> None:
        """Report the size of the file so far; in a thread."""
        if not self._canceled.is_set():
            self._progressed.emit(size)

    def _finish(self) -> None:
        self.downloaded.emit()
        self.accept()

    def _fail(self, error: EngineError) -> None:
        self.bar.hide()
        self.download.setEnabled(True)
        self.error.say(str(error), "bad")
