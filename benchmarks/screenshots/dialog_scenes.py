"""Scenes that the docs do not show, to look at: dialogs, lists, menus and states of a run."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, TypeVar

from PySide6.QtWidgets import QApplication, QMenu, QMessageBox, QWidget

from app.dialogs import show_failure
from app.inspector.pin_dialog import PinDialog
from app.inspector.prompt_editor import PromptEditor, PromptWindow
from app.settings.install_dialog import InstallDialog
from app.settings.key_dialog import KeyDialog
from app.settings.model_download import ModelDownloadDialog
from app.window.crash_reporter import MESSAGE, CrashDialog
from app.window.run_dialog import RunDialog
from benchmarks.screenshots.studio import Scenes, Studio, until
from benchmarks.screenshots.workflows import json_workflow, questionnaire_workflow, summary_workflow
from engine.document.operations import SetConfig, SetSettings

Dialog = TypeVar("Dialog", bound=QWidget)


def _new(kind: type[Dialog], show: Callable[[], object]) -> Dialog:
    """Call a function that shows a dialog, and return the dialog."""
    before = set(QApplication.topLevelWidgets())
    show()
    shown: list[Dialog] = []

    def is_shown() -> bool:
        shown[:] = [
            widget for widget in QApplication.topLevelWidgets() if isinstance(widget, kind) and widget not in before
        ]
        return bool(shown)

    until(is_shown)
    return shown[0]


def _draw_lists(studio: Studio) -> None:
    """The command palette, the list of nodes to add, and the menus."""
    workbench = studio.workbench
    document = studio.open_template()
    studio.take_new("command-palette", workbench.commands.open_command_palette)
    popups = document.canvas.popups

    def open_list() -> bool:
        popups.list.close_if_open()
        popups.quick_add()
        return True

    studio.take("quick-add", is_ready=open_list)
    popups.list.close_list()
    document.session.select(["draft"])
    for menu in workbench.window.menuBar().findChildren(QMenu):
        studio.take_new(f"menu-{menu.title().replace('&', '').casefold()}", partial(_as_widget, menu))


def _as_widget(widget: QWidget) -> QWidget:
    return widget


def _draw_dialogs(studio: Studio) -> None:
    """Dialogs about a document and the program."""
    workbench, window = studio.workbench, studio.workbench.window
    document = studio.open_workflow(questionnaire_workflow())
    studio.take_new("run-dialog", lambda: _new(RunDialog, lambda: workbench.runs.run_with(document)))
    studio.take_new("about", lambda: _new(QMessageBox, workbench.commands.show_about))
    studio.take_new("shortcuts", workbench.commands.show_shortcuts)
    reason = "The file is not a workflow: line 1, column 1: Expected a JSON object."
    studio.take_new("failure", lambda: show_failure(window, "“letter.loop.json” can't be opened.", reason))
    trace = "Traceback (most recent call last):\n  RuntimeError"
    studio.take_new("crash", lambda: CrashDialog(MESSAGE, trace, window))


def _draw_setup(studio: Studio) -> None:
    """Dialogs that get a model, a part of the program or a key."""
    workbench, window = studio.workbench, studio.workbench.window
    studio.take_new("model-download", lambda: ModelDownloadDialog(workbench.engine, studio.preferences, window))
    studio.take_new("install", lambda: InstallDialog("web", window))
    studio.take_new("key", lambda: KeyDialog(workbench.engine, "openai", window))


def _draw_forms(studio: Studio) -> None:
    """Several nodes edited as one, a prompt in its window, and pinning."""
    document = studio.open_template()
    document.session.select(["draft", "critique"])
    studio.take("several-nodes")
    document.session.select(["draft"])
    editor = document.inspector.findChildren(PromptEditor)[0]
    studio.take_new("prompt", lambda: _new(PromptWindow, editor.open_window))
    studio.run(document)
    studio.take_new("pin", lambda: PinDialog(document.session, "draft", document))


def _draw_states(studio: Studio) -> None:
    """A collapsed loop, values as a tree, a budget that is used up, and a stopped run."""
    workbench = studio.workbench
    document = studio.open_template()
    studio.run(document)
    document.session.select(["loop"])
    document.canvas.actions_by_name["toggle_collapsed"].trigger()
    studio.take("collapsed")
    document = studio.open_workflow(json_workflow())
    studio.run(document)
    document.session.select(["facts"])
    document.inspector.show_result()
    studio.take("json-tree")
    document = studio.open_workflow(summary_workflow())
    document.session.do(SetSettings(("budget_usd",), 0.0001))
    studio.run(document)
    workbench.bottom_panel.unfold("iterations")
    studio.take("budget")
    workbench.bottom_panel.fold()
    document = studio.open_workflow(summary_workflow())
    document.session.do(SetConfig(("prompt",), {"rewrite": "{{1 / 0}}"}))
    studio.run(document)
    studio.take("failed")
    studio.play("slow", 2.0)
    document = studio.open_template()
    workbench.runs.run(document)
    until(lambda: document.session.shown.view_model is not None and len(document.session.shown.view_model.nodes) > 2)
    workbench.runs.stop(document)
    until(lambda: document.session.shown.live is None)
    studio.take("stopped")


def _draw_comparison(studio: Studio) -> None:
    """The results of two runs."""
    history = studio.workbench.history
    document = studio.open_template()
    studio.run(document)
    first = document.session.shown.run_id
    studio.run(document)
    studio.workbench.bottom_panel.unfold("runs")
    second = document.session.shown.run_id
    until(lambda: all(history.panel.model.index_of(run).isValid() for run in (first, second)))
    history.panel.view.select([first, second])
    history.panel.compare_wanted.emit(first, second)
    until(lambda: history.compare is not None and history.compare.comparison is not None)
    assert history.compare is not None
    studio.take("compare-runs", history.compare)
    history.compare.close()


DIALOG_SCENES: Final[Scenes] = {
    ("command-palette", "quick-add", "menu-file", "menu-edit", "menu-view", "menu-run", "menu-help"): _draw_lists,
    ("run-dialog", "about", "shortcuts", "failure", "crash"): _draw_dialogs,
    ("model-download", "install", "key"): _draw_setup,
    ("several-nodes", "prompt", "pin"): _draw_forms,
    ("collapsed", "json-tree", "budget", "failed", "stopped"): _draw_states,
    ("compare-runs",): _draw_comparison,
}
