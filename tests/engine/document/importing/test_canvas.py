"""The canvas form: cards, handles and loops that hang on `output`."""

from __future__ import annotations

import json
from typing import Any

import pytest

from engine import DocumentError, validate
from engine.document.importing import Fate
from engine.document.problems import Severity
from tests.engine.document.importing.files import canvas, card, config, edges, evaluated, read, told, wire


def test_a_canvas_with_an_evaluator_is_a_document_without_problems() -> None:
    imported = read(evaluated())
    assert validate(imported.workflow) == []
    assert imported.form == "a canvas of nodes and edges"
    assert imported.workflow.name == "Canvas"
    assert [(node.id, node.type, node.title) for node in imported.workflow.nodes] == [
        ("in_1", "input", "Topic"),
        ("loop_1", "loop", "Refine"),
        ("draft", "llm", "Draft"),
        ("judge", "router", "Good?"),
        ("again", "transform", "Again"),
        ("exit_1", "exit", "Exit"),
        ("out", "output", "Text"),
        ("rounds", "output", "Rounds"),
    ]
    assert edges(imported) == {
        "in_1.value -> loop_1.input",
        "loop_1.body -> draft.input",
        "draft.output -> judge.input",
        "draft.output -> again.draft",
        "judge.done -> exit_1.input",
        "judge.continue -> again.input",
        "again.output -> exit_1.feedback",
        "exit_1.output -> out.value",
        "loop_1.count -> rounds.value",
    }
    assert config(imported, "exit_1") == {"loop": "loop_1"}
    assert imported.workflow.layout["nodes"]["again"] == {"x": 900, "y": 200}


def test_the_settings_of_a_loop_are_carried_over() -> None:
    imported = read(evaluated(exitCondition="stable_output", stabilityThreshold=0.8, feedbackMode="append"))
    assert config(imported, "loop_1") == {
        "max_iterations": 4,
        "exit_condition": "stable_output",
        "stability_threshold": 0.8,
        "feedback_mode": "append",
        "inject_feedback": False,
    }
    assert {"card loop-1, maxIterations", "card loop-1, exitCondition", "card loop-1, feedbackMode"} <= set(
        told(imported, Fate.CARRIED)
    )


@pytest.mark.parametrize(
    ("given", "kept", "fate"),
    [(3, 3, Fate.CARRIED), ("3", 3, Fate.CARRIED), (99, 50, Fate.CHANGED), (0, 1, Fate.CHANGED), ("x", 5, Fate.LEFT)],
)
def test_the_count_of_iterations(given: Any, kept: int, fate: Fate) -> None:
    imported = read(evaluated(maxIterations=given))
    assert config(imported, "loop_1")["max_iterations"] == kept
    assert "card loop-1, maxIterations" in told(imported, fate)


def test_an_edge_from_output_leads_past_the_loop_where_the_paths_say_so() -> None:
    text = canvas(
        [
            card("in", "input"),
            card("first", "loop"),
            card("one", "llm", prompt="{{input}}"),
            card("end_first", "exit"),
            card("second", "loop"),
            card("two", "llm", prompt="{{input}}"),
            card("end_second", "exit"),
            card("out", "output"),
            card("early", "output"),
        ],
        [
            wire("in", "first"),
            wire("first", "one"),
            wire("one", "end_first"),
            wire("first", "early"),
            wire("first", "second"),
            wire("second", "two"),
            wire("two", "end_second"),
            wire("end_second", "out"),
        ],
    )
    imported = read(text)
    assert validate(imported.workflow) == []
    assert {"first.body -> one.input", "first.output -> early.value", "first.output -> second.input"} <= edges(imported)
    assert config(imported, "end_second") == {"loop": "second"}


def test_nested_loops_are_paired_by_where_they_lie() -> None:
    text = canvas(
        [
            card("in", "input"),
            card("outer", "loop"),
            card("inner", "loop"),
            card("draft", "llm", prompt="{{input}}"),
            card("end_inner", "exit"),
            card("end_outer", "exit"),
            card("out", "output"),
        ],
        [
            wire("in", "outer"),
            wire("outer", "inner"),
            wire("inner", "draft"),
            wire("draft", "end_inner"),
            wire("end_inner", "end_outer"),
            wire("end_outer", "out"),
        ],
    )
    imported = read(text)
    assert validate(imported.workflow) == []
    assert {"outer.body -> inner.input", "inner.body -> draft.input"} <= edges(imported)
    assert (config(imported, "end_inner"), config(imported, "end_outer")) == ({"loop": "inner"}, {"loop": "outer"})


def test_names_in_prompts_become_edges() -> None:
    text = canvas(
        [
            card("in", "input", name="topic"),
            card("a", "llm", prompt="About {{ topic }}"),
            card("b", "llm", prompt="{{a.output}} and {{in}} and {{nobody}} and {{#each x}}"),
            card("c", "transform", template="{{left}} {{right-hand}}"),
            card("out", "output"),
        ],
        [
            wire("in", "a"),
            wire("a", "b"),
            wire("a", "c", to="left"),
            wire("b", "c", to="right-hand"),
            wire("c", "out"),
        ],
    )
    imported = read(text)
    assert config(imported, "a")["prompt"] == "About {{input}}"
    assert config(imported, "b")["prompt"] == "{{input}} and {{in}} and {{nobody}} and \\{{#each x}}"
    assert config(imported, "c")["template"] == "{{left}} {{right_hand}}"
    assert {"in.value -> b.in", "a.output -> c.left", "b.output -> c.right_hand"} <= edges(imported)
    assert told(imported, Fate.LEFT)["card b, {{nobody}}"] == "Nothing leads to it; connect something."


def test_models_get_their_provider_and_tools_our_name() -> None:
    text = canvas(
        [
            card("in", "input"),
            card("a", "llm", prompt="{{input}}", provider="anthropic", model="m-1", temperature=0.4, maxTokens=90),
            card("t", "tool", toolName="search", arguments={"limit": 2}),
            card("u", "tool", toolName="crystal_ball"),
            card("out", "output"),
        ],
        [wire("in", "a"), wire("a", "t"), wire("t", "u"), wire("u", "out")],
    )
    imported = read(text)
    assert config(imported, "a") == {
        "model": "anthropic/m-1",
        "temperature": 0.4,
        "max_tokens": 90,
        "prompt": "{{input}}",
    }
    assert config(imported, "t") == {"tool": "search_files", "arguments": {"limit": 2}}
    assert "a.output -> t.query" in edges(imported)
    assert "crystal_ball" in told(imported, Fate.LEFT)["card u, toolName"]


def test_nothing_of_the_file_is_lost_silently() -> None:
    nodes = [
        card("in", "input", colour="red"),
        card("x", "quantum", spin="up"),
        {"type": "llm"},
        card("out", "output"),
    ]
    imported = read(canvas(nodes, [wire("in", "x"), wire("x", "out"), wire("in", "gone")], budget=3))
    left = told(imported, Fate.LEFT)
    assert set(left) >= {"card in, colour", "card x", "card 3", "edge in -> gone", "budget"}
    assert config(imported, "x") == {"spin": "up"}
    assert any(problem.code == "unknown-type" for problem in validate(imported.workflow))


def test_every_card_and_every_edge_has_its_line() -> None:
    whole = json.loads(evaluated())
    places = {entry.place for entry in read(json.dumps(whole)).entries}
    assert {f"card {node['id']}" for node in whole["nodes"]} <= places
    assert {f"edge {edge['source']} -> {edge['target']}" for edge in whole["edges"]} <= places


@pytest.mark.parametrize("name", ["graph", "workflow", "definition", "graph_json"])
def test_a_canvas_may_lie_in_another_object(name: str) -> None:
    whole = json.loads(evaluated())
    del whole["name"]
    inner = json.dumps(whole) if name == "graph_json" else whole
    imported = read(json.dumps({"name": "Outer", "description": "About.", name: inner}))
    assert (imported.workflow.name, imported.workflow.description) == ("Outer", "About.")
    assert len(imported.workflow.nodes) == 8


def test_cards_that_lie_on_each_other_are_laid_out_anew() -> None:
    text = canvas([card("in", "input"), card("out", "output")], [wire("in", "out")])
    assert read(text).workflow.layout == {}


def test_types_may_be_called_as_components_are() -> None:
    nodes = [
        {"id": "in", "type": "inputNode", "data": {"label": "In"}},
        {"id": "out", "type": "custom", "data": {"type": "output", "label": "Out"}},
    ]
    imported = read(canvas(nodes, [{"source": "in", "target": "out"}]))
    assert [node.type for node in imported.workflow.nodes] == ["input", "output"]
    assert edges(imported) == {"in.value -> out.value"}


def test_a_circle_outside_of_a_loop_is_cut_and_told() -> None:
    text = canvas(
        [card("a", "llm", prompt="{{input}}"), card("b", "llm", prompt="{{input}}")], [wire("a", "b"), wire("b", "a")]
    )
    assert told(read(text), Fate.LEFT)["edge b -> a"] == "It closes a circle outside of any loop."


def test_a_canvas_of_too_many_cards_is_refused() -> None:
    text = canvas([card(f"n{number}", "llm") for number in range(2001)], [])
    with pytest.raises(DocumentError, match="2,001 nodes"):
        read(text)


@pytest.mark.parametrize(
    ("node", "field"),
    [
        (card("a", "transform", mode="jsonpath", expression="$.items[*].title"), "expression"),
        (card("a", "transform", mode="javascript", code="return input.map(x => x.title)"), "expression"),
        (card("a", "transform", mode="jsonpath"), "expression"),
        (card("a", "validator", schema="z.object({})"), "json_schema"),
        (card("a", "validator", expression="input?.ok ?? false"), "expression"),
    ],
)
def test_what_is_in_another_language_is_a_problem_of_its_node(node: dict[str, Any], field: str) -> None:
    nodes = [card("in", "input"), node, card("out", "output")]
    handle = "valid" if "validator" in str(node) else "output"
    imported = read(canvas(nodes, [wire("in", "a"), wire("a", "out", handle, "value")]))
    assert {
        (problem.node, problem.field)
        for problem in validate(imported.workflow)
        if problem.severity is Severity.ERROR and problem.node == "a"
    } == {("a", field)}


@pytest.mark.parametrize("condition", ["llm_says_so", "score > 8", {"type": "custom"}])
def test_an_exit_condition_without_counterpart_is_a_problem_of_its_loop(condition: Any) -> None:
    imported = read(evaluated(exitCondition=condition))
    (loop,) = (node.id for node in imported.workflow.nodes if node.type == "loop")
    errors = [problem for problem in validate(imported.workflow) if problem.severity is Severity.ERROR]
    assert (loop, "exit_condition") in {(problem.node, problem.field) for problem in errors}
    assert told(imported, Fate.LEFT)
