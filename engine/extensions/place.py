"""Where the file of a person's extensions lies. Importing this costs nothing: every command asks."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

EXTENSIONS_VARIABLE: Final = "LOOPWRIGHT_EXTENSIONS"
_FILE_NAME: Final = "extensions.json"


def extensions_path() -> Path:
    """The file: the one that LOOPWRIGHT_EXTENSIONS names, else the usual one in the person's folder for settings."""
    named = os.environ.get(EXTENSIONS_VARIABLE, "").strip()
    if named:
        return Path(named)
    import platformdirs

    return platformdirs.user_config_path("loopwright", appauthor=False) / _FILE_NAME
