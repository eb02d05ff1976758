"""The one way to open the history: where it lies, unless somebody says otherwise."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from engine.store.base import Store

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

    return SqliteStore(path or store_path())
