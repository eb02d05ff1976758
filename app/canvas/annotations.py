"""Frames and notes: reading them from the layout, and their items on the canvas."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QPainter, QPainterPath, QPolygonF
from PySide6.QtWidgets import (
    QGraphicsItem,
    QGraphicsScene,
    QGraphicsSceneHoverEvent,
    QGraphicsSceneMouseEvent,
    QStyle,
    QStyleOptionGraphicsItem,
    QWidget,
)

from app.canvas.canvas_style import canvas_style, fonts, pen
from app.canvas.node_item import NodeItem
from app.canvas.nodegraphqt_imports import AbstractNodeItem
from app.node_layout import coordinate, layout_entries
from app.theme.style import elide
from engine.document.model import Workflow
from engine.document.operations import UNSET, SetLayout
from engine.values import Value

Kind = Literal["frames", "notes"]

SMALLEST: Final = (80.0, 48.0)
DEFAULT_SIZES: Final[dict[Kind, tuple[float, float]]] = {"frames": (320.0, 200.0), "notes": (200.0, 96.0)}


@dataclass(frozen=True, slots=True)
class Annotation:
    """A frame or a note.

    Attributes:
        kind: `frames` or `notes`.
        id: Its id in the layout.
        x: Left edge.
        y: Top edge.
        width: Width in scene units.
        height: Height in scene units.
        text: A frame's title or a note's text.
        color: Name of a frame's color.
    """

    kind: Kind
    id: str
    x: float
    y: float
    width: float
    height: float
    text: str = ""
    color: str = "grey"

    @property
    def path(self) -> tuple[str, str]:
        """Path of the entry in the layout."""
        return (self.kind, self.id)

    def moved(self, x: float, y: float) -> Annotation:
        """Return a copy at another position."""
        return replace(self, x=x, y=y)

    def resized(self, width: float, height: float) -> Annotation:
        """Return a copy of another size, but not too small."""
        return replace(self, width=round(max(width, SMALLEST[0])), height=round(max(height, SMALLEST[1])))

    def to_json(self, before: Mapping[str, Any] | None = None) -> dict[str, Value]:
        """Return the layout entry; unknown keys of `before` are preserved."""
        entry = {**(before or {}), "x": self.x, "y": self.y, "width": self.width, "height": self.height}
        if self.kind == "frames":
            return {**entry, "title": self.text, "colour": self.color}
        return {**entry, "text": self.text}

    def set_in(self, workflow: Workflow) -> SetLayout:
        """Return the operation that stores the annotation in the layout."""
        return SetLayout(self.path, self.to_json(layout_entries(workflow, self.kind).get(self.id)))

    def unset(self) -> SetLayout:
        """Return the operation that removes the annotation from the layout."""
        return SetLayout(self.path, UNSET)


def read_annotations(workflow: Workflow) -> dict[tuple[str, str], Annotation]:
    """Return all valid frames and notes by their path in the layout."""
    found: dict[tuple[str, str], Annotation] = {}
    for kind in ("frames", "notes"):
        for key, entry in layout_entries(workflow, kind).items():
            if isinstance(entry, dict):
                annotation = _annotation(kind, key, entry)
                if annotation is not None:
                    found[annotation.path] = annotation
    return found


def _annotation(kind: Kind, key: str, entry: Mapping[str, Any]) -> Annotation | None:
    x, y = coordinate(entry.get("x")), coordinate(entry.get("y"))
    if x is None or y is None:
        return None
    default = DEFAULT_SIZES[kind]
    width = max(coordinate(entry.get("width"), default[0]) or 0.0, SMALLEST[0])
    height = max(coordinate(entry.get("height"), default[1]) or 0.0, SMALLEST[1])
    text, color = entry.get("title" if kind == "frames" else "text"), entry.get("colour")
    text, color = text if isinstance(text, str) else "", color if isinstance(color, str) else "grey"
    return Annotation(kind, key, x, y, width, height, text, color)


TITLE_HEIGHT: Final = 28.0
BORDER: Final = 8.0
HANDLE: Final = 16.0
RADIUS: Final = 12.0
NOTE_RADIUS: Final = 8.0
BEHIND: Final = -80.0


class AnnotationItem(AbstractNodeItem):
    """Item of a frame or note: dragged by title or body, resized at the lower right corner.

    Attributes:
        annotation: The frame or note.
    """

    def __init__(self, annotation: Annotation, view: AnnotationView) -> None:
        QGraphicsItem.__init__(self)  # the base class's own __init__ creates unused items
        self.setFlags(
            QGraphicsItem.GraphicsItemFlag.ItemIsSelectable
            | QGraphicsItem.GraphicsItemFlag.ItemIsMovable
            | QGraphicsItem.GraphicsItemFlag.ItemSendsGeometryChanges
        )
        self._properties = {
            "id": "/".join(annotation.path),
            "selected": False,
            "disabled": False,
            "type_": annotation.kind,
        }
        self.inputs: list[QGraphicsItem] = []
        self.outputs: list[QGraphicsItem] = []
        self._view = view
        self._dragged_items: list[QGraphicsItem] = []
        self._is_resizing = False
        self.setAcceptHoverEvents(True)
        self.setZValue(BEHIND if annotation.kind == "frames" else 0.5)
        self.set_annotation(annotation)

    @property
    def is_frame(self) -> bool:
        """Whether the item is a frame."""
        return self.annotation.kind == "frames"

    @property
    def rect(self) -> QRectF:
        """The rectangle in item coordinates."""
        return QRectF(0, 0, self.annotation.width, self.annotation.height)

    @property
    def scene_rect(self) -> QRectF:
        """The rectangle in scene coordinates."""
        return self.rect.translated(self.pos())

    @property
    def text_rect(self) -> QRectF:
        """Where the text is painted."""
        if self.is_frame:
            return QRectF(12, 0, self.annotation.width - 24, TITLE_HEIGHT)
        return self.rect.adjusted(12, 8, -12, -8)

    def set_annotation(self, annotation: Annotation) -> None:
        """Update the item from the document."""
        self.prepareGeometryChange()
        self.annotation = annotation
        self._dragged_items = []
        self.setPos(annotation.x, annotation.y)
        self._hit = self._clickable_area()
        self.update()

    def boundingRect(self) -> QRectF:
        """Return the rectangle with the selection ring."""
        return self.rect.adjusted(-4, -4, 4, 4)

    def shape(self) -> QPainterPath:
        """Return the clickable area: all of a note, title and border of a frame."""
        return self._hit

    def itemChange(self, change: QGraphicsItem.GraphicsItemChange, value: Any) -> Any:
        """Move the contained items with a dragged frame."""
        if change == QGraphicsItem.GraphicsItemChange.ItemPositionChange and self._dragged_items:
            delta: QPointF = value - self.pos()
            for item in self._dragged_items:
                if not item.isSelected():
                    item.moveBy(delta.x(), delta.y())
        return value

    def mousePressEvent(self, event: QGraphicsSceneMouseEvent) -> None:
        """Start a drag or a resize."""
        self._is_resizing = event.button() == Qt.MouseButton.LeftButton and self._handle().contains(event.pos())
        if self.is_frame and not self._is_resizing:
            self._dragged_items = self._view.contained_items(self)
        super().mousePressEvent(event)

    def mouseMoveEvent(self, event: QGraphicsSceneMouseEvent) -> None:
        """Drag or resize."""
        if not self._is_resizing:
            super().mouseMoveEvent(event)
            return
        self.prepareGeometryChange()
        self.annotation = self.annotation.resized(event.pos().x(), event.pos().y())
        self._hit = self._clickable_area()
        self.update()

    def mouseReleaseEvent(self, event: QGraphicsSceneMouseEvent) -> None:
        """Finish a resize."""
        super().mouseReleaseEvent(event)
        self._dragged_items = []
        if self._is_resizing:
            self._is_resizing = False
            self._view.resized(self)

    def hoverMoveEvent(self, event: QGraphicsSceneHoverEvent) -> None:
        """Show the resize cursor over the handle."""
        at_corner = self._handle().contains(event.pos())
        self.setCursor(Qt.CursorShape.SizeFDiagCursor if at_corner else Qt.CursorShape.ArrowCursor)

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        """Paint the frame or note."""
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if option.state & QStyle.StateFlag.State_Selected:
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(pen(canvas_style().color("accent"), 2.0))
            painter.drawRoundedRect(self.rect.adjusted(-3, -3, 3, 3), RADIUS + 2, RADIUS + 2)
        if self.is_frame:
            self._paint_frame(painter)
        else:
            self._paint_note(painter)
        painter.setPen(pen(canvas_style().color("dim", 160), 1.5))
        corner = self.rect.bottomRight() - QPointF(5, 5)
        for length in (4.0, 8.0):
            painter.drawPolyline(QPolygonF([corner - QPointF(length, 0), corner - QPointF(0, length)]))

    def _paint_frame(self, painter: QPainter) -> None:
        theme, used, annotation = canvas_style(), fonts(), self.annotation
        painter.setPen(pen(theme.frame(annotation.color, 120), 1.0))
        painter.setBrush(theme.frame(annotation.color, 16))
        painter.drawRoundedRect(self.rect, RADIUS, RADIUS)
        painter.setFont(used.small_bold)
        painter.setPen(theme.color("text"))
        title = elide(used.bold_metrics, annotation.text or "Frame", self.text_rect.width() - 16)
        painter.drawText(self.text_rect.adjusted(16, 0, 0, 0), Qt.AlignmentFlag.AlignVCenter, title)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.frame(annotation.color))
        painter.drawEllipse(QRectF(12, TITLE_HEIGHT / 2 - 4, 8, 8))

    def _paint_note(self, painter: QPainter) -> None:
        theme, annotation = canvas_style(), self.annotation
        painter.setPen(pen(theme.color("warning", 120), 1.0))
        painter.setBrush(theme.color("panel"))
        painter.drawRoundedRect(self.rect, NOTE_RADIUS, NOTE_RADIUS)
        painter.setBrush(theme.color("warning", 24))
        painter.drawRoundedRect(self.rect, NOTE_RADIUS, NOTE_RADIUS)
        painter.setFont(fonts().text)
        painter.setPen(theme.color("text" if annotation.text else "dim"))
        flags = Qt.TextFlag.TextWordWrap | Qt.AlignmentFlag.AlignTop
        painter.drawText(self.text_rect, flags, annotation.text[:4000] or "Double-click to edit")

    def _handle(self) -> QRectF:
        return QRectF(self.annotation.width - HANDLE, self.annotation.height - HANDLE, HANDLE, HANDLE)

    def _clickable_area(self) -> QPainterPath:
        area, inside, handle = QPainterPath(), QPainterPath(), QPainterPath()
        area.addRect(self.rect)
        if not self.is_frame:
            return area
        inside.addRect(self.rect.adjusted(BORDER, TITLE_HEIGHT, -BORDER, -BORDER))
        handle.addRect(self._handle())
        return area.subtracted(inside.subtracted(handle))


class AnnotationView:
    """The annotation items of one document.

    Attributes:
        items: The items by their path in the layout.
        resized: Called with an item after a resize.
    """

    def __init__(
        self, scene: QGraphicsScene, cards: Mapping[str, NodeItem], dispose: Callable[[QGraphicsItem], None]
    ) -> None:
        self._scene, self._cards, self._dispose = scene, cards, dispose
        self.items: dict[tuple[str, str], AnnotationItem] = {}
        self.resized: Callable[[AnnotationItem], None] = lambda _item: None

    def patch(self, workflow: Workflow) -> None:
        """Update the items that differ from the document."""
        wanted = read_annotations(workflow)
        for path in [path for path in self.items if path not in wanted]:
            self._dispose(self.items.pop(path))
        for path, annotation in wanted.items():
            item = self.items.get(path)
            if item is None:
                item = AnnotationItem(annotation, self)
                self._scene.addItem(item)
                self.items[path] = item
            elif item.annotation != annotation or (item.x(), item.y()) != (annotation.x, annotation.y):
                item.set_annotation(annotation)

    @property
    def selected(self) -> list[AnnotationItem]:
        """The selected frames and notes."""
        return [item for item in self.items.values() if item.isSelected()]

    def contained_items(self, frame: AnnotationItem) -> list[QGraphicsItem]:
        """Return the items that lie entirely inside a frame."""
        rect = frame.scene_rect
        inside: list[QGraphicsItem] = [item for item in self._cards.values() if rect.contains(item.card_rect)]
        others = [item for item in self.items.values() if item is not frame and rect.contains(item.scene_rect)]
        return inside + list(others)
