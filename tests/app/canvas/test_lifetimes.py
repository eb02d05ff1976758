"""Items that are taken off the canvas are freed at once, in the window's thread.

Items that hold each other would be left to the garbage collector, which runs in whatever thread needs memory: after a
run that is often the engine's, where no item of a scene may be freed.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QGraphicsItem
from pytestqt.qtbot import QtBot
from shiboken6 import isValid

from tests.app.canvas.conftest import Hand, settle
from tests.app.canvas.test_runs import run, script


@pytest.fixture
def no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def items_of(hand: Hand, node_id: str) -> list[weakref.ref[QGraphicsItem]]:
    card = hand.item(node_id)
    edge_items = {pipe for port in (*card.inputs, *card.outputs) for pipe in port.connected_pipes}
    items = [card, card.status_item, *card.inputs, *card.outputs, *edge_items, *hand.canvas.view.regions.items.values()]
    return [weakref.ref(item) for item in items if item is not None]


def are_gone(items: list[weakref.ref[QGraphicsItem]]) -> bool:
    return all(item() is None for item in items)


@pytest.mark.parametrize("zoom", [1.0, 0.1])
def test_exit_can_be_removed_and_restored_after_a_run(
    hand: Hand, qtbot: QtBot, tmp_path: Path, no_collector: None, zoom: float
) -> None:
    hand.canvas.viewer.zoom_to(zoom)
    run(hand, qtbot, script(tmp_path))
    qtbot.waitUntil(lambda: not hand.canvas.run_view.is_moving)
    for _ in range(3):
        items = items_of(hand, "exit")
        hand.session.select(["exit"])
        hand.canvas.commands.delete()
        settle(hand, qtbot)
        assert hand.canvas.view.regions.items == {}
        qtbot.waitUntil(lambda items=items: are_gone(items))
        hand.session.undo()
        settle(hand, qtbot)
        assert list(hand.canvas.view.regions.items) == ["loop"]
        items = items_of(hand, "exit")
        hand.session.redo()
        settle(hand, qtbot)
        qtbot.waitUntil(lambda items=items: are_gone(items))
        hand.session.undo()
        settle(hand, qtbot)
    assert isValid(hand.canvas.view.node_lod)
    assert hand.item("exit").status_item is not None


@pytest.mark.parametrize("node_id", ["task", "loop", "draft", "text"])
def test_removed_cards_are_freed(hand: Hand, qtbot: QtBot, tmp_path: Path, no_collector: None, node_id: str) -> None:
    run(hand, qtbot, script(tmp_path))
    qtbot.waitUntil(lambda: not hand.canvas.run_view.is_moving)
    items = items_of(hand, node_id)[:-1]
    hand.session.select([node_id])
    hand.canvas.commands.delete()
    settle(hand, qtbot)
    qtbot.waitUntil(lambda: are_gone(items))


def test_the_card_of_a_collapsed_loop_is_freed(hand: Hand, qtbot: QtBot, no_collector: None) -> None:
    hand.canvas.commands.set_collapsed("loop", collapsed=True)
    card = weakref.ref(hand.item("loop"))
    hand.canvas.commands.delete()
    settle(hand, qtbot)
    qtbot.waitUntil(lambda: card() is None)
