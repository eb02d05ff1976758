from __future__ import annotations

import threading
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QPlainTextEdit, QPushButton
from pytestqt.qtbot import QtBot

from app.controllers.run_controller import run_options
from app.inspector.inspector import RESULT
from app.runs.run_status import model_label
from app.settings.preferences import Preferences
from app.window import run_dialog
from app.window.document_page import DocumentPage
from app.window.run_dialog import RunDialog
from app.workbench import Workbench
from engine.document.builder import Builder
from engine.document.model import Workflow
from engine.document.operations import RemoveNodes, SetConfig, SetSettings
from engine.plan.structure import analyse
from engine.run_state.state import NodeState
from engine.store import Store, open_store
from tests.app.window.conftest import Answers, Script, ended, open_file, press, saved, small
from tests.engine.store.event_samples import head, one_of_each
from tests.wording import mentions

SLOW = {"text": "words", "delay_s": 600}
SHIFT = Qt.KeyboardModifier.ShiftModifier


def open_flow(
    workbench: Workbench, tmp_path: Path, workflow: Workflow | None = None, name: str = "one"
) -> DocumentPage:
    return open_file(workbench, saved(tmp_path, f"{name}.loop.json", workflow))


def reading() -> Workflow:
    """A workflow that reads a file of its folder."""
    made = Builder("Reading")
    read = made.add("tool", id="read", tool="read_file", arguments={"path": "a.txt"})
    made.connect(read["output"], made.add("output", id="text")["value"])
    return made.build()


def form(workbench: Workbench) -> RunDialog:
    (dialog,) = (dialog for dialog in workbench.window.findChildren(RunDialog) if dialog.isVisible())
    return dialog


def button_of(dialog: RunDialog, title: str) -> QPushButton:
    (button,) = (button for button in dialog.findChildren(QPushButton) if button.text() == title)
    return button


def is_waiting(document: DocumentPage, node: str = "draft") -> Any:
    """Return whether a node is running."""

    def ask() -> bool:
        view_model = document.session.shown.view_model
        return view_model is not None and view_model.node(node).state is NodeState.RUNNING

    return ask


def test_one_click_runs_and_shows_the_result(workbench: Workbench, self_refine: DocumentPage, qtbot: QtBot) -> None:
    QTest.mouseClick(workbench.run_bar.run, Qt.MouseButton.LeftButton)
    assert self_refine.session.shown.live is not None
    assert not workbench.run_bar.run.isEnabled()
    assert workbench.run_bar.stop.isEnabled()
    at_end: list[tuple[str, ...]] = []
    self_refine.session.shown.ended.connect(lambda: at_end.append(self_refine.session.selection))
    ended(self_refine, qtbot)

    assert self_refine.session.shown.view_model.outputs == {"text": "words"}
    assert at_end == [()]  # what shows the result is made in an event of its own
    qtbot.waitUntil(lambda: self_refine.inspector.tabs.currentIndex() == 1)
    assert self_refine.session.selection == ()
    qtbot.waitUntil(lambda: list(self_refine.inspector.result.sections) == ["result:text"])
    assert workbench.status_bar.state.full_text.startswith("Done · ")
    assert workbench.run_bar.run.isEnabled()
    lines = [line.text for line in self_refine.log.lines]
    assert lines[0].startswith("Running Self-Refine with scripted:")
    assert lines[-1].startswith("Done in ")


def test_second_run_of_a_scripted_model_equals_the_first(
    workbench: Workbench, script: Script, tmp_path: Path, qtbot: QtBot
) -> None:
    script("none", {"node": "draft", "replies": ["the one reply"]})
    document = open_flow(workbench, tmp_path)

    for _ in range(2):
        QTest.keyClick(workbench.window, Qt.Key.Key_F5)
        ended(document, qtbot)
        assert document.session.shown.view_model.outputs == {"out": "the one reply"}


def test_selection_stays_when_a_run_ends(workbench: Workbench, self_refine: DocumentPage, qtbot: QtBot) -> None:
    self_refine.session.select(["draft"])

    QTest.keyClick(workbench.window, Qt.Key.Key_F5)
    ended(self_refine, qtbot)

    assert self_refine.session.selection == ("draft",)


def test_progress_and_state_are_shown_during_a_run(
    workbench: Workbench, self_refine: DocumentPage, script: Script, qtbot: QtBot
) -> None:
    script("words", {"node": "draft", "iteration": 1, "reply": SLOW})
    QTest.keyClick(workbench.window, Qt.Key.Key_F5)
    qtbot.waitUntil(lambda: workbench.status_bar.state.full_text.startswith("Running: Draft, iteration 2 of 3"))

    assert workbench.run_bar.progress.isVisible()
    assert (workbench.run_bar.progress.value(), workbench.run_bar.progress.maximum()) == (1, 3)
    assert workbench.run_bar.model.text() == "Scripted"


def test_stop_cancels_a_call_in_flight(workbench: Workbench, script: Script, tmp_path: Path, qtbot: QtBot) -> None:
    script(SLOW)
    document = open_flow(workbench, tmp_path)
    QTest.keyClick(workbench.window, Qt.Key.Key_F5)
    qtbot.waitUntil(is_waiting(document))

    QTest.mouseClick(workbench.run_bar.stop, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: document.session.shown.live is None)

    assert document.session.shown.view_model.status == "cancelled"
    assert workbench.status_bar.state.full_text.startswith("Stopped")


def test_run_can_be_paused_and_resumed(
    workbench: Workbench, self_refine: DocumentPage, script: Script, qtbot: QtBot
) -> None:
    script("words", {"node": "draft", "iteration": 0, "reply": {"text": "words", "delay_s": 1.0}})
    QTest.keyClick(workbench.window, Qt.Key.Key_F5)
    QTest.keyClick(workbench.window, Qt.Key.Key_F6)
    qtbot.waitUntil(lambda: self_refine.session.shown.view_model.status == "paused")
    qtbot.waitUntil(lambda: workbench.run_bar.pause.text() == "Resume")
    assert self_refine.session.shown.live is not None

    QTest.mouseClick(workbench.run_bar.pause, Qt.MouseButton.LeftButton)
    ended(self_refine, qtbot)

    assert self_refine.session.shown.view_model.status == "completed"
    assert workbench.run_bar.pause.text() == "Pause"


def test_step_starts_a_run_with_one_node(workbench: Workbench, tmp_path: Path, qtbot: QtBot) -> None:
    document = open_flow(workbench, tmp_path)

    QTest.keyClick(workbench.window, Qt.Key.Key_F10)
    qtbot.waitUntil(lambda: document.session.shown.view_model.node("text").state is NodeState.COMPLETED)
    assert document.session.shown.view_model.node("draft").state is NodeState.PENDING

    QTest.keyClick(workbench.window, Qt.Key.Key_F10)
    qtbot.waitUntil(lambda: document.session.shown.view_model.node("draft").state is NodeState.COMPLETED)
    assert document.session.shown.live is not None
    QTest.keyClick(workbench.window, Qt.Key.Key_F10)
    ended(document, qtbot)


def test_step_iteration_stops_before_the_next(workbench: Workbench, self_refine: DocumentPage, qtbot: QtBot) -> None:
    def iterations() -> int:
        return len(self_refine.session.shown.view_model.loop("loop").iterations)

    QTest.keyClick(workbench.window, Qt.Key.Key_F11)
    qtbot.waitUntil(lambda: iterations() == 1 and self_refine.session.shown.view_model.status == "paused")
    QTest.keyClick(workbench.window, Qt.Key.Key_F11)
    qtbot.waitUntil(lambda: iterations() == 2 and self_refine.session.shown.view_model.status == "paused")


def needy() -> Workflow:
    """Inputs of all types, one of them without a default."""
    flow = Builder("Needy")
    flow.add("input", id="topic", description="What it is about.")
    for kind, default in (("number", 3), ("boolean", True), ("list", ["a"]), ("json", {"a": 1})):
        flow.add("input", id=f"a_{kind}", type=kind, default=default)
    out = flow.add("output", id="out")
    flow.connect("topic.value", out["value"])
    return flow.build()


def test_missing_input_is_asked_for(workbench: Workbench, tmp_path: Path, qtbot: QtBot) -> None:
    document = open_flow(workbench, tmp_path, needy())

    QTest.keyClick(workbench.window, Qt.Key.Key_F5)
    dialog = form(workbench)
    assert document.session.shown.live is None
    QTest.mouseClick(dialog.run, Qt.MouseButton.LeftButton)
    assert dialog.isVisible()
    assert dialog.fields[0].error.text() == "Enter a value."
    QTest.keyClicks(dialog.fields[0].editor, "the sea")
    QTest.keyClick(dialog.fields[0].editor, Qt.Key.Key_Return)
    QTest.keyClicks(dialog.fields[0].editor, "and ships")
    dialog.activateWindow()
    qtbot.waitUntil(dialog.isActiveWindow)
    QTest.keyClick(dialog.fields[0].editor, Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
    qtbot.waitUntil(lambda: document.session.shown.view_model is not None)
    ended(document, qtbot)

    assert document.session.shown.view_model.outputs == {"out": "the sea\nand ships"}
    assert document.session.shown.last_inputs == {
        "topic": "the sea\nand ships",
        "a_number": 3,
        "a_boolean": True,
        "a_list": ["a"],
        "a_json": {"a": 1},
    }

    workbench.window.activateWindow()
    qtbot.waitUntil(workbench.window.isActiveWindow)
    QTest.keyClick(workbench.window, Qt.Key.Key_F5)
    assert document.session.shown.live is not None, "the last values serve the next run"
    ended(document, qtbot)


@pytest.mark.parametrize(
    ("field", "typed", "expected"),
    [
        ("a_number", "many", 'The text "many" is not a number.'),
        ("a_list", "{}", '"{}" is not a list.'),
        ("a_json", "{", 'The text "{" is not JSON.'),
    ],
)
def test_input_of_the_wrong_type_is_reported_while_typing(
    workbench: Workbench, tmp_path: Path, field: str, typed: str, expected: str
) -> None:
    open_flow(workbench, tmp_path, needy())
    QTest.keyClick(workbench.window, Qt.Key.Key_F5, SHIFT)
    (entry,) = (entry for entry in form(workbench).fields if entry.declared.name == field)

    entry.editor.selectAll()
    QTest.keyClicks(entry.editor, typed)

    assert entry.error.text() == expected
    assert entry.error.isVisible()


def test_boolean_input_is_chosen_by_keyboard(workbench: Workbench, tmp_path: Path) -> None:
    open_flow(workbench, tmp_path, needy())
    QTest.keyClick(workbench.window, Qt.Key.Key_F5, SHIFT)
    (entry,) = (entry for entry in form(workbench).fields if entry.declared.name == "a_boolean")

    QTest.keyClick(entry.editor, Qt.Key.Key_Down)

    assert entry.value() is False


def test_mouse_wheel_scrolls_the_run_dialog_without_changes(workbench: Workbench, tmp_path: Path) -> None:
    open_flow(workbench, tmp_path, needy())
    QTest.keyClick(workbench.window, Qt.Key.Key_F5, SHIFT)
    (entry,) = (entry for entry in form(workbench).fields if entry.declared.name == "a_boolean")
    form(workbench).fields[0].editor.setFocus()
    before, center = entry.value(), QPointF(entry.editor.rect().center())

    for turn in (-120, 120, 120):
        where = (center, entry.editor.mapToGlobal(center), QPoint(), QPoint(0, turn))
        how = (Qt.MouseButton.NoButton, Qt.KeyboardModifier.NoModifier, Qt.ScrollPhase.NoScrollPhase, False)
        QApplication.sendEvent(entry.editor, QWheelEvent(*where, *how))
        assert entry.value() == before


def test_input_can_be_read_from_a_file(workbench: Workbench, answers: Answers, tmp_path: Path, qtbot: QtBot) -> None:
    open_flow(workbench, tmp_path, needy())
    QTest.keyClick(workbench.window, Qt.Key.Key_F5, SHIFT)
    field = form(workbench).fields[0]
    answers.to_read = tmp_path / "sea.txt"

    def error() -> str:
        QTest.mouseClick(field.from_file, Qt.MouseButton.LeftButton)
        qtbot.waitUntil(lambda: not field.is_reading)
        return field.error.text()

    assert error() == "sea.txt cannot be read: No such file or directory."
    answers.to_read.write_bytes(b"caf\xe9")
    assert mentions(error(), "sea.txt cannot be read: … not UTF-8 … byte 4")
    answers.to_read.write_bytes(b"x" * 10_000_001)
    assert mentions(error(), "sea.txt cannot be read: … more than 10 MB")

    answers.to_read.write_text("Waves,\nships.", "utf-8")
    assert error() == ""
    assert field.value() == "Waves,\nships."
    assert field.error.isHidden()


def test_sample_can_be_restored_after_another_value(
    workbench: Workbench, self_refine: DocumentPage, qtbot: QtBot
) -> None:
    QTest.keyClick(workbench.window, Qt.Key.Key_F5, SHIFT)
    dialog = form(workbench)
    sample = dialog.fields[0].value()
    assert not button_of(dialog, "Use sample").isEnabled()
    dialog.fields[0].editor.setPlainText("A poem.")
    QTest.mouseClick(dialog.run, Qt.MouseButton.LeftButton)
    ended(self_refine, qtbot)

    workbench.actions_by_name["run_with"].trigger()
    dialog = form(workbench)
    assert dialog.focusWidget() is dialog.fields[0].editor
    assert dialog.fields[0].value() == "A poem.", "the value of the last run"
    QTest.mouseClick(button_of(dialog, "Use sample"), Qt.MouseButton.LeftButton)
    assert dialog.fields[0].value() == sample
    assert not button_of(dialog, "Use sample").isEnabled()


def test_shift_click_asks_for_all_inputs(workbench: Workbench, self_refine: DocumentPage, qtbot: QtBot) -> None:
    QTest.keyPress(workbench.window, Qt.Key.Key_Shift, SHIFT)
    QTest.mouseClick(workbench.run_bar.run, Qt.MouseButton.LeftButton, SHIFT)

    dialog = form(workbench)
    editor = dialog.fields[0].editor
    assert isinstance(editor, QPlainTextEdit)
    assert editor.toPlainText().startswith("Write a short, friendly note")
    assert self_refine.session.shown.live is None
    press(dialog, "Cancel")
    assert self_refine.session.shown.live is None


def test_folder_access_needs_permission(workbench: Workbench, tmp_path: Path, qtbot: QtBot) -> None:
    seen: list[Any] = []
    (tmp_path / "a.txt").write_text("words")
    document = open_flow(workbench, tmp_path, reading())
    document.session.is_trusted = True
    start = document.session.start_run
    document.session.start_run = lambda inputs, options, paused: (seen.append(options.folder), start(inputs, options))

    QTest.keyClick(workbench.window, Qt.Key.Key_F5)
    ended(document, qtbot)
    QTest.keyClick(workbench.window, Qt.Key.Key_F5, SHIFT)
    dialog = form(workbench)
    assert not dialog.folder.isChecked()
    QTest.mouseClick(dialog.folder, Qt.MouseButton.LeftButton, pos=QPoint(8, dialog.folder.height() // 2))
    QTest.mouseClick(dialog.run, Qt.MouseButton.LeftButton)
    ended(document, qtbot)

    assert seen == [None, tmp_path]


def test_document_without_a_file_has_no_folder(workbench: Workbench) -> None:
    workbench.documents.open_copy(reading())
    QTest.keyClick(workbench.window, Qt.Key.Key_F5, SHIFT)

    assert form(workbench).folder.isVisible()
    assert not form(workbench).folder.isEnabled()


def test_document_without_file_tools_is_asked_for_no_folder(workbench: Workbench, self_refine: DocumentPage) -> None:
    QTest.keyClick(workbench.window, Qt.Key.Key_F5, SHIFT)

    assert not form(workbench).folder.isVisible()


def test_errors_prevent_a_run_and_are_shown(workbench: Workbench, self_refine: DocumentPage) -> None:
    self_refine.session.do(RemoveNodes(("exit",)))

    QTest.keyClick(workbench.window, Qt.Key.Key_F5)

    assert self_refine.session.shown.live is None
    assert workbench.bottom_panel.open_panel == "problems"
    assert "has errors and cannot run" in workbench.status_bar.refusal.full_text


def test_two_documents_run_concurrently(workbench: Workbench, script: Script, tmp_path: Path, qtbot: QtBot) -> None:
    script(SLOW)
    first, second = open_flow(workbench, tmp_path, name="one"), open_flow(workbench, tmp_path, name="two")
    QTest.keyClick(workbench.window, Qt.Key.Key_F5)
    workbench.tabs.show_document(first)
    QTest.keyClick(workbench.window, Qt.Key.Key_F5)
    qtbot.waitUntil(lambda: is_waiting(first)() and is_waiting(second)())

    QTest.keyClick(workbench.window, Qt.Key.Key_Period, Qt.KeyboardModifier.ControlModifier)
    ended(first, qtbot)

    assert second.session.shown.live is not None
    assert not workbench.tabs.tabIcon(workbench.tabs.indexOf(second)).isNull()
    assert workbench.tabs.tabIcon(workbench.tabs.indexOf(first)).isNull()


def test_edits_during_a_run_are_noted_on_the_page(
    workbench: Workbench, script: Script, tmp_path: Path, qtbot: QtBot
) -> None:
    script({"text": "sea", "delay_s": 0.2})
    document = open_flow(workbench, tmp_path)
    QTest.keyClick(workbench.window, Qt.Key.Key_F5)
    document.session.do(SetConfig(("prompt",), {"draft": "Something else."}))

    assert "has changed since this run" in document.bars.text("changed")
    ended(document, qtbot)
    assert document.session.shown.view_model.outputs == {"out": "sea"}
    document.session.undo()
    assert document.bars.text("changed") == ""
    document.session.redo()
    press(document.bars, "Run again")
    assert document.session.shown.live is not None
    assert document.bars.text("changed") == ""
    ended(document, qtbot)


def test_failure_is_shown_with_a_button_to_its_node(
    workbench: Workbench, script: Script, tmp_path: Path, qtbot: QtBot
) -> None:
    script({"error": {"kind": "authentication", "message": "The key was refused."}})
    document = open_flow(workbench, tmp_path)

    QTest.keyClick(workbench.window, Qt.Key.Key_F5)
    ended(document, qtbot)

    assert "The key was refused." in document.bars.text("run")
    workbench.actions_by_name["show_inspector"].trigger()
    press(document.bars, "Show it")
    assert document.session.selection == ("draft",)
    assert document.inspector.isVisible()
    assert document.inspector.tabs.currentIndex() == RESULT
    assert document.inspector.result.state.text() == "Failed"
    assert "The key was refused." in document.inspector.result.problems.texts[0]
    assert any(line.level == "error" for line in document.log.lines)


def test_failure_is_shown_in_the_iteration_in_which_it_happened(
    workbench: Workbench, self_refine: DocumentPage, script: Script, qtbot: QtBot
) -> None:
    refused = {"error": {"kind": "authentication", "message": "The key was refused."}}
    script("words", {"node": "draft", "iteration": 1, "reply": refused})
    QTest.keyClick(workbench.window, Qt.Key.Key_F5)
    ended(self_refine, qtbot)
    self_refine.session.shown.look_at("loop", 0)

    press(self_refine.bars, "Show it")

    assert self_refine.session.selection == ("draft",)
    assert self_refine.session.shown.view_model.index_of("loop", self_refine.session.shown.chosen) == 1
    assert "The key was refused." in self_refine.inspector.result.problems.texts[0]


def test_run_that_cannot_start_shows_the_reason(
    workbench: Workbench, preferences: Preferences, tmp_path: Path, qtbot: QtBot
) -> None:
    preferences.set(default_model=f"scripted:{tmp_path / 'gone.json'}")
    document = open_flow(workbench, tmp_path)

    QTest.keyClick(workbench.window, Qt.Key.Key_F5)

    ended(document, qtbot)
    assert "gone.json" in workbench.status_bar.refusal.full_text


def test_results_stay_when_the_next_run_cannot_start(
    workbench: Workbench,
    self_refine: DocumentPage,
    preferences: Preferences,
    tmp_path: Path,
    qtbot: QtBot,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session = self_refine.session
    QTest.keyClick(workbench.window, Qt.Key.Key_F5)
    ended(self_refine, qtbot)
    session.shown.look_at("loop", 1)
    run_id, ran, expected = session.shown.run_id, session.shown.workflow, workbench.notifier.last_text
    monkeypatch.setattr(workbench.window, "isActiveWindow", lambda: False)
    preferences.set(default_model=f"scripted:{tmp_path / 'gone.json'}")
    session.do(SetConfig(("prompt",), {"draft": "Something else."}))

    workbench.runs.run(self_refine)
    ended(self_refine, qtbot)

    assert "gone.json" in workbench.status_bar.refusal.full_text
    assert session.shown.view_model.outputs == {"text": "words"}
    assert (session.shown.run_id, session.shown.workflow, session.shown.chosen) == (run_id, ran, {"loop": 1})
    assert self_refine.canvas.view.nodes["draft"].status_item.status.state is NodeState.COMPLETED
    assert workbench.status_bar.state.full_text.startswith("Done · ")
    assert workbench.run_bar.run.isEnabled()
    assert "has changed since this run" in self_refine.bars.text("changed")
    assert workbench.notifier.last_text == expected, "no run has ended"


def test_run_bar_shows_budget_and_models(
    workbench: Workbench, preferences: Preferences, script: Script, tmp_path: Path, qtbot: QtBot
) -> None:
    price = {"input_usd_per_million_tokens": 100.0, "output_usd_per_million_tokens": 100.0}
    usage = {"input_tokens": 4000, "output_tokens": 500}
    script({"text": "words", "usage": usage}, price=price)
    document = open_flow(workbench, tmp_path)
    assert workbench.run_bar.meter.isHidden()

    preferences.set(budget_usd=1.0)
    assert workbench.run_bar.budget.text() == "$0 of $1.00"
    document.session.do(SetSettings(("budget_usd",), 0.5))
    assert workbench.run_bar.budget.text() == "$0 of $0.50"

    QTest.keyClick(workbench.window, Qt.Key.Key_F5)
    ended(document, qtbot)

    assert workbench.run_bar.budget.text() == "$0.45 of $0.50"
    assert workbench.run_bar.meter.property("tone") == "warning"
    assert workbench.run_bar.meter.value() == 900


@pytest.mark.parametrize("is_stated", [False, True])
def test_budget_that_stops_a_run_leads_to_where_it_is_set(
    workbench: Workbench, preferences: Preferences, script: Script, tmp_path: Path, qtbot: QtBot, is_stated: bool
) -> None:
    script("words", price={"input_usd_per_million_tokens": 100.0, "output_usd_per_million_tokens": 100.0})
    preferences.set(budget_usd=0.01)
    document = open_flow(workbench, tmp_path)
    if is_stated:
        document.session.do(SetSettings(("budget_usd",), 0.02))
    QTest.keyClick(workbench.window, Qt.Key.Key_F5)
    ended(document, qtbot)
    assert "budget" in document.bars.text("run")
    press(document.bars, "Raise the budget" if is_stated else "Open settings…")
    assert_budget_field_has_focus(workbench, document, is_stated=is_stated)


@pytest.mark.parametrize("is_stated", [False, True])
def test_budget_in_the_run_bar_leads_to_where_it_is_set(
    workbench: Workbench, preferences: Preferences, tmp_path: Path, qtbot: QtBot, is_stated: bool
) -> None:
    preferences.set(budget_usd=0.01)
    document = open_flow(workbench, tmp_path)
    if is_stated:
        document.session.do(SetSettings(("budget_usd",), 0.02))
    qtbot.mouseClick(workbench.run_bar.budget, Qt.MouseButton.LeftButton)
    assert_budget_field_has_focus(workbench, document, is_stated=is_stated)


def assert_budget_field_has_focus(workbench: Workbench, document: DocumentPage, *, is_stated: bool) -> None:
    settings = workbench.commands.settings
    if is_stated:
        assert settings is None
        row = document.inspector.workflow_page.form.row("budget_usd")
        assert row.editor.main_widget is workbench.window.focusWidget()
    else:
        assert settings.forms["runs"].rows["budget_usd"].editor.widget is settings.focusWidget()


def test_unknown_price_leads_to_the_prices_and_to_the_budget_in_the_settings(
    workbench: Workbench, preferences: Preferences, tmp_path: Path, qtbot: QtBot
) -> None:
    preferences.set(default_model="openai/no-such-model", budget_usd=0.01)
    document = open_flow(workbench, tmp_path)
    workbench.keys.before_run = lambda _session, start, *_: start()  # type: ignore[method-assign]
    QTest.keyClick(workbench.window, Qt.Key.Key_F5)
    ended(document, qtbot)
    press(document.bars, "Open settings…")
    assert_budget_field_has_focus(workbench, document, is_stated=False)


def test_run_bar_shows_a_token_budget(workbench: Workbench, self_refine: DocumentPage) -> None:
    self_refine.session.do(SetSettings(("budget_tokens",), 1000))

    assert workbench.run_bar.budget.text() == "0 of 1,000 tokens"


def test_preferences_apply_to_a_run(workbench: Workbench, preferences: Preferences, tmp_path: Path) -> None:
    preferences.set(default_model="openai/x", max_iterations_cap=7, budget_usd=2.0, budget_tokens=900)

    options = run_options(analyse(small()), workbench.engine, preferences, tmp_path)
    budgeted = small().model_copy(update={"settings": {"budget_usd": 5.0}})
    own = run_options(analyse(budgeted), workbench.engine, preferences, None)

    assert (options.default_model, options.max_iterations_cap, options.folder) == ("openai/x", 7, tmp_path)
    assert (options.budget_usd, options.budget_tokens) == (2.0, 900)
    assert own.budget_usd == 5.0
    assert options.models is not None


@pytest.mark.parametrize("is_usual", [True, False])
def test_stored_run_can_be_replayed(
    is_usual: bool, workbench: Workbench, preferences: Preferences, tmp_path: Path
) -> None:
    with closing(open_store(None if is_usual else tmp_path / "other.sqlite3")) as store:
        run_id = store.import_run(head(run_id="played"), [replace(event, run_id="played") for event in one_of_each()])
        preferences.set(default_model=f"recorded:{run_id}")
        options = run_options(analyse(small()), workbench.engine, preferences, None, None if is_usual else store)
        assert options.models is not None
        assert options.models.get(f"recorded:{run_id}").name == f"recorded:{run_id}"
    assert model_label(f"recorded:{run_id}") == "Recorded"
    assert model_label("gguf:qwen2.5:7b") == "qwen2.5:7b"
    assert model_label("gguf:~/models/Qwen-7B.gguf") == "Qwen-7B"
    assert model_label("openai/") == "openai/"


def test_end_of_a_run_notifies_while_another_window_is_active(
    workbench: Workbench, self_refine: DocumentPage, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workbench.window, "isActiveWindow", lambda: False)

    QTest.keyClick(workbench.window, Qt.Key.Key_F5)
    ended(self_refine, qtbot)

    assert workbench.notifier.last_text.startswith("“Self-Refine” is done after ")


def test_run_dialog_without_inputs_says_so(workbench: Workbench, tmp_path: Path) -> None:
    flow = Builder("Alone")
    flow.add("transform", id="step", template="x")
    flow.add("output", id="out")
    flow.connect("step.output", "out.value")
    open_flow(workbench, tmp_path, flow.build())

    QTest.keyClick(workbench.window, Qt.Key.Key_F5, SHIFT)

    assert form(workbench).fields == []


def test_changed_sample_is_used_by_the_next_run(workbench: Workbench, tmp_path: Path, qtbot: QtBot) -> None:
    document = open_flow(workbench, tmp_path, small())
    QTest.keyClick(workbench.window, Qt.Key.Key_F5, SHIFT)
    QTest.mouseClick(form(workbench).run, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: document.session.shown.view_model is not None)
    ended(document, qtbot)
    assert document.session.shown.view_model.node("text").outputs == {"value": "the sea"}

    document.session.do(SetConfig(("default",), {"text": "the moon"}))
    workbench.runs.run(document)
    ended(document, qtbot)
    assert document.session.shown.view_model.node("text").outputs == {"value": "the moon"}


def test_non_breaking_spaces_reach_the_run(workbench: Workbench, tmp_path: Path) -> None:
    open_flow(workbench, tmp_path, needy())
    QTest.keyClick(workbench.window, Qt.Key.Key_F5, SHIFT)
    field = form(workbench).fields[0]

    field.editor.setPlainText("10\u00a0000\u00a0€\nand more")

    assert field.value() == "10\u00a0000\u00a0€\nand more"


def test_nothing_runs_while_an_input_file_is_read(
    workbench: Workbench, answers: Answers, tmp_path: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_go_on = threading.Event()

    def slow(_path: Path) -> tuple[str, str]:
        assert may_go_on.wait(5)
        return "from the file", ""

    monkeypatch.setattr(run_dialog, "_read_file", slow)
    document = open_flow(workbench, tmp_path, needy())
    QTest.keyClick(workbench.window, Qt.Key.Key_F5, SHIFT)
    dialog = form(workbench)
    dialog.fields[0].editor.setPlainText("typed before")
    answers.to_read = tmp_path / "sea.txt"
    QTest.mouseClick(dialog.fields[0].from_file, Qt.MouseButton.LeftButton)
    QTest.mouseClick(dialog.run, Qt.MouseButton.LeftButton)

    assert dialog.isVisible()
    assert "still being read" in dialog.fields[0].error.text()
    may_go_on.set()
    qtbot.waitUntil(lambda: not dialog.fields[0].is_reading)
    assert dialog.fields[0].error.text() == ""
    QTest.mouseClick(dialog.run, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: document.session.shown.view_model is not None)
    ended(document, qtbot)
    assert document.session.shown.view_model.outputs == {"out": "from the file"}


def test_document_closed_before_the_history_opens_does_not_run(
    workbench: Workbench, tmp_path: Path, qtbot: QtBot
) -> None:
    may_go_on = threading.Event()

    def open_slowly(_path: Path | None) -> Store:
        assert may_go_on.wait(5)
        return open_store(tmp_path / "history.sqlite3")

    access = workbench.history.access
    access._make = open_slowly
    access.open()
    document = open_flow(workbench, tmp_path)
    session = document.session
    workbench.runs.run(document)
    workbench.closing.close_document(document)
    with qtbot.waitSignal(access.opened):
        may_go_on.set()

    assert session.shown.live is None
    assert session.shown.view_model is None
    access.close()


def test_end_of_a_run_keeps_the_focus(workbench: Workbench, self_refine: DocumentPage, qtbot: QtBot) -> None:
    self_refine.session.select(())
    name = self_refine.inspector.workflow_page.name
    name.setFocus()
    qtbot.waitUntil(name.hasFocus)

    workbench.runs.run(self_refine)
    ended(self_refine, qtbot)
    assert name.hasFocus()
    assert name.isVisible()
    assert self_refine.session.selection == ()


def test_last_input_that_no_longer_fits_is_asked_for_again(workbench: Workbench, tmp_path: Path) -> None:
    document = open_flow(workbench, tmp_path, needy())
    document.session.shown.last_inputs = {"topic": "the sea", "a_number": "many"}

    QTest.keyClick(workbench.window, Qt.Key.Key_F5)
    assert document.session.shown.live is not None, "the default serves in its place"
    assert document.session.shown.last_inputs == {"topic": "the sea"}


def test_second_run_does_not_start_beside_the_first(
    workbench: Workbench, script: Script, tmp_path: Path, qtbot: QtBot
) -> None:
    script(SLOW)
    document = open_flow(workbench, tmp_path)
    QTest.keyClick(workbench.window, Qt.Key.Key_F5)
    first = document.session.shown.live

    workbench.runs.run(document)

    assert document.session.shown.live is first


def test_click_on_run_keeps_the_focus_on_the_canvas(
    workbench: Workbench, self_refine: DocumentPage, script: Script, qtbot: QtBot
) -> None:
    script(SLOW)
    self_refine.canvas.setFocus()

    for button in (workbench.run_bar.run, workbench.run_bar.stop):
        QTest.mouseClick(button, Qt.MouseButton.LeftButton)
        QApplication.processEvents()
        assert self_refine.canvas.isAncestorOf(workbench.window.focusWidget())
    ended(self_refine, qtbot)


def test_focus_moves_between_run_and_stop(
    workbench: Workbench, self_refine: DocumentPage, script: Script, qtbot: QtBot
) -> None:
    script(SLOW)
    workbench.run_bar.run.setFocus()

    QTest.keyClick(workbench.run_bar.run, Qt.Key.Key_Space)
    qtbot.waitUntil(workbench.run_bar.stop.hasFocus)
    QTest.keyClick(workbench.run_bar.stop, Qt.Key.Key_Space)
    ended(self_refine, qtbot)

    qtbot.waitUntil(workbench.run_bar.run.hasFocus)
