"""View model and geometry of node cards, computed from the document.

Nodes with an unknown type, an invalid configuration or edges to missing ports get a card as well.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from pydantic import ValidationError
from PySide6.QtCore import QPointF, QRectF

from app.canvas.canvas_style import fonts, legible_scale, small_width
from app.node_layout import Box
from app.theme.style import UNKNOWN_ICON, elide, elide_two_lines, first_line
from app.theme.tokens import FONT_SIZE_TITLE
from engine.document.model import Node
from engine.nodes.node_registry import Registry
from engine.nodes.spec import AnySpec, Category, NodeConfig, Port, PortType
from engine.plan.structure import Structure


@dataclass(frozen=True, slots=True)
class PortViewModel:
    """A port on a card.

    Attributes:
        name: Name as used by edges.
        type: Type of its values.
        help: One-line description.
        required: Whether it must be connected.
        many: Whether it accepts several edges.
        known: False if only an edge names it.
        node: Id of the hidden node that it belongs to, on the card of a collapsed loop; empty for the card's own node.
    """

    name: str
    type: PortType = PortType.ANY
    help: str = ""
    required: bool = False
    many: bool = False
    known: bool = True
    node: str = ""

    @property
    def key(self) -> str:
        """Unique name among the ports of its card."""
        return f"{self.node}.{self.name}" if self.node else self.name


@dataclass(frozen=True, slots=True)
class CardViewModel:
    """A node on its card.

    Attributes:
        id: The node's id.
        type: Its type.
        title: Its title.
        summary: One line on what it does.
        icon: Name of its icon.
        category: Its category; None if the type is unknown.
        inputs: The visible input ports from the top.
        outputs: The visible output ports from the top.
        folded: Number of hidden output ports.
        enabled: Whether the node is enabled.
        collapsed: Number of nodes in the body of a collapsed loop; 0 for all other cards.
    """

    id: str
    type: str
    title: str
    summary: str
    icon: str
    category: Category | None
    inputs: tuple[PortViewModel, ...]
    outputs: tuple[PortViewModel, ...]
    folded: int = 0
    enabled: bool = True
    collapsed: int = 0


def card_view_model(
    node: Node,
    registry: Registry,
    structure: Structure,
    used_inputs: Iterable[str],
    used_outputs: Iterable[str],
    *,
    name: str = "",
    expanded: bool = False,
) -> CardViewModel:
    """Build the view model of a node's card.

    Args:
        node: The node.
        registry: The node types.
        structure: The analyzed document, which may have the parsed configuration.
        used_inputs: The connected input ports.
        used_outputs: The connected output ports.
        name: The node's name; empty for its title or the label of its type.
        expanded: Whether to show all output ports.
    """
    spec = registry.find(node.type)
    config = validated_config(node, spec, structure)
    inputs, outputs, used = (), (), tuple(used_outputs)
    summary = "unknown type" if spec is None else "invalid configuration"
    if spec is not None and config is not None:
        inputs, outputs, summary = spec.inputs(config), spec.all_outputs(config), spec.summary(config)
    shown = outputs if expanded else _unfolded(outputs, used)
    return CardViewModel(
        node.id,
        node.type,
        name or node.title or (spec.title if spec else node.type) or node.id,
        summary,
        spec.icon if spec else UNKNOWN_ICON,
        spec.category if spec else None,
        _with_unknown(inputs, used_inputs),
        _with_unknown(shown, used),
        len(outputs) - len(shown),
        node.enabled,
    )


def validated_config(node: Node, spec: AnySpec | None, structure: Structure) -> NodeConfig | None:
    """Return the parsed configuration of a node, or None if type or configuration is invalid."""
    if spec is None:
        return None
    resolved = structure.resolution.nodes.get(node.id)
    if resolved is not None and resolved.node is node:
        return resolved.config
    try:
        return spec.config.model_validate(node.config)
    except ValidationError:
        return None


def _unfolded(outputs: tuple[Port, ...], used: Iterable[str]) -> tuple[Port, ...]:
    """Return the main output, the branches and the connected outputs."""
    wanted = set(used)
    return tuple(port for index, port in enumerate(outputs) if index == 0 or port.branch or port.name in wanted)


def _with_unknown(ports: tuple[Port, ...], used: Iterable[str]) -> tuple[PortViewModel, ...]:
    shown = [PortViewModel(port.name, port.type, port.help, port.required, port.many) for port in ports]
    names = {port.name for port in ports}
    shown += [PortViewModel(name, known=False) for name in used if name not in names]
    return tuple(shown)


RADIUS: Final = 8.0
MARGIN: Final = 12.0
"""Margin around a card for its shadow, ports and badge."""

MIN_WIDTH: Final = 152.0
MAX_WIDTH: Final = 248.0
SIDE: Final = 16.0
ICON: Final = 16
TITLE_LEFT: Final = 40.0
HEADER: Final = 56.0
ROW: Final = 20.0
ROWS_BOTTOM_MARGIN: Final = 8.0
LOWEST_CARD: Final = HEADER + ROW + ROWS_BOTTOM_MARGIN
"""Height of a card with one row of ports."""
DETAILS_FROM: Final = 0.75
"""Below this zoom, port names are hidden and the header takes their room."""

HEADER_FROM: Final = 0.6
"""Below this zoom, a card shows little more than its title."""

MAX_ENLARGEMENT: Final = (LOWEST_CARD - 8) / 2.6 / FONT_SIZE_TITLE
"""Maximum enlargement of titles: two lines fit the lowest card, and all titles have the same size."""

GAP: Final = 20.0
FOLD_WIDTH: Final = 28.0
EXPAND_WIDTH: Final = 24.0


@dataclass(frozen=True, slots=True)
class CardGeometry:
    """Geometry of a card with its upper left corner at the origin.

    Attributes:
        width: Width of the card.
        height: Height of the card.
        title: The elided title.
        summary: The elided summary.
        inputs: Centers of the input ports.
        outputs: Centers of the output ports.
        fold: Where the number of hidden ports is painted; empty if there are none.
        expand: Where a collapsed loop is expanded; empty for all other cards.
    """

    width: float
    height: float
    title: str
    summary: str
    inputs: tuple[QPointF, ...]
    outputs: tuple[QPointF, ...]
    fold: QRectF
    expand: QRectF

    @property
    def card(self) -> QRectF:
        """The card's rectangle."""
        return QRectF(0, 0, self.width, self.height)

    @property
    def title_rect(self) -> QRectF:
        """Where the title is painted."""
        return QRectF(TITLE_LEFT, 8, self.width - TITLE_LEFT - 12 - self.expand.width(), 22)


@dataclass(frozen=True, slots=True)
class CardText:
    """Texts of a card at one zoom.

    Attributes:
        scale: Enlargement relative to 100 %.
        room: Where the texts are painted, in units of the enlarged painter.
        title: The title on one or two lines.
        has_line: Whether there is room for a line below the title.
        has_icon: Whether the icon is painted.
    """

    scale: float
    room: QRectF
    title: tuple[str, ...]
    has_line: bool
    has_icon: bool

    @property
    def line_rect(self) -> QRectF:
        """Where the line below the title is painted."""
        return QRectF(self.room.x(), 30, self.room.width(), 18)


def card_text(title: str, shape: CardGeometry, zoom: float) -> CardText:
    """Compute the texts of a card at a zoom."""
    metrics, grown = fonts().title_metrics, legible_scale(FONT_SIZE_TITLE, zoom, MAX_ENLARGEMENT)
    width, height = shape.width / grown, shape.height / grown
    if zoom >= DETAILS_FROM:
        room = QRectF(TITLE_LEFT, 8, width - TITLE_LEFT - 12, 22)
        line = elide(metrics, title, room.width() - shape.expand.width() / grown)
        return CardText(grown, room, (line,), has_line=True, has_icon=True)
    if zoom >= HEADER_FROM:
        room = QRectF(TITLE_LEFT, 8, width - TITLE_LEFT - 8, 22)
        lines = tuple(elide_two_lines(metrics, title, room.width()))
        if len(lines) > 1:
            room.setHeight(40)
        return CardText(grown, room, lines, has_line=len(lines) == 1, has_icon=True)
    room = QRectF(0, 0, width, height).adjusted(10, 4, -6, -4)
    return CardText(grown, room, tuple(elide_two_lines(metrics, title, room.width())), has_line=False, has_icon=False)


@lru_cache(maxsize=4096)
def card_geometry(content: CardViewModel) -> CardGeometry:
    """Compute the geometry of a card."""
    used = fonts()
    rows = max(len(content.inputs), len(content.outputs))
    title, summary = first_line(content.title), first_line(content.summary)
    title_width, summary_width = used.title_metrics.horizontalAdvance(title), small_width(summary)
    button = EXPAND_WIDTH if content.collapsed else 0.0
    header = max(title_width + button, summary_width) + TITLE_LEFT + SIDE
    width = max(header, _rows_width(content, rows), MIN_WIDTH)
    width = min(8 * -(-width // 8), MAX_WIDTH)
    height = HEADER + (rows * ROW + ROWS_BOTTOM_MARGIN if rows else 0)
    room = width - TITLE_LEFT - 12 - button
    fold = QRectF()
    if content.folded:
        name = small_width(content.outputs[-1].name) if content.outputs else 0.0
        row = max(len(content.outputs), 1) - 1
        fold = QRectF(width - SIDE - name - 8 - FOLD_WIDTH, HEADER + row * ROW + 2, FOLD_WIDTH, ROW - 4)
    return CardGeometry(
        width,
        height,
        title if title_width <= room else elide(used.title_metrics, title, room),
        summary if summary_width <= room + button else elide(used.small_metrics, summary, room + button),
        tuple(QPointF(0, HEADER + (row + 0.5) * ROW) for row in range(len(content.inputs))),
        tuple(QPointF(width, HEADER + (row + 0.5) * ROW) for row in range(len(content.outputs))),
        fold,
        QRectF(width - EXPAND_WIDTH - 6, 7, EXPAND_WIDTH, EXPAND_WIDTH) if content.collapsed else QRectF(),
    )


def card_box(content: CardViewModel) -> Box:
    """Measure a card for layouts; its ports are named by their keys."""
    shape = card_geometry(content)
    return Box(
        shape.width,
        shape.height,
        {port.key: center.y() for port, center in zip(content.inputs, shape.inputs, strict=True)},
        {port.key: center.y() for port, center in zip(content.outputs, shape.outputs, strict=True)},
    )


def _rows_width(content: CardViewModel, rows: int) -> float:
    widest = 0.0
    for row in range(rows):
        left = small_width(content.inputs[row].name) if row < len(content.inputs) else 0.0
        right = small_width(content.outputs[row].name) if row < len(content.outputs) else 0.0
        if content.folded and row == max(len(content.outputs), 1) - 1:
            right += 8 + FOLD_WIDTH
        widest = max(widest, left + right + GAP + 2 * SIDE)
    return widest
