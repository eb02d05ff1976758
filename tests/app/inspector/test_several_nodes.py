"""Several selected nodes: the fields that they share, edited as one."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QToolButton

from app.inspector.editor import MULTIPLE_VALUES
from app.inspector.properties_pages import NodesPage
from engine.document.model import Node, Workflow
from engine.document.operations import RemoveNodes, SetConfig
from engine.values import Value
from tests.app.inspector.conftest import Bench, OpenInspector

Select = Callable[..., Bench]


def nodes_page(bench: Bench) -> NodesPage:
    page = bench.inspector.page
    assert isinstance(page, NodesPage)
    page.create_form()
    return page


@pytest.fixture
def several(open_inspector: OpenInspector) -> Select:
    """Opens nodes, given as type and settings by id, and selects all of them."""

    def make(**nodes: tuple[str, dict[str, Value]]) -> Bench:
        made = tuple(Node(id=node_id, type=node_type, config=config) for node_id, (node_type, config) in nodes.items())
        bench = open_inspector(Workflow(nodes=made))
        bench.select(*nodes)
        return bench

    return make


def type_over(text: str) -> None:
    """Replace the text of the field with the focus."""
    focus = QApplication.focusWidget()
    assert focus is not None
    QTest.keyClick(focus, Qt.Key.Key_A, Qt.KeyboardModifier.ControlModifier)
    QTest.keyClicks(focus, text)


def test_equal_values_are_shown_and_others_say_so(several: Select) -> None:
    bench = several(
        a=("llm", {"temperature": 0.5, "model": "m/one", "prompt": "One."}),
        b=("llm", {"temperature": 0.5, "prompt": "Two."}),
    )
    page = nodes_page(bench)
    assert page.title.text() == "2 nodes selected"
    assert bench.editor("temperature").number.text() == "0.5"
    prompt = bench.editor("prompt").edit
    assert (prompt.text(), prompt.placeholderText()) == ("", MULTIPLE_VALUES)
    line = bench.editor("model").line
    assert (line.text(), line.placeholderText()) == ("", MULTIPLE_VALUES)


def test_an_explicit_default_equals_a_missing_value(several: Select) -> None:
    bench = several(a=("loop", {"max_iterations": 5}), b=("loop", {}))
    assert bench.editor("max_iterations").number.text() == "5"


def test_typing_sets_the_value_of_all_in_one_undo_step(several: Select) -> None:
    bench = several(a=("llm", {"prompt": "One.", "seed": 1}), b=("llm", {"prompt": "Two."}))
    before = bench.session.workflow
    edit = bench.editor("prompt").edit
    edit.setFocus()
    QTest.keyClicks(edit, "Write.")
    assert [bench.config(node)["prompt"] for node in ("a", "b")] == ["Write.", "Write."]
    assert bench.config("a")["seed"] == 1
    bench.session.undo()
    assert bench.session.workflow == before
    assert (edit.text(), edit.placeholderText()) == ("", MULTIPLE_VALUES)
    assert edit.hasFocus()
    bench.session.redo()
    assert edit.text() == "Write."
    type_over("")
    QTest.keyClick(edit, Qt.Key.Key_Backspace)
    assert edit.placeholderText() != MULTIPLE_VALUES, "the empty text is the value of all"


def test_leaving_a_field_with_multiple_values_changes_nothing(several: Select) -> None:
    bench = several(a=("llm", {"max_tokens": 5}), b=("llm", {"max_tokens": 6}))
    before = bench.session.workflow
    number = bench.editor("max_tokens").number
    number.setFocus()
    bench.editor("temperature").number.setFocus()
    assert (number.text(), number.lineEdit().placeholderText()) == ("", MULTIPLE_VALUES)
    assert bench.session.workflow is before


def test_nodes_of_different_types_show_what_they_have_in_common(several: Select) -> None:
    bench = several(a=("llm", {"max_tokens": 300}), b=("router", {"mode": "model", "criteria": "Good."}))
    form = nodes_page(bench).form
    assert form is not None
    assert {"model", "temperature", "max_tokens", "retries"} <= set(form.fields)
    assert not {"prompt", "criteria", "branches"} & set(form.fields)
    number = bench.editor("max_tokens").number
    assert number.text() == "300", "the default of a router"
    number.setFocus()
    type_over("1024")
    assert (bench.config("a").get("max_tokens"), bench.config("b")["max_tokens"]) == (None, 1024), "LLM's own default"


def test_choices_and_switches_with_multiple_values(several: Select) -> None:
    bench = several(
        a=("loop", {"feedback_mode": "append", "inject_feedback": False}), b=("loop", {"inject_feedback": True})
    )
    combo = bench.editor("feedback_mode").combo
    assert (combo.currentIndex(), combo.placeholderText()) == (-1, MULTIPLE_VALUES)
    switch = bench.editor("inject_feedback").switch
    assert switch.text() == MULTIPLE_VALUES
    switch.click()
    assert [bench.config(node).get("inject_feedback", True) for node in ("a", "b")] == [True, True]
    assert (switch.text(), switch.isChecked()) == ("", True)
    combo.setFocus()
    QTest.keyClick(combo, Qt.Key.Key_End)
    assert [bench.config(node)["feedback_mode"] for node in ("a", "b")] == ["append_window", "append_window"]


def test_a_structured_field_takes_the_first_nodes_value_for_all(several: Select) -> None:
    listed = [{"condition": "stable_output", "threshold": 0.5}]
    bench = several(a=("loop", {"stop_when": listed}), b=("loop", {"stop_when": [{"condition": "judge"}]}))
    page = nodes_page(bench)
    assert page.form is not None
    row = page.form.row("stop_when")
    assert row is not None
    assert not row.editor.isVisible()
    [button] = [button for button in row.findChildren(QToolButton) if MULTIPLE_VALUES in button.text()]
    button.click()
    assert [bench.config(node)["stop_when"] for node in ("a", "b")] == [listed, listed]
    assert row.editor.isVisible()
    assert not button.isVisible()
    bench.session.undo()
    assert not row.editor.isVisible()
    assert button.isVisible()


def test_the_mode_of_conditions_that_differ_is_set_for_all(several: Select) -> None:
    listed = [{"condition": "budget"}, {"condition": "time"}]
    bench = several(a=("loop", {"stop_when": listed, "stop_mode": "all"}), b=("loop", {"stop_when": listed}))
    joiner = bench.editor("stop_when").entries[1].lead
    joiner.setCurrentIndex(1)
    joiner.activated.emit(1)
    assert [bench.config(node)["stop_mode"] for node in ("a", "b")] == ["all", "all"]


def test_all_nodes_are_disabled_in_one_undo_step(several: Select) -> None:
    bench = several(a=("llm", {}), b=("transform", {}))
    page = nodes_page(bench)
    page.enabled.click()
    assert [node.enabled for node in bench.session.workflow.nodes] == [False, False]
    bench.session.undo()
    assert page.enabled.isChecked()
    assert [node.enabled for node in bench.session.workflow.nodes] == [True, True]


def test_a_problem_of_several_nodes_is_shown_once(several: Select) -> None:
    bench = several(a=("llm", {"prompt": "{{input}}"}), b=("llm", {"prompt": "{{input}}"}))
    number = bench.editor("max_tokens").number
    number.setFocus()
    type_over("0")
    bench.analyzed()
    assert len(bench.problems("max_tokens")) == 1


def test_the_page_follows_changes_of_the_selection_and_of_the_document(several: Select) -> None:
    bench = several(a=("llm", {"seed": 1}), b=("llm", {"seed": 1}), c=("transform", {}))
    form = nodes_page(bench).form
    bench.select("a", "b")
    assert nodes_page(bench).form is not form
    assert bench.editor("seed").number.text() == "1"
    bench.session.do(SetConfig(("seed",), {"b": 2}))
    assert bench.editor("seed").number.text() == ""
    bench.session.do(RemoveNodes(("c",)))
    bench.select("a", "b")
    bench.session.do(RemoveNodes(("b",)))
    assert bench.session.selection == ("a",)
    assert bench.page.node_type == "llm"


def test_unknown_types_share_only_the_switch(several: Select) -> None:
    bench = several(a=("llm", {}), b=("moon", {}))
    form = nodes_page(bench).form
    assert form is not None
    assert form.fields == {}
    bench.inspector.focus_first_field()
    assert nodes_page(bench).enabled.hasFocus()
