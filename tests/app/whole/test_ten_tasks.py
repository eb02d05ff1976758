"""The ten tasks of docs/window.md, done by mouse and keyboard; the docstring of each test is the task's heading.

Building and wrapping also count their actions: clicks, key presses, drags and typed texts.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QComboBox, QLabel, QMenu, QPlainTextEdit, QPushButton, QTextEdit, QWidget
from pytestqt.qtbot import QtBot

from app.batch.batch_results import STATE
from app.batch.batch_window import BatchWindow
from app.history.fork_dialog import ForkDialog
from app.history.iterations_panel import IterationsPanel
from app.inspector.comparison_editor import ComparisonEditor
from app.inspector.conditions_editor import ConditionsEditor
from app.inspector.object_editors import ObjectEntry
from app.runs.run_view_model import RunViewModel
from engine.document.files import save
from engine.document.model import Workflow
from engine.document.problems import has_errors
from engine.nodes.loop import LoopConfig
from tests.app.history.conftest import MakeWindow, make_window, prompt_of, store_path
from tests.app.history.stored_runs import refine, refine_script
from tests.app.whole.conftest import CTRL, TEMPLATE, Person, Whole, focus
from tests.app.whole.conftest import Answers as FileAnswers
from tests.app.whole.test_building import choose_entry
from tests.app.whole.workflows import chain
from tests.app.window.conftest import Answers, answers, await_files, drafted, preferences, script
from tests.architecture.markdown import read

__all__ = ["answers", "make_window", "preferences", "script", "store_path"]

pytestmark = pytest.mark.slow


@pytest.fixture
def refining(make_window: MakeWindow, tmp_path: Path, qtbot: QtBot) -> Whole:
    """A window in which a loop has made three different drafts."""
    workbench = make_window()
    workbench.preferences.set(default_model=refine_script(tmp_path / "drafts.json"))
    whole = Whole(qtbot, workbench, FileAnswers())
    open_workflow(whole, refine(), tmp_path)
    press_run(whole)
    assert len(ended_run(whole).loops["loop"].iterations) == 3
    return whole


def open_workflow(whole: Whole, workflow: Workflow, folder: Path) -> None:
    """Open a file with the workflow."""
    path = folder / "workflow.loop.json"
    save(workflow, path)
    whole.workbench.open_file(path)
    await_files(whole.workbench)
    whole.settle()


def ended_run(whole: Whole) -> RunViewModel:
    """Wait until the run of the current document has ended."""
    shown = whole.document.session.shown
    whole.qtbot.waitUntil(lambda: shown.live is None and shown.view_model is not None)
    assert shown.view_model is not None
    return shown.view_model


def click(widget: QWidget) -> None:
    QTest.mouseClick(widget, Qt.MouseButton.LeftButton)
    QApplication.processEvents()


def press(parent: QWidget, title: str) -> None:
    """Click the visible button with that title."""
    (button,) = (one for one in parent.findChildren(QPushButton) if one.text() == title and one.isVisible())
    click(button)


def choose(combo: QComboBox, text: str) -> None:
    """Choose an entry of a list with the keyboard."""
    combo.setFocus()
    QTest.keyClick(combo, Qt.Key.Key_Home)
    while combo.currentText() != text:
        before = combo.currentIndex()
        QTest.keyClick(combo, Qt.Key.Key_Down)
        QApplication.processEvents()
        assert combo.currentIndex() > before, f"{text} is not offered"


def choose_stop(whole: Whole, sentence: str) -> ObjectEntry:
    """Click the Loop node of the open workflow, and choose in its properties how it stops."""
    whole.hand.click(whole.hand.title("loop"))
    QApplication.processEvents()
    editor = whole.editor("stop_when", click)
    assert isinstance(editor, ConditionsEditor)
    box = editor.entries[0].rows.rows["condition"].editor.main_widget
    assert isinstance(box, QComboBox)
    choose(box, sentence)
    return editor.entries[0]


def press_run(whole: Whole) -> None:
    click(whole.workbench.run_bar.run)


def iterations_panel(whole: Whole) -> IterationsPanel:
    """Open the panel of iterations."""
    click(whole.workbench.bottom_panel.buttons["iterations"])
    return whole.document.iterations


def texts_of(parent: QWidget) -> str:
    """All visible texts in a part of the window."""
    labels = [one.text() for one in parent.findChildren(QLabel) if one.isVisible()]
    fields = [one for kind in (QPlainTextEdit, QTextEdit) for one in parent.findChildren(kind)]
    return "\n".join([*labels, *(one.toPlainText() for one in fields if one.isVisible())])


def click_iteration(panel: IterationsPanel, number: int) -> None:
    """Click an iteration in the table."""
    place = panel.table.visualRect(panel.table.model().index(number - 1, 0)).center()
    QTest.mouseClick(panel.table.viewport(), Qt.MouseButton.LeftButton, pos=place)
    QApplication.processEvents()


def test_a_loop_of_two_model_nodes_is_built_from_nothing_in_twelve_actions(person: Person) -> None:
    """Build a loop from an empty canvas"""
    whole = person.whole
    person.key(Qt.Key.Key_N, CTRL)
    person.add("Input")
    first = person.add("LLM")
    person.fill("prompt", "Write a note about {{input}}.")
    second = person.add("LLM")
    person.fill("prompt", "Improve this: {{input}}")
    person.add("Output")
    person.select_around(first, second)
    assert set(whole.document.session.selection) == {first, second}
    person.key(Qt.Key.Key_L, CTRL)
    whole.settle()
    assert person.actions <= 12
    edges = {f"{edge.from_} -> {edge.to}" for edge in whole.workflow.edges}
    assert edges == {
        "input.value -> loop.input",
        f"loop.body -> {first}.input",
        f"{first}.output -> {second}.input",
        f"{second}.output -> exit.input",
        "exit.output -> output.value",
    }
    assert [whole.workflow.node(node).config["prompt"] for node in (first, second)] == [
        "Write a note about {{input}}.",
        "Improve this: {{input}}",
    ]
    assert not has_errors(whole.document.session.problems)
    cards = [item.card_rect for item in whole.document.canvas.view.nodes.values()]
    assert not any(one.intersects(other) for index, one in enumerate(cards) for other in cards[index + 1 :])
    visible = whole.document.canvas.viewer.mapToScene(whole.document.canvas.viewer.viewport().rect()).boundingRect()
    assert visible.contains(whole.document.canvas.view.content_rect)


def test_two_nodes_are_wrapped_in_a_loop_and_run_in_four_actions(person: Person, tmp_path: Path) -> None:
    """Wrap two nodes in a loop and run"""
    whole = person.whole
    open_workflow(whole, chain(), tmp_path)
    person.actions = 0
    person.select_around("first", "second")
    person.key(Qt.Key.Key_L, CTRL)
    whole.settle()
    person.key(Qt.Key.Key_F5)
    run = ended_run(whole)
    assert run.status == "completed"
    assert [len(loop.iterations) for loop in run.loops.values()] == [LoopConfig().max_iterations]
    assert person.actions <= 4


def test_the_choice_how_a_loop_stops_ends_it(person: Person) -> None:
    """Choose how a loop stops"""
    whole = person.whole
    whole.workbench.documents.open_template(TEMPLATE)
    entry = choose_stop(whole, "When the text stops changing")
    threshold = entry.rows.rows["threshold"].editor.main_widget
    click(threshold)
    whole.fill(0.9)
    whole.press(Qt.Key.Key_Tab)
    assert whole.workflow.node("loop").config["stop_when"] == [{"condition": "stable_output", "threshold": 0.9}]
    press_run(whole)
    loop = ended_run(whole).loops["loop"]
    assert (loop.exit_reason, len(loop.iterations)) == ("stable_output", 2)


def test_a_condition_is_set_without_an_expression(person: Person) -> None:
    """Set a condition without writing an expression"""
    whole = person.whole
    whole.workbench.documents.open_template(TEMPLATE)
    entry = choose_stop(whole, "When a condition is true")
    editor = entry.rows.rows["expression"].editor
    assert isinstance(editor, ComparisonEditor)
    (row,) = editor.rows
    click(row.left.lineEdit())
    whole.fill("output")
    choose(row.comparison, "contains")
    click(row.right.lineEdit())
    whole.fill("friendly")
    whole.press(Qt.Key.Key_Tab)
    expression = 'output.contains("friendly")'
    assert whole.workflow.node("loop").config["stop_when"] == [{"condition": "until", "expression": expression}]
    press_run(whole)
    loop = ended_run(whole).loops["loop"]
    assert (loop.exit_reason, len(loop.iterations)) == ("until", 1)


def test_an_approval_is_answered_with_a_changed_value(person: Person, tmp_path: Path) -> None:
    """Answer an approval"""
    whole = person.whole
    open_workflow(whole, drafted(), tmp_path)
    whole.document.canvas.setFocus()
    whole.press(Qt.Key.Key_F5)
    stack = whole.document.questions
    whole.qtbot.waitUntil(lambda: stack.current is not None and stack.current.isVisible())
    card = stack.current
    assert card is not None
    assert focus() is card.value
    whole.fill("A kind note.")
    press(card, "Approve")
    run = ended_run(whole)
    assert (run.status, run.outputs) == ("completed", {"out": "A kind note."})


def test_each_iteration_shows_what_it_did(refining: Whole) -> None:
    """See what each iteration did"""
    panel = iterations_panel(refining)
    click_iteration(panel, 1)
    view = refining.document.canvas.view
    refining.qtbot.waitUntil(lambda: "draft 1" in view.nodes["draft"].status_item.status.line)
    refining.hand.click(refining.hand.title("critique"))
    tabs = refining.document.inspector.tabs
    at = next(at for at in range(tabs.count()) if tabs.tabText(at).startswith("Result"))
    QTest.mouseClick(tabs, Qt.MouseButton.LeftButton, pos=tabs.tabRect(at).center())
    result = refining.document.inspector.result
    refining.qtbot.waitUntil(lambda: "Say more, advice 1." in texts_of(result))


def test_two_iterations_are_compared(refining: Whole) -> None:
    """Compare two iterations"""
    panel = iterations_panel(refining)
    click_iteration(panel, 3)
    press(panel, "Compare…")
    window = refining.workbench.history.compare
    assert window is not None
    refining.qtbot.waitUntil(lambda: window.left.place.count() > 0)
    choose(window.left.place, "Iteration 1")
    expected = ["The sea is wide, draft 1.", "The sea is wide, draft 3."]
    refining.qtbot.waitUntil(lambda: [pane.toPlainText() for pane in window.panes] == expected)
    assert window.line.text() == "1 place differs: 1 word removed, 1 word added."
    window.close()


def test_a_run_is_forked_from_an_iteration_with_another_prompt(refining: Whole) -> None:
    """Fork from an iteration with another prompt"""
    parent = refining.document
    panel = iterations_panel(refining)
    click_iteration(panel, 2)
    press(panel, "Fork from here…")
    window = refining.workbench.window
    refining.qtbot.waitUntil(lambda: bool(window.findChildren(ForkDialog)))
    (dialog,) = window.findChildren(ForkDialog)
    click(prompt_of(dialog.form, "draft").viewport())
    refining.fill("Write about the moon: {{input}}")
    refining.qtbot.waitUntil(dialog.run.isEnabled)
    click(dialog.run)
    refining.qtbot.waitUntil(lambda: refining.workbench.current is not parent)
    assert ended_run(refining).status == "completed"
    assert refining.workflow.node("draft").config["prompt"] == "Write about the moon: {{input}}"
    assert parent.session.workflow.node("draft").config["prompt"] == "Write: {{input}}"


def test_a_workflow_runs_for_each_row_of_a_table(refining: Whole) -> None:
    """Run a workflow for each row of a table"""
    choose_entry(refining, "Run", "Run batch…")
    (batch,) = refining.workbench.window.findChildren(BatchWindow)
    QApplication.clipboard().setText("task\tid\nthe sun\t1\nthe rain\t2\n")
    press(batch, "Paste")
    refining.qtbot.waitUntil(batch.start.isEnabled)
    with refining.qtbot.waitSignal(batch.run_ended):
        click(batch.start)
    results = batch.view.model()
    assert [results.index(row, STATE).data() for row in range(results.rowCount())] == ["Done", "Done"]
    batch.close()


def test_a_result_is_saved_as_a_file(refining: Whole, tmp_path: Path, answers: Answers) -> None:
    """Save the result"""
    answers.to_save = tmp_path / "run.md"
    panel = iterations_panel(refining)
    click(panel.export)
    refining.qtbot.waitUntil(lambda: QApplication.activePopupWidget() is not None)
    menu = QApplication.activePopupWidget()
    assert isinstance(menu, QMenu)
    (action,) = (one for one in menu.actions() if one.text() == "Export as Markdown…")
    QTest.mouseClick(menu, Qt.MouseButton.LeftButton, pos=menu.actionGeometry(action).center())
    refining.qtbot.waitUntil(answers.to_save.exists)
    refining.qtbot.waitUntil(lambda: "draft 3" in (tmp_path / "run.md").read_text("utf-8"))
    refining.qtbot.waitUntil(lambda: str(answers.to_save) in refining.workbench.status_bar.refusal.full_text)


def test_the_guide_has_a_picture_for_each_task_and_a_test_does_it() -> None:
    page = read("docs/window.md")
    section = page.partition("## Ten tasks\n")[2].partition("\n## ")[0]
    tasks = re.split(r"^### \d+\. ", section, flags=re.MULTILINE)[1:]
    tests = [value for name, value in globals().items() if name.startswith("test_") and value.__doc__]
    assert [task.partition("\n")[0] for task in tasks] == [test.__doc__ for test in tests]
    assert len(tasks) == 10
    assert all("](images/" in task for task in tasks)
