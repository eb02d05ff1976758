"""The one way to open the history: where it lies, unless somebody says otherwise."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from engine.store.base import Store, StoreError

PLACE_VARIABLE: Final = "LOOPWRIGHT_STORE"
"""The environment variable that names another file."""


def store_path() -> Path:
    """The history's file: what the environment names, or the one in the user's data folder."""
    named = os.environ.get(PLACE_VARIABLE)
    if named:
        return Path(named)
    import platformdirs

    return platformdirs.user_data_path("loopwright", appauthor=False) / "history.sqlite3"


def open_store(path: Path | None = None) -> Store:
    """Open the history; a file that is not there is made.

    Args:
        path: Its file; None for `store_path()`.

    Raises:
        StoreError: It cannot be opened.
    """
    from engine.store.sqlite import SqliteStore

    if path is None:
        path = store_path()
        if not os.environ.get(PLACE_VARIABLE):
            _make_folder(path.parent)
    return SqliteStore(path)


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(
            f'The folder "{folder}" for the history cannot be made: {error.strerror}.',
            f"Make it yourself, or name another file with --store or {PLACE_VARIABLE}.",
        ) from error
