"""How many actions it takes to build a loop: clicks, key presses, drags and typed texts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from PySide6.QtCore import QPointF, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from engine.document.builder import Builder
from engine.document.files import save
from engine.document.problems import has_errors
from engine.nodes.loop import LoopConfig
from tests.app.whole.conftest import CTRL, Whole
from tests.app.window.conftest import await_files

pytestmark = pytest.mark.slow

LEFT = Qt.MouseButton.LeftButton


@dataclass
class Person:
    """Does things in the window, and counts them."""

    whole: Whole
    actions: int = 0

    def key(self, key: Qt.Key, modifiers: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier) -> None:
        self.actions += 1
        self.whole.press(key, modifiers)
        QApplication.processEvents()

    def add(self, title: str) -> str:
        """Double-click an entry of the palette, and return the new node's id."""
        self.actions += 1
        entries = self.whole.workbench.palette_panel.list
        model = entries.model()
        row = next(row for row in range(model.rowCount()) if model.index(row, 0).data() == title)
        entries.scrollTo(model.index(row, 0))
        place = entries.visualRect(model.index(row, 0)).center()
        QTest.mouseClick(entries.viewport(), LEFT, pos=place)
        QTest.mouseDClick(entries.viewport(), LEFT, pos=place)
        self.whole.settle()
        return self.whole.document.session.selection[0]

    def fill(self, field: str, text: str) -> None:
        """Click a field of the selected node and type."""
        self.actions += 2
        row = self.whole.document.inspector.page.form.row(field)
        assert row is not None
        widget = row.editor.main_widget
        QTest.mouseClick(widget.viewport(), LEFT)
        self.whole.write(text)
        QApplication.processEvents()

    def select_around(self, *node_ids: str) -> None:
        """Draw a rubber band around nodes."""
        self.actions += 1
        hand = self.whole.hand
        rect = hand.item(node_ids[0]).card_rect
        for node_id in node_ids:
            rect = rect.united(hand.item(node_id).card_rect)
        hand.drag(rect.topLeft() - QPointF(16, 16), rect.bottomRight() + QPointF(16, 16))


@pytest.fixture
def person(whole: Whole) -> Person:
    return Person(whole)


def test_a_loop_of_two_model_nodes_is_built_from_nothing_in_twelve_actions(person: Person) -> None:
    whole = person.whole
    person.key(Qt.Key.Key_N, CTRL)
    person.add("Input")
    first = person.add("LLM")
    person.fill("prompt", "Write a note about {{input}}.")
    second = person.add("LLM")
    person.fill("prompt", "Improve this: {{input}}")
    person.add("Output")
    person.select_around(first, second)
    assert set(whole.document.session.selection) == {first, second}
    person.key(Qt.Key.Key_L, CTRL)
    whole.settle()
    assert person.actions <= 12
    edges = {f"{edge.from_} -> {edge.to}" for edge in whole.workflow.edges}
    assert edges == {
        "input.value -> loop.input",
        f"loop.body -> {first}.input",
        f"{first}.output -> {second}.input",
        f"{second}.output -> exit.input",
        "exit.output -> output.value",
    }
    assert [whole.workflow.node(node).config["prompt"] for node in (first, second)] == [
        "Write a note about {{input}}.",
        "Improve this: {{input}}",
    ]
    assert not has_errors(whole.document.session.problems)
    cards = [item.card_rect for item in whole.document.canvas.view.nodes.values()]
    assert not any(one.intersects(other) for index, one in enumerate(cards) for other in cards[index + 1 :])
    visible = whole.document.canvas.viewer.mapToScene(whole.document.canvas.viewer.viewport().rect()).boundingRect()
    assert visible.contains(whole.document.canvas.view.content_rect)


def test_two_nodes_are_wrapped_in_a_loop_and_run_in_four_actions(person: Person, tmp_path: Path) -> None:
    whole = person.whole
    flow = Builder("Chain")
    text = flow.add("input", id="text", default="a note")
    first = flow.add("llm", id="first", prompt="{{input}}")
    second = flow.add("llm", id="second", prompt="{{input}}")
    result = flow.add("output", id="result")
    flow.connect(text["value"], first["input"])
    flow.connect(first["output"], second["input"])
    flow.connect(second["output"], result["value"])
    path = tmp_path / "chain.loop.json"
    save(flow.build(), path)
    whole.workbench.open_file(path)
    await_files(whole.workbench)
    whole.settle()
    person.actions = 0
    person.select_around("first", "second")
    person.key(Qt.Key.Key_L, CTRL)
    whole.settle()
    person.key(Qt.Key.Key_F5)
    session = whole.document.session
    whole.qtbot.waitUntil(lambda: session.shown.live is None and session.shown.view_model is not None, timeout=10_000)
    assert session.shown.view_model is not None
    assert session.shown.view_model.status == "completed"
    assert [len(loop.iterations) for loop in session.shown.view_model.loops.values()] == [LoopConfig().max_iterations]
    assert person.actions <= 4
