"""Reading the files that are to be opened, in a thread: a disk may be slow, and a document large.

Nothing in a file is run. What a crash left of the work on it, and how it hangs together, is found on the way.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from app.file_state import FileState
from app.session import Found, look_through
from app.window.recovery import Recovered, recovered_of
from engine.document.files import load
from engine.document.model import Workflow
from engine.errors import EngineError
from engine.importing.reader import looks_importable
from engine.nodes.registry import Registry


@dataclass(frozen=True, slots=True)
class Opened:
    """A document as it is in its file.

    Attributes:
        path: The file.
        workflow: What is in it.
        found: How that hangs together, and what is wrong with it.
        on_disk: The file as it was read.
        remains: What a crash left of the work on it; None where there is nothing.
    """

    path: Path
    workflow: Workflow
    found: Found
    on_disk: FileState
    remains: Recovered | None


@dataclass(frozen=True, slots=True)
class NotOpened:
    """A file that is no document that can be opened.

    Attributes:
        path: The file.
        reason: Why, and what to do.
        is_foreign: Whether another program seems to have written it.
        is_gone: Whether there is no such file.
        remains: What a crash left of the work on a file that is gone; None where there is nothing.
    """

    path: Path
    reason: str
    is_foreign: bool
    is_gone: bool
    remains: Recovered | None = None


def read_document(path: Path, data_folder: Path, registry: Registry) -> Opened | NotOpened:
    """Read a file that is to be opened. For a thread: it may take as long as the disk does.

    Args:
        path: The file.
        data_folder: Where unsaved work is kept that cannot be kept beside its file.
        registry: The node types.
    """
    on_disk = FileState.of(path)
    try:
        workflow = load(path)
    except EngineError as error:
        if path.exists():
            return NotOpened(path, str(error), looks_importable(path), is_gone=False)
        remains = recovered_of(path, data_folder, None)
        return NotOpened(path, str(error), is_foreign=False, is_gone=True, remains=remains)
    remains = recovered_of(path, data_folder, workflow)
    return Opened(path, workflow, look_through(workflow, registry), on_disk, remains)
