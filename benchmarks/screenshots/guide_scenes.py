"""The scenes of the screenshots in the docs."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from PySide6.QtTest import QTest

from app.batch.batch_window import BatchWindow
from app.gallery.diagram import DiagramPicture
from app.history.fork_dialog import ForkDialog
from app.inspector.model_list import ModelChoice, ModelComboBox, ModelGroup, ModelSource
from app.inspector.value_view import ValueViewer
from app.runs.run_status import model_label
from app.session import Session
from benchmarks.screenshots.studio import Scenes, Studio, settle, until
from benchmarks.screenshots.workflows import (
    ROWS,
    approval_workflow,
    chain_workflow,
    sixty_nodes,
    summary_workflow,
)
from engine.document.model import FILE_SUFFIX
from engine.document.operations import SetConfig, SetPinned
from engine.models.known_models import models_of_provider
from engine.models.protocol import EMBEDDED_MODEL
from engine.nodes.spec import LOOP
from engine.run_state.state import NodeState
from engine.values import Value

RECENT: Final = ("letters/toast", "letters/newsletter", "reports/weekly summary")
"""Recent files on the start page."""


def _draw_start(studio: Studio) -> None:
    """The start page, and the first step of the tour on it."""
    workbench = studio.workbench
    for name in RECENT:
        file = Path(f"{name}{FILE_SUFFIX}")
        file.parent.mkdir(exist_ok=True)
        file.touch()
        studio.preferences.remember_file(file)
    until(lambda: not any(diagram.is_empty for diagram in workbench.gallery.findChildren(DiagramPicture)))
    studio.preferences.set(default_model=None)
    studio.take("gallery")
    workbench.help.start_tour()
    studio.take("tour")
    assert workbench.help.tour is not None
    workbench.help.tour.end()


def _draw_guide(studio: Studio) -> None:
    """The window of the guide, with a search."""
    studio.workbench.help.show_guide()
    guide = studio.workbench.help.guide
    assert guide is not None
    guide.resize(1120, 680)
    guide.search.setText("fork")
    settle(400)
    guide.open_page("window.md", "fork-from-here", "fork")
    studio.take("guide", guide, lambda: not guide.view.is_loading)
    guide.close()


def _draw_run(studio: Studio) -> None:
    """Self-Refine before, during and after a run, and the panels at the sides."""
    workbench = studio.workbench
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
    studio.run(document)
    document.session.shown.look_at("loop", 1)
    document.inspector.show_result()
    studio.take("iteration")
    document.session.shown.look_at_latest()
    workbench.bottom_panel.unfold("log")
    studio.take("log")
    studio.take("panel-palette", workbench.palette_panel)
    studio.take("panel-inspector", document.inspector)


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


def _draw_models(studio: Studio) -> None:
    """The list of models."""
    field = ModelComboBox(ExampleModels(), parent=studio.workbench.window)
    field.showPopup()
    studio.take("models", field.list)
    field.hidePopup()
    field.deleteLater()


def _draw_settings(studio: Studio) -> None:
    """The pages of the settings."""
    settings = studio.workbench.commands.open_settings()
    for page in ("models", "runs", "history", "appearance"):
        settings.show_page(page)
        studio.take(f"settings-{page}", settings, lambda: settings.providers.table.rowCount() > 0)
    settings.close()


def _draw_problems(studio: Studio) -> None:
    """Two nodes that cannot run."""
    document = studio.workbench.documents.new()
    document.canvas.commands.add_node("llm")
    document.canvas.commands.add_node("transform")
    document.session.select(())
    studio.workbench.bottom_panel.unfold("problems")
    document.canvas.fit_to_view.fit_all()
    studio.take("problems")


def _draw_tasks(studio: Studio) -> None:
    """What the tasks in `docs/window.md` result in, where no other picture shows it."""
    workbench = studio.workbench
    document = studio.open_workflow(chain_workflow())
    document.session.select(["draft", "improve"])
    loop = document.canvas.commands.wrap(LOOP)
    assert loop is not None
    document.session.select(["improve"])
    studio.take("task-build")
    studio.run(document)
    workbench.bottom_panel.unfold("iterations")
    studio.take("task-wrap")
    document.session.select([loop])
    document.inspector.tabs.setCurrentIndex(0)
    conditions: tuple[tuple[str, dict[str, Value]], ...] = (
        ("task-stop", {"condition": "stable_output"}),
        ("task-condition", {"condition": "until", "expression": 'output.contains("picnic")'}),
    )
    for name, condition in conditions:
        document.session.do(SetConfig(("stop_when",), {loop: [condition]}))
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
    studio.run(document)
    studio.take("pinned")
    assert document.session.shown.view_model is not None
    viewer = ValueViewer("Output: text", document.session.shown.view_model.outputs["text"], workbench.window)
    viewer.resize(720, 400)
    viewer.search.setText("picnic")
    viewer.show()
    studio.take("viewer", viewer)
    viewer.close()


def _draw_iterations(studio: Studio) -> None:
    """The panel of a loop that converges, with its third iteration selected."""
    workbench = studio.workbench
    document = studio.open_workflow(summary_workflow())
    studio.run(document)
    workbench.bottom_panel.unfold("iterations")
    document.session.shown.look_at("loop", 2)
    studio.take("panel-iterations", document.iterations)


def _draw_history(studio: Studio) -> None:
    """The list of runs, a comparison, a fork before and after, and a past run."""
    workbench = studio.workbench
    document = studio.open_template()
    studio.run(document)
    history, run_id = workbench.history, document.session.shown.run_id
    history.compare_from(document, "loop[1]")
    compare = history.compare
    assert compare is not None
    until(lambda: compare.comparison is not None)
    compare.resize(1120, 560)
    compare.step(1)
    studio.take("compare", compare)
    compare.close()
    history.resuming.fork_from(document, "loop[1]")
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
    history.tabs.open_run(run_id)
    until(lambda: workbench.current is not None and workbench.current.session.shown.run_id == run_id)
    past = workbench.current
    assert past is not None
    workbench.bottom_panel.unfold("iterations")
    past.session.shown.look_at("loop", 1)
    settle(400)
    studio.take("past-run")


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


def _draw_large(studio: Studio) -> None:
    """A workflow of sixty nodes."""
    studio.open_workflow(sixty_nodes())
    studio.take("large")


def _is_streaming(session: Session) -> bool:
    view_model = session.shown.view_model
    if view_model is None:
        return False
    draft = view_model.nodes.get("loop[1].draft")
    return draft is not None and draft.state is NodeState.RUNNING and len(draft.text) > 30


GUIDE_SCENES: Final[Scenes] = {
    ("gallery", "tour"): _draw_start,
    ("guide",): _draw_guide,
    ("at-rest", "mid-run", "iteration", "log", "panel-palette", "panel-inspector"): _draw_run,
    ("models",): _draw_models,
    ("settings-models", "settings-runs", "settings-history", "settings-appearance"): _draw_settings,
    ("problems",): _draw_problems,
    ("task-build", "task-wrap", "task-stop", "task-condition"): _draw_tasks,
    ("add-next", "pinned", "viewer"): _draw_building,
    ("panel-iterations",): _draw_iterations,
    ("compare", "fork", "runs", "past-run"): _draw_history,
    ("question",): _draw_question,
    ("chat",): _draw_chat,
    ("batch",): _draw_batch,
    ("large",): _draw_large,
}
