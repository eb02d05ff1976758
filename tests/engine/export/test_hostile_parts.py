"""Text of agents, iterators, subflows and approvals never becomes code in an export."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest

from engine import Workflow
from engine.export.langgraph_module import export_langgraph
from engine.export.python_script import export_python
from tests.engine.export.kit import module_of
from tests.engine.export.test_hostile import HOSTILE, shape
from tests.engine.semantics.documents import entry, flow, for_each, llm, part, result, rules, transform

WRITTEN = [text for text in HOSTILE if text.strip() and "{{" not in text]


def workflow(text: str) -> Workflow:
    """A document that contains the text in every field for text of these nodes."""
    inner = flow(entry("given", default=text), transform("same"), result("made"), edges="given -> same -> made")
    schema = {"type": "object", "properties": {text: {"type": "string", "description": text}}}
    body = (
        llm("say", "{{item}}"),
        part("work", "agent", prompt=text, system=text, tools=["ask_person"], reply_schema=schema),
        rules("way", {"on": "size(input) >= 0", "off": "else"}),
        part("check", "approval", message=text),
        part("part", "subflow", file="x.loop.json", workflow={**inner.to_json(), "name": text}),
    )
    edges = (
        "each.item -> say.input\nsay -> work -> way\nway.on -> check\ncheck.approved -> part.given\npart.made -> gather"
    )
    built = for_each(
        *body, edges=edges, source="list", items=[text, {text: text}], gathered={"mode": "join", "separator": text},
        on_error="fail",
    ).to_json()  # fmt: skip
    for node in built["nodes"]:
        node["title"] = text
    built["edges"] = [edge for edge in built["edges"] if edge["to"] != "each.items"]
    return Workflow.model_validate(json.loads(json.dumps(built)))


@cache
def benign_shape(export: Any) -> str:
    return shape(export(workflow("plain")).text)


@pytest.mark.parametrize("export", [export_langgraph, export_python])
@pytest.mark.parametrize("text", WRITTEN, ids=repr)
def test_hostile_text_stays_text_in_agents_iterators_subflows_and_approvals(export: Any, text: str):
    source = export(workflow(text)).text
    assert shape(source) == benign_shape(export)
    module_of(source)
