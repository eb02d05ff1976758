"""Import of React Flow canvases: nodes, handles, and loops that start at `output`."""

from __future__ import annotations

import json
from typing import Any

import pytest

from engine import DocumentError, validate
from engine.document.problems import Severity
from engine.importing.importers import REACT_FLOW
from engine.importing.report import Outcome
from tests.engine.importing.samples import canvas, config, edges, evaluated, messages, read, rf_edge, rf_node


def test_a_canvas_with_an_evaluator_is_a_document_without_problems() -> None:
    imported = read(evaluated())
    assert validate(imported.workflow) == []
    assert imported.importer is REACT_FLOW
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
        "stop_when": [{"condition": "stable_output", "threshold": 0.8}],
        "feedback_mode": "append",
        "inject_feedback": False,
    }
    assert {"node loop-1, maxIterations", "node loop-1, exitCondition", "node loop-1, feedbackMode"} <= set(
        messages(imported, Outcome.CARRIED_OVER)
    )


@pytest.mark.parametrize(
    ("given", "expected", "outcome"),
    [
        (3, 3, Outcome.CARRIED_OVER),
        ("3", 3, Outcome.CARRIED_OVER),
        (99, 50, Outcome.CHANGED),
        (0, 1, Outcome.CHANGED),
        ("x", 5, Outcome.LEFT_OUT),
    ],
)
def test_max_iterations_is_imported(given: Any, expected: int, outcome: Outcome) -> None:
    imported = read(evaluated(maxIterations=given))
    assert config(imported, "loop_1")["max_iterations"] == expected
    assert "node loop-1, maxIterations" in messages(imported, outcome)


@pytest.mark.parametrize(
    "given",
    [
        {"temperature": 3},
        {"temperature": "hot"},
        {"topP": 0},
        {"maxTokens": 1.5},
        {"maxTokens": 0},
        {"maxTokens": -1},
    ],
)
def test_sampling_that_no_model_accepts_is_left_out(given: dict[str, Any]) -> None:
    imported = read(canvas([rf_node("a", "llm", prompt="Hi", **given)], []))

    assert set(config(imported, "a")) == {"prompt"}
    assert {f"node a, {name}" for name in given} <= set(messages(imported, Outcome.LEFT_OUT))


def test_the_default_that_replaces_an_invalid_count_is_reported() -> None:
    imported = read(evaluated(maxIterations="x"))
    entry = next(entry for entry in imported.entries if entry.place == "node loop-1, maxIterations")
    assert "5" in entry.message


@pytest.mark.parametrize(("given", "expected"), [(0, 0), (3, 3), (-1, None)])
def test_max_concurrency_of_an_iterator_is_imported(given: int, expected: int | None) -> None:
    imported = read(canvas([rf_node("each", "iterator", maxConcurrency=given)], []))

    assert config(imported, "each").get("max_concurrency") == expected
    outcome = Outcome.CARRIED_OVER if expected is not None else Outcome.LEFT_OUT
    assert "node each, maxConcurrency" in messages(imported, outcome)


def test_an_edge_from_output_leads_past_the_loop_if_the_paths_say_so() -> None:
    text = canvas(
        [
            rf_node("in", "input"),
            rf_node("first", "loop"),
            rf_node("one", "llm", prompt="{{input}}"),
            rf_node("end_first", "exit"),
            rf_node("second", "loop"),
            rf_node("two", "llm", prompt="{{input}}"),
            rf_node("end_second", "exit"),
            rf_node("out", "output"),
            rf_node("early", "output"),
        ],
        [
            rf_edge("in", "first"),
            rf_edge("first", "one"),
            rf_edge("one", "end_first"),
            rf_edge("first", "early"),
            rf_edge("first", "second"),
            rf_edge("second", "two"),
            rf_edge("two", "end_second"),
            rf_edge("end_second", "out"),
        ],
    )
    imported = read(text)
    assert validate(imported.workflow) == []
    assert {"first.body -> one.input", "first.output -> early.value", "first.output -> second.input"} <= edges(imported)
    assert config(imported, "end_second") == {"loop": "second"}


def test_nested_loops_are_paired_by_their_nesting() -> None:
    text = canvas(
        [
            rf_node("in", "input"),
            rf_node("outer", "loop"),
            rf_node("inner", "loop"),
            rf_node("draft", "llm", prompt="{{input}}"),
            rf_node("end_inner", "exit"),
            rf_node("end_outer", "exit"),
            rf_node("out", "output"),
        ],
        [
            rf_edge("in", "outer"),
            rf_edge("outer", "inner"),
            rf_edge("inner", "draft"),
            rf_edge("draft", "end_inner"),
            rf_edge("end_inner", "end_outer"),
            rf_edge("end_outer", "out"),
        ],
    )
    imported = read(text)
    assert validate(imported.workflow) == []
    assert {"outer.body -> inner.input", "inner.body -> draft.input"} <= edges(imported)
    assert (config(imported, "end_inner"), config(imported, "end_outer")) == ({"loop": "inner"}, {"loop": "outer"})


def test_names_in_prompts_become_edges() -> None:
    text = canvas(
        [
            rf_node("in", "input", name="topic"),
            rf_node("a", "llm", prompt="About {{ topic }}"),
            rf_node("b", "llm", prompt="{{a.output}} and {{in}} and {{nobody}} and {{#each x}}"),
            rf_node("c", "transform", template="{{left}} {{right-hand}}"),
            rf_node("out", "output"),
        ],
        [
            rf_edge("in", "a"),
            rf_edge("a", "b"),
            rf_edge("a", "c", to="left"),
            rf_edge("b", "c", to="right-hand"),
            rf_edge("c", "out"),
        ],
    )
    imported = read(text)
    assert config(imported, "a")["prompt"] == "About {{input}}"
    assert config(imported, "b")["prompt"] == "{{input}} and {{in}} and {{nobody}} and \\{{#each x}}"
    assert config(imported, "c")["template"] == "{{left}} {{right_hand}}"
    assert {"in.value -> b.in", "a.output -> c.left", "b.output -> c.right_hand"} <= edges(imported)
    assert "node b, {{nobody}}" in messages(imported, Outcome.LEFT_OUT)


def test_models_get_their_provider_and_tools_their_name_here() -> None:
    text = canvas(
        [
            rf_node("in", "input"),
            rf_node("a", "llm", prompt="{{input}}", provider="anthropic", model="m-1", temperature=0.4, maxTokens=90),
            rf_node("t", "tool", toolName="search", arguments={"limit": 2}),
            rf_node("u", "tool", toolName="crystal_ball"),
            rf_node("out", "output"),
        ],
        [rf_edge("in", "a"), rf_edge("a", "t"), rf_edge("t", "u"), rf_edge("u", "out")],
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
    assert "crystal_ball" in messages(imported, Outcome.LEFT_OUT)["node u, toolName"]


@pytest.mark.parametrize(
    ("provider", "model", "expected"),
    [
        ("google", "gemini-9", "gemini/gemini-9"),
        ("", "gpt-9", "openai/gpt-9"),
        ("ollama", "llama9", "ollama_chat/llama9"),
        ("", "llama9", "llama9"),
        ("", "deepseek-coder", "deepseek/deepseek-coder"),
        ("", "gpt-oss:20b", "gpt-oss:20b"),
        ("ollama", "mistral:7b", "ollama_chat/mistral:7b"),
        ("local", "gguf:mine", "gguf:mine"),
    ],
)
def test_model_gets_the_prefix_of_its_provider(provider: str, model: str, expected: str) -> None:
    imported = read(canvas([rf_node("a", "llm", prompt="Hi", provider=provider, model=model)], []))

    assert config(imported, "a")["model"] == expected


def test_nothing_of_the_file_is_lost_silently() -> None:
    nodes = [
        rf_node("in", "input", colour="red"),
        rf_node("x", "quantum", spin="up"),
        {"type": "llm"},
        rf_node("out", "output"),
    ]
    imported = read(canvas(nodes, [rf_edge("in", "x"), rf_edge("x", "out"), rf_edge("in", "gone")], budget=3))
    left = messages(imported, Outcome.LEFT_OUT)
    assert set(left) >= {"node in, colour", "node x", "node 3", "edge in -> gone", "budget"}
    assert config(imported, "x") == {"spin": "up"}
    assert any(problem.code == "unknown-type" for problem in validate(imported.workflow))


def test_every_node_and_every_edge_has_its_line() -> None:
    whole = json.loads(evaluated())
    places = {entry.place for entry in read(json.dumps(whole)).entries}
    assert {f"node {node['id']}" for node in whole["nodes"]} <= places
    assert {f"edge {edge['source']} -> {edge['target']}" for edge in whole["edges"]} <= places


@pytest.mark.parametrize("name", ["graph", "workflow", "definition", "graph_json"])
def test_a_canvas_can_be_nested_in_another_object(name: str) -> None:
    whole = json.loads(evaluated())
    del whole["name"]
    inner = json.dumps(whole) if name == "graph_json" else whole
    imported = read(json.dumps({"name": "Outer", "description": "About.", name: inner}))
    assert (imported.workflow.name, imported.workflow.description) == ("Outer", "About.")
    assert len(imported.workflow.nodes) == 8


def test_overlapping_nodes_are_laid_out_again() -> None:
    text = canvas([rf_node("in", "input"), rf_node("out", "output")], [rf_edge("in", "out")])
    assert read(text).workflow.layout == {}


def test_types_can_be_named_like_components() -> None:
    nodes = [
        {"id": "in", "type": "inputNode", "data": {"label": "In"}},
        {"id": "out", "type": "custom", "data": {"type": "output", "label": "Out"}},
    ]
    imported = read(canvas(nodes, [{"source": "in", "target": "out"}]))
    assert [node.type for node in imported.workflow.nodes] == ["input", "output"]
    assert edges(imported) == {"in.value -> out.value"}


def test_a_cycle_outside_of_a_loop_is_cut_and_reported() -> None:
    text = canvas(
        [rf_node("a", "llm", prompt="{{input}}"), rf_node("b", "llm", prompt="{{input}}")],
        [rf_edge("a", "b"), rf_edge("b", "a")],
    )
    assert "cycle" in messages(read(text), Outcome.LEFT_OUT)["edge b -> a"]


def test_a_canvas_with_too_many_nodes_is_refused() -> None:
    text = canvas([rf_node(f"n{number}", "llm") for number in range(2001)], [])
    with pytest.raises(DocumentError, match="2,001 nodes"):
        read(text)


@pytest.mark.parametrize(
    ("node", "field"),
    [
        (rf_node("a", "transform", mode="jsonpath", expression="$.items[*].title"), "expression"),
        (rf_node("a", "transform", mode="javascript", code="return input.map(x => x.title)"), "expression"),
        (rf_node("a", "transform", mode="jsonpath"), "expression"),
        (rf_node("a", "validator", schema="z.object({})"), "json_schema"),
        (rf_node("a", "validator", expression="input?.ok ?? false"), "expression"),
    ],
)
def test_an_expression_in_another_language_is_a_problem_of_its_node(node: dict[str, Any], field: str) -> None:
    nodes = [rf_node("in", "input"), node, rf_node("out", "output")]
    handle = "valid" if "validator" in str(node) else "output"
    imported = read(canvas(nodes, [rf_edge("in", "a"), rf_edge("a", "out", handle, "value")]))
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
    assert (loop, "stop_when.0.condition") in {(problem.node, problem.field) for problem in errors}
    assert messages(imported, Outcome.LEFT_OUT)
