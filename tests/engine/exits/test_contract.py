"""The contract of exit conditions, built-in or of a plugin: they run and are explained, drawn and exported."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from engine import Workflow, validate
from engine.cli.catalog_commands import fields
from engine.document.files import dumps, loads
from engine.document.problems import faults
from engine.exits import loop_conditions
from engine.exits.condition import (
    ConditionConfig,
    ConditionSpec,
    EndedIteration,
    Evidence,
    ExitCondition,
    Need,
    PythonTest,
    SeriesSource,
)
from engine.exits.loop_conditions import KEY, add_condition, condition_specs, format_exit_reason, read_conditions
from engine.export.langgraph_module import export_langgraph
from engine.export.python_script import export_python
from engine.nodes.loop import LoopConfig
from engine.store.exit_explanation import describe_conditions, explain_exit
from tests.engine.semantics.documents import around, formula, rules
from tests.engine.semantics.kit import play

sys.path.append(str(Path(__file__).parents[3] / "docs/example-plugin"))
from loopwright_example.at_least import AT_LEAST

_SETTINGS: dict[str, dict[str, Any]] = {
    "until": {"expression": "size(output) > 2"},
    "score": {"minimum": 1.0},
    "plateau": {"patience": 1},
    "stable_output": {"threshold": 0.1},
    "oscillation": {"threshold": 0.1},
    "budget": {"budget_usd": 0.0},
    "time": {"seconds": 0.000001},
    "all_of": {"conditions": [{KEY: "max_iterations", "count": 2}, {KEY: "stable_output", "threshold": 0.1}]},
    "at_least": {"words": 1},
}
"""Settings with which the loop below stops by the condition."""
_BY_MODELS = {"judge"}
"""Conditions that need a model; `tests/engine/semantics/test_loop_judge.py` runs them."""
NAMES = [*condition_specs(), "at_least"]


@pytest.fixture(autouse=True)
def _with_a_plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_conditions, "_SPECS", dict(condition_specs()))
    add_condition(AT_LEAST)


def entry(name: str) -> dict[str, Any]:
    return {KEY: name, **_SETTINGS.get(name, {})}


def workflow(name: str) -> Workflow:
    """A loop that the condition stops, with all its needs."""
    spec = condition_specs()[name]
    config: dict[str, Any] = {"max_iterations": 6, "stop_when": [entry(name)]}
    if Need.SCORE in spec.needs:
        config["score"] = "1.0"
    if Need.JUDGE in spec.needs:
        config["judge"] = {"criteria": "It is good."}
    body = rules("check", {"done": "loop.iteration == 2", "continue": "else"})
    return (
        around(formula("draft", "'abc'"), body, edges="loop -> draft -> check\ncheck.done -> exit", **config)
        if (Need.EVALUATOR in spec.needs)
        else around(formula("draft", "'abc'"), edges="loop -> draft -> exit", **config)
    )


@pytest.mark.parametrize("name", NAMES)
def test_its_declaration_is_complete(name: str) -> None:
    spec = condition_specs()[name]

    assert spec.name == name
    assert spec.label.startswith(("When ", "After ")), "it is read as a sentence after 'Stop'"
    assert not spec.label.endswith(".")
    assert spec.help.endswith(".")
    assert spec.exit_reason_label
    for field in spec.config.model_fields.values():
        assert field.title
        assert field.description
    assert KEY not in spec.config.model_fields
    assert set(spec.expressions) <= set(spec.config.model_fields)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "all_of"])
def test_its_exit_reason_is_formatted_with_its_label(name: str) -> None:
    spec = condition_specs()[name]
    assert format_exit_reason(spec.reason) == spec.exit_reason_label
    assert format_exit_reason(f"{spec.reason}+cancelled") == f"{spec.exit_reason_label} and cancelled"


@pytest.mark.parametrize("name", NAMES)
def test_its_document_is_valid_and_saved_unchanged(name: str) -> None:
    made = workflow(name)
    assert validate(made) == []
    assert loads(dumps(made)) == made


@pytest.mark.parametrize("name", NAMES)
def test_it_is_in_the_schema_and_the_reference_of_the_loop(name: str) -> None:
    schema = LoopConfig.model_json_schema()["properties"]["stop_when"]["items"]["oneOf"]
    (own,) = [one for one in schema if one["properties"][KEY]["const"] == name]
    assert set(own["properties"]) == {KEY, *condition_specs()[name].config.model_fields}
    listed = {fact.name for fact in fields(LoopConfig)}
    assert {f"stop_when[].{field}" for field in condition_specs()[name].config.model_fields} <= listed


@pytest.mark.parametrize("name", [name for name in NAMES if name not in _BY_MODELS])
async def test_it_stops_a_loop_and_explains_why(name: str) -> None:
    made = workflow(name)
    played = await play(made)
    loop, spec = played.loop, condition_specs()[name]
    config = LoopConfig.model_validate(made.node("loop").config)

    reasons = {leaf.spec.reason for leaf in config.leaf_conditions}
    assert set(loop.exit_reason.split("+")) == reasons
    limits = {one.reason for one in condition_specs().values() if one.is_limit}
    assert loop.converged is not (reasons <= limits)
    for index, record in enumerate(loop.iterations):
        assert next(faults(record.tested), None) is None
        for text in describe_conditions(config, loop.iterations, index):
            assert text
            assert text == text.strip()
    sentence = explain_exit(config, loop.iterations, loop.exit_reason, 6)
    assert sentence.startswith(f"Stopped after {len(loop.iterations)} of 6: ")
    if spec.series is not None and spec.series.source is SeriesSource.TESTED:
        (condition,) = read_conditions([entry(name)], "stop_when")
        value = Evidence(loop.iterations).number(name)
        assert value is not None
        assert spec.series.title
        assert spec.series.format(value)
        assert spec.series.threshold(condition.config) is not None


@pytest.mark.parametrize("name", NAMES)
def test_it_is_exported_as_python_and_as_a_langgraph_module(name: str) -> None:
    made = workflow(name)
    script = export_python(made).text
    assert json.dumps(name) in script or repr(name) in script
    compile(script, "script.py", "exec")
    module = export_langgraph(made)
    compile(module.text, "module.py", "exec")
    assert not any("left out" in sentence for sentence in module.left_out)
    assert f"{condition_specs()[name].reason!r}" in module.text or name == "all_of"


class _NoConfig(ConditionConfig):
    pass


class _Never(ExitCondition):
    def reason(self, iteration: EndedIteration) -> str | None:
        return None


def test_a_condition_without_python_is_listed_as_left_out_of_the_export() -> None:
    add_condition(ConditionSpec("odd", "Odd", "Never.", _NoConfig, lambda _c: _Never(), lambda _c, _e: "odd"))
    module = export_langgraph(around(formula("draft", "'a'"), edges="loop -> draft -> exit", stop_when=[{KEY: "odd"}]))
    assert any("odd" in sentence for sentence in module.left_out)


def test_a_failing_explanation_falls_back_to_the_label() -> None:
    def explain(_config: object, _evidence: Evidence) -> str:
        raise ZeroDivisionError

    add_condition(ConditionSpec("odd", "Odd", "Never.", _NoConfig, lambda _c: _Never(), explain))
    (condition,) = read_conditions([{KEY: "odd"}], "stop_when")
    assert condition.explain(Evidence(())) == "odd"


def test_a_python_test_is_an_expression() -> None:
    assert PythonTest("1 > 0") == PythonTest("1 > 0", observes=False, module="")
