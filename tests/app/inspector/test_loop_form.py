"""What the form of a loop shows: little at first, and never less than what works."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from app.inspector.field_spec import field_specs
from engine.document.operations import SetConfig
from engine.nodes.registry import builtin_registry
from engine.nodes.spec import NodeConfig
from engine.values import Value
from tests.app.inspector.conftest import Bench

OneNode = Callable[..., Bench]
FOUR = 4


def seen(bench: Bench) -> list[str]:
    """The fields that are seen without unfolding anything."""
    form = bench.page.form
    rows = ((name, form.row(name)) for name, field in form.fields.items() if not field.is_advanced)
    return [name for name, row in rows if row is not None and not row.isHidden()]


@pytest.mark.parametrize(
    ("config", "fields"),
    [
        ({}, ["max_iterations", "exit_condition", "feedback_mode"]),
        ({"exit_condition": "evaluator"}, ["max_iterations", "exit_condition", "feedback_mode", "evaluator"]),
        ({"exit_condition": "judge"}, ["max_iterations", "exit_condition", "judge", "feedback_mode"]),
        ({"feedback_mode": "append_window"}, ["max_iterations", "exit_condition", "feedback_mode", "append_window"]),
    ],
)
def test_a_new_user_sees_four_fields_at_the_most_and_the_rest_behind_more(
    one_node: OneNode, config: dict[str, Value], fields: list[str]
) -> None:
    bench = one_node("loop", **config)
    assert seen(bench) == fields
    assert len(fields) <= FOUR
    assert bench.page.form.advanced_button.text() == "Advanced"
    assert len(bench.page.form.fields) > 5 * FOUR


def test_several_conditions_take_the_place_of_the_one_and_bring_their_judge(one_node: OneNode) -> None:
    bench = one_node("loop", exit_conditions=[{"condition": "budget"}, {"condition": "judge"}])
    assert seen(bench) == ["max_iterations", "judge", "feedback_mode"]
    assert bench.page.form.advanced_button.text() == "Advanced · 1 set"
    bench.page.form.advanced_button.setChecked(True)
    assert bench.page.form.advanced_button.text() == "Advanced"


def test_a_judge_that_is_set_is_seen_since_it_scores_every_iteration(one_node: OneNode) -> None:
    assert "judge" in seen(one_node("loop", judge={"criteria": "Short."}))


def test_more_says_how_much_is_set_behind_it_and_keeps_count(one_node: OneNode) -> None:
    bench = one_node("loop", delay_s=2.0, retries=1)
    fold = bench.page.form.advanced_button
    assert fold.text() == "Advanced · 2 set"
    assert fold.accessibleName() == "Advanced · 2 set"
    bench.session.do(SetConfig("it", ("retries",), 0))
    assert fold.text() == "Advanced · 1 set"


@pytest.mark.parametrize("node_type", ["loop", "llm", "agent", "iterator", "approval", "tool"])
def test_behind_more_what_the_type_has_of_its_own_comes_first(node_type: str) -> None:
    spec = builtin_registry().find(node_type)
    assert spec is not None
    behind = [name for name, field in field_specs(spec.config).items() if field.is_advanced]
    common = [name in NodeConfig.model_fields for name in behind]
    assert common == sorted(common)
