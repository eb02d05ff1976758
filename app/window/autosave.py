"""Keeps the unsaved work of one document on the disk, at most a second or two behind it.

Everything on the disk is done in a thread; the document is frozen data, so the person can go on meanwhile.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Final

from PySide6.QtCore import QObject, QTimer, Signal

from app.session import Session
from app.window.recovery import Place, places_of
from app.worker import Worker, give_way
from engine.document.files import save
from engine.document.model import Workflow
from engine.errors import EngineError
from engine.plan.secrets import without_secrets

AFTER_MS: Final = 1000
"""From the first change that is not kept yet to the writing; later changes do not put it off."""


class _Keeper:
    """What the thread does; nobody else touches the disk."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.place: Place | None = None

    def keep(self, workflow: Workflow, path: Path | None, avoided: Path | None) -> str:
        """Write a document without the secrets in it, and say why where that is not possible."""
        self.place = self.place or self._claimed(path, avoided)
        if self.place is None:
            return f"{self._folder}: No file can be written there."
        try:
            save(without_secrets(workflow), self.place.file, give_way)
        except EngineError as error:
            return error.message
        return ""

    def clear(self) -> None:
        """Remove what is kept."""
        if self.place is not None:
            self.place.clear()
            self.place = None

    def _claimed(self, path: Path | None, avoided: Path | None) -> Place | None:
        with contextlib.suppress(OSError):  # then no place in it can be claimed
            self._folder.mkdir(parents=True, exist_ok=True)
        places = (Place(file) for file in places_of(path, self._folder) if file != avoided)
        return next((place for place in places if place.claim()), None)


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

    def __init__(self, session: Session, folder: Path, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self._keeper = _Keeper(folder)
        self._worker = Worker(self)
        self._kept: Workflow | None = None
        self._settled = 0
        self._has_failed = False
        self._avoided: Path | None = None
        self._path = session.path
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(AFTER_MS)
        self._timer.timeout.connect(self._keep)
        session.changed.connect(self._note_change)
        session.draft.changed.connect(self._note_saved)
        session.saved_state_changed.connect(self._note_saved)
        session.saved.connect(self._follow_file)

    @property
    def file(self) -> Path | None:
        """Where the work is kept now; None where there is none to keep."""
        place = self._keeper.place
        return place.file if place is not None else None

    @property
    def _has_work(self) -> bool:
        """Whether there is something to lose; what is being typed at this moment counts."""
        return self._session.is_modified or self._session.draft.step is not None

    def avoid(self, file: Path) -> None:
        """Leave a file alone: it holds what a crash left, and nobody has decided about it yet."""
        self._avoided = file

    def keep_now(self) -> None:
        """Do not wait any longer: something is going wrong."""
        if self._timer.isActive():
            self._timer.stop()
            self._keep()

    def settle(self) -> None:
        """Drop what is kept, also what is just being written: the document is saved or given up."""
        self._timer.stop()
        self._kept = None
        self._settled += 1
        self._worker.ask(self._keeper.clear)

    def _note_change(self) -> None:
        if self._has_work and not self._timer.isActive():
            self._timer.start()

    def _note_saved(self) -> None:
        if self._has_work:
            self._note_change()  # its file may be gone
        else:
            self.settle()

    def _follow_file(self, path: Path) -> None:
        """What was typed while it was saved elsewhere is kept beside that file from now on."""
        if path != self._path and self._has_work:
            self.settle()
            self._timer.start()
        self._path = path

    def _keep(self) -> None:
        workflow = self._session.draft.added_to(self._session.workflow)
        if not self._has_work or workflow is self._kept:
            return
        if self._worker.is_busy:
            self._timer.start()
            return
        keeper, path, avoided, settled = self._keeper, self._session.path, self._avoided, self._settled
        self._worker.ask(
            lambda: keeper.keep(workflow, path, avoided), lambda fault: self._take_up(workflow, fault, settled)
        )

    def _take_up(self, workflow: Workflow, fault: str, settled: int) -> None:
        if fault:
            if not self._has_failed:
                self.failed.emit(f"Your changes cannot be kept against a crash. {fault} Save the document elsewhere.")
            self._has_failed = True
            return
        self._has_failed = False
        if settled == self._settled:  # else it was saved meanwhile, and is removed by now
            self._kept = workflow
            self.kept.emit()
