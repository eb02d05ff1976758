"""The form of a loop: few basic fields, and all that apply."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QComboBox

from app.inspector.conditions_editor import ConditionsEditor
from app.inspector.field_spec import field_specs
from app.inspector.object_editors import ObjectEntry
from app.theme.style import style
from engine.document.operations import SetConfig
from engine.exits.loop_conditions import condition_specs
from engine.nodes.node_registry import builtin_registry
from engine.nodes.spec import NodeConfig
from engine.values import Value
from tests.app.inspector.conftest import Bench

OneNode = Callable[..., Bench]
FOUR = 4


def seen(bench: Bench) -> list[str]:
    """The fields that are visible without expanding anything."""
    form = bench.page.form
    rows = ((name, form.row(name)) for name, field in form.fields.items() if not field.is_advanced)
    return [name for name, row in rows if row is not None and not row.isHidden()]


@pytest.mark.parametrize(
    ("config", "fields"),
    [
        ({}, ["stop_when", "max_iterations", "feedback_mode"]),
        (
            {"stop_when": [{"condition": "evaluator"}]},
            ["stop_when", "evaluator", "max_iterations", "feedback_mode"],
        ),
        ({"stop_when": [{"condition": "judge"}]}, ["stop_when", "judge", "max_iterations", "feedback_mode"]),
        ({"stop_when": [{"condition": "score"}]}, ["stop_when", "judge", "max_iterations", "feedback_mode"]),
        ({"feedback_mode": "append_window"}, ["stop_when", "max_iterations", "feedback_mode", "append_window"]),
    ],
)
def test_loop_form_shows_four_fields_and_the_rest_under_more(
    one_node: OneNode, config: dict[str, Value], fields: list[str]
) -> None:
    bench = one_node("loop", **config)
    assert seen(bench) == fields
    assert len(fields) <= FOUR
    assert bench.page.form.advanced_button.text() == "More"
    assert len(bench.page.form.fields) > 5 * FOUR


@pytest.fixture
def large_text() -> Iterator[None]:
    style().choose("dark", 1.5)
    yield
    style().choose("dark", 1.0)


@pytest.mark.usefixtures("large_text")
def test_conditions_fit_a_narrow_inspector_with_large_text(one_node: OneNode) -> None:
    inner = [{"condition": "judge"}, {"condition": "until", "expression": "size(output) > 5"}]
    bench = one_node("loop", stop_when=[{"condition": "all_of", "conditions": inner}])
    bench.inspector.resize(390, 700)
    QApplication.processEvents()
    assert bench.page.minimumSizeHint().width() <= bench.page.width() <= bench.inspector.width()
    combo = sentence(conditions(bench).entries[0])
    combo.showPopup()
    longest = max(combo.fontMetrics().horizontalAdvance(combo.itemText(row)) for row in range(combo.count()))
    assert combo.view().viewport().width() >= longest
    combo.hidePopup()


def conditions(bench: Bench) -> ConditionsEditor:
    editor = bench.editor("stop_when")
    assert isinstance(editor, ConditionsEditor)
    return editor


def pick(editor: ConditionsEditor, name: str) -> None:
    """Choose a condition in the menu of the button."""
    editor.fill_menu()
    labels = {action.text(): action for action in editor.menu.actions()}
    labels[condition_specs()[name].label].trigger()


def sentence(entry: ObjectEntry) -> QComboBox:
    """The choice of a condition."""
    combo = entry.rows.rows["condition"].editor.combo
    assert isinstance(combo, QComboBox)
    return combo


def choose(entry: ObjectEntry, name: str) -> None:
    """Choose another condition for an entry."""
    combo = sentence(entry)
    row = combo.findData(name)
    assert row >= 0
    combo.setCurrentIndex(row)
    combo.activated.emit(row)


def leads(editor: ConditionsEditor) -> list[str]:
    """The words before the conditions."""
    leads = [entry.lead for entry in editor.entries]
    return [lead.currentText() if isinstance(lead, QComboBox) else lead.text() for lead in leads]


def test_a_loop_without_conditions_stops_after_a_number_of_iterations(one_node: OneNode) -> None:
    bench = one_node("loop")
    editor = conditions(bench)
    (entry,) = editor.entries
    assert sentence(entry).currentText() == "After a number of iterations"
    assert sentence(entry).isVisible()
    assert list(entry.rows.rows) == ["condition"], "the number is the loop's own field"
    assert not entry.header.isVisible()
    assert not editor.add.isVisible()
    assert sentence(entry).maxVisibleItems() >= sentence(entry).count() == len(condition_specs())


def test_a_condition_shows_no_help_that_repeats_its_sentence(one_node: OneNode) -> None:
    bench = one_node("loop", stop_when=[{"condition": "max_iterations"}, {"condition": "stable_output"}])
    counted, stable = (entry.rows.rows["condition"]._help for entry in conditions(bench).entries)
    assert (counted.text(), counted.isHidden()) == ("", True)
    assert (stable.text(), stable.isHidden()) == (condition_specs()["stable_output"].help, False)


@pytest.mark.parametrize("scale", [1.0, 1.5])
def test_the_arrow_of_the_menu_of_conditions_has_room_beside_the_label(one_node: OneNode, scale: float) -> None:
    style().choose("dark", scale)
    try:
        bench = one_node("loop", stop_when=[{"condition": "judge"}])
        add = conditions(bench).add
        label = add.fontMetrics().horizontalAdvance(add.text())
        assert add.sizeHint().width() - label >= 12 + 8 + 12 * scale + 8
    finally:
        style().choose("dark", 1.0)


def test_the_choice_reads_as_sentences_and_shows_the_fields_of_the_chosen_one(one_node: OneNode) -> None:
    bench = one_node("loop")
    editor = conditions(bench)
    combo = sentence(editor.entries[0])
    names = [combo.itemData(row) for row in range(5)]
    assert names == ["max_iterations", "judge", "stable_output", "score", "until"]
    assert all(combo.itemText(row).startswith(("After ", "When ")) for row in range(combo.count()))
    sentence(editor.entries[0]).setFocus()
    choose(editor.entries[0], "score")
    assert bench.config("it") == {"stop_when": [{"condition": "score"}]}
    assert list(editor.entries[0].rows.rows) == ["condition", "minimum"]
    assert sentence(editor.entries[0]).hasFocus()
    assert editor.add.isVisible()
    choose(editor.entries[0], "max_iterations")
    assert bench.config("it") == {}, "Max iterations says it already"
    bench.session.undo()
    assert bench.config("it") == {"stop_when": [{"condition": "score"}]}
    assert sentence(editor.entries[0]).currentData() == "score"
    assert sentence(editor.entries[0]).hasFocus()


def test_several_conditions_are_joined_with_or_and_and(one_node: OneNode) -> None:
    bench = one_node("loop", stop_when=[{"condition": "budget"}, {"condition": "judge"}, {"condition": "time"}])
    editor = conditions(bench)
    assert seen(bench) == ["stop_when", "judge", "max_iterations", "feedback_mode"]
    assert leads(editor) == ["Any of these", "or", "or"]
    joiner = editor.entries[1].lead
    assert isinstance(joiner, QComboBox)
    joiner.setFocus()
    QTest.keyClick(joiner, Qt.Key.Key_Down)
    assert bench.config("it")["stop_mode"] == "all"
    assert leads(editor) == ["All of these", "and", "and"]
    assert joiner.hasFocus()
    bench.session.undo()
    assert "stop_mode" not in bench.config("it")
    assert leads(editor) == ["Any of these", "or", "or"]


def test_removing_all_but_one_condition_shows_it_alone(one_node: OneNode) -> None:
    bench = one_node("loop", stop_when=[{"condition": "budget"}, {"condition": "time"}])
    editor = conditions(bench)
    assert all(entry.header.isVisible() for entry in editor.entries)
    editor.entries[0].buttons["remove"].click()
    (entry,) = editor.entries
    assert bench.config("it") == {"stop_when": [{"condition": "time"}]}
    assert not entry.header.isVisible()


def test_undo_keeps_the_focus_in_a_condition_whose_fields_are_replaced(one_node: OneNode) -> None:
    bench = one_node("loop", stop_when=[{"condition": "budget"}, {"condition": "stable_output"}])
    editor = conditions(bench)
    kept = [sentence(entry) for entry in editor.entries]
    choose(editor.entries[1], "oscillation")
    editor.entries[1].rows.rows["threshold"].editor.focus_path("")
    bench.session.undo()
    assert [sentence(entry) for entry in editor.entries] == kept
    assert kept[1].currentText() == "When the text stops changing"
    assert editor.entries[1].isAncestorOf(QApplication.focusWidget())


def test_added_condition_shows_its_settings(one_node: OneNode) -> None:
    bench = one_node("loop", stop_when=[{"condition": "time"}])
    editor = conditions(bench)
    editor.fill_menu()
    assert [action.text() for action in editor.menu.actions()] == [one.label for one in condition_specs().values()]
    pick(editor, "stable_output")
    assert bench.config("it") == {"stop_when": [{"condition": "time"}, {"condition": "stable_output"}]}
    entry = editor.entries[1]
    assert list(entry.rows.rows) == ["condition", "threshold", "patience"]
    assert entry.rows.rows["condition"].editor.combo.currentText() == "When the text stops changing"
    entry.rows.rows["threshold"].editor.focus_path("")
    QTest.keyClicks(QApplication.focusWidget(), "0.5")
    pick(editor, "until")
    bench.session.undo()
    assert len(editor.entries) == 2


def test_changing_a_condition_keeps_shared_settings(one_node: OneNode) -> None:
    bench = one_node("loop", stop_when=[{"condition": "stable_output", "threshold": 0.5, "patience": 2}])
    editor = conditions(bench)
    choose(editor.entries[0], "oscillation")
    assert bench.config("it") == {"stop_when": [{"condition": "oscillation", "threshold": 0.5}]}
    assert list(editor.entries[0].rows.rows) == ["condition", "threshold"]
    bench.session.undo()
    assert list(editor.entries[0].rows.rows) == ["condition", "threshold", "patience"]


def test_unknown_condition_is_shown_and_preserved(one_node: OneNode) -> None:
    bench = one_node("loop", stop_when=[{"condition": "moon", "phase": 3}])
    bench.analyzed()
    (entry,) = conditions(bench).entries
    assert entry.rows.rows["condition"].editor.combo.currentText() == "moon (missing)"
    assert entry.rows.rows["condition"].has_problems
    assert bench.config("it") == {"stop_when": [{"condition": "moon", "phase": 3}]}


def test_condition_group_has_a_nested_list_without_groups(one_node: OneNode) -> None:
    bench = one_node("loop", stop_when=[{"condition": "all_of", "conditions": [{"condition": "judge"}]}])
    inner = conditions(bench).entries[0].rows.rows["conditions"].editor
    assert isinstance(inner, ConditionsEditor)
    pick(inner, "until")
    group = {"condition": "all_of", "conditions": [{"condition": "judge"}, {"condition": "until"}]}
    assert bench.config("it") == {"stop_when": [group]}
    assert inner.entries[1].rows.rows["expression"].editor.path == ("stop_when", 0, "conditions", 1, "expression")
    assert condition_specs()["all_of"].label not in [action.text() for action in inner.menu.actions()]
    assert [sentence(entry).findData("all_of") for entry in inner.entries] == [-1, -1]
    assert leads(inner) == ["All of these", "and"]


def test_judge_that_is_set_is_visible(one_node: OneNode) -> None:
    assert "judge" in seen(one_node("loop", judge={"criteria": "Short."}))


def test_advanced_button_counts_the_settings_behind_it(one_node: OneNode) -> None:
    bench = one_node("loop", delay_s=2.0, retries=1)
    fold = bench.page.form.advanced_button
    assert fold.text() == "More · 2 set"
    assert fold.accessibleName() == "More · 2 set"
    bench.session.do(SetConfig(("retries",), {"it": 0}))
    assert fold.text() == "More · 1 set"


@pytest.mark.parametrize("node_type", ["loop", "llm", "agent", "iterator", "approval", "tool"])
def test_advanced_fields_of_the_type_come_before_common_ones(node_type: str) -> None:
    spec = builtin_registry().find(node_type)
    assert spec is not None
    behind = [name for name, field in field_specs(spec.config).items() if field.is_advanced]
    common = [name in NodeConfig.model_fields for name in behind]
    assert common == sorted(common)
