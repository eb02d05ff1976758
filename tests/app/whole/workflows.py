"""Workflows for tests of the whole window."""

from __future__ import annotations

from engine.document.builder import Builder
from engine.document.model import Workflow


def chain() -> Workflow:
    """An input, two model nodes and an output."""
    flow = Builder("Chain")
    text = flow.add("input", id="text", default="a note")
    first = flow.add("llm", id="first", prompt="{{input}}")
    second = flow.add("llm", id="second", prompt="{{input}}")
    result = flow.add("output", id="result")
    flow.connect(text["value"], first["input"])
    flow.connect(first["output"], second["input"])
    flow.connect(second["output"], result["value"])
    return flow.build()
