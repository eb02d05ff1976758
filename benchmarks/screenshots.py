"""`python -m benchmarks.screenshots`: draw the screenshots in `docs/images/`, without a screen and a model.

The window is the real one; its replies come from a script, so that each screenshot shows the same run.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Final

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtCore import QDeadlineTimer, QSize, Qt
from PySide6.QtGui import QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QDialog, QWidget

from app.batch.batch_window import BatchWindow
from app.engine_thread import EngineThread
from app.gallery.diagram import DiagramPicture
from app.history.fork_dialog import ForkDialog
from app.inspector.model_list import ModelChoice, ModelComboBox, ModelGroup, ModelSource
from app.inspector.value_view import ValueViewer
from app.runs.run_status import model_label
from app.session import Session
from app.settings.preferences import Preferences
from app.theme.style import Style
from app.window.document_page import DocumentPage
from app.workbench import Workbench
from benchmarks.processes import ROOT
from benchmarks.screenshot_scenes import ROWS, approval_workflow, chain_workflow, script, sixty_nodes
from benchmarks.screenshot_summary import summary_workflow
from engine import dumps
from engine.document.model import FILE_SUFFIX, Workflow
from engine.document.operations import SetConfig, SetPinned
from engine.models.known_models import models_of_provider
from engine.models.protocol import EMBEDDED_MODEL
from engine.nodes.spec import LOOP
from engine.run_state.state import NodeState
from engine.values import Value

SIZE: Final = QSize(1600, 920)
IMAGES: Final = ROOT / "docs" / "images"
TEMPLATE: Final = ROOT / "templates" / "self-refine.loop.json"
MOST_BYTES: Final = 250_000
LOOKS: Final = (("dark", 1.0, "dark"), ("light", 1.0, "light"), ("dark", 1.5, "dark-150"))
"""Theme, scale and file suffix; every scene is drawn in each."""
RECENT: Final = ("letters/toast", "letters/newsletter", "reports/weekly summary")
"""Recent files on the start page."""
PATIENCE_MS: Final = 20_000
SETTLE_MS: Final = 400


class Studio:
    """The window under the camera.

    Args:
        folder: Where settings and unsaved work of the window lie.
        images: Where the pictures go.
    """

    def __init__(self, folder: Path, images: Path) -> None:
        self._folder, self._images = folder, images
        self._style = Style(_application())
        self._engine = EngineThread()
        self.preferences = Preferences(folder / "settings.json")
        store = folder / "history.sqlite3"
        self.workbench = Workbench(self._engine, self.preferences, data_folder=folder / "unsaved", store=store)
        self.workbench.window.resize(SIZE)
        self.workbench.show()
        self.workbench.history.access.open()

    def open_template(self) -> DocumentPage:
        """Open Self-Refine."""
        return self._fitted(self.workbench.documents.open_template(TEMPLATE))

    def open_workflow(self, workflow: Workflow) -> DocumentPage:
        """Open a document with automatic layout."""
        file = self._folder / f"large{FILE_SUFFIX}"
        file.write_text(dumps(workflow), encoding="utf-8")
        document = self._fitted(self.workbench.documents.open_template(file))
        document.canvas.commands.tidy()
        document.canvas.fit_all()
        return document

    def play(self, name: str, pause_s: float) -> None:
        """Take the replies of runs from a script, streamed with a pause between chunks."""
        file = Path(f"{name}.json")
        file.write_text(json.dumps(script(pause_s)), encoding="utf-8")
        self.preferences.set(default_model=f"scripted:{file}")

    def take(self, name: str, widget: QWidget | None = None, is_ready: Callable[[], bool] = lambda: True) -> None:
        """Draw the window, or a part of it, in every theme and scale at its present size, when it is ready."""
        shown = widget or self.workbench.window
        size = shown.size()
        for theme, scale, suffix in LOOKS:
            self._style.choose(theme, scale)
            if isinstance(shown, QDialog):
                shown.resize(size)  # which follows the scale
            settle(SETTLE_MS)
            until(is_ready)
            if self.workbench.current is not None:
                self.workbench.current.canvas.fit_all()
                settle(SETTLE_MS)
            _keep(shown.grab().toImage(), self._images / f"{name}-{suffix}.png")
        self._style.choose("dark", 1.0)

    def close(self) -> None:
        """Close the window and stop its threads."""
        self.workbench.window.hide()
        for document in tuple(self.workbench.documents.all):
            self.workbench.documents.drop(document)
        settle(SETTLE_MS)
        self._engine.stop()
        self.workbench.history.access.close()
        settle(SETTLE_MS)

    def _fitted(self, document: DocumentPage | None) -> DocumentPage:
        assert document is not None, "a document of the project can be opened"
        settle(SETTLE_MS)
        document.canvas.fit_all()
        return document


def main(arguments: list[str] | None = None) -> None:
    """Draw all screenshots."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.screenshots", description="Draw the pages' pictures.")
    parser.add_argument("folder", nargs="?", type=Path, default=IMAGES, help="where to; docs/images without it")
    images = parser.parse_args(arguments).folder.absolute()
    images.mkdir(parents=True, exist_ok=True)
    # Without its folder, which no screenshot should show.
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        studio = Studio(Path(folder), images)
        try:
            _draw(studio)
        finally:
            studio.close()


def _draw(studio: Studio) -> None:
    workbench = studio.workbench
    for name in RECENT:
        file = Path(f"{name}{FILE_SUFFIX}")
        file.parent.mkdir(exist_ok=True)
        file.touch()
        studio.preferences.remember_file(file)
    until(lambda: not any(view_model.is_empty for view_model in workbench.gallery.findChildren(DiagramPicture)))
    studio.take("gallery")
    workbench.help.start_tour()
    studio.take("tour")
    assert workbench.help.tour is not None
    workbench.help.tour.end()
    workbench.help.show_guide()
    assert workbench.help.guide is not None
    guide = workbench.help.guide
    guide.resize(1120, 680)
    guide.search.setText("fork")
    settle(SETTLE_MS)
    guide.open_page("window.md", "fork-from-here", "fork")
    studio.take("guide", guide, lambda: not guide.view.is_loading)
    guide.close()
    studio.play("slow", 2.0)
    document = studio.open_template()
    document.session.select(["draft"])
    studio.take("at-rest")
    workbench.runs.run(document)
    until(lambda: _is_streaming(document.session))
    workbench.bottom_panel.unfold("iterations")
    studio.take("mid-run")
    workbench.runs.stop(document)
    until(lambda: document.session.shown.live is None)
    studio.play("quick", 0.0)
    workbench.runs.run(document)
    until(lambda: document.session.shown.live is None)
    document.session.shown.look_at("loop", 1)
    document.inspector.show_result()
    studio.take("iteration")
    document.session.shown.look_at_latest()
    workbench.bottom_panel.unfold("log")
    studio.take("log")
    _draw_parts(studio, document)


class ExampleModels(ModelSource):
    """Models as with a key for OpenAI and Ollama on the computer, without asking either."""

    can_search = True

    def groups(self) -> list[ModelGroup]:
        """Return the models."""
        listed = models_of_provider("openai")
        return [
            ModelGroup("Recently used", (ModelChoice("openai/gpt-4o-mini"),)),
            ModelGroup("Built in", (ModelChoice(EMBEDDED_MODEL, model_label(EMBEDDED_MODEL), "free"),)),
            ModelGroup("Ollama on this computer", (ModelChoice("ollama_chat/llama3.2", hint="free"),)),
            ModelGroup("OpenAI", tuple(ModelChoice(model.name, hint=model.price_text) for model in listed)),
        ]


def draw_models(studio: Studio) -> None:
    """Draw the list of models."""
    field = ModelComboBox(ExampleModels(), parent=studio.workbench.window)
    field.showPopup()
    studio.take("models", field.list)
    field.hidePopup()
    field.deleteLater()


def _draw_parts(studio: Studio, document: DocumentPage) -> None:
    workbench = studio.workbench
    studio.take("panel-palette", workbench.palette_panel)
    studio.take("panel-inspector", document.inspector)
    draw_models(studio)
    workbench.commands.open_settings()
    assert workbench.commands.settings is not None
    settings = workbench.commands.settings
    for page in ("models", "runs", "history", "appearance"):
        settings.show_page(page)
        studio.take(f"settings-{page}", settings, lambda: settings.providers.table.rowCount() > 0)
    settings.close()
    faulty = workbench.documents.new()
    faulty.canvas.add_node("llm")
    faulty.canvas.add_node("transform")
    faulty.session.select(())
    workbench.bottom_panel.unfold("problems")
    faulty.canvas.fit_all()
    studio.take("problems")
    workbench.bottom_panel.fold()
    _draw_tasks(studio)
    _draw_building(studio)
    _draw_iterations(studio)
    _draw_history(studio, document)
    _draw_question(studio)
    _draw_chat(studio)
    _draw_batch(studio)
    studio.open_workflow(sixty_nodes())
    studio.take("large")


def _draw_tasks(studio: Studio) -> None:
    """What the tasks in `docs/window.md` result in, where no other picture shows it."""
    workbench = studio.workbench
    document = studio.open_workflow(chain_workflow())
    document.session.select(["draft", "improve"])
    loop = document.canvas.commands.wrap(LOOP)
    assert loop is not None
    document.session.select(["improve"])
    studio.take("task-build")
    workbench.runs.run(document)
    until(lambda: document.session.shown.live is None)
    workbench.bottom_panel.unfold("iterations")
    studio.take("task-wrap")
    workbench.bottom_panel.fold()
    document.session.select([loop])
    document.inspector.tabs.setCurrentIndex(0)
    conditions: tuple[tuple[str, dict[str, Value]], ...] = (
        ("task-stop", {"condition": "stable_output"}),
        ("task-condition", {"condition": "until", "expression": 'output.contains("picnic")'}),
    )
    for name, condition in conditions:
        document.session.do(SetConfig(loop, ("stop_when",), [condition]))
        studio.take(name, document.inspector)


def _draw_building(studio: Studio) -> None:
    """The nodes that fit after an output, a pinned node, and a long text in a window of its own."""
    workbench = studio.workbench
    document = studio.open_template()
    canvas = document.canvas
    document.session.select(["critique"])

    def open_list() -> bool:
        canvas.popups.list.close_if_open()
        canvas.popups.choose_next(canvas.add_button.ports[0])
        return True

    studio.take("add-next", is_ready=open_list)
    canvas.popups.list.close_list()
    document.session.do(SetPinned("critique", {"output": "Say when and where to meet."}))
    workbench.runs.run(document)
    until(lambda: document.session.shown.live is None)
    studio.take("pinned")
    assert document.session.shown.view_model is not None
    viewer = ValueViewer("Output: text", document.session.shown.view_model.outputs["text"], workbench.window)
    viewer.resize(720, 400)
    viewer.search.setText("picnic")
    viewer.show()
    studio.take("viewer", viewer)
    viewer.close()
    workbench.documents.drop(document)


def _draw_iterations(studio: Studio) -> None:
    """The panel of a loop that converges, with its third iteration selected."""
    workbench = studio.workbench
    document = studio.open_workflow(summary_workflow())
    workbench.runs.run(document)
    until(lambda: document.session.shown.live is None)
    workbench.bottom_panel.unfold("iterations")
    document.session.shown.look_at("loop", 2)
    studio.take("panel-iterations", document.iterations)
    workbench.bottom_panel.fold()


def _draw_history(studio: Studio, document: DocumentPage) -> None:
    """The list of runs, a comparison, a fork before and after, and a past run."""
    workbench = studio.workbench
    history, run_id = workbench.history, document.session.shown.run_id
    workbench.tabs.show_document(document)
    history.compare_from(document, "loop[1]")
    compare = history.compare
    assert compare is not None
    until(lambda: compare.comparison is not None)
    compare.resize(1120, 560)
    compare.step(1)
    studio.take("compare", compare)
    compare.close()
    history.fork_from(document, "loop[1]")
    until(lambda: any(dialog.plan is not None for dialog in workbench.window.findChildren(ForkDialog)))
    (dialog,) = workbench.window.findChildren(ForkDialog)
    dialog.resize(920, 640)
    studio.take("fork", dialog)
    dialog.run.click()
    until(lambda: workbench.current is not document)
    fork = workbench.current
    assert fork is not None
    until(lambda: fork.session.shown.view_model is not None and fork.session.shown.view_model.is_over)
    workbench.bottom_panel.unfold("runs")
    until(lambda: history.panel.model.index_of(fork.session.shown.run_id).isValid())
    history.panel.view.select([run_id])
    studio.take("runs")
    workbench.bottom_panel.fold()
    workbench.documents.drop(fork)
    workbench.documents.drop(document)
    history.open_run(run_id)
    until(lambda: workbench.current is not None and workbench.current.session.shown.run_id == run_id)
    past = workbench.current
    assert past is not None
    workbench.bottom_panel.unfold("iterations")
    past.session.shown.look_at("loop", 1)
    settle(SETTLE_MS)
    studio.take("past-run")
    workbench.bottom_panel.fold()


def _draw_question(studio: Studio) -> None:
    """A run that waits for a person."""
    workbench = studio.workbench
    document = studio.open_workflow(approval_workflow())
    workbench.runs.run(document)
    until(lambda: document.session.shown.view_model is not None and bool(document.session.shown.view_model.questions))
    document.session.select(["check"])
    studio.take("question")
    workbench.runs.stop(document)
    until(lambda: document.session.shown.live is None)
    workbench.bottom_panel.fold()


def _draw_chat(studio: Studio) -> None:
    """The chat preview with one answer."""
    document = studio.open_template()
    chat = document.chat
    document.show_chat()
    QTest.keyClicks(chat.field, "Invite the neighbors to a picnic by the pond.")
    chat.send.click()
    until(lambda: bool(chat.turns) and document.session.shown.live is None)
    studio.take("chat")


def _draw_batch(studio: Studio) -> None:
    """A batch that has ended."""
    workbench = studio.workbench
    table = Path("tasks.csv")
    table.write_text(ROWS, encoding="utf-8")
    document = studio.open_template()
    workbench.runs.run_batch(document)
    until(lambda: bool(workbench.window.findChildren(BatchWindow)))
    (batch,) = workbench.window.findChildren(BatchWindow)
    batch.resize(1120, 640)
    batch.show_table(table)
    until(batch.start.isEnabled)
    batch.run_batch()
    until(lambda: batch.batch is not None)
    until(lambda: batch.batch is None)
    studio.take("batch", batch)
    batch.close()


def settle(milliseconds: int) -> None:
    """Process events for that long."""
    QTest.qWait(milliseconds)


def until(is_so: Callable[[], bool]) -> None:
    """Process events until a condition holds.

    Raises:
        TimeoutError: It never was.
    """
    patience = QDeadlineTimer(PATIENCE_MS)
    while not is_so():
        if patience.hasExpired():
            raise TimeoutError("The run did not come to the place that is to be drawn.")
        QTest.qWait(10)


def _is_streaming(session: Session) -> bool:
    view_model = session.shown.view_model
    if view_model is None:
        return False
    draft = view_model.nodes.get("loop[1].draft")
    return draft is not None and draft.state is NodeState.RUNNING and len(draft.text) > 30


def _fewer_colours(image: QImage) -> QImage:
    """The image with its 256 most frequent colors."""
    seen = Counter(memoryview(image.constBits()).cast("I"))
    return image.convertToFormat(
        QImage.Format.Format_Indexed8,
        [color for color, _ in seen.most_common(256)],
        Qt.ImageConversionFlag.ThresholdDither,
    )


def _keep(image: QImage, file: Path) -> None:
    """Write an image as small as possible; reduce the colors of one that is too large."""
    opaque = image.convertToFormat(QImage.Format.Format_RGB32)
    opaque.save(str(file), "PNG", 0)
    if file.stat().st_size > MOST_BYTES:
        _fewer_colours(opaque).save(str(file), "PNG", 0)


def _application() -> QApplication:
    application = QApplication.instance() or QApplication(["loopwright"])
    assert isinstance(application, QApplication)
    application.setApplicationName("loopwright")
    return application


if __name__ == "__main__":
    main()
