"""What the first page finds out in a thread: pictures of templates, and which recent files are still there.

Taking the first document apart loads libraries, and a file may lie on a disk that answers slowly. The threads touch no
object of Qt: the page may be closed and gone before they are done. They put what they find into a queue, which is read
on a timer that runs only while there is something to wait for.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject, QTimer, Signal

from app.gallery.templates import Template

if TYPE_CHECKING:
    from engine.nodes.registry import Registry

LOOK_AFTER_MS: Final = 20

Found = Callable[[], None] | None
"""What is to be done in the window's thread with something found; None when a thread has come to its end."""


class BackgroundLoader(QObject):
    """Does the work in threads and tells results in the window's.

    Signals:
        diagram_ready: The picture of a template is ready: the path of its file, and the diagram.
        files_missing: Which of the files asked about are not there: a list of paths.
    """

    diagram_ready = Signal(object, object)
    files_missing = Signal(object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._found: SimpleQueue[Found] = SimpleQueue()
        self._at_work = 0
        self._timer = QTimer(self)
        self._timer.setInterval(LOOK_AFTER_MS)
        self._timer.timeout.connect(self._take_up)

    def draw(self, templates: Iterable[Template], registry: Registry | None = None) -> None:
        """Make the pictures of templates.

        Args:
            templates: Those.
            registry: The node types; those of the program unless given.
        """
        wanted = list(templates)

        def work() -> Iterator[Callable[[], None]]:
            # Imported in the thread: the page is up before.
            from app.gallery.diagram import make_diagram
            from engine.nodes.registry import builtin_registry

            types = registry or builtin_registry()
            for template in wanted:
                diagram = make_diagram(template.workflow, types)
                yield lambda path=template.path, diagram=diagram: self.diagram_ready.emit(path, diagram)

        self._start(work, "pictures")

    def check_files(self, paths: Iterable[Path]) -> None:
        """Find out which of these files are not there."""
        wanted = list(paths)

        def work() -> Iterator[Callable[[], None]]:
            missing = [path for path in wanted if not _is_there(path)]
            yield lambda: self.files_missing.emit(missing)

        self._start(work, "recent files")

    def _start(self, work: Callable[[], Iterator[Callable[[], None]]], name: str) -> None:
        found = self._found

        def run() -> None:
            try:
                for result in work():
                    found.put(result)
            finally:
                found.put(None)

        self._at_work += 1
        self._timer.start()
        threading.Thread(target=run, name=f"loopwright {name}", daemon=True).start()

    def _take_up(self) -> None:
        while True:
            try:
                result = self._found.get_nowait()
            except Empty:
                return
            if result is not None:
                result()
                continue
            self._at_work -= 1
            if not self._at_work:
                self._timer.stop()


def _is_there(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False
