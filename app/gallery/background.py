"""What the first page finds out in a thread: pictures of templates, and which recent files are still there.

Taking the first document apart loads libraries, and a file may lie on a disk that answers slowly.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from app.gallery.diagram import make_diagram
from app.gallery.templates import Template
from engine.nodes.registry import Registry


class Background(QObject):
    """Does the work in threads and tells results in the window's.

    Signals:
        drawn: The picture of a template is ready: the path of its file, and the diagram.
        missed: Which of the files asked about are not there: a list of paths.
    """

    drawn = Signal(object, object)
    missed = Signal(object)

    def draw(self, templates: Iterable[Template], registry: Registry) -> None:
        """Make the pictures of templates."""
        wanted = list(templates)

        def work() -> None:
            for template in wanted:
                self.drawn.emit(template.path, make_diagram(template.workflow, registry))

        _start(work, "pictures")

    def look_for(self, paths: Iterable[Path]) -> None:
        """Find out which of these files are not there."""
        wanted = list(paths)

        def work() -> None:
            self.missed.emit([path for path in wanted if not _is_there(path)])

        _start(work, "recent files")


def _is_there(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def _start(work: Callable[[], None], name: str) -> None:
    def guarded() -> None:
        with suppress(RuntimeError):  # the page was closed meanwhile, and nobody is there to be told
            work()

    threading.Thread(target=guarded, name=f"loopwright {name}", daemon=True).start()
