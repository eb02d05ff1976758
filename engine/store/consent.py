"""Approvals of workflows from other people: a file of fingerprints, shared by window and command line.

An approval covers what the document says. The user is asked again about what it produces during a run, such as a
command from an edge, unless the document is fully trusted: their own work, or one that they run with `--allow`.

An unreadable file approves nothing. If it is not writable, the user is asked again the next time.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from engine.document.model import Workflow
from engine.formatting import format_json
from engine.runner.capabilities import fingerprint
from engine.safe_file_io import hold_lock, read_text_file, replace_file, user_path

VARIABLE: Final = "LOOPWRIGHT_APPROVED"
FILE_NAME: Final = "approved.json"
_APPROVED: Final = "approved"
_FULLY: Final = "fully_trusted"
_MAX_APPROVALS: Final = 10_000
_MAX_BYTES: Final = 5_000_000


def approvals_path() -> Path:
    """Return the file that `LOOPWRIGHT_APPROVED` names, or the one in the user's config folder."""
    return user_path(VARIABLE, FILE_NAME)


def is_approved(workflow: Workflow) -> bool:
    """Return whether the user has approved an equivalent document."""
    return fingerprint(workflow) in _read(approvals_path())[_APPROVED]


def is_fully_trusted(workflow: Workflow) -> bool:
    """Return whether an equivalent document may do what it produces during a run without asking."""
    return fingerprint(workflow) in _read(approvals_path())[_FULLY]


def approve(workflow: Workflow, *, fully: bool = False) -> bool:
    """Store that the user approves a document, and with `fully` also what it produces during a run.

    Waits for other processes that do so at the same time.

    Returns:
        Whether it could be stored.
    """
    file, mark = approvals_path(), fingerprint(workflow)
    lists = (_APPROVED, _FULLY) if fully else (_APPROVED,)
    known = _read(file)
    if all(mark in known[name] for name in lists):
        return True
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with hold_lock(file):
            known = _read(file)
            for name in lists:
                known[name] = [*(one for one in known[name] if one != mark), mark][-_MAX_APPROVALS:]
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
