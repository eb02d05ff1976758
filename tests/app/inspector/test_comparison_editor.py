"""Conditions as rows: what a person does with them, and what the document has then."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from app.inspector.comparison_editor import ComparisonEditor, RuleEditor, read_value, written_value
from app.inspector.form_fields import ProblemLine
from app.inspector.object_editors import ObjectListEditor
from engine.document.builder import Builder
from engine.document.model import Workflow
from engine.document.operations import SetConfig
from engine.expr.comparisons import Comparison, Constant, Name
from engine.values import Value
from tests.app.inspector.conftest import Bench, OpenInspector


def validated(expression: str) -> Workflow:
    flow = Builder()
    text = flow.add("input", id="text")
    check = flow.add("validator", id="check", mode="expression", expression=expression)
    result = flow.add("output", id="out")
    flow.connect(text["value"], check["input"])
    flow.connect(check["valid"], result["value"])
    return flow.build()


@pytest.fixture
def bench(open_inspector: OpenInspector) -> Bench:
    bench = open_inspector(validated('input.contains("good")'))
    bench.select("check")
    bench.analyzed()
    return bench


def editor_of(bench: Bench) -> ComparisonEditor:
    editor = bench.editor("expression")
    assert isinstance(editor, ComparisonEditor)
    return editor


def expression(bench: Bench) -> object:
    return bench.config("check")["expression"]


def test_a_comparison_is_shown_as_a_row(bench: Bench) -> None:
    editor = editor_of(bench)
    [row] = editor.rows
    assert (row.left.currentText(), row.comparison.currentText(), row.right.currentText()) == (
        "input",
        "contains",
        "good",
    )
    assert row.isVisible()
    assert not editor.edit.isVisible()
    assert not editor.mode.isVisible()
    assert [row.left.itemText(0)] == ["input"]


def test_what_is_typed_in_a_row_becomes_the_expression(bench: Bench) -> None:
    [row] = editor_of(bench).rows
    row.right.setEditText('say "no"')
    assert expression(bench) == r'input.contains("say \"no\"")'
    row.comparison.setCurrentIndex(row.comparison.findData(Comparison.LONGER))
    row.comparison.activated.emit(row.comparison.currentIndex())
    row.right.setEditText("200")
    assert expression(bench) == "size(input) > 200"
    row.comparison.setCurrentIndex(row.comparison.findData(Comparison.EMPTY))
    row.comparison.activated.emit(row.comparison.currentIndex())
    assert expression(bench) == "size(input) == 0"
    assert not row.right.isVisible()


def test_rows_are_added_joined_and_removed(bench: Bench) -> None:
    editor = editor_of(bench)
    QTest.mouseClick(editor.add, Qt.MouseButton.LeftButton)
    second = editor.rows[1]
    assert expression(bench) == 'input.contains("good")'
    second.left.setEditText("input")
    second.right.setEditText("fine")
    assert expression(bench) == 'input.contains("good") && input.contains("fine")'
    assert editor.mode.isVisible()
    editor.mode.setCurrentIndex(1)
    editor.mode.activated.emit(1)
    assert expression(bench) == 'input.contains("good") || input.contains("fine")'
    QTest.mouseClick(editor.rows[0].remove, Qt.MouseButton.LeftButton)
    assert expression(bench) == 'input.contains("fine")'


def test_the_expression_is_a_click_away_and_back(bench: Bench) -> None:
    editor = editor_of(bench)
    QTest.mouseClick(editor.switch, Qt.MouseButton.LeftButton)
    assert editor.edit.isVisible()
    assert not editor.rows[0].isVisible()
    editor.edit.selectAll()
    QTest.keyClicks(editor.edit, "size(input) < 500")
    assert expression(bench) == "size(input) < 500"
    QTest.mouseClick(editor.switch, Qt.MouseButton.LeftButton)
    assert editor.rows[0].comparison.currentText() == "is shorter than"


def test_an_expression_that_is_no_comparison_stays_an_expression(open_inspector: OpenInspector) -> None:
    bench = open_inspector(validated("size(input) * 2 < 500"))
    bench.select("check")
    editor = editor_of(bench)
    assert editor.edit.isVisible()
    assert editor.note.isVisible()
    assert not editor.switch.isVisible()


def test_undo_shows_the_previous_row(bench: Bench) -> None:
    [row] = editor_of(bench).rows
    row.right.setEditText("fine")
    bench.session.undo()
    assert row.right.currentText() == "good"


def test_a_problem_offers_the_corrected_expression(open_inspector: OpenInspector) -> None:
    bench = open_inspector(validated('input contains "good"'))
    bench.select("check")
    bench.analyzed()
    bench.qtbot.waitUntil(lambda: bool(bench.problems("expression")))
    page = bench.page
    assert page.form is not None
    field = page.form.row("expression")
    assert field is not None
    [button] = [line.use for line in field.problems.findChildren(ProblemLine)]
    QTest.mouseClick(button, Qt.MouseButton.LeftButton)
    assert expression(bench) == 'input.contains("good")'
    bench.analyzed()
    bench.qtbot.waitUntil(lambda: not bench.problems("expression"))


@pytest.mark.parametrize(
    ("text", "comparison", "value"),
    [
        ("good", Comparison.EQUALS, "good"),
        ("8", Comparison.EQUALS, 8),
        ('"8"', Comparison.EQUALS, "8"),
        ("8", Comparison.CONTAINS, "8"),
        ("0.9", Comparison.AT_LEAST, 0.9),
        ("true", Comparison.EQUALS, True),
        ("output", Comparison.EQUALS, Name("output")),
        (" spaced ", Comparison.CONTAINS, " spaced "),
    ],
)
def test_a_value_is_read_as_what_a_person_means(text: str, comparison: Comparison, value: Name | Constant) -> None:
    assert read_value(text, comparison, ("output",)) == value


@pytest.mark.parametrize("value", ["good", "8", "true", 8, 0.5, True, None, 'say "no"', "", Name("a.b")])
def test_a_value_is_shown_so_that_it_is_read_as_the_same(value: Name | Constant) -> None:
    assert read_value(written_value(value), Comparison.EQUALS, ("a.b",)) == value


def routed(**config: Value) -> Workflow:
    flow = Builder()
    text = flow.add("input", id="text")
    router = flow.add("router", id="route", **config)
    flow.connect(text["value"], router["input"])
    return flow.build()


RULES = [{"name": "short", "when": "size(input) < 200"}, {"name": "long", "when": "else"}]


def rules_of(bench: Bench) -> list[RuleEditor]:
    """The editors of a router's rules."""
    branches = bench.editor("branches")
    assert isinstance(branches, ObjectListEditor)
    editors = [entry.rows.rows["when"].editor for entry in branches.entries]
    assert all(isinstance(editor, RuleEditor) for editor in editors)
    return editors


def shown_fields(bench: Bench) -> list[str]:
    """The visible fields of the first branch."""
    rows = bench.editor("branches").entries[0].rows.rows
    return [name for name, row in rows.items() if row.isVisible()]


def test_the_rules_of_a_router_are_rows(open_inspector: OpenInspector) -> None:
    bench = open_inspector(routed(mode="rules", branches=RULES))
    bench.select("route")
    first, last = rules_of(bench)
    [row] = first.rows
    assert (row.left.currentText(), row.comparison.currentText(), row.right.currentText()) == (
        "input",
        "is shorter than",
        "200",
    )
    assert row.left.itemText(0) == "input"
    row.right.setEditText("80")
    assert bench.config("route")["branches"] == [{"name": "short", "when": "size(input) < 80"}, RULES[1]]
    assert last.kind.currentText() == "Otherwise"
    assert not any(widget.isVisible() for widget in (*last.rows, last.add, last.switch, last.edit))
    QTest.mouseClick(first.switch, Qt.MouseButton.LeftButton)
    assert first.edit.isVisible()
    assert first.edit.text() == "size(input) < 80"


def test_otherwise_is_chosen_and_undone(open_inspector: OpenInspector) -> None:
    bench = open_inspector(routed(mode="rules", branches=[RULES[0], {"name": "long", "when": ""}]))
    bench.select("route")
    rule = rules_of(bench)[1]
    assert rule.rows[0].isVisible()
    rule.kind.setFocus()
    QTest.keyClick(rule.kind, Qt.Key.Key_Down)
    assert bench.config("route")["branches"] == RULES
    assert not rule.rows[0].isVisible()
    assert rule.kind.hasFocus()
    bench.session.undo()
    assert rule.kind.currentText() == "If this is true"
    assert rule.rows[0].isVisible()
    assert rule.kind.hasFocus()


@pytest.mark.parametrize("number", [0, 1])
def test_choosing_the_present_kind_again_keeps_the_rule(open_inspector: OpenInspector, number: int) -> None:
    bench = open_inspector(routed(mode="rules", branches=RULES))
    bench.select("route")
    kind = rules_of(bench)[number].kind
    kind.showPopup()
    QTest.keyClick(kind.view(), Qt.Key.Key_Return)
    assert not kind.view().isVisible()
    assert bench.config("route")["branches"] == RULES
    assert bench.session.undo_title is None


def test_a_branch_shows_what_its_router_decides_by(open_inspector: OpenInspector) -> None:
    bench = open_inspector(routed(branches=RULES))
    bench.select("route")
    assert shown_fields(bench) == ["name", "description"]
    bench.session.do(SetConfig(("mode",), {"route": "rules"}))
    assert shown_fields(bench) == ["name", "when"]
    bench.session.undo()
    assert shown_fields(bench) == ["name", "description"]


def test_a_half_typed_name_is_no_problem_until_its_field_is_left(bench: Bench) -> None:
    [row] = editor_of(bench).rows
    row.left.setFocus()
    QTest.keyClicks(row.left, ".")
    bench.analyzed()
    assert expression(bench) == 'input..contains("good")'
    assert bench.problems("expression") == []
    row.left.clearFocus()
    assert len(bench.problems("expression")) == 1
