"""The form of a loop: few basic fields, and all that apply."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from app.inspector.field_spec import field_specs
from app.inspector.object_editors import ConditionsEditor
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
        ({}, ["max_iterations", "stop_when", "feedback_mode"]),
        (
            {"stop_when": [{"condition": "evaluator"}]},
            ["max_iterations", "stop_when", "feedback_mode", "evaluator"],
        ),
        ({"stop_when": [{"condition": "judge"}]}, ["max_iterations", "stop_when", "judge", "feedback_mode"]),
        ({"feedback_mode": "append_window"}, ["max_iterations", "stop_when", "feedback_mode", "append_window"]),
    ],
)
def test_loop_form_shows_four_fields_and_the_rest_under_advanced(
    one_node: OneNode, config: dict[str, Value], fields: list[str]
) -> None:
    bench = one_node("loop", **config)
    assert seen(bench) == fields
    assert len(fields) <= FOUR
    assert bench.page.form.advanced_button.text() == "Advanced"
    assert len(bench.page.form.fields) > 5 * FOUR


def conditions(bench: Bench) -> ConditionsEditor:
    editor = bench.editor("stop_when")
    assert isinstance(editor, ConditionsEditor)
    return editor


def pick(editor: ConditionsEditor, name: str) -> None:
    """Choose a condition in the menu of the button."""
    editor.fill_menu()
    labels = {action.text(): action for action in editor.menu.actions()}
    labels[condition_specs()[name].label].trigger()


def test_several_conditions_offer_any_or_all_and_the_judge(one_node: OneNode) -> None:
    bench = one_node("loop", stop_when=[{"condition": "budget"}, {"condition": "judge"}])
    assert seen(bench) == ["max_iterations", "stop_when", "stop_mode", "judge", "feedback_mode"]


def test_added_condition_shows_its_settings(one_node: OneNode) -> None:
    bench = one_node("loop")
    editor = conditions(bench)
    editor.fill_menu()
    assert [action.text() for action in editor.menu.actions()] == [one.label for one in condition_specs().values()]
    pick(editor, "stable_output")
    assert bench.config("it") == {"stop_when": [{"condition": "stable_output"}]}
    (entry,) = editor.entries
    assert list(entry.rows.rows) == ["condition", "threshold", "patience"]
    assert entry.rows.rows["condition"].editor.combo.currentText() == "The text stops changing"
    entry.rows.rows["threshold"].editor.focus_path("")
    QTest.keyClicks(QApplication.focusWidget(), "0.5")
    pick(editor, "until")
    bench.session.undo()
    assert len(editor.entries) == 1


def test_changing_a_condition_keeps_shared_settings(one_node: OneNode) -> None:
    bench = one_node("loop", stop_when=[{"condition": "stable_output", "threshold": 0.5, "patience": 2}])
    editor = conditions(bench)
    combo = editor.entries[0].rows.rows["condition"].editor.combo
    row = combo.findData("oscillation")
    combo.setCurrentIndex(row)
    combo.activated.emit(row)
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


def test_judge_that_is_set_is_visible(one_node: OneNode) -> None:
    assert "judge" in seen(one_node("loop", judge={"criteria": "Short."}))


def test_advanced_button_counts_the_settings_behind_it(one_node: OneNode) -> None:
    bench = one_node("loop", delay_s=2.0, retries=1)
    fold = bench.page.form.advanced_button
    assert fold.text() == "Advanced · 2 set"
    assert fold.accessibleName() == "Advanced · 2 set"
    bench.session.do(SetConfig("it", ("retries",), 0))
    assert fold.text() == "Advanced · 1 set"


@pytest.mark.parametrize("node_type", ["loop", "llm", "agent", "iterator", "approval", "tool"])
def test_advanced_fields_of_the_type_come_before_common_ones(node_type: str) -> None:
    spec = builtin_registry().find(node_type)
    assert spec is not None
    behind = [name for name, field in field_specs(spec.config).items() if field.is_advanced]
    common = [name in NodeConfig.model_fields for name in behind]
    assert common == sorted(common)
