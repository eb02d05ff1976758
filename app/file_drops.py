"""Files dropped on a window."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QMimeData, Qt
from PySide6.QtGui import QDropEvent


def dropped_files(data: QMimeData) -> list[Path]:
    """Return the local files of a drop or paste."""
    return [Path(url.toLocalFile()) for url in data.urls() if url.isLocalFile()]


def accept_copy(event: QDropEvent) -> None:
    """Accept a drag or drop as a copy: after a move, which some file managers propose, they remove the file."""
    event.setDropAction(Qt.DropAction.CopyAction)
    event.accept()
