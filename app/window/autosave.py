"""Keeps the unsaved work of one document on the disk, at most a second or two behind it.

The document is written in a thread of its own; it is frozen data, so the person can go on meanwhile.
"""

from __future__ import annotations

import contextlib
import threading
from pathlib import Path
from typing import Final

from PySide6.QtCore import QObject, QTimer, Signal

from app.session import Session
from app.window.recovery import Place, places_of
from engine.document.files import save
from engine.document.model import Workflow
from engine.errors import EngineError

AFTER_MS: Final = 1000
"""From the first change that is not kept yet to the writing; later changes do not put it off."""


class Autosave(QObject):
    """Follows a session.

    Args:
        session: The document.
        folder: The user's data folder, for what cannot be kept beside the document.

    Signals:
        failed: The work cannot be kept; the text says why. Told once until it works again.
        kept: The work as it was a moment ago is on the disk.
    """

    failed = Signal(str)
    kept = Signal()

    _written = Signal(object, str)

    def __init__(self, session: Session, folder: Path, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self._folder = folder
        self._place: Place | None = None
        self._kept: Workflow | None = None
        self._writing: threading.Thread | None = None
        self._has_failed = False
        self._avoided: Path | None = None
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(AFTER_MS)
        self._timer.timeout.connect(self._keep)
        self._written.connect(self._take_up)
        session.changed.connect(self._note_change)
        session.saved_state_changed.connect(self._note_saved)

    @property
    def file(self) -> Path | None:
        """Where the work is kept now; None where there is none to keep."""
        return self._place.file if self._place is not None else None

    def avoid(self, file: Path) -> None:
        """Leave a file alone: it holds what a crash left, and nobody has decided about it yet."""
        self._avoided = file

    def keep_now(self) -> None:
        """Do not wait any longer: something is going wrong."""
        if self._timer.isActive():
            self._timer.stop()
            self._keep()

    def settle(self) -> None:
        """Wait for what is being written, and drop what is kept: the document is saved or given up."""
        self._timer.stop()
        if self._writing is not None:
            self._writing.join()
            self._writing = None
        if self._place is not None:
            self._place.clear()
            self._place = None
        self._kept = None

    def _note_change(self) -> None:
        if self._session.is_modified and not self._timer.isActive():
            self._timer.start()

    def _note_saved(self) -> None:
        if not self._session.is_modified:
            self.settle()

    def _keep(self) -> None:
        workflow = self._session.workflow
        if not self._session.is_modified or workflow is self._kept:
            return
        if self._writing is not None:
            self._timer.start()
            return
        place = self._place or self._claimed()
        self._place = place
        self._writing = threading.Thread(
            target=self._write, args=(workflow, place), name="loopwright autosave", daemon=True
        )
        self._writing.start()

    def _claimed(self) -> Place | None:
        with contextlib.suppress(OSError):  # then no place in it can be claimed
            self._folder.mkdir(parents=True, exist_ok=True)
        files = places_of(self._session.path, self._folder)
        places = (Place(file) for file in files if file != self._avoided)
        return next((place for place in places if place.claim()), None)

    def _write(self, workflow: Workflow, place: Place | None) -> None:
        fault = ""
        if place is None:
            fault = f"{self._folder}: No file can be written there."
        else:
            try:
                save(workflow, place.file)
            except EngineError as error:
                fault = error.message
        self._written.emit(workflow, fault)

    def _take_up(self, workflow: Workflow, fault: str) -> None:
        if self._writing is not None:
            self._writing.join()
            self._writing = None
        if fault:
            if not self._has_failed:
                self.failed.emit(f"Your changes cannot be kept against a crash. {fault} Save the document elsewhere.")
            self._has_failed = True
            return
        self._has_failed = False
        if self._place is not None:  # else it was saved meanwhile
            self._kept = workflow
            self.kept.emit()
