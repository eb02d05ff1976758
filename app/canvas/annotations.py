"""Frames and notes as the document's layout has them. No Qt here."""

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
from app.theme.elided_text import elide
from engine.document.model import Workflow
from engine.document.operation import UNSET, Unset
from engine.document.operations import SetLayout
from engine.values import Value

Kind = Literal["frames", "notes"]

FARTHEST: Final = 990_000.0
"""Places further out than this are taken for nonsense; the view could not be moved to them."""

SMALLEST: Final = (80.0, 48.0)


@dataclass(frozen=True, slots=True)
class Annotation:
    """A frame or a note.

    Attributes:
        kind: `frames` or `notes`.
        id: Its id in the layout.
        x: Of its upper left corner.
        y: Of its upper left corner.
        width: In units of the scene.
        height: In units of the scene.
        text: A frame's title or a note's text.
        colour: A frame's colour by name.
    """

    kind: Kind
    id: str
    x: float
    y: float
    width: float
    height: float
    text: str = ""
    colour: str = "grey"

    @property
    def path(self) -> tuple[str, str]:
        """Where it stands in the layout."""
        return (self.kind, self.id)

    def moved(self, x: float, y: float) -> Annotation:
        """The same elsewhere."""
        return replace(self, x=x, y=y)

    def to_json(self, before: Mapping[str, Any] | None = None) -> dict[str, Value]:
        """What the document keeps, keys that this version does not know with it."""
        place: dict[str, Value] = {"x": self.x, "y": self.y, "width": self.width, "height": self.height}
        words: dict[str, Value] = {"text": self.text}
        if self.kind == "frames":
            words = {"title": self.text, "colour": self.colour}
        return {**(before or {}), **place, **words}

    def set_in(self, workflow: Workflow) -> SetLayout:
        """The operation that puts it into the layout."""
        return SetLayout(self.path, self.to_json(layout_entries(workflow, self.kind).get(self.id)))

    def unset(self) -> SetLayout:
        """The operation that takes it out."""
        value: Unset = UNSET
        return SetLayout(self.path, value)


def number(value: object, default: float | None = None) -> float | None:
    """A coordinate, where the value is a sensible one."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return default
    return float(value) if abs(value) <= FARTHEST else default


def layout_entries(workflow: Workflow, name: str) -> dict[str, Any]:
    """One part of the layout by key; empty where it is missing or something else than an object."""
    found = workflow.layout.get(name)
    return found if isinstance(found, dict) else {}


def position_of(workflow: Workflow, node_id: str) -> tuple[float, float] | None:
    """The place of a node; None where the layout has none that makes sense."""
    place = layout_entries(workflow, "nodes").get(node_id)
    if not isinstance(place, dict):
        return None
    x, y = number(place.get("x")), number(place.get("y"))
    return None if x is None or y is None else (x, y)


def read_annotations(workflow: Workflow) -> dict[tuple[str, str], Annotation]:
    """All frames and notes that can be drawn, by their path in the layout."""
    found: dict[tuple[str, str], Annotation] = {}
    for kind in ("frames", "notes"):
        for key, entry in layout_entries(workflow, kind).items():
            if isinstance(entry, dict):
                annotation = _annotation(kind, key, entry)
                if annotation is not None:
                    found[annotation.path] = annotation
    return found


def _annotation(kind: Kind, key: str, entry: Mapping[str, Any]) -> Annotation | None:
    x, y = number(entry.get("x")), number(entry.get("y"))
    if x is None or y is None:
        return None
    default = (320.0, 200.0) if kind == "frames" else (200.0, 96.0)
    width = max(number(entry.get("width"), default[0]) or 0.0, SMALLEST[0])
    height = max(number(entry.get("height"), default[1]) or 0.0, SMALLEST[1])
    text = entry.get("title" if kind == "frames" else "text", "")
    colour = entry.get("colour", "grey")
    return Annotation(
        kind,
        key,
        x,
        y,
        width,
        height,
        text if isinstance(text, str) else "",
        colour if isinstance(colour, str) else "grey",
    )


TITLE_HEIGHT: Final = 28.0
BORDER: Final = 8.0
HANDLE: Final = 16.0
RADIUS: Final = 12.0
NOTE_RADIUS: Final = 8.0
BEHIND: Final = -80.0


class AnnotationItem(AbstractNodeItem):
    """A frame or a note.

    Attributes:
        annotation: What the document says.
        contained_items: Gives the items that a frame takes along.
        resized: Called with the item when its new size is to be kept.
    """

    def __init__(
        self,
        annotation: Annotation,
        contained_items: Callable[[AnnotationItem], list[QGraphicsItem]],
        resized: Callable[[AnnotationItem], None],
    ) -> None:
        QGraphicsItem.__init__(self)  # the base class's own start-up sets what is not used
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
        self.contained_items, self.resized = contained_items, resized
        self._load: list[QGraphicsItem] = []
        self._is_resizing = False
        self.setAcceptHoverEvents(True)
        self.setZValue(BEHIND if annotation.kind == "frames" else 0.5)
        self.set_annotation(annotation)

    @property
    def is_frame(self) -> bool:
        """Whether it is a frame and not a note."""
        return self.annotation.kind == "frames"

    @property
    def rect(self) -> QRectF:
        """It in its own coordinates."""
        return QRectF(0, 0, self.annotation.width, self.annotation.height)

    @property
    def scene_rect(self) -> QRectF:
        """It in the scene."""
        return self.rect.translated(self.pos())

    @property
    def text_rect(self) -> QRectF:
        """Where its text stands."""
        if self.is_frame:
            return QRectF(12, 0, self.annotation.width - 24, TITLE_HEIGHT)
        return self.rect.adjusted(12, 8, -12, -8)

    def set_annotation(self, annotation: Annotation) -> None:
        """Show what the document says now."""
        self.prepareGeometryChange()
        self.annotation = annotation
        self._load = []
        self.setPos(annotation.x, annotation.y)
        self._hit = self._where_hit()
        self.update()

    def boundingRect(self) -> QRectF:
        """With the ring of a selected one."""
        return self.rect.adjusted(-4, -4, 4, 4)

    def shape(self) -> QPainterPath:
        """Where it is hit: a note anywhere, a frame on its title and border, so that one can work inside it."""
        return self._hit

    def itemChange(self, change: QGraphicsItem.GraphicsItemChange, value: Any) -> Any:
        """Take along what lies in a frame that is dragged."""
        if change == QGraphicsItem.GraphicsItemChange.ItemPositionChange and self._load:
            delta: QPointF = value - self.pos()
            for item in self._load:
                if not item.isSelected():
                    item.moveBy(delta.x(), delta.y())
        return value

    def mousePressEvent(self, event: QGraphicsSceneMouseEvent) -> None:
        """Begin to move, or to resize at the corner."""
        self._is_resizing = event.button() == Qt.MouseButton.LeftButton and self._handle().contains(event.pos())
        if self.is_frame and not self._is_resizing:
            self._load = self.contained_items(self)
        super().mousePressEvent(event)

    def mouseMoveEvent(self, event: QGraphicsSceneMouseEvent) -> None:
        """Move or resize."""
        if not self._is_resizing:
            super().mouseMoveEvent(event)
            return
        self.prepareGeometryChange()
        width = max(event.pos().x(), SMALLEST[0])
        height = max(event.pos().y(), SMALLEST[1])
        self.annotation = replace(self.annotation, width=round(width), height=round(height))
        self._hit = self._where_hit()
        self.update()

    def mouseReleaseEvent(self, event: QGraphicsSceneMouseEvent) -> None:
        """Keep the new size."""
        super().mouseReleaseEvent(event)
        self._load = []
        if self._is_resizing:
            self._is_resizing = False
            self.resized(self)

    def hoverMoveEvent(self, event: QGraphicsSceneHoverEvent) -> None:
        """Show at the corner that it can be pulled."""
        at_corner = self._handle().contains(event.pos())
        self.setCursor(Qt.CursorShape.SizeFDiagCursor if at_corner else Qt.CursorShape.ArrowCursor)

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        """Paint it."""
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if option.state & QStyle.StateFlag.State_Selected:
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(pen(canvas_style().colour("accent"), 2.0))
            painter.drawRoundedRect(self.rect.adjusted(-3, -3, 3, 3), RADIUS + 2, RADIUS + 2)
        if self.is_frame:
            self._paint_frame(painter)
        else:
            self._paint_note(painter)
        painter.setPen(pen(canvas_style().colour("dim", 160), 1.5))
        corner = self.rect.bottomRight() - QPointF(5, 5)
        for length in (4.0, 8.0):
            painter.drawPolyline(QPolygonF([corner - QPointF(length, 0), corner - QPointF(0, length)]))

    def _paint_frame(self, painter: QPainter) -> None:
        theme, used, annotation = canvas_style(), fonts(), self.annotation
        painter.setPen(pen(theme.frame(annotation.colour, 120), 1.0))
        painter.setBrush(theme.frame(annotation.colour, 16))
        painter.drawRoundedRect(self.rect, RADIUS, RADIUS)
        painter.setFont(used.small_bold)
        painter.setPen(theme.colour("text"))
        words = elide(used.bold_metrics, annotation.text or "Frame", self.text_rect.width() - 16)
        dot = QRectF(12, TITLE_HEIGHT / 2 - 4, 8, 8)
        painter.drawText(self.text_rect.adjusted(16, 0, 0, 0), Qt.AlignmentFlag.AlignVCenter, words)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.frame(annotation.colour))
        painter.drawEllipse(dot)

    def _paint_note(self, painter: QPainter) -> None:
        theme, annotation = canvas_style(), self.annotation
        painter.setPen(pen(theme.colour("warning", 120), 1.0))
        painter.setBrush(theme.colour("panel"))
        painter.drawRoundedRect(self.rect, NOTE_RADIUS, NOTE_RADIUS)
        painter.setBrush(theme.colour("warning", 24))
        painter.drawRoundedRect(self.rect, NOTE_RADIUS, NOTE_RADIUS)
        painter.setFont(fonts().text)
        painter.setPen(theme.colour("text" if annotation.text else "dim"))
        flags = Qt.TextFlag.TextWordWrap | Qt.AlignmentFlag.AlignTop
        painter.drawText(self.text_rect, flags, annotation.text[:4000] or "Double-click to write")

    def _handle(self) -> QRectF:
        return QRectF(self.annotation.width - HANDLE, self.annotation.height - HANDLE, HANDLE, HANDLE)

    def _where_hit(self) -> QPainterPath:
        path = QPainterPath()
        if not self.is_frame:
            path.addRect(self.rect)
            return path
        path.addRect(self.rect)
        inside = QPainterPath()
        inside.addRect(self.rect.adjusted(BORDER, TITLE_HEIGHT, -BORDER, -BORDER))
        inside_less_handle = QPainterPath()
        inside_less_handle.addRect(self._handle())
        return path.subtracted(inside.subtracted(inside_less_handle))


class AnnotationView:
    """The frames and notes of one document.

    Attributes:
        items: They by their path in the layout.
        resized: Called with one whose new size is to be kept.
    """

    def __init__(
        self, scene: QGraphicsScene, cards: Mapping[str, NodeItem], dispose: Callable[[QGraphicsItem], None]
    ) -> None:
        self._scene, self._cards, self._dispose = scene, cards, dispose
        self.items: dict[tuple[str, str], AnnotationItem] = {}
        self.resized: Callable[[AnnotationItem], None] = lambda _item: None

    def patch(self, workflow: Workflow) -> None:
        """Change what differs from the document."""
        wanted = read_annotations(workflow)
        for path in [path for path in self.items if path not in wanted]:
            self._dispose(self.items.pop(path))
        for path, annotation in wanted.items():
            item = self.items.get(path)
            if item is None:
                self._add(annotation)
            elif item.annotation != annotation or (item.x(), item.y()) != (annotation.x, annotation.y):
                item.set_annotation(annotation)

    def _add(self, annotation: Annotation) -> None:
        item = AnnotationItem(annotation, self._carried, self._keep_size)
        self._scene.addItem(item)
        self.items[annotation.path] = item

    def _keep_size(self, item: AnnotationItem) -> None:
        self.resized(item)

    def _carried(self, frame: AnnotationItem) -> list[QGraphicsItem]:
        """What lies wholly in a frame goes with it."""
        rect = frame.scene_rect
        inside: list[QGraphicsItem] = [item for item in self._cards.values() if rect.contains(item.card_rect)]
        others = [item for item in self.items.values() if item is not frame and rect.contains(item.scene_rect)]
        return inside + list(others)
