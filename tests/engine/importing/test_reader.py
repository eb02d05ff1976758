"""Files are imported or refused with a sentence, and never fail in another way."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import DocumentError, dumps, loads, validate
from engine.importing.reader import import_file, import_text, looks_importable
from tests.engine.importing.samples import DEV_CYCLE, canvas, evaluated, read, rf_edge, rf_node


def test_a_file_is_imported_under_its_own_name(tmp_path: Path) -> None:
    file = tmp_path / "steps-of-mine.yaml"
    file.write_text("- {id: a, instructions: Do it.}", encoding="utf-8")
    assert import_file(file).workflow.name == "steps-of-mine"


@pytest.mark.parametrize(
    ("name", "text", "foreign"),
    [
        ("a.yaml", "x", True),
        ("a.YML", "x", True),
        ("a.json", evaluated(), True),
        ("a.loop.json", dumps(read(DEV_CYCLE).workflow), False),
        ("a.json", dumps(read(DEV_CYCLE).workflow), False),
        ("a.loop.json", "{", False),
        ("a.txt", "x", False),
    ],
)
def test_a_foreign_file_is_recognized_by_its_first_bytes(tmp_path: Path, name: str, text: str, foreign: bool) -> None:
    file = tmp_path / name
    file.write_text(text, encoding="utf-8")
    assert looks_importable(file) is foreign


def test_a_missing_file_is_not_recognized_and_is_an_error(tmp_path: Path) -> None:
    assert not looks_importable(tmp_path / "no.json")
    assert not looks_importable(tmp_path / "no.yaml")
    with pytest.raises(DocumentError, match="no such file"):
        import_file(tmp_path / "no.json")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"format": "loopwright.workflow", "version": 1}', "already a Loopwright workflow"),
        ("{}", "format of this file"),
        ('{"nodes": [], "edges": []}', "format of this file"),
        ('{"steps": []}', "format of this file"),
        ("just words", "format of this file"),
        ("{", "not JSON"),
        ("", "format of this file"),
    ],
)
def test_a_file_that_is_not_a_workflow_is_refused_with_a_sentence(text: str, why: str) -> None:
    with pytest.raises(DocumentError, match=why):
        read(text)


def test_bytes_that_are_not_text_are_refused() -> None:
    with pytest.raises(DocumentError, match="not UTF-8"):
        import_text(b"steps: \xff", is_yaml=True)


def test_a_file_of_100_mb_is_not_even_read(tmp_path: Path) -> None:
    file = tmp_path / "huge.yaml"
    with file.open("wb") as stream:
        stream.truncate(100_000_000)
    with pytest.raises(DocumentError, match="larger than 20 MB"):
        import_file(file)


def test_a_json_canvas_can_be_in_a_yaml_file() -> None:
    assert len(read(evaluated(), is_yaml=True).workflow.nodes) == 8


def test_the_summary_counts() -> None:
    imported = read(canvas([rf_node("in", "input", colour="red"), rf_node("out", "output")], [rf_edge("in", "out")]))
    assert imported.summary == "6 parts carried over, 1 changed, 3 left out."
    assert imported.to_json()["report"][0] == {
        "fate": "carried over",
        "place": "node in, name",
        "message": 'The input "in".',
    }


_VALUES: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
)
_NAMES = st.sampled_from(
    [
        "maxIterations",
        "exitCondition",
        "feedbackMode",
        "stabilityThreshold",
        "prompt",
        "systemPrompt",
        "model",
        "provider",
        "criteria",
        "branches",
        "template",
        "schema",
        "name",
        "dataType",
        "defaultValue",
        "toolName",
        "arguments",
        "maxConcurrency",
        "mode",
        "strategy",
        "timeout",
        "label",
    ]
)
_KINDS = st.sampled_from(
    [
        "input",
        "output",
        "llm",
        "router",
        "transform",
        "validator",
        "tool",
        "loop",
        "exit",
        "iterator",
        "aggregator",
        "approval",
        "x",
    ]
)
_IDS = st.sampled_from(["a", "b", "c", "d", "e-1", "F"])
_CARDS = st.builds(
    lambda card_id, kind, config: {"id": card_id, "type": kind, "data": {"config": config}},
    _IDS,
    _KINDS,
    st.dictionaries(_NAMES, _VALUES | st.sampled_from(["{{a.output}}", "{{input}}", "{{a}} {{#x}}"]), max_size=5),
)
_HANDLES = st.sampled_from(["output", "input", "done", "continue", "count", "", "x y"])
_WIRES = st.builds(rf_edge, _IDS, _IDS, _HANDLES, _HANDLES)


@given(st.lists(_CARDS, max_size=7), st.lists(_WIRES, max_size=12))
def test_any_canvas_becomes_a_document_that_can_be_saved_and_checked(cards: Any, wires: Any) -> None:
    _check(canvas(cards, wires))


_WORDS = st.sampled_from(
    [
        "agent",
        "instructions",
        "dependsOn",
        "condition",
        "timeout",
        "retries",
        "loop",
        "forEach",
        "until",
        "untilAgent",
        "maxIterations",
        "delay",
        "steps",
    ]
)
_PARTS = st.sampled_from(["steps.a.content == 'x'", "content", ["a", "b"], 3, "30s", "a", {"forEach": ["x"]}])
_STEPS = st.builds(
    lambda step_id, members: {"id": step_id, "instructions": "Do.", **members},
    _IDS,
    st.dictionaries(_WORDS, _VALUES | _PARTS | st.dictionaries(_WORDS, _VALUES | _PARTS, max_size=4), max_size=4),
)


@given(st.lists(_STEPS, min_size=1, max_size=5), st.dictionaries(_IDS, _VALUES, max_size=2))
def test_any_steps_become_a_document_that_can_be_saved_and_checked(steps: Any, agents: Any) -> None:
    _check(json.dumps({"agents": agents, "steps": steps}))


def _check(text: str) -> None:
    try:
        imported = read(text)
    except DocumentError:
        return
    validate(imported.workflow)
    assert loads(dumps(imported.workflow)) == imported.workflow
