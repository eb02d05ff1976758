"""The fork dialog: form, plan, and the new run beside its parent."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QTextCursor, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractSpinBox, QApplication, QComboBox, QWidget
from pytestqt.qtbot import QtBot

from app.engine_thread import EngineThread
from app.history import fork_dialog
from app.history.fork_dialog import ForkDialog, ForkForm, ForkPlace, read_fork_place
from app.history.store_client import StoreClient
from app.inspector.conditions_editor import ConditionsEditor
from app.inspector.form_fields import FormField
from app.inspector.model_list import ModelSource
from app.inspector.prompt_editor import PromptEditor, TemplateEdit
from app.inspector.text_editors import NumberBox
from app.theme.widgets import PlainLabel
from app.window.document_page import DocumentPage
from app.workbench import Workbench
from engine.document.builder import Builder
from engine.document.model import Workflow
from engine.document.operations import SetTitle
from engine.errors import EngineError
from engine.exits.loop_conditions import condition_specs
from engine.plan.structure import analyse
from engine.store import Store
from engine.store.resume import Changes
from tests.app.history.conftest import prompt_of
from tests.app.history.loop_samples import item_loop
from tests.app.history.stored_runs import refine, refine_script, run_and_store
from tests.app.window.conftest import ended, press

CTRL = Qt.KeyboardModifier.ControlModifier


@dataclass
class Forms:
    """Makes forms without a dialog."""

    qtbot: QtBot
    engine: EngineThread

    def make(self, place: ForkPlace) -> ForkForm:
        form = ForkForm(self.engine, place, ModelSource(["embedded", "openai/x"]))
        self.qtbot.addWidget(form)
        return form

    def of_loop(self, **config: object) -> ForkForm:
        """The form for a fork from the second iteration of a loop with these settings."""
        form = self.make(ForkPlace("loop[1]", analyse(refine(**config)), "x"))  # type: ignore[arg-type]
        form.show()
        return form


@pytest.fixture
def forms(qtbot: QtBot, engine_thread: EngineThread) -> Forms:
    return Forms(qtbot, engine_thread)


def field(form: ForkForm, name: str) -> FormField:
    """A field of the loop."""
    row = form.forms["loop"].row(name)
    assert row is not None, name
    return row


def add_condition(form: ForkForm, name: str) -> None:
    """Add an exit condition, or replace the number of iterations by it."""
    editor = field(form, "stop_when").editor
    assert isinstance(editor, ConditionsEditor)
    editor.append(condition_specs()[name])


def typed(box: QWidget, text: str) -> None:
    """Put a text in the place of what a field has."""
    box.setFocus()
    QTest.keyClick(box, Qt.Key.Key_A, CTRL)
    QTest.keyClicks(box, text)


def test_form_shows_original_values_and_reports_no_changes(store: Store, tmp_path: Path, forms: Forms) -> None:
    run_id = run_and_store(store, refine(), refine_script(tmp_path / "s.json"))
    form = forms.make(read_fork_place(store, run_id, "loop[2]"))
    assert form.value.toPlainText() == "Say more, advice 2."
    prompts = [(node_id, name) for node_id in ("draft", "critique") for name in form.forms[node_id].fields]
    assert {key: prompt_of(form, *key).text() for key in prompts} == {
        ("draft", "system"): "",
        ("draft", "prompt"): "Write: {{input}}",
        ("critique", "system"): "",
        ("critique", "prompt"): "Judge: {{input}}",
    }
    assert (form.model.currentText(), form.model.line.placeholderText()) == ("", "Unchanged")
    count = field(form, "max_iterations").editor.main_widget
    assert isinstance(count, NumberBox)
    assert count.text() == "3"
    assert form.changes() == Changes()


def test_all_changes_are_reported(store: Store, tmp_path: Path, forms: Forms) -> None:
    run_id = run_and_store(store, refine(), refine_script(tmp_path / "s.json"))
    form = forms.make(read_fork_place(store, run_id, "loop[1]"))
    form.show()
    edited: list[bool] = []
    form.edited.connect(lambda: edited.append(True))
    form.value.selectAll()
    QTest.keyClicks(form.value, "the mountain")
    draft = prompt_of(form, "draft")
    draft.setFocus()
    QTest.keyClick(draft, Qt.Key.Key_A, CTRL)
    QTest.keyClicks(draft, "Better.")
    form.model.lineEdit().selectAll()
    QTest.keyClicks(form.model.lineEdit(), "openai/y")
    add_condition(form, "stable_output")
    edited.clear()
    typed(field(form, "max_iterations").editor.main_widget, "7")
    assert edited
    loop = {"stop_when": [{"condition": "stable_output"}], "max_iterations": 7}
    assert form.changes() == Changes({"draft": {"prompt": "Better."}, "loop": loop}, "the mountain", True, "openai/y")


@pytest.mark.parametrize(("before", "keys", "now"), [(0.5, "2.5", 2.5), (None, "1", 1), (0.5, "", None)])
def test_loop_budget_can_be_changed(before: float | None, keys: str, now: float | None, forms: Forms) -> None:
    form = forms.of_loop(budget_usd=before)
    box = field(form, "budget_usd").editor.main_widget
    assert box.isVisible()
    assert box.accessibleName() == "Loop budget (USD)"
    assert form.changes() == Changes()
    QTest.keyClick(box, Qt.Key.Key_A, CTRL)
    QTest.keyClick(box, Qt.Key.Key_Delete)
    QTest.keyClicks(box, keys)
    assert form.changes() == Changes({"loop": {"budget_usd": now}})


def test_loop_gets_a_judge_whose_missing_criteria_are_reported_at_the_field(forms: Forms, qtbot: QtBot) -> None:
    form = forms.of_loop(judge={"threshold": 7, "runs": 3})
    add_condition(form, "judge")
    judge = field(form, "judge")
    qtbot.waitUntil(lambda: [problem.code for problem in judge.problems.problems] == ["no-criteria"])
    judge.editor.focus_path("criteria")
    QTest.keyClicks(QApplication.focusWidget(), "Clear.")
    changed = {"stop_when": [{"condition": "judge"}], "judge": {"threshold": 7, "runs": 3, "criteria": "Clear."}}
    assert form.changes() == Changes({"loop": changed})
    qtbot.waitUntil(lambda: not judge.problems.problems)


def test_several_conditions_and_how_they_are_joined_can_be_changed(forms: Forms) -> None:
    listed = [{"condition": "stable_output", "threshold": 0.9}, {"condition": "plateau"}]
    form = forms.of_loop(stop_when=listed, stop_mode="all")
    assert form.changes() == Changes()
    add_condition(form, "evaluator")
    assert form.changes() == Changes({"loop": {"stop_when": [*listed, {"condition": "evaluator"}]}})
    editor = field(form, "stop_when").editor
    assert isinstance(editor, ConditionsEditor)
    joiner = editor.entries[1].lead
    assert isinstance(joiner, QComboBox)
    QTest.keyClick(joiner, Qt.Key.Key_Up)
    assert form.changes().settings["loop"]["stop_mode"] == "any"


def test_undone_changes_of_the_loop_are_no_changes(forms: Forms) -> None:
    form = forms.of_loop(max_iterations=5)
    box = field(form, "max_iterations").editor.main_widget
    typed(box, "7")
    assert form.changes() == Changes({"loop": {"max_iterations": 7}})
    QTest.keyClick(box, Qt.Key.Key_Z, CTRL)
    assert form.changes() == Changes()
    typed(box, "7")
    typed(box, "5")
    assert form.changes() == Changes()


def test_condition_of_a_loop_that_has_started_is_not_offered(forms: Forms) -> None:
    form = forms.of_loop().forms["loop"]
    form.expand()
    assert form.row("condition") is None
    assert form.row("delay_s") is not None


@pytest.mark.parametrize(("path", "loop"), [("part.loop[1]", None), ("loop[1].part.other[2]", "loop")])
def test_loop_in_a_subflow_is_not_taken_for_one_of_the_document(path: str, loop: str | None) -> None:
    found = ForkPlace(path, analyse(refine()), "x").loop
    assert (None if found is None else found.id) == loop


def test_prompts_are_previewed_with_the_values_of_the_run(
    access: StoreClient, store: Store, engine_thread: EngineThread, tmp_path: Path, qtbot: QtBot
) -> None:
    judged = refine(stop_when=[{"condition": "judge"}], judge={"criteria": "Clear."})
    dialog = dialog_alone(access, store, engine_thread, tmp_path, qtbot, judged)
    previews = [editor for editor in dialog.form.findChildren(PromptEditor) if editor.field.name != "system"]
    for editor in previews:
        editor.preview.click()
    expected = {
        "prompt of draft": "Write: Say more, advice 1.",
        "prompt of critique": "Judge: The sea is wide, draft 2.",
        "criteria of loop": "Clear.",
    }
    qtbot.waitUntil(lambda: {f"{e.field.name} of {e.binding.node_id}": e.filled.text for e in previews} == expected)


def test_prompts_of_many_nodes_are_shown_when_their_section_is_expanded(forms: Forms) -> None:
    flow = Builder("Chain")
    text = flow.add("input", id="text")["value"]
    for number in range(9):
        node = flow.add("llm", id=f"n{number}", title=f"Node {number}", config={"prompt": "{{input}}"})
        flow.connect(text, node["input"])
        text = node["output"]
    form = forms.make(ForkPlace("n0", analyse(flow.build()), "x"))
    form.show()
    assert list(form.sections) == [f"n{number}" for number in range(9)]
    assert list(form.forms) == ["n0", "n1", "n2", "n3"]
    QTest.mouseClick(form.sections["n7"].button, Qt.MouseButton.LeftButton)
    edit = prompt_of(form, "n7")
    forms.qtbot.waitUntil(edit.isVisible)
    assert (edit.text(), edit.accessibleName()) == ("{{input}}", "Node 7: Prompt")
    typed(edit, "Shorten.")
    assert form.changes() == Changes({"n7": {"prompt": "Shorten."}})
    QTest.mouseClick(form.sections["n7"].button, Qt.MouseButton.LeftButton)
    assert form.changes() == Changes({"n7": {"prompt": "Shorten."}})


def test_json_value_must_stay_json(store: Store, tmp_path: Path, forms: Forms) -> None:
    run_id = run_and_store(store, refine(), refine_script(tmp_path / "s.json"))
    read = read_fork_place(store, run_id, "loop[1]")
    form = forms.make(ForkPlace(read.path, read.structure, {"a": [1]}))
    form.value.setPlainText('{"a": [2]}')
    assert form.changes() == Changes(value={"a": [2]}, has_value=True)
    form.value.setPlainText('{"a": [2}')
    with pytest.raises(ValueError, match="no longer valid JSON"):
        form.changes()


def test_fork_from_a_node(store: Store, tmp_path: Path, forms: Forms) -> None:
    run_id = run_and_store(store, refine(), refine_script(tmp_path / "s.json"))
    form = forms.make(read_fork_place(store, run_id, "loop[1].draft"))
    assert form.value.accessibleName() == "Node output"
    assert form.value.toPlainText() == "The sea is wide, draft 2."
    outside = forms.make(read_fork_place(store, run_id, "task"))
    assert "loop" not in outside.forms


def test_item_of_an_iterator_is_forked_with_another_input(workbench: Workbench, store: Store, qtbot: QtBot) -> None:
    run_id = run_and_store(store, item_loop(), "")
    workbench.history.tabs.open_run(run_id)
    qtbot.waitUntil(
        lambda: (
            run_id in workbench.history.tabs.pages
            and workbench.history.tabs.pages[run_id].session.shown.run_id == run_id
        )
    )
    workbench.history.resuming.fork_from(workbench.history.tabs.pages[run_id].document, "each[1]")
    dialog = dialog_of(workbench, qtbot)
    assert "Fork from item 2" in [label.text() for label in dialog.findChildren(PlainLabel)]
    assert (dialog.form.value.accessibleName(), dialog.form.value.toPlainText()) == ("Item", "y")
    dialog.form.value.selectAll()
    QTest.keyClicks(dialog.form.value, "why")
    qtbot.waitUntil(lambda: dialog.plan is not None and dialog.run.isEnabled())
    QTest.mouseClick(dialog.run, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: workbench.current is not None and workbench.current.session.name.endswith("fork"))
    fork = workbench.current
    assert fork is not None
    qtbot.waitUntil(
        lambda: fork.session.shown.view_model is not None and fork.session.shown.view_model.status == "completed"
    )
    assert fork.session.shown.view_model is not None
    assert [item.result for item in fork.session.shown.view_model.loops["each"].iterations] == ["x.", "why.", "z."]


def test_title_with_the_word_iteration_is_shown_as_it_is(workbench: Workbench, store: Store, qtbot: QtBot) -> None:
    flow, _ = SetTitle("mark", "Judge this iteration").apply(item_loop())
    run_id = run_and_store(store, flow, "")
    workbench.history.tabs.open_run(run_id)
    pages = workbench.history.tabs.pages
    qtbot.waitUntil(lambda: run_id in pages and pages[run_id].session.shown.run_id == run_id)
    workbench.history.resuming.fork_from(pages[run_id].document, "each[1].mark")
    dialog = dialog_of(workbench, qtbot)
    assert "Fork from item 2, Judge this iteration" in [label.text() for label in dialog.findChildren(PlainLabel)]
    dialog.reject()


def test_fork_of_a_missing_run_is_refused(store: Store) -> None:
    with pytest.raises(EngineError, match="There is no run"):
        read_fork_place(store, "nobody", "loop[0]")


def dialog_of(workbench: Workbench, qtbot: QtBot) -> ForkDialog:
    """The dialog with its plan."""
    qtbot.waitUntil(lambda: bool(workbench.window.findChildren(ForkDialog)))
    (dialog,) = workbench.window.findChildren(ForkDialog)
    qtbot.waitUntil(lambda: dialog.plan is not None or dialog.problem.isVisible())
    return dialog


def fork_of_draft(workbench: Workbench, ran: DocumentPage, qtbot: QtBot) -> tuple[ForkDialog, TemplateEdit]:
    """The dialog for a fork from the second iteration, and its prompt of the draft."""
    workbench.history.resuming.fork_from(ran, "loop[1]")
    dialog = dialog_of(workbench, qtbot)
    return dialog, prompt_of(dialog.form, "draft")


def dialog_alone(
    access: StoreClient,
    store: Store,
    engine_thread: EngineThread,
    tmp_path: Path,
    qtbot: QtBot,
    workflow: Workflow | None = None,
) -> ForkDialog:
    """The dialog for a fork from the second iteration, without a window."""
    run_id = run_and_store(store, workflow or refine(), refine_script(tmp_path / "s.json"))
    place = read_fork_place(store, run_id, "loop[1]")
    models = ModelSource(["embedded", "openai/x"])
    dialog = ForkDialog(engine_thread, access, run_id, place, models, QWidget())
    qtbot.addWidget(dialog)
    return dialog


@pytest.fixture
def ran(workbench: Workbench, tmp_path: Path, qtbot: QtBot) -> DocumentPage:
    """A document whose run of three iterations is over and shown."""
    workbench.preferences.set(default_model=refine_script(tmp_path / "s.json"))
    document = workbench.documents.open_copy(refine())
    qtbot.waitUntil(lambda: document.session.structure.workflow is document.session.workflow)
    workbench.runs.run(document)
    ended(document, qtbot)
    workbench.bottom_panel.unfold("iterations")
    return document


def test_dialog_shows_reused_and_rerun_parts(workbench: Workbench, ran: DocumentPage, qtbot: QtBot) -> None:
    ran.session.shown.look_at("loop", 1)
    press(ran.iterations, "Fork from here…")
    dialog = dialog_of(workbench, qtbot)
    assert "iteration 1" in dialog.reused.text().casefold()
    assert "iterations 2 to 3" in dialog.rerun.text().casefold()
    assert dialog.price.text().startswith("Up to 2 iterations.")
    assert dialog.run.isEnabled()
    typed(field(dialog.form, "max_iterations").editor.main_widget, "9")
    assert not dialog.run.isEnabled()
    qtbot.waitUntil(dialog.run.isEnabled)
    assert dialog.price.text().startswith("Up to 8 iterations.")
    QTest.keyClick(dialog, Qt.Key.Key_Escape)
    qtbot.waitUntil(lambda: not workbench.window.findChildren(ForkDialog))
    assert workbench.tabs.documents == [ran]


def test_tab_reaches_prompts_below_the_section_that_was_expanded(
    workbench: Workbench, ran: DocumentPage, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot
) -> None:
    monkeypatch.setattr(fork_dialog, "_OPEN_PROMPTS", 1)
    workbench.history.resuming.fork_from(ran, "loop[1]")
    dialog = dialog_of(workbench, qtbot)
    button = dialog.form.sections["critique"].button
    button.setFocus()
    QTest.keyClick(button, Qt.Key.Key_Space)
    qtbot.waitUntil(prompt_of(dialog.form, "critique", "system").isVisible)
    QTest.keyClick(button, Qt.Key.Key_Tab)
    assert prompt_of(dialog.form, "critique", "system").hasFocus()
    QTest.keyClick(QApplication.focusWidget(), Qt.Key.Key_Backtab, Qt.KeyboardModifier.ShiftModifier)
    assert button.hasFocus()
    dialog.close()


def test_invalid_change_is_refused_in_the_dialog(workbench: Workbench, ran: DocumentPage, qtbot: QtBot) -> None:
    dialog, prompt = fork_of_draft(workbench, ran, qtbot)
    place = prompt.mapTo(dialog, prompt.rect().topLeft())
    typed(prompt, "{{nobody.at.home}}")
    dialog.cancel.setFocus()
    qtbot.waitUntil(dialog.problem.isVisible)
    QApplication.processEvents()
    assert prompt.mapTo(dialog, prompt.rect().topLeft()) == place, "the form does not jump"
    assert "nobody" in dialog.problem.text
    assert not dialog.run.isEnabled()


def test_click_on_the_disabled_button_says_why_nothing_can_run(
    workbench: Workbench, ran: DocumentPage, qtbot: QtBot
) -> None:
    workbench.history.resuming.fork_from(ran, "loop[1]")
    dialog = dialog_of(workbench, qtbot)
    prompt = prompt_of(dialog.form, "draft")
    prompt.setFocus()
    with qtbot.waitSignal(dialog.planned):
        QTest.keyClicks(prompt, " {{nope}}")
    assert not dialog.problem.isVisible()

    QTest.mouseClick(dialog.run, Qt.MouseButton.LeftButton)

    assert dialog.problem.isVisible()
    assert "nope" in dialog.problem.text


def test_half_typed_placeholder_is_refused_once_its_field_loses_focus(
    workbench: Workbench, ran: DocumentPage, qtbot: QtBot
) -> None:
    dialog, prompt = fork_of_draft(workbench, ran, qtbot)
    prompt.setFocus()
    qtbot.waitUntil(prompt.hasFocus)
    with qtbot.waitSignal(dialog.planned):
        QTest.keyClicks(prompt, " {{")
    assert not dialog.problem.isVisible()
    assert not dialog.run.isEnabled()
    assert "{{" in dialog.run.toolTip()

    dialog.cancel.setFocus()
    assert "{{" in dialog.problem.text
    assert dialog.problem.isVisible()
    prompt.setFocus()
    assert dialog.problem.isVisible(), "it stays while it is being corrected"
    prompt.selectAll()
    with qtbot.waitSignal(dialog.planned):
        QTest.keyClicks(prompt, "Fine.")
    assert not dialog.problem.isVisible()
    assert (dialog.run.isEnabled(), dialog.run.toolTip()) == (True, "")


def test_half_typed_expression_of_the_loop_is_reported_at_its_field_once_that_loses_focus(
    workbench: Workbench, ran: DocumentPage, qtbot: QtBot
) -> None:
    dialog, _ = fork_of_draft(workbench, ran, qtbot)
    dialog.form.forms["loop"].expand()
    score = field(dialog.form, "score")
    score.editor.focus_path("")
    qtbot.waitUntil(score.editor.main_widget.hasFocus)
    with qtbot.waitSignals([dialog.planned, dialog.form.session.analyzed]):
        QTest.keyClicks(score.editor.main_widget, "size(")
    assert not score.problems.problems
    assert not dialog.problem.isVisible()

    dialog.cancel.setFocus()
    assert [problem.code for problem in score.problems.problems] == ["bad-expression"]
    assert dialog.problem.isVisible()

    score.editor.focus_path("")
    QTest.keyClicks(score.editor.main_widget, "(")
    QTest.keyClick(dialog, Qt.Key.Key_Escape)
    qtbot.waitUntil(lambda: not workbench.window.findChildren(ForkDialog))


def test_refusal_of_the_fork_itself_is_shown_at_once(
    store: Store,
    access: StoreClient,
    engine_thread: EngineThread,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    qtbot: QtBot,
) -> None:
    may_answer = threading.Event()

    def refuse(*_arguments: object, **_named: object) -> None:
        may_answer.wait(60)
        raise EngineError("The run is gone.")

    monkeypatch.setattr(fork_dialog, "plan_fork", refuse)
    dialog = dialog_alone(access, store, engine_thread, tmp_path, qtbot)
    dialog.show()
    dialog.form.value.setFocus()
    qtbot.waitUntil(dialog.form.value.hasFocus)
    may_answer.set()
    qtbot.waitUntil(dialog.problem.isVisible)
    assert dialog.form.value.hasFocus()


def test_fork_runs_in_its_own_tab_and_is_compared_with_its_parent(
    workbench: Workbench, ran: DocumentPage, qtbot: QtBot
) -> None:
    dialog, prompt = fork_of_draft(workbench, ran, qtbot)
    prompt.setFocus()
    QTest.keyClicks(prompt, " And shorter.")
    qtbot.waitUntil(lambda: dialog.plan is not None and dialog.run.isEnabled())
    QTest.mouseClick(dialog.run, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: workbench.current is not ran)
    fork = workbench.current
    assert fork is not None
    qtbot.waitUntil(
        lambda: fork.session.shown.view_model is not None and fork.session.shown.view_model.status == "completed"
    )
    view_model = fork.session.shown.view_model
    assert view_model is not None
    assert [iteration.result for iteration in view_model.loops["loop"].iterations] == [
        f"The sea is wide, draft {number}." for number in (1, 2, 3)
    ]
    assert view_model.nodes["loop[1].draft"].calls[0].request.messages[-1].text.endswith("And shorter.")
    assert view_model.nodes["loop[0].draft"].calls[0].request.messages[-1].text == "Write: the sea"
    page = workbench.history.tabs.pages[fork.session.shown.run_id]
    parent = ran.session.shown.run_id
    qtbot.waitUntil(lambda: page.bar.origin == f"Fork of {parent[:6]}, iteration 2")
    press(page.bar, "Compare with original")
    qtbot.waitUntil(lambda: workbench.history.compare is not None and workbench.history.compare.comparison is not None)
    compared = workbench.history.compare
    assert compared is not None
    assert [compared.left.run.currentData(), compared.right.run.currentData()] == [parent, fork.session.shown.run_id]
    assert [side.chosen_place for side in (compared.left, compared.right)] == ["loop[1]", "loop[1]"]
    compared.close()


def test_unstored_run_cannot_be_forked(workbench: Workbench, ran: DocumentPage, qtbot: QtBot) -> None:
    ran.session.shown.run_id = ""
    with qtbot.waitSignal(ran.session.refused) as refused:
        workbench.history.resuming.fork_from(ran, "loop[1]")
    assert "stored run" in refused.args[0]


@pytest.mark.parametrize("value", ["10\u00a0% more", "one\r\ntwo", "one\u2028two", "end\x00", "\ud800 half"])
def test_untouched_value_with_special_characters_is_no_change(value: str, forms: Forms) -> None:
    form = forms.make(ForkPlace("loop[1]", analyse(refine()), value))
    assert form.changes() == Changes()


def test_untouched_line_endings_are_no_change(forms: Forms) -> None:
    workflow = refine(
        stop_when=[{"condition": "until", "expression": "false ||\nfalse"}, {"condition": "judge"}],
        judge={"criteria": "one\r\ntwo"},
    )
    workflow.nodes_by_id["draft"].config["prompt"] = "one\r\n{{input}}"
    form = forms.make(ForkPlace("loop[1]", analyse(workflow), "x"))
    form.show()
    assert form.changes() == Changes()


def test_edited_value_keeps_non_breaking_spaces(forms: Forms) -> None:
    form = forms.make(ForkPlace("loop[1]", analyse(refine()), "10\u00a0%"))
    form.value.moveCursor(QTextCursor.MoveOperation.End)
    QTest.keyClicks(form.value, "!")
    assert form.changes() == Changes({}, "10\u00a0%!", True)


@pytest.mark.parametrize("text", ["[" * 100_000, "NaN", "[1e999]"])
def test_invalid_json_is_refused(text: str, forms: Forms) -> None:
    form = forms.make(ForkPlace("loop[1]", analyse(refine()), [1]))
    form.value.setPlainText(text)
    with pytest.raises(ValueError, match="no longer valid JSON"):
        form.changes()


def test_wheel_scrolls_the_form_without_changing_fields(
    access: StoreClient, store: Store, engine_thread: EngineThread, tmp_path: Path, qtbot: QtBot
) -> None:
    dialog = dialog_alone(access, store, engine_thread, tmp_path, qtbot)
    with qtbot.waitSignal(dialog.planned):
        dialog.show()
    for kind in (QComboBox, QAbstractSpinBox):
        for widget in dialog.form.findChildren(kind):
            center = QPointF(widget.rect().center())
            for turn in (QPoint(0, -120), QPoint(0, 120), QPoint(0, 120)):
                turned = QWheelEvent(
                    center,
                    widget.mapToGlobal(center),
                    QPoint(),
                    turn,
                    Qt.MouseButton.NoButton,
                    Qt.KeyboardModifier.NoModifier,
                    Qt.ScrollPhase.NoScrollPhase,
                    False,
                )
                QApplication.sendEvent(widget, turned)
    assert dialog.form.changes() == Changes()
