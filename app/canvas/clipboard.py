"""Copy and paste as text: between windows, into a chat, into a file."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QGuiApplication

from app.canvas.remarks import place_of
from engine.document.files import loads
from engine.document.fragments import PASTE_OFFSET, copy_fragment, paste_fragment
from engine.document.node_operations import AddNode
from engine.document.operation import Batch
from engine.errors import EngineError

if TYPE_CHECKING:
    from app.session import Session

LARGEST: Final = 20_000_000
"""Longer texts on the clipboard are not looked at."""


class Clipboard:
    """The clipboard for one document."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._last = ""
        self._times = 0

    def copy(self, node_ids: Iterable[str]) -> bool:
        """Put nodes and the edges among them on the clipboard."""
        wanted = list(node_ids)
        if not wanted:
            return False
        try:
            text = copy_fragment(self._session.workflow, wanted)
        except EngineError as error:
            self._session.refused.emit(str(error))
            return False
        QGuiApplication.clipboard().setText(text)
        self._last, self._times = text, 0
        return True

    def paste(self, seen: QRectF, at: QPointF | None = None) -> None:
        """Add what is on the clipboard.

        Args:
            seen: The part of the scene that is seen; what would be pasted outside goes to its middle.
            at: Where the upper left corner shall be, if somewhere in particular.
        """
        text = QGuiApplication.clipboard().text()
        if not text.strip():
            return
        if len(text) > LARGEST:
            self._session.refused.emit("The text on the clipboard is too long to be a workflow. Copy smaller parts.")
            return
        self._times = self._times + 1 if text == self._last else 1
        self._last = text
        self.add(text, seen, at)

    def duplicate(self, node_ids: Iterable[str], seen: QRectF) -> None:
        """Add copies of nodes without the clipboard."""
        wanted = list(node_ids)
        if wanted:
            times, self._times = self._times, 1
            self.add(copy_fragment(self._session.workflow, wanted), seen, verb="Duplicate")
            self._times = times

    def add(self, text: str, seen: QRectF, at: QPointF | None = None, verb: str = "Paste") -> None:
        """Add the nodes of a text and select them."""
        try:
            step = paste_fragment(self._session.workflow, text, offset=self._offset(text, seen, at))
        except EngineError as error:
            self._session.refused.emit(str(error))
            return
        if self._session.do(Batch(step.title.replace("Paste", verb, 1), step.operations)):
            self._session.select([step.node.id for step in step.operations if isinstance(step, AddNode)])

    def _offset(self, text: str, seen: QRectF, at: QPointF | None) -> tuple[float, float]:
        fragment = loads(text, source="clipboard")
        places = [place for node in fragment.nodes if (place := place_of(fragment, node.id)) is not None]
        usual = (PASTE_OFFSET[0] * self._times, PASTE_OFFSET[1] * self._times)
        if not places:
            return usual
        left, top = min(x for x, _ in places), min(y for _, y in places)
        if at is not None:
            return (at.x() - left, at.y() - top)
        if seen.contains(QPointF(left + usual[0], top + usual[1])):
            return usual
        width, height = max(x for x, _ in places) - left, max(y for _, y in places) - top
        middle = seen.center()
        return (round(middle.x() - left - width / 2), round(middle.y() - top - height / 2))
