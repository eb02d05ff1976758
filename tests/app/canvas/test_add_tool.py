"""A tool of a server, dropped from the palette, is a tool node that calls it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from app.canvas import operations
from engine.document.model import Workflow
from engine.nodes.registry import builtin_registry
from engine.tools.read_file import READ_FILE
from engine.tools.registry import set_tools


@pytest.fixture
def _served() -> Iterator[None]:
    set_tools("sample", [replace(READ_FILE, name="files/read", title="Read a file (files)")])
    yield
    set_tools("sample", ())


@pytest.mark.usefixtures("_served")
def test_it_has_the_tools_name_and_title() -> None:
    spec = builtin_registry().find("tool")
    assert spec is not None
    added = operations.add(Workflow(), spec, (0.0, 0.0), tool="files/read")
    workflow = Workflow()
    for operation in added.operations:
        workflow, _ = operation.apply(workflow)
    (node,) = workflow.nodes
    assert (node.id, node.title, dict(node.config)) == ("read_a_file", "Read a file", {"tool": "files/read"})
