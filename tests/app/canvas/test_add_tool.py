"""A tool of a server can be added wherever node types can, and becomes a tool node that calls it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from PySide6.QtCore import QPointF, Qt
from PySide6.QtTest import QTest

from app.canvas import operation_builders
from engine.document.model import Workflow
from engine.nodes.node_registry import builtin_registry
from engine.tools.file_tools import READ_FILE
from engine.tools.registry import set_tools
from tests.app.canvas.conftest import Hand, MakeCanvas
from tests.app.canvas.documents import workflow


@pytest.fixture
def _served() -> Iterator[None]:
    set_tools("sample", [replace(READ_FILE, name="files/read", title="Read a file (files)")])
    yield
    set_tools("sample", ())


@pytest.mark.usefixtures("_served")
def test_added_node_has_name_and_title_of_the_tool() -> None:
    spec = builtin_registry().find("tool")
    assert spec is not None
    added = operation_builders.add(Workflow(), spec, (0.0, 0.0), tool="files/read")
    document = Workflow()
    for operation in added.operations:
        document, _ = operation.apply(document)
    (node,) = document.nodes
    assert (node.id, node.title, dict(node.config)) == ("read_a_file", "Read a file", {"tool": "files/read"})


@pytest.mark.usefixtures("_served")
def test_tab_lists_the_tool(make_canvas: MakeCanvas) -> None:
    hand = make_canvas(workflow([], []))
    hand.key(Qt.Key.Key_Tab)
    pick = hand.canvas.popups.list
    QTest.keyClicks(pick.filter, "(files")
    assert [pick.list.item(row).text() for row in range(pick.list.count())] == ["Read a file (files)"]
    QTest.keyClick(pick.filter, Qt.Key.Key_Return)
    assert dict(hand.session.workflow.node("read_a_file").config) == {"tool": "files/read"}


@pytest.mark.usefixtures("_served")
def test_edge_dropped_on_empty_canvas_offers_the_tool_and_connects_its_argument(hand: Hand) -> None:
    port = next(port for port in hand.item("draft").outputs if port.name == "output")
    hand.canvas.popups.choose_for_port(port, QPointF(900, 500))
    pick = hand.canvas.popups.list
    QTest.keyClicks(pick.filter, "(files")
    QTest.keyClick(pick.filter, Qt.Key.Key_Return)
    assert "draft.output -> read_a_file.path" in hand.edges()
    assert hand.session.undo_title == "Add Tool"
    hand.session.undo()
    assert hand.session.node("read_a_file") is None
