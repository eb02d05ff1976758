"""The loops' regions: which there are, how they nest, and how they follow their cards."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QRectF

from app.canvas.grounds import GroundsItem
from app.canvas.region_item import RegionItem
from engine.document.model import Workflow
from engine.nodes.pairs import ITERATOR

if TYPE_CHECKING:
    from PySide6.QtWidgets import QGraphicsScene

    from app.canvas.node_item import NodeItem
    from app.session import Session

_WORDS: Final = {
    "replace": "fed back: replace",
    "append": "fed back: append",
    "append_window": "fed back: append the last few",
}


class RegionView:
    """The regions of one document.

    Attributes:
        items: The regions by the loop's id.
        grounds: The regions when zoomed far out.
        chosen: Called with a loop's id and the index of an iteration that was clicked.
    """

    def __init__(self, session: Session, scene: QGraphicsScene, cards: Mapping[str, NodeItem]) -> None:
        self._session, self._scene, self._cards = session, scene, cards
        self.items: dict[str, RegionItem] = {}
        self.grounds = GroundsItem(self.items)
        scene.addItem(self.grounds)
        self.chosen: Callable[[str, int], None] = lambda _loop, _index: None
        self._members: dict[str, tuple[list[str], list[str]]] = {}
        self._parent: dict[str, str] = {}

    def refresh(self, workflow: Workflow) -> None:
        """Take up structure and titles as they are now."""
        structure = self._session.structure
        bodies = {
            loop: body for loop, body in structure.bodies.items() if loop in self._cards and body.exit in self._cards
        }
        self._parent = {node: loop for node, loop in structure.parent.items() if loop in bodies}
        self._parent |= {body.exit: self._parent[loop] for loop, body in bodies.items() if loop in self._parent}
        for loop in [loop for loop in self.items if loop not in bodies]:
            self._scene.removeItem(self.items.pop(loop))
        self._members = {loop: ([loop, body.exit], []) for loop, body in bodies.items()}
        for node, loop in self._parent.items():
            if node in self._cards:
                self._members[loop][0].append(node)
            if node in bodies:
                self._members[loop][1].append(node)
        for loop in bodies:
            if loop not in self.items:
                self._add(loop)
            self._label(loop, workflow)
        self._place(bodies)

    def relabel(self, node_ids: Iterable[str], workflow: Workflow) -> None:
        """Take up the titles and settings of loops among these nodes."""
        loops = [node_id for node_id in node_ids if node_id in self.items]
        for loop in loops:
            self._label(loop, workflow)
        self._place(loops)

    def follow(self, node_ids: Iterable[str]) -> None:
        """Lie around cards that moved."""
        affected: set[str] = set()
        waiting = [loop for node_id in node_ids for loop in (self._loop_at(node_id), self._parent.get(node_id))]
        while waiting:
            loop = waiting.pop()
            if loop is not None and loop not in affected:
                affected.add(loop)
                waiting.append(self._parent.get(loop))
        if affected:
            self._place(affected)

    def depth(self, loop: str) -> int:
        """How many regions lie around a loop's."""
        seen = [loop]
        while (outer := self._parent.get(seen[-1])) is not None and outer not in seen:
            seen.append(outer)
        return len(seen) - 1

    def _loop_at(self, node_id: str) -> str | None:
        if node_id in self.items:
            return node_id
        loop = self._session.structure.loop_of.get(node_id)
        return loop if loop in self.items else None

    def _add(self, loop: str) -> None:
        item = RegionItem(loop, self.depth(loop))
        item.label.chosen = self._choose
        self.grounds.show_region(item)
        self._scene.addItem(item)
        self.items[loop] = item

    def _choose(self, loop_id: str, index: int) -> None:
        self.chosen(loop_id, index)

    def _label(self, loop: str, workflow: Workflow) -> None:
        node = workflow.nodes_by_id.get(loop)
        item = self.items[loop]
        spec = self._session.registry.find(node.type) if node is not None else None
        if spec is not None:
            item.label.icon = spec.icon
        title = self._cards[loop].facts.title if node is not None else loop
        item.label.show_facts(replace(item.label.facts, title=title))

    def _place(self, loops: Iterable[str]) -> None:
        """Place inner regions before those around them."""
        structure = self._session.structure
        for loop in sorted(loops, key=self.depth, reverse=True):
            body = structure.bodies.get(loop)
            item = self.items.get(loop)
            if item is None or body is None or loop not in self._cards or body.exit not in self._cards:
                continue
            members, inner = self._members[loop]
            content = QRectF()
            for node in members:
                if node in self._cards:
                    content = content.united(self._cards[node].card_rect)
            for other in inner:
                content = content.united(self.items[other].rect)
            item.depth = self.depth(loop)
            item.place(content, self._cards[loop], self._cards[body.exit], self._words(loop))
        self.grounds.refresh()

    def _words(self, loop: str) -> str:
        node = self._session.workflow.nodes_by_id.get(loop)
        if node is not None and node.type == ITERATOR.start:
            most = node.config.get("max_concurrency", 0)
            return "for each item" + (f" · {most} at a time" if most else "")
        mode = node.config.get("feedback_mode", "replace") if node is not None else "replace"
        return _WORDS.get(str(mode), "fed back")
