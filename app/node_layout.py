"""Positions of nodes: stored in the layout, computed by auto layout, aligned or distributed. No Qt here.

Auto layout is the layered method of Sugiyama, Tagawa and Toda (1981), from left to right: layers by longest path, dummy
nodes for long edges, order within layers by barycenter, and vertical positions by isotonic regression ("pool adjacent
violators"), which moves each node as little as possible from where its edges would be straight. A loop is laid out
first, with its start in its first layer and its exit in its last, and then acts as one block in the layout around it,
so regions never overlap.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:  # the start page imports this module
    from engine.document.model import Workflow
    from engine.plan.loop_bodies import Body
    from engine.plan.structure import Structure

Position = tuple[float, float]

MAX_COORDINATE: Final = 990_000.0
"""Coordinates beyond this are ignored; the canvas could not scroll there."""

COLUMN_GAP: Final = 72.0
ROW_GAP: Final = 40.0
DUMMY_HEIGHT: Final = 12.0
"""Height of the dummy node of a long edge."""

MARGINS: Final = (24.0, 40.0, 24.0, 52.0)
"""Margins of a loop region around its cards: left, top, right, bottom."""

FREE_GAP: Final = 24.0
"""Vertical gap between a card and the one above it, where its preferred position was taken."""

SWEEPS: Final = 3
"""Maximum number of sweeps, forward and back, that order the blocks within layers, and of those that follow."""

LONG: Final = 8.0
"""Weight of long edges relative to others: a crooked one would run behind cards."""

_Pull = tuple[int, float, float]
"""Index of the block at an edge's other end, offset of the tops if the edge is straight, and weight."""


@dataclass(frozen=True, slots=True)
class Box:
    """Size of a card and the vertical offsets of its ports."""

    width: float
    height: float
    inputs: Mapping[str, float] = field(default_factory=dict[str, float])
    outputs: Mapping[str, float] = field(default_factory=dict[str, float])


class Wire(NamedTuple):
    """An edge: source node and port, target node and port."""

    source: str
    source_port: str
    target: str
    target_port: str


def coordinate(value: object, default: float | None = None) -> float | None:
    """Return a coordinate, or `default` if the value is not a usable number."""
    if type(value) is not float and type(value) is not int:
        return default
    return float(value) if abs(value) <= MAX_COORDINATE else default


def layout_entries(workflow: Workflow, name: str) -> dict[str, Any]:
    """Return a section of the layout, or an empty dict if it is missing or malformed."""
    found = workflow.layout.get(name)
    return found if isinstance(found, dict) else {}


def stored_position(workflow: Workflow, node_id: str) -> Position | None:
    """Return the position of a node, or None if the layout has no valid one."""
    return _position_in(layout_entries(workflow, "nodes").get(node_id))


def _position_in(entry: object) -> Position | None:
    if not isinstance(entry, dict):
        return None
    x, y = coordinate(entry.get("x")), coordinate(entry.get("y"))
    return None if x is None or y is None else (x, y)


class NodePositions:
    """Positions of all nodes. Computed ones stay until the layout has one, so that nothing jumps.

    Attributes:
        computed: The computed positions that the layout does not have.
    """

    def __init__(self) -> None:
        self.computed: dict[str, Position] = {}

    def of(
        self,
        workflow: Workflow,
        structure: Structure,
        node_ids: Collection[str],
        boxes: Callable[[], Mapping[str, Box]],
    ) -> dict[str, Position]:
        """Return the position of each node; `boxes` measures the cards if any position is missing."""
        entries = layout_entries(workflow, "nodes")
        stored = {node: at for node in node_ids if (at := _position_in(entries.get(node))) is not None}
        computed = {
            node: position for node, position in self.computed.items() if node in node_ids and node not in stored
        }
        positions = {**stored, **computed}
        missing = [node for node in node_ids if node not in positions]
        if missing and positions:
            computed |= positions_beside(missing, workflow, positions, boxes())
        elif missing:
            computed = auto_layout(workflow, structure, boxes())
        self.computed = computed
        return {**stored, **computed}


def positions_beside(
    missing: list[str], workflow: Workflow, taken: Mapping[str, Position], boxes: Mapping[str, Box]
) -> dict[str, Position]:
    """Return free positions right of the predecessors, or below everything."""
    taken = dict(taken)
    sources: dict[str, list[str]] = {}
    for edge in workflow.edges:
        sources.setdefault(edge.target[0], []).append(edge.source[0])
    for node_id in missing:
        placed = [source for source in sources.get(node_id, ()) if source in taken]
        if placed:
            source = max(placed, key=lambda node: taken[node][0])
            preferred_position = (taken[source][0] + boxes[source].width + COLUMN_GAP, taken[source][1])
        else:
            left = min(x for x, _ in taken.values())
            preferred_position = (left, max(y + boxes[node].height for node, (_, y) in taken.items()) + ROW_GAP)
        taken[node_id] = free_position(boxes[node_id], preferred_position, taken, boxes)
    return {node_id: taken[node_id] for node_id in missing}


def free_position(box: Box, preferred: Position, taken: Mapping[str, Position], boxes: Mapping[str, Box]) -> Position:
    """Return the first position at or below a preferred one where a card overlaps no other."""
    x, y = preferred
    while True:
        below = [
            top + boxes[other].height
            for other, (left, top) in taken.items()
            if left < x + box.width
            and x < left + boxes[other].width
            and top < y + box.height
            and y < top + boxes[other].height
        ]
        if not below:
            return (x, y)
        y = max(below) + FREE_GAP


def auto_layout(
    workflow: Workflow, structure: Structure, boxes: Mapping[str, Box], hidden: Mapping[str, str] = MappingProxyType({})
) -> dict[str, Position]:
    """Lay out the whole document.

    Args:
        workflow: The document.
        structure: Its analysis.
        boxes: The visible cards. The ports of hidden nodes are named `node.port`.
        hidden: The hidden nodes, each with the collapsed loop that hides it.
    """
    wires = [Wire(*_card_and_port(edge.from_, hidden), *_card_and_port(edge.to, hidden)) for edge in workflow.edges]
    return layered_layout(boxes, wires, structure.bodies, structure.parent)


def _card_and_port(end: str, hidden: Mapping[str, str]) -> tuple[str, str]:
    node, _, port = end.partition(".")
    return (hidden[node], end) if node in hidden else (node, port)


@dataclass(slots=True)
class _Block:
    """A unit of the layout: a card, a whole loop, or a dummy node of a long edge."""

    width: float
    height: float
    positions: dict[str, tuple[float, float]]
    layer: int = 0
    top: float = 0.0


@dataclass(slots=True)
class _Level:
    """One nesting level: its blocks, and its edges as (block, offset, block, offset)."""

    blocks: list[_Block]
    edges: list[tuple[int, float, int, float]]


def layered_layout(
    boxes: Mapping[str, Box], wires: Sequence[Wire], bodies: Mapping[str, Body], parent: Mapping[str, str]
) -> dict[str, tuple[float, float]]:
    """Compute a position for each card.

    Args:
        boxes: The cards by node id, in document order.
        wires: The edges; those without a card at an end are ignored.
        bodies: The loops that have a body, by the loop's id.
        parent: The innermost loop around each node in a body.

    Returns:
        The upper left corner of each card; the bounding box starts at the origin.
    """
    inner = [wire for wire in wires if wire.source in boxes and wire.target in boxes and wire.source != wire.target]
    loops = {loop: body for loop, body in bodies.items() if loop in boxes and body.exit in boxes}
    owner = {node: loop for node, loop in parent.items() if loop in loops}
    for loop, body in loops.items():  # a loop and its exit belong to the level of the loop itself
        outer = owner.get(loop)
        if outer is not None:
            owner[body.exit] = outer
    members: dict[str | None, list[str]] = {}
    exits = {body.exit for body in loops.values()}
    for node in boxes:
        if node not in exits:
            members.setdefault(owner.get(node), []).append(node)
    whole = _lay_out(None, members, loops, boxes, inner, owner)
    left = min((x for x, _ in whole.positions.values()), default=0.0)
    top = min((y for _, y in whole.positions.values()), default=0.0)
    return {node: (round(x - left), round(y - top)) for node, (x, y) in whole.positions.items()}


def _lay_out(
    loop: str | None,
    members: Mapping[str | None, list[str]],
    loops: Mapping[str, Body],
    boxes: Mapping[str, Box],
    wires: Sequence[Wire],
    owner: Mapping[str, str],
) -> _Block:
    """Lay out one level after the levels inside it."""
    blocks: list[_Block] = []
    block_of: dict[str, int] = {}

    def add(block: _Block) -> int:
        blocks.append(block)
        for node in block.positions:
            block_of[node] = len(blocks) - 1
        return len(blocks) - 1

    start = add(_card(loop, boxes)) if loop is not None else -1
    for node in members.get(loop, ()):
        is_block = node in loops and node != loop
        add(_lay_out(node, members, loops, boxes, wires, owner) if is_block else _card(node, boxes))
    end = add(_card(loops[loop].exit, boxes)) if loop is not None else -1
    inner = [wire for wire in wires if wire.source in block_of and wire.target in block_of]
    edges = [
        (
            block_of[wire.source],
            _offset(blocks[block_of[wire.source]], wire.source, boxes[wire.source].outputs.get(wire.source_port)),
            block_of[wire.target],
            _offset(blocks[block_of[wire.target]], wire.target, boxes[wire.target].inputs.get(wire.target_port)),
        )
        for wire in inner
        if block_of[wire.source] != block_of[wire.target]
    ]
    level = _Level(blocks, edges)
    _assign_layers(level, start, end)
    return _combined(blocks, _place(level), is_loop=loop is not None)


def _card(node: str, boxes: Mapping[str, Box]) -> _Block:
    return _Block(boxes[node].width, boxes[node].height, {node: (0.0, 0.0)})


def _offset(block: _Block, node: str, port: float | None) -> float:
    return block.positions[node][1] + (port if port is not None else 20.0)


def _assign_layers(level: _Level, start: int, end: int) -> None:
    """Assign layers by longest path; nodes of a cycle are taken in document order."""
    count = len(level.blocks)
    waiting = [0] * count
    leaving: list[list[int]] = [[] for _ in range(count)]
    for source, _, target, _ in level.edges:
        leaving[source].append(target)
        waiting[target] += 1
    ready = [block for block in range(count) if not waiting[block]]
    done = [False] * count
    placed = 0
    while placed < count:
        if not ready:
            ready.append(next(block for block in range(count) if not done[block]))
        block = ready.pop(0)
        if done[block]:
            continue
        done[block] = True
        placed += 1
        for target in leaving[block]:
            if not done[target]:
                level.blocks[target].layer = max(level.blocks[target].layer, level.blocks[block].layer + 1)
                waiting[target] -= 1
                if not waiting[target]:
                    ready.append(target)
    if start >= 0:
        for index, block in enumerate(level.blocks):
            if index != start:
                block.layer = max(block.layer, 1)
        inside = [block.layer for index, block in enumerate(level.blocks) if index not in (start, end)]
        level.blocks[end].layer = max(inside, default=1) + 1
    _pull_to_targets(level, {start, end})


def _pull_to_targets(level: _Level, fixed: set[int]) -> None:
    """Move blocks without inputs right before their first target."""
    targets: dict[int, list[int]] = {}
    fed = set()
    for source, _, target, _ in level.edges:
        targets.setdefault(source, []).append(target)
        fed.add(target)
    for block, following in targets.items():
        nearest = min(level.blocks[target].layer for target in following) - 1
        if block not in fed and block not in fixed and nearest > level.blocks[block].layer:
            level.blocks[block].layer = nearest


def _place(level: _Level) -> float:
    """Position the blocks and return the total width."""
    edges = _split_long_edges(level)
    layers: list[list[int]] = [[] for _ in range(max((block.layer for block in level.blocks), default=-1) + 1)]
    for index, block in enumerate(level.blocks):
        layers[block.layer].append(index)
    before: dict[int, list[_Pull]] = {}
    after: dict[int, list[_Pull]] = {}
    for source, source_offset, target, target_offset in edges:
        weight = LONG if not (level.blocks[source].positions and level.blocks[target].positions) else 1.0
        before.setdefault(target, []).append((source, source_offset - target_offset, weight))
        after.setdefault(source, []).append((target, target_offset - source_offset, weight))
    for layer in layers:
        _place_layer(level, layer, {})
    for is_sorted in (True, False):
        for _ in range(SWEEPS):
            tops = [block.top for block in level.blocks]
            for way, pulls in ((layers, before), (layers[::-1], after)):
                for layer in way:
                    preferred = _preferred_tops(level, layer, pulls)
                    if is_sorted:
                        layer.sort(key=lambda index: preferred.get(index, (level.blocks[index].top, 0.0))[0])
                    _place_layer(level, layer, preferred)
            if tops == [block.top for block in level.blocks]:  # further sweeps would not move any block either
                break
    x = 0.0
    for layer in layers:
        width = max((level.blocks[index].width for index in layer), default=0.0)
        for index in layer:
            block = level.blocks[index]
            dx, dy = x + (width - block.width) / 2, block.top
            block.positions = {node: (px + dx, py + dy) for node, (px, py) in block.positions.items()}
        x += width + COLUMN_GAP
    return max(x - COLUMN_GAP, 0.0)


def _split_long_edges(level: _Level) -> list[tuple[int, float, int, float]]:
    """Split long edges with a dummy node in each layer between."""
    short: list[tuple[int, float, int, float]] = []
    for source, source_offset, target, target_offset in level.edges:
        current, offset = source, source_offset
        for layer in range(level.blocks[source].layer + 1, level.blocks[target].layer):
            level.blocks.append(_Block(0.0, DUMMY_HEIGHT, {}, layer))
            short.append((current, offset, len(level.blocks) - 1, DUMMY_HEIGHT / 2))
            current, offset = len(level.blocks) - 1, DUMMY_HEIGHT / 2
        if level.blocks[current].layer < level.blocks[target].layer:
            short.append((current, offset, target, target_offset))
    return short


def _preferred_tops(
    level: _Level, layer: Sequence[int], pulls: Mapping[int, list[_Pull]]
) -> dict[int, tuple[float, float]]:
    """Return the top of each block at which its edges are straight, with a weight."""
    preferred: dict[int, tuple[float, float]] = {}
    for index in layer:
        block_pulls = pulls.get(index)
        if block_pulls:
            weight = sum(pull[2] for pull in block_pulls)
            middle = sum((level.blocks[other].top + shift) * share for other, shift, share in block_pulls) / weight
            preferred[index] = (middle, weight)
    return preferred


def _place_layer(level: _Level, layer: Sequence[int], preferred: Mapping[int, tuple[float, float]]) -> None:
    """Place the blocks of a layer as close to their preferred tops as order and sizes allow."""
    shift = 0.0
    pools: list[tuple[float, float, int]] = []  # mean preferred top minus the heights above, weight, number of blocks
    shifts: list[float] = []
    for index in layer:
        block = level.blocks[index]
        shifts.append(shift)
        top, weight = preferred.get(index, (block.top, 1.0))
        pools.append((top - shift, weight, 1))
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            (low, heavy, few), (high, light, many) = pools.pop(), pools.pop()
            pools.append(((low * heavy + high * light) / (heavy + light), heavy + light, few + many))
        shift += block.height + ROW_GAP
    positions = [mean for mean, _, size in pools for _ in range(size)]
    for index, mean, moved in zip(layer, positions, shifts, strict=True):
        level.blocks[index].top = mean + moved


def _combined(blocks: Iterable[_Block], width: float, *, is_loop: bool) -> _Block:
    """Combine blocks into one, with the region's margins around a loop."""
    real = [block for block in blocks if block.positions]
    if not real:
        return _Block(0.0, 0.0, {})
    top, bottom = min(block.top for block in real), max(block.top + block.height for block in real)
    left, above, right, below = MARGINS if is_loop else (0.0, 0.0, 0.0, 0.0)
    positions = {node: (x + left, y - top + above) for block in real for node, (x, y) in block.positions.items()}
    return _Block(width + left + right, bottom - top + above + below, positions)


Rect = tuple[float, float, float, float]
"""Left, top, width, height."""

ALIGNMENTS: Final = ("left", "center", "right", "top", "middle", "bottom")


def align(rects: Mapping[str, Rect], where: str) -> dict[str, Position]:
    """Align cards by their left, center, right, top, middle or bottom."""
    if len(rects) < 2:
        return {}
    across = where in {"left", "center", "right"}
    axis, extent = (0, 2) if across else (1, 3)
    low = min(rect[axis] for rect in rects.values())
    high = max(rect[axis] + rect[extent] for rect in rects.values())
    share = {"left": 0.0, "top": 0.0, "center": 0.5, "middle": 0.5, "right": 1.0, "bottom": 1.0}[where]
    line = low + (high - low) * share
    moved: dict[str, Position] = {}
    for node_id, rect in rects.items():
        start = line - rect[extent] * share
        moved[node_id] = (start, rect[1]) if across else (rect[0], start)
    return moved


def distribute(rects: Mapping[str, Rect], *, across: bool) -> dict[str, Position]:
    """Equalize the gaps between cards; the first and the last keep their position."""
    if len(rects) < 3:
        return {}
    axis, extent = (0, 2) if across else (1, 3)
    order = sorted(rects, key=lambda node_id: rects[node_id][axis])
    first, last = rects[order[0]], rects[order[-1]]
    taken = sum(rects[node_id][extent] for node_id in order)
    gap = (last[axis] + last[extent] - first[axis] - taken) / (len(order) - 1)
    at = first[axis]
    moved: dict[str, Position] = {}
    for node_id in order:
        rect = rects[node_id]
        moved[node_id] = (at, rect[1]) if across else (rect[0], at)
        at += rect[extent] + gap
    return moved
