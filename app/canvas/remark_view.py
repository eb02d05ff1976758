"""The frames and notes on the canvas: made and patched as the document's layout has them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from PySide6.QtWidgets import QGraphicsItem, QGraphicsScene

from app.canvas.remark_item import RemarkItem
from app.canvas.remarks import Remark, remarks
from engine.document.model import Workflow

if TYPE_CHECKING:
    from app.canvas.node_item import NodeItem


class RemarkView:
    """The frames and notes of one document.

    Attributes:
        items: They by their path in the layout.
        resized: Called with one whose new size is to be kept.
    """

    def __init__(
        self, scene: QGraphicsScene, cards: Mapping[str, NodeItem], dispose: Callable[[QGraphicsItem], None]
    ) -> None:
        self._scene, self._cards, self._dispose = scene, cards, dispose
        self.items: dict[tuple[str, str], RemarkItem] = {}
        self.resized: Callable[[RemarkItem], None] = lambda _item: None

    def patch(self, workflow: Workflow) -> None:
        """Change what differs from the document."""
        wanted = remarks(workflow)
        for path in [path for path in self.items if path not in wanted]:
            self._dispose(self.items.pop(path))
        for path, remark in wanted.items():
            item = self.items.get(path)
            if item is None:
                self._add(remark)
            elif item.remark != remark or (item.x(), item.y()) != (remark.x, remark.y):
                item.show_remark(remark)

    def _add(self, remark: Remark) -> None:
        item = RemarkItem(remark, self._carried, self._keep_size)
        self._scene.addItem(item)
        self.items[remark.path] = item

    def _keep_size(self, item: RemarkItem) -> None:
        self.resized(item)

    def _carried(self, frame: RemarkItem) -> list[QGraphicsItem]:
        """What lies wholly in a frame goes with it."""
        rect = frame.scene_rect
        inside: list[QGraphicsItem] = [item for item in self._cards.values() if rect.contains(item.card_rect)]
        others = [item for item in self.items.values() if item is not frame and rect.contains(item.scene_rect)]
        return inside + list(others)
