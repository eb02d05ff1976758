"""Building documents in Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from engine.document.builder import Builder
from engine.document.files import dumps, load, loads, save
from engine.document.model import Node, Workflow
from engine.document.operations import OperationError


def test_built_workflow_equals_a_handwritten_document(tmp_path: Path) -> None:
    flow = Builder("Shorten", description="Make a text shorter.", settings={"budget_usd": 0.5})
    text = flow.add("input", id="text", title="Text", name="text", type_="text")
    loop = flow.add("loop", max_iterations=3)
    flow.connect(text["value"], loop["input"])
    flow.connect("loop.output", "text.value")
    save(flow.build(), tmp_path / "a.loop.json")
    assert load(tmp_path / "a.loop.json") == loads(
        """{
          "format": "loopwright.workflow", "version": 1, "name": "Shorten", "description": "Make a text shorter.",
          "settings": {"budget_usd": 0.5},
          "nodes": [
            {"id": "text", "type": "input", "title": "Text", "config": {"name": "text", "type": "text"}},
            {"id": "loop", "type": "loop", "config": {"max_iterations": 3}}
          ],
          "edges": [{"from": "text.value", "to": "loop.input"}, {"from": "loop.output", "to": "text.value"}]
        }"""
    )


def test_ids_are_generated_from_title_or_type_and_unique() -> None:
    flow = Builder()
    handles = [flow.add("llm", title="First Draft!"), flow.add("llm"), flow.add("llm"), flow.add("llm", id="own")]
    assert [handle.id for handle in handles] == ["first_draft", "llm", "llm_2", "own"]
    assert handles[1]["output"] == "llm.output"


def test_fields_named_like_an_argument_can_be_given_in_two_ways() -> None:
    flow = Builder()
    flow.add("x", id="a", config={"title": "t", "enabled": 1}, id_="i", from_="f", trailing__=2)
    flow.add("x", id="b", enabled=False)
    assert flow.build().nodes == (
        Node(id="a", type="x", config={"title": "t", "enabled": 1, "id": "i", "from": "f", "trailing_": 2}),
        Node(id="b", type="x", enabled=False),
    )


def test_built_workflow_is_independent_of_later_changes() -> None:
    branches: list[Any] = ["one"]
    flow = Builder(settings={"prices": {"m": branches}})
    flow.add("router", branches=branches)
    built = flow.build()
    branches.append("two")
    flow.add("router")
    assert built.nodes == (Node(id="router", type="router", config={"branches": ["one"]}),)
    assert built.settings == {"prices": {"m": ["one"]}}


def test_invalid_builder_calls_are_refused_at_once() -> None:
    flow = Builder()
    flow.add("x", id="a")
    endless: list[Any] = []
    endless.append(endless)
    for arguments, message in (
        ({"id": "a"}, 'already a node "a"'),
        ({"id": "A"}, '"A" is not a valid'),
        ({"id": ""}, "not a valid node id"),
        ({"config": {"p": 1}, "p": 2}, '"p" is given twice'),
        ({"from_": 1, "config": {"from": 2}}, '"from" is given twice'),
        ({"p": (1, 2)}, "Python type tuple"),
        ({"p": endless}, "200 levels deep"),
        ({"p": float("nan")}, "infinite"),
    ):
        with pytest.raises(OperationError, match=message):
            flow.add("x", **arguments)
    with pytest.raises(OperationError, match='no node "b"'):
        flow.connect("a.x", "b.x")
    with pytest.raises(OperationError, match="Python type set"):
        Builder(settings={"x": {1}})
    assert flow.build() == Workflow(nodes=(Node(id="a", type="x"),))
    assert loads(dumps(flow.build())) == flow.build()
