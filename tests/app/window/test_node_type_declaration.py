"""Palette, card, form and history of a node type come from its declaration, also for plugins."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Final

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from app.engine_thread import EngineThread
from app.palette import palette_entries
from app.session import Session
from app.workbench import Workbench
from engine.document.model import Node, Workflow
from engine.nodes.node_registry import Registry, builtin_registry
from engine.nodes.spec import AnySpec
from engine.runner.options import RunOptions

EXAMPLE: Final = Path(__file__).parents[3] / "docs" / "example-plugin" / "loopwright_example" / "shorten.py"


def shorten() -> AnySpec:
    """The node type of the example plugin, read from its file."""
    found = importlib.util.spec_from_file_location("shorten_of_the_example", EXAMPLE)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module.SHORTEN


@pytest.fixture(scope="module")
def registry() -> Registry:
    return builtin_registry().with_types([shorten()])


def test_every_node_type_has_a_palette_row_a_card_and_a_form(
    workbench: Workbench, engine_thread: EngineThread, registry: Registry
) -> None:
    workflow = Workflow(nodes=tuple(Node(id=spec.type, type=spec.type, title=spec.title) for spec in registry))
    document = workbench.documents.open_session(Session(engine_thread, workflow, registry=registry))
    offered = {row.title: row for row in palette_entries(registry, ())}
    ends = {"exit": "Loop and Exit", "aggregator": "Iterator", "loop": "Loop and Exit"}
    for spec in registry:
        assert ends.get(spec.type, spec.title) in offered or spec.title in offered, spec.type
        content = document.canvas.view.nodes[spec.type].content
        assert (content.title, content.icon, content.category) == (spec.title, spec.icon, spec.category)
        assert {port.name for port in content.inputs} <= {port.name for port in spec.inputs(spec.config())}
        assert content.summary == spec.summary(spec.config())
        document.session.select([spec.type])
        form = document.inspector.page.form
        shown = {
            name: field.title
            for name, field in spec.config.model_fields.items()
            if not (isinstance(field.json_schema_extra, dict) and field.json_schema_extra.get("hidden"))
        }
        assert {name: field.title for name, field in form.fields.items()} == shown


def test_plugin_node_type_works_like_a_built_in_one(
    workbench: Workbench, engine_thread: EngineThread, registry: Registry, qtbot: QtBot
) -> None:
    raw = {
        "nodes": [
            {"id": "text", "type": "input", "config": {"default": "one two three four"}},
            {"id": "short", "type": "shorten", "title": "Shorten"},
            {"id": "out", "type": "output"},
        ],
        "edges": [
            {"from": "text.value", "to": "short.input"},
            {"from": "short.output", "to": "out.value"},
        ],
    }
    document = workbench.documents.open_session(Session(engine_thread, Workflow.model_validate(raw), registry=registry))
    session, card = document.session, document.canvas.view.nodes["short"]
    assert card.content.summary == "at most 50 words"
    session.select(["short"])
    row = document.inspector.page.form.row("words")
    QTest.mouseClick(row.editor.main_widget, Qt.MouseButton.LeftButton)
    row.editor.main_widget.selectAll()
    QTest.keyClicks(row.editor.main_widget, "2")
    QTest.keyClick(row.editor.main_widget, Qt.Key.Key_Return)
    assert card.content.summary == "at most 2 words"

    session.start_run({}, RunOptions(registry=registry))
    qtbot.waitUntil(lambda: session.shown.live is None)
    assert session.shown.view_model is not None
    assert session.shown.view_model.outputs == {"out": "one two"}
    document.inspector.show_result()
    qtbot.waitUntil(lambda: "out:left_out" in document.inspector.result.sections)
    parts = document.inspector.result.sections
    assert parts["out:output"].content.view.text() == "one two"
    assert parts["out:left_out"].content.view.text() == "2"
    assert card.status_item.status.line == "one two"
