"""The report of an import lists every member of the foreign file as carried over, changed or left out."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import DocumentError
from engine.importing.reader import ImportResult
from tests.engine.importing.samples import DEV_CYCLE, FAN_OUT, canvas, evaluated, read, rf_edge, rf_node
from tests.examples import examples

UNKNOWN = st.text(alphabet="abcdefghij", min_size=7, max_size=9).map(lambda text: f"un{text}")
TEXTS = st.sampled_from(["some text", "{{input}}", "0.4", "12", "30s", "true", "judge"])
THINGS: Any = st.one_of(
    TEXTS, st.integers(-3, 99), st.floats(0, 3), st.just(True), st.just({"type": "object"}), st.just(["done", "other"])
)
KINDS = (
    "input", "output", "llm", "router", "transform", "validator", "tool", "loop", "exit", "iterator", "aggregator",
    "approval", "subflow", "unheard_of",
)  # fmt: skip
OF_CARDS = (
    "maxIterations", "max_iterations", "exitCondition", "feedbackMode", "stabilityThreshold", "timeout", "model",
    "modelId", "provider", "temperature", "maxTokens", "systemPrompt", "prompt", "userPrompt", "template", "mode",
    "responseSchema", "schema", "criteria", "branches", "routes", "expression", "script", "name", "dataType",
    "defaultValue", "value", "description", "toolName", "arguments", "args", "maxConcurrency", "strategy", "separator",
    "message", "label", "workflow", "workflowId", "file", "evaluator",
)  # fmt: skip
OF_STEPS = ("agent", "instructions", "dependsOn", "condition", "if", "timeout", "retries", "retry", "prompt")
OF_LOOPS = (
    "forEach", "until", "untilAgent", "maxIterations", "delay", "outputMode", "maxConcurrency", "steps",
)  # fmt: skip
OF_AGENTS = (
    "description", "instructions", "systemPrompt", "model", "provider", "runtime", "temperature", "maxTokens",
    "resultSchema", "tools", "maxTurns",
)  # fmt: skip
OF_OPTIONS = ("onStepFailure", "stepTimeout", "maxConcurrency")


def members(names: tuple[str, ...], values: Any = THINGS) -> Any:
    """Objects with some of these members and perhaps unknown ones."""
    return st.dictionaries(st.sampled_from(names) | UNKNOWN, values, max_size=6)


def silent(imported: ImportResult, place: str, names: Any) -> list[str]:
    """The members of the object at that place that no line of the report mentions."""
    lines = [entry for entry in imported.entries if entry.place.startswith(place) or not place]
    written = [f"{entry.place.removeprefix(place)} {entry.message}" for entry in lines]
    return [name for name in names if not any(name in line for line in written)]


@examples(40)
@given(kind=st.sampled_from(KINDS), config=members(OF_CARDS), beside=members(("colour", "version", "id")))
def test_every_member_of_a_node_is_reported(kind: str, config: dict[str, Any], beside: dict[str, Any]) -> None:
    text = canvas(
        [rf_node("in", "input"), rf_node("it", kind, **config), rf_node("out", "output")],
        [{**rf_edge("in", "it"), "animated": True}, rf_edge("it", "out")],
        **{key: value for key, value in beside.items() if key != "id"},
    )
    imported = read(text)
    assert silent(imported, "node it", config) == []
    assert (
        silent(imported, "", [*beside.keys() - {"id"}, "viewport", "position", "selected", "width", "animated"]) == []
    )
    edges = [entry.place for entry in imported.entries if entry.place.startswith("edge ")]
    assert sorted(edges) == ["edge in -> it", "edge it -> out"]


@examples(40)
@given(
    step=members(OF_STEPS),
    loop=st.none() | members(OF_LOOPS),
    agent=members(OF_AGENTS),
    options=members(OF_OPTIONS),
    top=members(("name", "description", "model", "version")),
)
def test_every_member_of_a_step_an_agent_and_the_options_is_reported(
    step: dict[str, Any], loop: Any, agent: dict[str, Any], options: dict[str, Any], top: dict[str, Any]
) -> None:
    whole = {"id": "it", "instructions": "Do it.", **step, **({"loop": loop} if loop is not None else {})}
    steps = [{"id": "first", "agent": "worker", "instructions": "Begin."}, whole]
    text = json.dumps({**top, "agents": {"worker": agent}, "options": options, "steps": steps})
    try:
        imported = read(text, is_yaml=False)
    except DocumentError:
        return
    assert silent(imported, "step it", whole.keys() - {"id"}) == []
    assert silent(imported, "step it, loop", loop or {}) == []
    assert silent(imported, "agent worker", agent) == []
    assert silent(imported, "options", options) == []
    assert silent(imported, "", top) == []


@pytest.mark.parametrize("text", [evaluated(), DEV_CYCLE, FAN_OUT], ids=["canvas", "repeat", "for each"])
def test_a_member_is_reported_once_with_one_outcome(text: str) -> None:
    places = [entry.place for entry in read(text).entries]
    written = [str(entry) for entry in read(text).entries]
    assert len(set(written)) == len(written)
    assert all(places)


def test_members_around_a_canvas_are_reported_too() -> None:
    inner = json.loads(canvas([rf_node("in", "input"), rf_node("out", "output")], [rf_edge("in", "out")]))
    imported = read(json.dumps({"name": "Outer", "owner": "me", "graph": inner}))
    assert imported.workflow.name == "Canvas"
    assert {"name beside graph", "owner"} <= {entry.place for entry in imported.entries}


def test_two_synonyms_of_a_setting_have_a_line_each() -> None:
    nodes = [rf_node("in", "input"), rf_node("it", "router", prompt={"a": 1}, systemPrompt={"a": 1})]
    imported = read(canvas(nodes, [rf_edge("in", "it")]))
    assert {"node it, prompt", "node it, systemPrompt"} <= {entry.place for entry in imported.entries}


def test_a_label_that_is_not_text_is_reported_for_any_type() -> None:
    imported = read(canvas([rf_node("in", "input"), {"id": "it", "type": "x", "data": {"label": {"a": 1}}}], []))
    assert "node it, label" in {entry.place for entry in imported.entries}
