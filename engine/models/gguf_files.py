"""GGUF files, the format of models that run on this machine: where they are."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

FOLDER_VARIABLE: Final = "LOOPWRIGHT_MODELS_FOLDER"
"""Environment variable with the path of the folder for downloaded models."""


def models_folder() -> Path:
    """Return the folder for downloaded models, which may not exist: the environment's, or one in the user's data."""
    named = os.environ.get(FOLDER_VARIABLE)
    if named:
        return Path(named)
    import platformdirs

    return platformdirs.user_data_path("loopwright", appauthor=False) / "models"
