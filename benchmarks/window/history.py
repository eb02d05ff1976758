"""`python -m benchmarks.window.history SIZES`: measure the Iterations panel, and print figures as a line of JSON."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from app.engine_thread import EngineThread
from app.history.iterations_panel import IterationsPanel
from app.session import Session
from app.settings.preferences import Preferences
from app.theme.style import Style
from app.window.document_page import DocumentPage
from app.workbench import Workbench
from benchmarks.window.graphs import written
from benchmarks.window.measure import frame_ms, largest_gap_ms, settle
from benchmarks.workflows import loop_of_three
from engine.document.model import Workflow

PATIENCE_S = 120
_PAUSE_S = 0.003


class Bench:
    """A window with a separate history."""

    def __init__(self, application: QApplication, folder: Path, iterations: int) -> None:
        Style(application).choose("dark", 1.0)
        self._folder = folder
        self.engine = EngineThread()
        preferences = Preferences(folder / "settings.json")
        preferences.set(max_iterations_cap=max(iterations, 50))
        self.workbench = Workbench(
            self.engine, preferences, data_folder=folder / "unsaved", store=folder / "history.sqlite3"
        )
        self.workbench.window.resize(1440, 900)
        self.workbench.show()
        self.workbench.history.access.open()
        _until(lambda: self.workbench.history.access.store is not None)

    def open(self, workflow: Workflow, name: str) -> DocumentPage:
        """Open a document, with the panel below it."""
        document = self.workbench.documents.open_template(written(workflow, self._folder, name))
        assert document is not None
        self.workbench.bottom_panel.unfold("iterations")
        settle()
        return document

    def run(self, document: DocumentPage) -> tuple[float, float]:
        """Run it to its end, and return the largest gap in milliseconds and the events per second."""
        number = 0

        def count(events: list[object]) -> None:
            nonlocal number
            number += len(events)

        begin = time.perf_counter()
        self.workbench.runs.run(document)
        assert document.session.shown.live is not None
        document.session.shown.live.events.connect(count)
        gap = largest_gap_ms(lambda: document.session.shown.live is not None)
        return gap, number / (time.perf_counter() - begin)

    def open_run_ms(self, run_id: str) -> float:
        """Open a stored run in a new tab, up to the full paint of its panel."""
        begin = time.perf_counter()
        self.workbench.history.tabs.open_run(run_id)
        _until(lambda: self.workbench.current is not None and self.workbench.current.session.is_past)
        document = self.workbench.current
        assert document is not None
        _until(lambda: document.iterations.model.rowCount() > 0 and document.session.loader.is_read)
        document.iterations.repaint()
        return (time.perf_counter() - begin) * 1e3

    def close(self) -> None:
        """Close everything."""
        self.workbench.window.hide()
        self.engine.stop()


def figures(bench: Bench, iterations: int, frames: int) -> dict[str, float]:
    """Measure everything once."""
    document = bench.open(_paced(loop_of_three("transform", iterations)), "many")
    gap, events = bench.run(document)
    found = {"gap_ms": gap, "events_a_second": events}
    session = document.session
    begin = time.thread_time()
    panel = IterationsPanel(session)
    panel.resize(document.iterations.size())
    panel.show()
    QApplication.processEvents()
    panel.repaint()
    found["panel_ms"] = (time.thread_time() - begin) * 1e3
    panel.hide()
    run_id = session.shown.run_id
    panel = document.iterations
    session.shown.look_at("loop", 0)
    settle()
    found["scroll_ms"] = frame_ms(panel.table.viewport(), lambda place: _scroll(panel, 20 * place % 8000), frames)
    found["step_ms"] = frame_ms(panel.table.viewport(), lambda _: _step(session, iterations), frames)
    bench.workbench.documents.drop(document)  # a run that is shown already would only be shown again
    settle()
    found["open_run_ms"] = bench.open_run_ms(run_id)
    large = bench.open(_large(), "large")
    bench.workbench.runs.run(large)
    _until(lambda: large.session.shown.live is None)
    settle(300)
    table = large.iterations.table.viewport()
    found["large_step_ms"] = frame_ms(table, lambda _: _step(large.session, 3), frames)
    return found


def _scroll(panel: IterationsPanel, to: int) -> None:
    panel.table.verticalScrollBar().setValue(to)
    panel.table.viewport().update()  # all of it, even if Qt would only scroll


def _step(session: Session, iterations: int) -> None:
    session.shown.look_at("loop", (session.shown.chosen.get("loop", 0) + 1) % iterations)


def _paced(workflow: Workflow) -> Workflow:
    """The same with a pause between iterations, as with real models: about 2,000 events per second."""
    loop = workflow.nodes_by_id["loop"]
    slower = loop.model_copy(update={"config": {**loop.config, "delay_s": _PAUSE_S}})
    return workflow.model_copy(update={"nodes": tuple(slower if node is loop else node for node in workflow.nodes)})


def _large() -> Workflow:
    """A loop with results of a megabyte."""
    workflow = loop_of_three("transform", 3)
    text = workflow.nodes_by_id["text"]
    words = text.model_copy(update={"config": {**text.config, "default": "word and " * 110_000}})
    return workflow.model_copy(update={"nodes": tuple(words if node is text else node for node in workflow.nodes)})


def _until(is_so: object) -> None:
    end = time.perf_counter() + PATIENCE_S
    assert callable(is_so)
    while not is_so():
        if time.perf_counter() > end:
            raise TimeoutError("The measured operation did not finish.")
        QTest.qWait(1)


def main() -> None:
    """Measure, and print the figures."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    application = QApplication(sys.argv[:1])
    sizes = json.loads(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(application, Path(folder), sizes["iterations"])
        found = figures(bench, sizes["iterations"], sizes["frames"])
        bench.close()
    answers.write(json.dumps(found) + "\n")
    answers.flush()
    os._exit(0)  # the work of the bindings at exit is not measured


if __name__ == "__main__":
    main()
