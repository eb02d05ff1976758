"""Which workflows a person has approved although they came from elsewhere: a file of fingerprints.

Approved is what a document says. A person is asked again about what it makes up during a run (a command that an edge
brings), unless the document is trusted fully: their own work, or one that they run with `--allow`.

The window and the command line share it. A file that cannot be read approves nothing, one that cannot be written is
asked for again the next time.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Final

from engine.document.model import Workflow
from engine.formatting import format_json
from engine.runner.capabilities import fingerprint
from engine.safe_file_io import read_text_file, replace_file

VARIABLE: Final = "LOOPWRIGHT_APPROVED"
FILE_NAME: Final = "approved.json"
_APPROVED: Final = "approved"
_FULLY: Final = "fully_trusted"
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
    return fingerprint(workflow) in _read(path or usual_path())[_APPROVED]


def is_fully_trusted(workflow: Workflow, path: Path | None = None) -> bool:
    """Whether a document that means the same may do unasked what it only makes up during a run."""
    return fingerprint(workflow) in _read(path or usual_path())[_FULLY]


def approve(workflow: Workflow, path: Path | None = None, *, fully: bool = False) -> bool:
    """Note that a person trusts a document, and with `fully` also what it makes up during a run.

    Returns:
        Whether it could be noted.
    """
    file, mark = path or usual_path(), fingerprint(workflow)
    known = _read(file)
    lists = (_APPROVED, _FULLY) if fully else (_APPROVED,)
    if all(mark in known[name] for name in lists):
        return True
    for name in lists:
        known[name] = [*(one for one in known[name] if one != mark), mark][-_MOST:]
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        replace_file(file, (format_json({"version": 1, **known}, ascii_only=True) + "\n").encode())
    except (OSError, ValueError):
        return False
    return True


def _read(path: Path) -> dict[str, list[str]]:
    known: dict[str, list[str]] = {_APPROVED: [], _FULLY: []}
    try:
        content: Any = json.loads(read_text_file(path, _MAX_BYTES))
        for name, marks in known.items():
            marks += [mark for mark in content.get(name, ()) if isinstance(mark, str)]
    except (OSError, ValueError, AttributeError, TypeError, RecursionError):
        return {_APPROVED: [], _FULLY: []}
    return known
