"""Background work of the start page: diagrams of templates and a check for missing recent files.

Analysing the first document loads libraries, and a file may be on a slow disk. The threads touch no Qt object, because
the page may be closed before they finish. They put results into a queue, which a timer reads while any thread is
running.
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
"""Result to deliver in the window's thread; None at the end of a thread."""


class BackgroundLoader(QObject):
    """Runs work in threads and reports results in the window's thread.

    Signals:
        diagram_ready: The diagram of the template at this path is ready.
        files_missing: The list of recent files that do not exist.
    """

    diagram_ready = Signal(object, object)
    files_missing = Signal(object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._found: SimpleQueue[Found] = SimpleQueue()
        self._running = 0
        self._timer = QTimer(self)
        self._timer.setInterval(LOOK_AFTER_MS)
        self._timer.timeout.connect(self._deliver)

    def draw(self, templates: Iterable[Template], registry: Registry | None = None) -> None:
        """Create the diagrams of templates.

        Args:
            templates: The templates.
            registry: The node types; built-in ones by default.
        """
        wanted = list(templates)

        def work() -> Iterator[Callable[[], None]]:
            # Imported in the thread, after the first paint.
            from app.gallery.diagram import make_diagram
            from engine.nodes.registry import builtin_registry

            types = registry or builtin_registry()
            for template in wanted:
                diagram = make_diagram(template.workflow, types)
                yield lambda path=template.path, diagram=diagram: self.diagram_ready.emit(path, diagram)

        self._start(work, "pictures")

    def check_files(self, paths: Iterable[Path]) -> None:
        """Find out which of these files are missing."""
        wanted = list(paths)

        def work() -> Iterator[Callable[[], None]]:
            missing = [path for path in wanted if not _exists(path)]
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

        self._running += 1
        self._timer.start()
        threading.Thread(target=run, name=f"loopwright {name}", daemon=True).start()

    def _deliver(self) -> None:
        while True:
            try:
                result = self._found.get_nowait()
            except Empty:
                return
            if result is not None:
                result()
                continue
            self._running -= 1
            if not self._running:
                self._timer.stop()


def _exists(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False
