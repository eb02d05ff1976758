"""Each kind of editor, driven by mouse and keyboard, and the resulting document."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from PySide6.QtCore import QEvent, QObject, QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QComboBox, QWidget

from app.inspector.editor import FieldProblem
from app.inspector.form_fields import FormFields
from engine.document.model import Node, Workflow
from engine.document.operations import UNSET, Connect, SetConfig
from engine.document.problems import Problem
from tests.app.inspector.conftest import Bench, OpenInspector, refine
from tests.wording import mentions

OneNode = Callable[..., Bench]
Key = Qt.Key
UNDO, REDO = Qt.Key.Key_Z, Qt.Key.Key_Y
CTRL = Qt.KeyboardModifier.ControlModifier


def press(widget: QWidget, key: Qt.Key, modifier: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier) -> None:
    QTest.keyClick(widget, key, modifier)


def choose(combo: QComboBox, steps: int) -> None:
    """Choose with the keyboard, a number of entries down (or up)."""
    combo.setFocus()
    for _ in range(abs(steps)):
        press(combo, Key.Key_Down if steps > 0 else Key.Key_Up)


def test_typing_updates_the_document_as_one_undo_step(one_node: OneNode) -> None:
    bench = one_node("input")
    line = bench.editor("name").line
    line.setFocus()
    seen = []
    bench.session.changed.connect(lambda _old, new: seen.append(new.node("it").config.get("name")))
    QTest.keyClicks(line, "abc")
    assert seen == ["a", "ab", "abc"]
    bench.session.undo()
    assert bench.config("it") == {}
    assert bench.session.undo_title is None
    assert line.text() == ""


def test_undo_and_redo_keys_in_a_field_apply_to_the_document(one_node: OneNode) -> None:
    bench = one_node("input")
    line = bench.editor("name").line
    line.setFocus()
    QTest.keyClicks(line, "abc")
    press(line, UNDO, CTRL)
    assert (bench.config("it"), line.text()) == ({}, "")
    press(line, REDO, CTRL)
    assert (bench.config("it"), line.text()) == ({"name": "abc"}, "abc")
    press(line, UNDO, CTRL)
    press(line, UNDO, CTRL | Qt.KeyboardModifier.ShiftModifier)
    assert bench.config("it") == {"name": "abc"}


def test_leaving_a_field_ends_the_undo_step(one_node: OneNode) -> None:
    bench = one_node("input")
    line = bench.editor("name").line
    line.setFocus()
    QTest.keyClicks(line, "a")
    bench.editor("description").edit.setFocus()
    line.setFocus()
    QTest.keyClicks(line, "b")
    bench.session.undo()
    assert bench.config("it") == {"name": "a"}


def test_clearing_a_field_to_its_default_removes_the_key(one_node: OneNode) -> None:
    bench = one_node("input", name="x", type="text")
    line = bench.editor("name").line
    line.setFocus()
    press(line, Key.Key_End)
    press(line, Key.Key_Backspace)
    assert bench.config("it") == {"type": "text"}


def test_undo_updates_the_text_and_keeps_the_cursor(one_node: OneNode) -> None:
    bench = one_node("llm", prompt="one two three")
    edit = bench.editor("prompt").edit
    edit.setFocus()
    press(edit, Key.Key_End)
    bench.session.do(SetConfig(("prompt",), {"it": "one 2 three"}))
    assert edit.text() == "one 2 three"
    assert edit.textCursor().position() == len("one 2 three")
    bench.session.undo()
    assert edit.text() == "one two three"
    assert edit.textCursor().position() == len("one two three")


def test_astral_characters_and_non_breaking_spaces_are_preserved(one_node: OneNode) -> None:
    bench = one_node("llm", prompt="a\u00a0😀 b")
    edit = bench.editor("prompt").edit
    edit.setFocus()
    press(edit, Key.Key_End)
    QTest.keyClicks(edit, "!")
    assert bench.config("it")["prompt"] == "a\u00a0😀 b!"
    bench.session.do(SetConfig(("prompt",), {"it": "a\u00a0😁 b!"}))
    assert edit.text() == "a\u00a0😁 b!"


def test_number_can_be_typed_stepped_and_cleared(one_node: OneNode) -> None:
    bench = one_node("llm")
    number = bench.editor("temperature").number
    number.setFocus()
    QTest.keyClicks(number, "0.7")
    assert bench.config("it") == {"temperature": 0.7}
    press(number, Key.Key_Up)
    assert bench.config("it") == {"temperature": 0.8}
    number.selectAll()
    press(number, Key.Key_Delete)
    assert bench.config("it") == {}


def test_number_steps_stop_at_the_limits(one_node: OneNode) -> None:
    bench = one_node("llm", temperature=2)
    number = bench.editor("temperature").number
    number.setFocus()
    press(number, Key.Key_Up)
    assert bench.config("it") == {"temperature": 2}
    number.selectAll()
    QTest.keyClicks(number, "9")
    press(number, Key.Key_Down)
    assert bench.config("it") == {"temperature": 2}


def test_optional_number_with_a_default_can_be_null(one_node: OneNode) -> None:
    bench = one_node("llm")
    number = bench.editor("max_tokens").number
    number.setFocus()
    assert number.text() == "1024"
    number.selectAll()
    press(number, Key.Key_Delete)
    assert bench.config("it") == {"max_tokens": None}
    QTest.keyClicks(number, "1024")
    assert bench.config("it") == {}


def test_cleared_number_shows_the_effective_value_on_focus_out(one_node: OneNode) -> None:
    bench = one_node("loop", max_iterations=7)
    number = bench.editor("max_iterations").number
    number.setFocus()
    number.selectAll()
    press(number, Key.Key_Delete)
    assert (number.text(), bench.config("it")) == ("", {})
    bench.editor("feedback_mode").combo.setFocus()
    assert number.text() == "5"


@pytest.mark.parametrize("typed", ["abc", "1.2.3", "-"])
def test_invalid_number_is_stored_and_marked(one_node: OneNode, typed: str) -> None:
    bench = one_node("llm")
    editor = bench.editor("temperature")
    editor.number.setFocus()
    QTest.keyClicks(editor.number, typed)
    assert bench.config("it") == {"temperature": typed}
    bench.qtbot.waitUntil(lambda: bench.problems("temperature") != [])
    assert "not a number" in bench.problems("temperature")[0]
    assert editor.number.property("invalid") is True
    editor.number.selectAll()
    QTest.keyClicks(editor.number, "1")
    bench.qtbot.waitUntil(lambda: bench.problems("temperature") == [])
    assert not editor.number.property("invalid")


def test_number_outside_its_limits_is_marked_with_a_remedy(one_node: OneNode) -> None:
    bench = one_node("llm")
    number = bench.editor("temperature").number
    number.setFocus()
    QTest.keyClicks(number, "3")
    bench.qtbot.waitUntil(lambda: bench.problems("temperature") != [])
    assert len(bench.problems("temperature")) == 1
    assert bench.problems("temperature")[0].endswith("Use 2 or less.")


def test_decimal_comma_is_accepted(one_node: OneNode) -> None:
    bench = one_node("llm")
    number = bench.editor("temperature").number
    number.setFocus()
    QTest.keyClicks(number, "0,5")
    assert bench.config("it") == {"temperature": 0.5}


def test_choice_by_keyboard_shows_its_help(one_node: OneNode) -> None:
    bench = one_node("loop")
    editor = bench.editor("feedback_mode")
    choose(editor.combo, 2)
    assert bench.config("it") == {"feedback_mode": "append_window"}
    assert editor.combo.currentText() == "Append: the latest few"
    row = bench.page.form.row("feedback_mode")
    assert mentions(row._help.text(), "original input … latest feedback")
    choose(editor.combo, -2)
    assert bench.config("it") == {}


def test_choice_shows_and_hides_fields(one_node: OneNode) -> None:
    bench = one_node("loop")
    form = bench.page.form
    assert form.row("append_window").isHidden()
    choose(bench.editor("feedback_mode").combo, 2)
    assert not form.row("append_window").isHidden()
    bench.session.undo()
    assert form.row("append_window").isHidden()


def test_hidden_field_with_a_problem_is_shown(one_node: OneNode) -> None:
    bench = one_node("loop", append_window=0)
    bench.analyzed()
    assert not bench.page.form.row("append_window").isHidden()


def test_unknown_choice_is_shown_as_missing(one_node: OneNode) -> None:
    bench = one_node("loop", feedback_mode="luck")
    assert bench.editor("feedback_mode").combo.currentText() == "luck (missing)"
    assert bench.problems("feedback_mode") != []


def test_space_bar_toggles_a_switch(one_node: OneNode) -> None:
    bench = one_node("loop")
    switch = bench.editor("inject_feedback").switch
    assert switch.isChecked()
    switch.setFocus()
    press(switch, Key.Key_Space)
    assert bench.config("it") == {"inject_feedback": False}
    press(switch, Key.Key_Space)
    assert bench.config("it") == {}
    bench.session.undo()
    assert not switch.isChecked()


def test_json_is_validated_while_typing(one_node: OneNode) -> None:
    bench = one_node("validator")
    editor = bench.editor("json_schema")
    editor.edit.setFocus()
    editor.edit.selectAll()
    QTest.keyClicks(editor.edit, '{"type": ')
    assert bench.config("it") == {"json_schema": '{"type": '}
    assert editor.status.text().startswith("Invalid JSON in line 1, column 10")
    bench.qtbot.waitUntil(lambda: bench.problems("json_schema") != [])
    QTest.keyClicks(editor.edit, '"text"}')
    assert bench.config("it") == {"json_schema": {"type": "text"}}
    assert not editor.status.isVisible()
    bench.qtbot.waitUntil(lambda: "schema" in " ".join(bench.problems("json_schema")).lower())
    assert editor.edit.text() == '{"type": "text"}', "the typed text is not reformatted"


@pytest.mark.parametrize(
    ("before", "typed", "after"),
    [
        ({"strict": 1}, '{"strict": true}', {"strict": True}),
        ({"at_most": 1}, '{"at_most": 1.0}', {"at_most": 1.0}),
        ({"first": 1, "second": 2}, '{"second": 2, "first": 1}', {"second": 2, "first": 1}),
    ],
)
def test_json_values_equal_in_python_are_still_changes(
    one_node: OneNode, before: object, typed: str, after: object
) -> None:
    bench = one_node("validator", json_schema=before)
    editor = bench.editor("json_schema")
    shown = editor.edit.text()

    editor.edit.setPlainText(typed)
    assert json.dumps(bench.config("it")) == json.dumps({"json_schema": after})

    bench.session.undo()
    assert json.dumps(bench.config("it")) == json.dumps({"json_schema": before})
    assert editor.edit.text() == shown


def test_cleared_optional_json_is_null(one_node: OneNode) -> None:
    bench = one_node("llm", reply_schema={"type": "object"})
    editor = bench.editor("reply_schema")
    assert editor.edit.text() == '{\n  "type": "object"\n}'
    editor.edit.setFocus()
    editor.edit.selectAll()
    press(editor.edit, Key.Key_Delete)
    assert bench.config("it") == {}


@pytest.mark.parametrize(
    ("typed", "value", "status"),
    [
        ("hello", "hello", ""),
        ("5", 5, "Interpreted as a number."),
        ('"5"', "5", ""),
        ("[1]", [1], "Interpreted as a list."),
    ],
)
def test_any_value_is_json_or_text(one_node: OneNode, typed: str, value: object, status: str) -> None:
    bench = one_node("input")
    editor = bench.editor("default")
    editor.edit.setFocus()
    QTest.keyClicks(editor.edit, typed)
    assert bench.config("it") == {"default": value}
    assert editor.status.text() == status
    bench.session.undo()
    bench.session.redo()
    assert editor._parse(editor.edit.text()) == value


def test_model_can_be_typed_or_chosen(one_node: OneNode) -> None:
    bench = one_node("llm")
    editor = bench.editor("model")
    editor.line.setFocus()
    QTest.keyClicks(editor.line, "groq/x")
    assert bench.config("it") == {"model": "groq/x"}
    press(editor.combo, Key.Key_Down)
    press(editor.combo.list.filter, Key.Key_Return)
    assert bench.config("it") == {"model": "embedded:smollm2-135m"}
    bench.session.undo()
    assert bench.config("it") == {"model": "groq/x"}
    editor.line.selectAll()
    press(editor.line, Key.Key_Delete)
    assert bench.config("it") == {}


def test_last_branch_can_be_removed(one_node: OneNode) -> None:
    bench = one_node("router", branches=[{"name": "only"}])
    editor = bench.editor("branches")
    editor.entries[0].buttons["remove"].click()
    assert bench.config("it") == {"branches": []}
    assert editor.add.hasFocus()
    bench.qtbot.waitUntil(lambda: bench.problems("branches") != [])
    assert editor.add.property("invalid") is True
    bench.inspector.focus_field("it", "branches")
    assert editor.add.hasFocus()


def test_value_that_is_no_list_shows_no_branches(one_node: OneNode) -> None:
    bench = one_node("router", branches="oops")
    assert bench.editor("branches").entries == []
    assert bench.problems("branches") != []


def test_step_from_an_invalid_number_starts_at_the_default(one_node: OneNode) -> None:
    bench = one_node("loop", max_iterations="many")
    number = bench.editor("max_iterations").number
    number.setFocus()
    press(number, Key.Key_Up)
    assert bench.config("it") == {}
    assert number.text() == "5"
    bench.session.do(SetConfig(("stop_when",), {"it": [{"condition": "stable_output"}]}))
    similar = bench.editor("stop_when").entries[0].rows.rows["threshold"].editor.number
    similar.setFocus()
    press(similar, Key.Key_Down)
    assert bench.config("it") == {"stop_when": [{"condition": "stable_output", "threshold": 0.94}]}
    bench.session.do(SetConfig(("stop_when",), {"it": UNSET}))
    limit = bench.editor("timeout_s").number
    limit.setFocus()
    press(limit, Key.Key_Up)
    assert limit.text() == "0"


def test_branches_can_be_added_edited_moved_and_removed(one_node: OneNode) -> None:
    bench = one_node("router")
    editor = bench.editor("branches")
    assert len(editor.entries) == 2
    editor.add.setFocus()
    press(editor.add, Key.Key_Space)
    assert [branch["name"] for branch in bench.config("it")["branches"]] == ["done", "continue", "branch"]
    name = editor.entries[2].rows.rows["name"].editor.line
    bench.qtbot.waitUntil(name.hasFocus)
    name.selectAll()
    QTest.keyClicks(name, "redo")
    editor.entries[2].buttons["up"].click()
    assert [branch["name"] for branch in bench.config("it")["branches"]] == ["done", "redo", "continue"]
    assert editor.entries[1].rows.rows["name"].editor.line.text() == "redo"
    editor.entries[1].buttons["remove"].click()
    assert bench.config("it") == {}, "the usual two branches are the default"
    for expected in (["done", "redo", "continue"], ["done", "continue", "redo"], ["done", "continue", "branch"]):
        bench.session.undo()
        assert [branch["name"] for branch in bench.config("it")["branches"]] == expected
    bench.session.undo()
    assert (bench.config("it"), len(editor.entries)) == ({}, 2)


def test_problem_in_a_branch_is_shown_at_its_field(one_node: OneNode) -> None:
    bench = one_node("router", criteria="good?")
    editor = bench.editor("branches")
    name = editor.entries[1].rows.rows["name"].editor.line
    name.setFocus()
    name.selectAll()
    QTest.keyClicks(name, "done")
    row = editor.entries[1].rows.rows["name"]
    bench.qtbot.waitUntil(lambda: row.problems.texts != [])
    assert row.problems.texts == ['Two branches are called "done". Rename one.']
    assert bench.problems("branches") == []
    bench.inspector.focus_field("it", "branches.0.description")
    assert editor.entries[0].rows.rows["description"].editor.edit.hasFocus()


def test_argument_fields_are_the_parameters_of_the_tool(one_node: OneNode) -> None:
    bench = one_node("tool")
    editor = bench.editor("arguments")
    assert editor.rows is None
    choose(bench.editor("tool").combo, 1)
    assert bench.config("it") == {"tool": "search_files"}
    assert list(editor.rows.rows) == ["query", "folder", "limit"]
    query = editor.rows.rows["query"].editor.edit
    query.setFocus()
    QTest.keyClicks(query, "lamps")
    limit = editor.rows.rows["limit"].editor.number
    limit.setFocus()
    limit.selectAll()
    QTest.keyClicks(limit, "9")
    assert bench.config("it") == {"tool": "search_files", "arguments": {"query": "lamps", "limit": 9}}
    query.setFocus()
    query.selectAll()
    press(query, Key.Key_Delete)
    limit.setFocus()
    limit.selectAll()
    press(limit, Key.Key_Delete)
    assert bench.config("it") == {"tool": "search_files"}


def test_changing_the_tool_changes_the_argument_fields(one_node: OneNode) -> None:
    bench = one_node("tool", tool="search_files", arguments={"limit": 3})
    editor = bench.editor("arguments")
    bench.session.do(SetConfig(("tool",), {"it": "read_file"}))
    assert list(editor.rows.rows) == ["path", "max_bytes"]
    bench.inspector.focus_field("it", "arguments.path")
    assert editor.rows.rows["path"].editor.line.hasFocus()
    bench.inspector.focus_field("it", "arguments")
    assert editor.rows.rows["path"].editor.line.hasFocus()
    bench.session.seal()
    bench.session.do(SetConfig(("tool",), {"it": "no_such_tool"}))
    assert editor.rows is None
    bench.session.undo()
    assert "path" in editor.rows.rows


def test_invalid_argument_is_shown_at_its_field(one_node: OneNode) -> None:
    bench = one_node("tool", tool="search_files", arguments={"query": "x"})
    editor = bench.editor("arguments")
    fault = FieldProblem("limit", Problem("bad", "This is too many.", "Give fewer."))
    assert editor.show_problems([fault, FieldProblem("", Problem("other", "All of it."))]) != [fault]
    assert editor.rows.rows["limit"].problems.texts == ["This is too many. Give fewer."]


def test_unknown_argument_is_reported(one_node: OneNode) -> None:
    bench = one_node("tool", tool="search_files", arguments={"colour": 1, "limit": 3})
    assert "colour" in bench.problems("arguments")[0]
    assert bench.editor("arguments").rows.rows["limit"].editor.number.text() == "3"


def test_argument_from_an_edge_is_read_only(open_inspector: OpenInspector) -> None:
    nodes = (
        Node(id="ask", type="input", title="Question"),
        Node(id="it", type="tool", config={"tool": "search_files"}),
    )
    bench = open_inspector(Workflow(nodes=nodes))
    bench.select("it")
    row = bench.editor("arguments").rows.rows["query"]
    assert row.editor.isEnabled()
    bench.session.do(Connect.between("ask.value", "it.query"))
    bench.qtbot.waitUntil(lambda: not row.editor.isEnabled())
    assert row._help.text() == "From Question (connected by an edge)"
    bench.session.undo()
    bench.qtbot.waitUntil(row.editor.isEnabled)


def test_loop_and_router_are_chosen_from_the_document(open_inspector: OpenInspector) -> None:
    bench = open_inspector(refine())
    bench.select("end")
    combo = bench.editor("loop").combo
    assert combo.currentText() == "Refine (loop)"
    choose(combo, -1)
    assert (combo.currentText(), bench.config("end")) == ("Automatic", {})
    bench.session.do(SetConfig(("loop",), {"end": "gone"}))
    assert combo.currentText() == "gone (missing)"
    bench.session.do(SetConfig(("loop",), {"end": UNSET}))
    bench.select("loop")
    bench.session.do(SetConfig(("stop_when",), {"loop": [{"condition": "evaluator"}]}))
    router = bench.editor("evaluator").combo
    assert [router.itemText(row) for row in range(router.count())] == ["Automatic"]


def test_mouse_wheel_scrolls_and_never_changes_a_value(one_node: OneNode) -> None:
    bench = one_node("llm", temperature=1)
    number = bench.editor("temperature").number
    bench.editor("prompt").edit.setFocus()
    place = QPointF(number.rect().center())
    event = QWheelEvent(
        place,
        QPointF(number.mapToGlobal(place.toPoint())),
        QPoint(),
        QPoint(0, 120),
        Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier,
        Qt.ScrollPhase.NoScrollPhase,
        False,  # Qt takes it by place only
    )
    QApplication.sendEvent(number, event)
    assert bench.config("it") == {"temperature": 1}


def test_text_field_grows_up_to_a_limit(one_node: OneNode) -> None:
    bench = one_node("llm")
    edit = bench.editor("prompt").edit
    edit.setFocus()
    low = edit.height()
    QTest.keyClicks(edit, "\r" * 6)
    bench.qtbot.waitUntil(lambda: edit.height() > low)
    QTest.keyClicks(edit, "\r" * 40)
    bench.qtbot.waitUntil(lambda: edit.verticalScrollBar().maximum() > 0)
    assert edit.height() < 20 * edit.fontMetrics().lineSpacing()


def test_object_with_only_defaults_is_removed(one_node: OneNode) -> None:
    bench = one_node("loop", stop_when=[{"condition": "judge"}])
    judge = bench.editor("judge")
    assert judge.isVisibleTo(judge.window())
    criteria = judge.main.rows["criteria"].editor
    criteria.focus_path("")
    QTest.keyClicks(QApplication.focusWidget(), "It rhymes.")
    assert bench.config("it")["judge"] == {"criteria": "It rhymes."}
    judge.main.rows["rubric"].editor.add.click()
    assert (
        bench.config("it")["judge"]["rubric"] == [{"name": "name_1"}] or len(bench.config("it")["judge"]["rubric"]) == 1
    )
    bench.session.undo()
    bench.session.undo()
    assert "judge" not in bench.config("it")


def test_advanced_field_of_an_object_shows_and_writes_its_value(one_node: OneNode) -> None:
    bench = one_node("loop", stop_when=[{"condition": "judge"}], judge={"criteria": "It rhymes.", "runs": 3})
    judge = bench.editor("judge")
    judge.advanced_button.click()
    runs = judge.advanced.rows["runs"].editor.number.lineEdit()
    assert runs.isVisibleTo(judge)
    assert runs.text() == "3"
    runs.selectAll()
    QTest.keyClicks(runs, "5")
    assert bench.config("it")["judge"] == {"criteria": "It rhymes.", "runs": 5}
    judge.advanced_button.click()
    assert not runs.isVisibleTo(judge)
    bench.session.undo()
    assert runs.text() == "3"


def test_problem_in_an_object_is_shown_at_its_field(one_node: OneNode) -> None:
    bench = one_node("loop", stop_when=[{"condition": "judge"}], judge={"criteria": "{{unclosed"})
    bench.analyzed()
    judge = bench.editor("judge")
    assert judge.main.rows["criteria"].has_problems
    assert not judge.advanced_button.isChecked()


def test_problem_in_an_advanced_field_of_an_object_expands_it(one_node: OneNode) -> None:
    bench = one_node("loop", stop_when=[{"condition": "judge"}], judge={"criteria": "It rhymes.", "runs": 0})
    bench.analyzed()
    judge = bench.editor("judge")
    assert judge.advanced.rows["runs"].has_problems
    assert judge.advanced_button.isChecked()


def test_criteria_of_a_judge_offer_the_names_of_the_iteration(one_node: OneNode) -> None:
    bench = one_node("loop", stop_when=[{"condition": "judge"}], judge={"criteria": "It rhymes."})
    criteria = bench.editor("judge").main.rows["criteria"].editor
    assert criteria.path == ("judge", "criteria")
    assert "output" in [variable.text for variable in criteria.edit.variables]


def test_field_added_and_removed_at_once_is_not_shown_as_a_window(one_node: Callable[..., Bench]) -> None:
    bench = one_node("llm")
    form = next(form for form in bench.inspector.findChildren(FormFields) if form.isVisible())
    fields = {name: row.field for name, row in form.rows.items()}
    assert fields
    form.set_fields([], {})
    form.set_fields(fields.values(), fields)  # Qt shows them later
    windows: list[bool] = []
    for row in form.rows.values():
        row.installEventFilter(ShowRecorder(row, windows))
    form.set_fields([], {})
    QApplication.processEvents()
    assert windows == []


class ShowRecorder(QObject):
    """Notes when its widget is shown as a window."""

    def __init__(self, parent: QWidget, windows: list[bool]) -> None:
        super().__init__(parent)
        self._windows = windows

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Show and isinstance(watched, QWidget) and watched.isWindow():
            self._windows.append(True)
        return False
