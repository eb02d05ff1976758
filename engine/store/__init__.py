"""The history of runs: store, show, resume, fork and export runs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from engine.errors import Fix
from engine.safe_file_io import user_path
from engine.store.store_protocol import EVERY_RUN, RunFilter, RunStatus, RunSummary, Store, StoreError, Totals

__all__ = [
    "EVERY_RUN",
    "RunFilter",
    "RunStatus",
    "RunSummary",
    "Store",
    "StoreError",
    "Totals",
    "open_store",
    "store_path",
]

PATH_VARIABLE: Final = "LOOPWRIGHT_STORE"
"""Environment variable with the path of the history file."""


def store_path() -> Path:
    """Return the history file: the one that the environment names, or the one in the user's data folder."""
    return user_path(PATH_VARIABLE, "history.sqlite3", is_data=True)


def open_store(path: Path | None = None, *, for_reading: bool = False) -> Store:
    """Open the history and create its file if missing.

    Args:
        path: The file; None for `store_path()`, whose default folder is created.
        for_reading: Whether a history that cannot be written is accepted; writing to it raises `StoreError`.

    Raises:
        StoreError: The history cannot be opened.
    """
    from engine.store.sqlite import SqliteStore

    if path is None:
        path = store_path()
        if not os.environ.get(PATH_VARIABLE, "").strip():
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise StoreError(
                    f'The folder "{path.parent}" for the history cannot be created: {error.strerror}.',
                    "Create that folder, or choose another file.",
                    fix=Fix.CHOOSE_HISTORY,
                ) from error
    return SqliteStore(path, for_reading=for_reading)
