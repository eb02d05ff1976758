"""Cards of a canvas that stand for another workflow."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from engine import dumps, import_file, loads, validate
from engine.document.importing import Fate
from tests.engine.document.importing.files import canvas, card, config, edges, read, told, wire
from tests.engine.semantics.kit import play

INSIDE = json.loads(
    canvas(
        [
            card("topic", "input", name="topic"),
            card("tone", "input", name="tone", defaultValue="kindly"),
            card("write", "llm", prompt="{{topic}}, {{tone}}", colour="red"),
            card("text", "output", name="text"),
            card("same", "output", name="same"),
        ],
        [wire("topic", "write"), wire("write", "text"), wire("topic", "same")],
        name="Writing",
    )
)


def around(**of_card: Any) -> str:
    """text -> part -> out, by the part's second result as `more`."""
    return canvas(
        [
            card("in", "input", name="text"),
            card("part", "subflow", "Write it", **of_card),
            card("out", "output", name="out"),
            card("more", "output", name="more"),
        ],
        [wire("in", "part", to="topic"), wire("part", "out", "text"), wire("part", "more", "same")],
    )


async def test_a_workflow_in_a_card_is_a_subflow_that_runs() -> None:
    imported = read(around(workflow=INSIDE))
    assert validate(imported.workflow) == []
    assert edges(imported) == {"in.value -> part.topic", "part.text -> out.value", "part.same -> more.value"}
    assert imported.workflow.node("part").title == "Write it"
    played = await play(imported.workflow, "Written.", {"text": "tea"})
    assert played.result.outputs == {"out": "Written.", "more": "tea"}
    assert played.model.calls[0].path == "part.write"
    assert loads(dumps(imported.workflow)) == imported.workflow


def test_what_lies_in_it_is_told_with_its_place() -> None:
    imported = read(around(workflow=INSIDE))
    assert told(imported, Fate.LEFT)["card part: card write, colour"] == "Nothing here stands for it."
    assert told(imported, Fate.CARRIED)["card part, workflow"] == "The workflow in it, with 5 nodes."
    assert "card part: card topic" in told(imported, Fate.CARRIED) | told(imported, Fate.CHANGED)


def test_handles_without_a_name_of_the_workflow_mean_its_first_ports() -> None:
    text = canvas(
        [card("in", "input"), card("part", "subWorkflowNode", graph=INSIDE), card("out", "output")],
        [wire("in", "part"), wire("part", "out")],
    )
    text = text.replace("subWorkflowNode", "sub-workflow")
    assert edges(read(text)) == {"in.value -> part.topic", "part.text -> out.value"}


def test_a_subflow_in_a_subflow() -> None:
    outer = json.loads(around(workflow=INSIDE))
    imported = read(
        canvas(
            [card("in", "input"), card("whole", "workflow", graph=outer), card("out", "output")],
            [wire("in", "whole"), wire("whole", "out")],
        )
    )
    assert validate(imported.workflow) == []
    assert "card whole: card part: card write, colour" in told(imported, Fate.LEFT)


@pytest.mark.parametrize(
    ("wish", "file"),
    [("Draft it", "Draft it.loop.json"), ("../../etc/x.json", "etc-x.loop.json"), ("C:\\a\\b", "C-a-b.loop.json")],
)
def test_a_workflow_that_is_only_named_is_a_file_to_look_for_and_is_not_opened(wish: str, file: str) -> None:
    imported = read(around(workflowId=wish))
    assert config(imported, "part") == {"file": file}
    assert file in told(imported, Fate.CHANGED)["card part"]
    assert "card part, workflowId" in told(imported, Fate.CHANGED)
    assert [problem.code for problem in validate(imported.workflow)][:1] == ["subflow-not-read"]


def test_the_library_imports_a_file(tmp_path: Path) -> None:
    file = tmp_path / "of mine.json"
    file.write_text(around(workflow=INSIDE), encoding="utf-8")
    assert {node.type for node in import_file(file).workflow.nodes} == {"input", "subflow", "output"}
