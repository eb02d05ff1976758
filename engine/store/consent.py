"""Which workflows a person has approved although they came from elsewhere: a file of fingerprints.

The window and the command line share it. A file that cannot be read approves nothing, one that cannot be written is
asked for again the next time.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Final

from engine.document.model import Workflow
from engine.ordinary_file import read_text_file, replace_file
from engine.runner.reach import fingerprint

VARIABLE: Final = "LOOPWRIGHT_APPROVED"
FILE_NAME: Final = "approved.json"
_MOST: Final = 10_000
_MAX_BYTES: Final = 5_000_000


def usual_path() -> Path:
    """The file that `LOOPWRIGHT_APPROVED` names, else the one in the user's folder for settings."""
    named = os.environ.get(VARIABLE)
    if named:
        return Path(named)
    import platformdirs

    return platformdirs.user_config_path("loopwright", appauthor=False) / FILE_NAME


def is_approved(workflow: Workflow, path: Path | None = None) -> bool:
    """Whether a person has approved a document that means the same."""
    return fingerprint(workflow) in _read(path or usual_path())


def approve(workflow: Workflow, path: Path | None = None) -> bool:
    """Note that a person trusts a document.

    Returns:
        Whether it could be noted.
    """
    file, mark = path or usual_path(), fingerprint(workflow)
    known = _read(file)
    if mark in known:
        return True
    kept = [*known, mark][-_MOST:]
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        replace_file(file, (json.dumps({"version": 1, "approved": kept}, indent=2) + "\n").encode())
    except (OSError, ValueError):
        return False
    return True


def _read(path: Path) -> list[str]:
    try:
        content: Any = json.loads(read_text_file(path, _MAX_BYTES))
        return [mark for mark in content["approved"] if isinstance(mark, str)]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return []
