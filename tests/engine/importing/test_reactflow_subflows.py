"""Nodes of a canvas that stand for another workflow."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from engine import dumps, import_file, loads, validate
from engine.importing.report import Outcome
from tests.engine.importing.samples import canvas, config, edges, messages, read, rf_edge, rf_node
from tests.engine.semantics.kit import play

INSIDE = json.loads(
    canvas(
        [
            rf_node("topic", "input", name="topic"),
            rf_node("tone", "input", name="tone", defaultValue="kindly"),
            rf_node("write", "llm", prompt="{{topic}}, {{tone}}", colour="red"),
            rf_node("text", "output", name="text"),
            rf_node("same", "output", name="same"),
        ],
        [rf_edge("topic", "write"), rf_edge("write", "text"), rf_edge("topic", "same")],
        name="Writing",
    )
)


def around(**of_card: Any) -> str:
    """text -> part -> out, and the second output of the part as `more`."""
    return canvas(
        [
            rf_node("in", "input", name="text"),
            rf_node("part", "subflow", "Write it", **of_card),
            rf_node("out", "output", name="out"),
            rf_node("more", "output", name="more"),
        ],
        [
            rf_edge("in", "part", to="topic"),
            rf_edge("part", "out", "text"),
            rf_edge("part", "more", "same"),
        ],
    )


async def test_an_embedded_workflow_is_a_subflow_that_runs() -> None:
    imported = read(around(workflow=INSIDE))
    assert validate(imported.workflow) == []
    assert edges(imported) == {"in.value -> part.topic", "part.text -> out.value", "part.same -> more.value"}
    assert imported.workflow.node("part").title == "Write it"
    played = await play(imported.workflow, "Written.", {"text": "tea"})
    assert played.result.outputs == {"out": "Written.", "more": "tea"}
    assert played.model.calls[0].path == "part.write"
    assert loads(dumps(imported.workflow)) == imported.workflow


def test_the_nested_report_has_the_nodes_path() -> None:
    imported = read(around(workflow=INSIDE))
    assert messages(imported, Outcome.LEFT_OUT)["node part: node write, colour"] == "It has no counterpart here."
    assert messages(imported, Outcome.CARRIED_OVER)["node part, workflow"] == "The embedded workflow, with 5 nodes."
    assert "node part: node topic" in messages(imported, Outcome.CARRIED_OVER) | messages(imported, Outcome.CHANGED)


def test_unknown_handles_use_the_first_ports() -> None:
    text = canvas(
        [
            rf_node("in", "input"),
            rf_node("part", "subWorkflowNode", graph=INSIDE),
            rf_node("out", "output"),
        ],
        [rf_edge("in", "part"), rf_edge("part", "out")],
    )
    text = text.replace("subWorkflowNode", "sub-workflow")
    assert edges(read(text)) == {"in.value -> part.topic", "part.text -> out.value"}


def test_a_subflow_in_a_subflow() -> None:
    outer = json.loads(around(workflow=INSIDE))
    imported = read(
        canvas(
            [
                rf_node("in", "input"),
                rf_node("whole", "workflow", graph=outer),
                rf_node("out", "output"),
            ],
            [rf_edge("in", "whole"), rf_edge("whole", "out")],
        )
    )
    assert validate(imported.workflow) == []
    assert "node whole: node part: node write, colour" in messages(imported, Outcome.LEFT_OUT)


@pytest.mark.parametrize(
    ("wish", "file"),
    [("Draft it", "Draft it.loop.json"), ("../../etc/x.json", "etc-x.loop.json"), ("C:\\a\\b", "C-a-b.loop.json")],
)
def test_a_workflow_given_by_name_is_a_file_reference_and_is_not_opened(wish: str, file: str) -> None:
    imported = read(around(workflowId=wish))
    assert config(imported, "part") == {"file": file}
    assert file in messages(imported, Outcome.CHANGED)["node part"]
    assert "node part, workflowId" in messages(imported, Outcome.CHANGED)
    assert [problem.code for problem in validate(imported.workflow)][:1] == ["subflow-not-read"]


def test_the_library_imports_a_file(tmp_path: Path) -> None:
    file = tmp_path / "of mine.json"
    file.write_text(around(workflow=INSIDE), encoding="utf-8")
    assert {node.type for node in import_file(file).workflow.nodes} == {"input", "subflow", "output"}
