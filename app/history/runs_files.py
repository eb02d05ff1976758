"""A run as a file: written whole or not at all, in one of three forms, and taken in again. No Qt here."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import Final

from engine.ordinary_file import replace_file
from engine.store.base import Store, StoreError
from engine.store.export_csv import BYTE_ORDER_MARK, run_to_csv
from engine.store.export_markdown import run_to_markdown
from engine.store.outline import RunOutline
from engine.store.run_file import head_of, import_run_file, run_to_json

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
        raise StoreError(f"{path.name} cannot be written: {reason}.", "Choose another folder or name.") from error


def take_in_run(store: Store, path: Path) -> str:
    """Import a run that was written as JSON, and give its id.

    Raises:
        StoreError: The file holds no run, or it cannot be kept.
    """
    return import_run_file(store, path)[1]


def _pieces(store: Store, run_id: str, form: str) -> Iterable[str]:
    if form == "json":
        return run_to_json(head_of(store, run_id), store.events(run_id))
    outline = RunOutline(run_id, store.events(run_id))
    if form == "csv":
        return chain([BYTE_ORDER_MARK], run_to_csv(outline))
    return run_to_markdown(store.find(run_id), store.document(run_id), outline)
