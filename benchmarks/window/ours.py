"""The program's window as a contender."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QDialog, QPlainTextEdit, QWidget

from app.engine_thread import EngineThread
from app.garbage_collector import GarbageCollector
from app.main import preload
from app.settings.preferences import Preferences, apply_appearance
from app.theme.style import Style
from app.window.document_page import DocumentPage
from app.workbench import Workbench
from benchmarks.window.graphs import laid_out, side_by_side, written
from benchmarks.window.measure import gap_of_ms, growth_mb, largest_gap_ms, memory_mb, settle
from engine.document.clipboard import copy_fragment
from engine.document.model import Workflow
from engine.document.operations import RemoveNodes


class Contender:
    """The window with a document in it."""

    def __init__(self, application: QApplication, folder: Path) -> None:
        self._folder = folder
        Style(application)
        self._engine = EngineThread()
        self._preferences = Preferences(folder / "settings.json")
        self._preferences.set(theme="dark")
        apply_appearance(self._preferences)
        self._workbench = Workbench(self._engine, self._preferences, data_folder=folder / "unsaved")
        self._workbench.window.resize(1440, 900)
        self._workbench.show()
        gc.freeze()
        GarbageCollector(self._workbench)
        self._documents = self._workbench.documents
        self._document = self._documents.new()
        settle()

    def open(self, workflow: Workflow) -> float:
        """Open a document, and return the seconds up to the end of its first full paint."""
        file = written(workflow, self._folder, "large")
        begin = time.perf_counter()
        self._document = self._opened(file)
        self._document.canvas.fit_to_view.fit_all()
        QApplication.processEvents()
        self.viewport.repaint()
        return time.perf_counter() - begin

    @property
    def viewport(self) -> QWidget:
        """The painted widget."""
        return self._document.canvas.viewer.viewport()

    def fit_all(self) -> None:
        """Fit everything into the view."""
        self._document.canvas.fit_to_view.fit_all()

    def look_closely(self) -> None:
        """Show the second loop at 100 %."""
        self._document.canvas.viewer.zoom_to(1.0)
        self._document.canvas.center_on("n1_3")

    def pan(self, across: int, down: int) -> None:
        """Pan the view."""
        viewer = self._document.canvas.viewer
        for bar, by in ((viewer.horizontalScrollBar(), across), (viewer.verticalScrollBar(), down)):
            bar.setValue(bar.value() + by)
        viewer.view_moved.emit()

    def zoom(self, factor: float) -> None:
        """Zoom by a factor."""
        self._document.canvas.viewer.zoom_to(self._document.canvas.viewer.zoom * factor)

    def select(self, ids: list[str]) -> QPoint:
        """Select nodes, and return the position of the first one in the viewport."""
        canvas = self._document.canvas
        self._document.session.select(ids)
        settle()
        return canvas.viewer.mapFromScene(canvas.view.nodes[ids[0]].card_rect.center())

    def prepare_keystroke(self) -> None:
        """Show the prompt of a visible node."""
        self._document.session.select(["n1_3"])
        settle(300)
        fields = self._document.inspector.findChildren(QPlainTextEdit)
        self._field = next(field for field in fields if field.isVisible() and "{{input}}" in field.toPlainText())
        self._field.setFocus()

    def keystroke(self, _place: int) -> None:
        """Type a letter into the prompt, and wait until the document has it."""
        before = self._document.session.workflow
        QTest.keyClick(self._field, Qt.Key.Key_X)
        if self._document.session.workflow is before:
            raise RuntimeError("A keystroke did not reach the document.")
        self.viewport.update()  # a frame is due whether or not the card says something new

    def flood(self, width: int, pieces: int, pause_s: float) -> tuple[float, float]:
        """Run nodes that stream, and return the largest gap in milliseconds and the events per second."""
        workflow, script = side_by_side(width, pieces, pause_s, self._folder)
        self._preferences.set(default_model=f"scripted:{script}")
        document = self._opened(written(workflow, self._folder, "stream"))
        settle()
        number = 0

        def count(events: list[object]) -> None:
            nonlocal number
            number += len(events)

        begin = time.perf_counter()
        self._workbench.runs.run(document)
        assert document.session.shown.live is not None
        document.session.shown.live.events.connect(count)
        gap = largest_gap_ms(lambda: document.session.shown.live is not None)
        return gap, number / (time.perf_counter() - begin)

    def open_and_close(self, nodes: int, edges: int, times: int) -> float | None:
        """Open and close a document repeatedly, and return the growth in megabytes."""
        file = written(laid_out(nodes, edges), self._folder, "small")
        before = None
        for place in range(-3, times):
            if place == 0:  # the first ones load what then stays
                before = memory_mb()
            document = self._opened(file)
            QApplication.processEvents()
            self._documents.drop(document)
            settle(20)
        settle(500)
        return growth_mb(before)

    def steps_ms(self) -> dict[str, float]:
        """The longest time that each step that concerns the whole window blocks it, in milliseconds.

        Returns:
            The gaps; those from `delete_ms` to `open_ms` concern the large document.
        """
        self._preload()
        large = self._opened(self._folder / "large.loop.json")
        settle(500)
        session, workflow = large.session, large.session.workflow
        analysis = (session.structure, session.problems)
        remove = RemoveNodes(tuple(node.id for node in workflow.nodes))

        def duplicate() -> None:
            session.select(remove.node_ids)
            large.canvas.commands.duplicate()

        QApplication.clipboard().setText(copy_fragment(workflow, remove.node_ids))
        steps: dict[str, Callable[[], object]] = {
            "settings_ms": self._workbench.commands.open_settings,
            "guide_ms": self._workbench.help.show_guide,
            "theme_ms": lambda: self._preferences.set(theme="light"),
            "delete_ms": lambda: session.do(remove),
            "undo_ms": session.undo,
            "duplicate_ms": duplicate,
            "undo_duplicate_ms": session.undo,
            "paste_ms": large.canvas.commands.paste,
            "open_ms": lambda: self._documents.open_copy(workflow, analysis),
            "new_tab_ms": self._documents.new,
        }
        found: dict[str, float] = {}
        for name, step in steps.items():
            found[name] = gap_of_ms(step)
            for dialog in self._workbench.window.findChildren(QDialog):
                dialog.close()
            settle(500)
        return found

    def _preload(self) -> None:
        """Load what the program loads after its first frame."""
        done: list[bool] = []
        preload(self._workbench, lambda: done.append(True))
        largest_gap_ms(lambda: not done)

    def close(self) -> None:
        """Close everything."""
        self._workbench.window.hide()
        self._engine.stop()

    def _opened(self, file: Path) -> DocumentPage:
        document = self._documents.open_template(file)
        if document is None:
            raise RuntimeError(f"{file.name} could not be opened.")
        while not document.canvas.view.is_complete:
            QApplication.processEvents()
        return document
