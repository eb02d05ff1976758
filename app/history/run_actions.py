"""What is done with runs from their list: pinning, deleting, handing on as a file, taking in from one.

All of it is done by the history in a thread; the end is told in a sentence where it is not seen anyway.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import Final

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QCursor
from PySide6.QtWidgets import QMenu, QMessageBox, QWidget

from app.dialogs import FileDialogs, ask_question
from app.history.run_labels import name_of, short_id, title_of
from app.history.store_client import StoreAccess
from engine.errors import EngineError
from engine.safe_file_io import replace_file
from engine.store.base import RunSummary, Store, StoreError
from engine.store.export_csv import BYTE_ORDER_MARK, run_to_csv
from engine.store.export_markdown import run_to_markdown
from engine.store.run_file import head_of, import_run_file, run_to_json
from engine.store.run_sections import state_of

FORMS: Final = {
    "markdown": ("md", "Markdown (*.md)"),
    "json": ("json", "JSON (*.json)"),
    "csv": ("csv", "CSV (*.csv)"),
}
"""The forms in which a run is handed on: the ending of the file, and what the dialog calls it."""


def write_run(store: Store, run_id: str, form: str, path: Path) -> None:
    """Write a run to a file.

    Args:
        store: The history.
        run_id: The run.
        form: `markdown`, `json` or `csv`.
        path: The file.

    Raises:
        StoreError: The run cannot be read, or the file cannot be written.
    """
    try:
        replace_file(path, (piece.encode("utf-8", "backslashreplace") for piece in _pieces(store, run_id, form)))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise StoreError(f"Cannot write {path.name}: {reason}.", "Choose another folder or name.") from error


def take_in_run(store: Store, path: Path) -> str:
    """Import a run that was written as JSON, and give its id.

    Raises:
        StoreError: The file holds no run, or it cannot be kept.
    """
    return import_run_file(store, path)[1]


def _pieces(store: Store, run_id: str, form: str) -> Iterable[str]:
    if form == "json":
        return run_to_json(head_of(store, run_id), store.events(run_id))
    state = state_of(store, run_id)
    if form == "csv":
        return chain([BYTE_ORDER_MARK], run_to_csv(state))
    return run_to_markdown(store.find(run_id), store.document(run_id), state)


_Role = QMessageBox.ButtonRole


class Errands(QObject):
    """Does it.

    Args:
        access: The way to the history.
        asker: Asks for files.
        parent: The widget over which questions are asked.

    Signals:
        told: Something is done or cannot be; the text, and whether it is `info` or `bad`.
    """

    told = Signal(str, str)

    def __init__(self, access: StoreAccess, asker: FileDialogs, parent: QWidget) -> None:
        super().__init__(parent)
        self._access = access
        self._asker = asker
        self._widget = parent

    def pin(self, runs: Sequence[RunSummary]) -> None:
        """Pin runs; where all of them are, take the pins away."""
        pinned = not all(run.pinned for run in runs)

        def work(store: Store) -> None:
            for run in runs:
                store.pin(run.run_id, pinned=pinned)

        self._access.ask(work, lambda _done: self._access.changed.emit(), self._fail)

    def delete(self, runs: Sequence[RunSummary]) -> None:
        """Ask whether these runs shall go, and delete them."""
        if not runs:
            return
        what = f"the run “{title_of(runs[0])}”" if len(runs) == 1 else f"these {len(runs)} runs"
        pinned = sum(run.pinned for run in runs)
        more = f" {pinned} of them {'is' if pinned == 1 else 'are'} pinned." if pinned and len(runs) > 1 else ""
        ids = [run.run_id for run in runs]
        ask_question(
            self._widget,
            f"Delete {what}?",
            f"The run is deleted from the history. This cannot be undone.{more}"
            if len(runs) == 1
            else f"The runs are deleted from the history. This cannot be undone.{more}",
            [
                ("Delete", _Role.DestructiveRole, lambda: self._delete(ids)),
                ("Cancel", _Role.RejectRole, lambda: None),
            ],
        )

    def export(self, runs: Sequence[RunSummary], form: str) -> None:
        """Ask where to, and write a run into a file.

        Args:
            runs: The run, alone.
            form: `markdown`, `json` or `csv`.
        """
        if len(runs) != 1:
            return
        ending, filters = FORMS[form]
        run = runs[0]
        kept = "".join(letter if letter.isalnum() else "-" for letter in name_of(run).casefold()).strip("-")
        suggestion = Path.home() / f"{kept[:60] or 'run'}-{short_id(run.run_id)}.{ending}"

        def write(path: Path) -> None:
            if path.suffix:
                self._write(run.run_id, form, path)
                return
            target = path.with_suffix(f".{ending}")
            if os.path.exists(target):  # noqa: PTH110 - that of Path raises where a folder cannot be entered
                self._ask_to_replace(target, lambda: self._write(run.run_id, form, target))
            else:
                self._write(run.run_id, form, target)

        self._asker.save_file(self._widget, suggestion, filters, write)

    def choose_form(self, runs: Sequence[RunSummary]) -> QMenu:
        """Ask in which form, where the pointer is, and write a run into a file."""
        menu = QMenu(self._widget)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        for form, (_, words) in FORMS.items():
            action = menu.addAction(f"Export as {words.partition(' ')[0]}…")
            action.triggered.connect(lambda _checked=False, form=form: self.export(runs, form))
        menu.popup(QCursor.pos())
        return menu

    def take_in(self) -> None:
        """Ask for a file that a run was exported to as JSON, and take the run in."""

        def taken(_run_id: str) -> None:
            self.told.emit("The run was imported.", "info")
            self._access.changed.emit()

        def import_file(path: Path) -> None:
            self._access.ask(lambda store: take_in_run(store, path), taken, self._fail)

        self._asker.open_text(self._widget, import_file)

    def _ask_to_replace(self, target: Path, replace: Callable[[], object]) -> None:
        """Ask as the dialog for files would have, had the ending been typed."""
        ask_question(
            self._widget,
            f"Replace {target.name}?",
            f"A file with this name already exists in {target.parent}. Its contents will be lost.",
            [("Replace", _Role.DestructiveRole, replace), ("Cancel", _Role.RejectRole, lambda: None)],
        )

    def _write(self, run_id: str, form: str, target: Path) -> None:
        self._access.ask(
            lambda store: write_run(store, run_id, form, target),
            lambda _done: self.told.emit(f"The run was exported to {target}.", "info"),
            self._fail,
        )

    def _delete(self, run_ids: list[str]) -> None:
        self._access.ask(lambda store: store.delete(run_ids), lambda _done: self._access.changed.emit(), self._fail)

    def _fail(self, error: EngineError) -> None:
        self.told.emit(str(error), "bad")
        self._access.changed.emit()  # some of it may be done all the same
