"""The canvas form: a JSON file of nodes and edges, as editors in a browser save it.

A loop's body hangs on the loop's handle `output`; an iteration's result reaches an `exit`. Whether an edge from
`output` leads into the body or past the loop, the paths say. An edge that closes a circle in a body is what a loop
here does by itself: it becomes the exit's feedback.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from engine.document.importing.canvas_card import Card, port_name
from engine.document.importing.canvas_nodes import CONVERTERS
from engine.document.importing.canvas_paths import Wires
from engine.document.importing.canvas_subflows import SUBFLOWS, Reader, subflow_config, subflow_port
from engine.document.importing.canvas_texts import TEXTS, adapt_texts, names_in
from engine.document.importing.draft import Draft
from engine.document.importing.report import Report
from engine.document.importing.tools import PORTS
from engine.document.importing.values import Fields, as_list, as_number, as_object, as_text
from engine.document.model import Workflow
from engine.document.problems import DocumentError
from engine.document.wording import shown

MAX_CARDS: Final = 2_000
MAX_WIRES: Final = 10_000

_WRAPPERS: Final = ("graph", "workflow", "definition", "flow", "data", "graph_json", "graphJson", "graphData")
_OF_THE_VIEW: Final = frozenset(
    {
        *("position", "positionAbsolute", "width", "height", "measured", "selected", "dragging", "zIndex", "style"),
        *("className", "sourcePosition", "targetPosition", "deletable", "draggable", "selectable", "connectable"),
        *("focusable", "hidden", "ariaLabel", "resizing", "expandParent"),
    }
)
_OF_AN_EDGE: Final = frozenset({"id", "source", "target", "sourceHandle", "targetHandle"})
_OF_THE_FILE: Final = frozenset({"viewport", "id", "version", "createdAt", "updatedAt", "created_at", "updated_at"})


@dataclass(frozen=True, slots=True)
class _Wire:
    source: str
    source_handle: str
    target: str
    target_handle: str

    @property
    def place(self) -> str:
        return f"edge {self.source} -> {self.target}"


def canvas_of(value: object) -> dict[str, Any] | None:
    """The object with `nodes` and `edges` in a file, wherever it lies in it; None where there is none."""
    whole = as_object(value)
    if _is_canvas(whole):
        return whole
    for name in _WRAPPERS:
        inner = whole.get(name)
        if isinstance(inner, str) and inner.lstrip().startswith("{"):
            try:
                inner = json.loads(inner)
            except (ValueError, RecursionError):
                continue
        if _is_canvas(as_object(inner)):
            there = as_object(inner)
            outer = {f"{key} beside {name}" if key in there else key: whole[key] for key in whole if key != name}
            return {**outer, **there}
    return None


def _is_canvas(whole: dict[str, Any]) -> bool:
    edges = as_list(whole.get("edges"))
    if "format" in whole or not as_list(whole.get("nodes")) or not isinstance(whole.get("edges"), list):
        return False
    return all("source" in as_object(edge) and "target" in as_object(edge) for edge in edges)


def import_canvas(whole: dict[str, Any], report: Report, source: str, name: str) -> Workflow:
    """Make a document of a canvas.

    Args:
        whole: What `canvas_of` gave.
        report: Told what became of each thing.
        source: What to call the file in messages.
        name: What the workflow is called where the file does not say.

    Raises:
        DocumentError: It is too large.
    """
    nodes, edges = as_list(whole.get("nodes")), as_list(whole.get("edges"))
    if len(nodes) > MAX_CARDS or len(edges) > MAX_WIRES:
        message = f"{source}: The canvas has {len(nodes):,} nodes and {len(edges):,} edges."
        raise DocumentError(message, f"At most {MAX_CARDS:,} and {MAX_WIRES:,} are imported; divide it.")
    draft = Draft()
    wires = [_wire(as_object(edge)) for edge in edges]
    cards = _cards(nodes, wires, report)
    within = partial(_part, source=source)
    ids = {card_id: _add(card, draft, report, within) for card_id, card in cards.items()}
    _place(nodes, ids, draft, report)
    there: list[_Wire] = []
    for wire in wires:
        if wire.source in cards and wire.target in cards:
            there.append(wire)
        else:
            report.left(wire.place, "One of its ends is no card.")
    paths = Wires({card: cards[card].kind for card in cards}, [(wire.source, wire.target) for wire in there])
    _name_ends(paths, ids, draft)
    adapt_texts(cards, ids, [(w.source, w.target, w.target_handle) for w in there], draft, report)
    for number, wire in enumerate(there):
        _connect(number, wire, cards, ids, paths, draft, report)
    _tell_view(nodes, edges, report)
    top = Fields({key: told for key, told in whole.items() if key not in {"nodes", "edges", *_OF_THE_FILE}})
    of_the_file = [key for key in whole if key in _OF_THE_FILE]
    if of_the_file:
        report.left("the file", f"Of use to the other program only: {', '.join(of_the_file)}.")
    title, description = as_text(top.take("name", "title")), as_text(top.take("description"))
    if title:
        report.carried("name", "The workflow's name.")
    if description:
        report.carried("description", "The workflow's description.")
    report.settle("", top)
    return draft.finished(title or name, description)


def _part(whole: dict[str, Any], report: Report, name: str, *, source: str) -> Workflow:
    """A canvas inside of another."""
    return import_canvas(whole, report, source, name)


def _wire(edge: dict[str, Any]) -> _Wire:
    return _Wire(
        as_text(edge.get("source")),
        as_text(edge.get("sourceHandle")),
        as_text(edge.get("target")),
        as_text(edge.get("targetHandle")),
    )


def _cards(nodes: Iterable[object], wires: Iterable[_Wire], report: Report) -> dict[str, Card]:
    cards: dict[str, Card] = {}
    used: dict[str, list[str]] = {}
    for wire in wires:
        used.setdefault(wire.source, []).append(wire.source_handle)
    for number, entry in enumerate(nodes):
        node = as_object(entry)
        card_id = as_text(node.get("id"))
        if not card_id or card_id in cards:
            report.left(f"card {number + 1}", "It has no id of its own.")
            continue
        data = as_object(node.get("data"))
        kind = _kind(as_text(node.get("type")), as_text(data.get("type") or data.get("nodeType")))
        members = {key: told for key, told in node.items() if key not in {"id", "type", "data", *_OF_THE_VIEW}}
        members |= {key: told for key, told in data.items() if key not in {"type", "nodeType", "config"}}
        members |= as_object(members.pop("config", None)) | as_object(data.get("config"))
        fields = Fields(members)
        title = as_text(fields.take("label", "title"))
        if title:
            report.carried(f"card {card_id}, label", "The title.")
        cards[card_id] = Card(card_id, kind, title, fields, tuple(used.get(card_id, ())))
    return cards


def _kind(of_node: str, of_data: str) -> str:
    kind = of_node.strip()
    for ending in ("Node", "_node", "-node"):
        kind = kind.removesuffix(ending)
    if kind.lower() in {"", "custom", "default"}:
        kind = of_data.strip()
    return kind.lower().replace("-", "_")


def _add(card: Card, draft: Draft, report: Report, within: Reader) -> str:
    if card.kind in SUBFLOWS:
        node_id = draft.add("subflow", card.id, card.title, subflow_config(card, report, within))
        report.carried(card.place, f'The node "{node_id}" (subflow).')
        report.settle(card.place, card.fields)
        return node_id
    if card.kind not in CONVERTERS:
        report.left(card.place, f'There is no node type "{shown(card.kind, 60)}" here; put another in its place.')
        for name in card.fields.rest:
            report.carried(f"{card.place}, {shown(name, 60)}", "It is kept as it stands.")
        return draft.add(port_name(card.kind) or "unknown", card.id, card.title, card.fields.rest)
    node_type, convert = CONVERTERS[card.kind]
    node_id = draft.add(node_type, card.id, card.title, convert(card, report))
    told = report.carried if node_id == card.id else report.changed
    told(card.place, f'The node "{node_id}" ({node_type}).')
    if node_type == "router" and card.fields.has("evaluator"):
        card.fields.take("evaluator")
        report.changed(f"{card.place}, evaluator", "The router whose branch done leads to the exit decides.")
    report.settle(card.place, card.fields)
    return node_id


def _tell_view(nodes: Iterable[object], edges: Iterable[object], report: Report) -> None:
    """Name what cards and edges have that only says how they look, once each."""
    of_cards = dict.fromkeys(key for node in nodes for key in as_object(node) if key in _OF_THE_VIEW - {"position"})
    if of_cards:
        report.left("the look of cards", f"Not kept: {', '.join(of_cards)}.")
    of_edges = dict.fromkeys(key for edge in edges for key in as_object(edge) if key not in _OF_AN_EDGE)
    report.left_keys("edges", of_edges, "An edge says here only what it connects.")


def _place(nodes: Iterable[object], ids: dict[str, str], draft: Draft, report: Report) -> None:
    placed = 0
    for entry in nodes:
        node = as_object(entry)
        position = as_object(node.get("position"))
        x, y = as_number(position.get("x")), as_number(position.get("y"))
        if as_text(node.get("id")) not in ids or "position" not in node:
            continue
        if x is None or y is None or max(abs(x), abs(y)) >= 1e6:
            report.left(f"card {as_text(node.get('id'))}, position", "It is no place.")
            continue
        draft.place(ids[as_text(node.get("id"))], round(x), round(y))
        placed += 1
    if placed:
        report.carried("position", f"Where {placed} cards stand, unless some would lie on others.")


def _name_ends(paths: Wires, ids: dict[str, str], draft: Draft) -> None:
    """Say for each exit which loop it ends, and for each aggregator which iterator."""
    for start, end in paths.ends.items():
        draft.config(ids[end])["loop" if paths.kinds[start] == "loop" else "iterator"] = ids[start]


def _connect(
    number: int, wire: _Wire, cards: dict[str, Card], ids: dict[str, str], paths: Wires, draft: Draft, report: Report
) -> None:
    source, target = cards[wire.source], cards[wire.target]
    if source.kind in SUBFLOWS:
        port = subflow_port(draft.config(ids[wire.source]), "output", wire.source_handle)
    else:
        port = _source_port(wire, source, paths)
    if not port:
        report.left(wire.place, f'A {source.kind} has no port "{shown(wire.source_handle, 60)}" here.')
        return
    start = f"{ids[wire.source]}.{port}"
    if number in paths.closing:
        end = paths.end_around(wire.target)
        if end is None or paths.kinds[end] != "exit":
            report.left(wire.place, "It closes a circle outside of any loop.")
            return
        draft.connect(start, f"{ids[end]}.feedback")
        report.changed(wire.place, "It leads back: that is what the next iteration starts from (the exit's feedback).")
        return
    end_port = _target_port(wire, target, draft, ids)
    draft.connect(start, f"{ids[wire.target]}.{end_port}")
    usual = {wire.source_handle or port, wire.target_handle or end_port}
    told = report.carried if usual == {port, end_port} else report.changed
    told(wire.place, f"{start} -> {ids[wire.target]}.{end_port}.")


_SOURCES: Final[dict[str, dict[str, str]]] = {
    "validator": {"valid": "valid", "invalid": "invalid", "errors": "errors", "": "valid"},
    "approval": {"approved": "approved", "rejected": "rejected", "comment": "comment", "": "approved"},
    "aggregator": {"": "output"},
    "iterator": {"index": "index", "iterations": "iterations", "count": "count", "": "item"},
    "loop": {"iterations": "iterations", "count": "count", "exit_reason": "exit_reason", "": "body"},
    "llm": {"usage": "usage", "tokens": "usage", "cost": "usage", "": "output"},
    "input": {"": "value"},
}
"""By kind of card, our port for each handle; the one without a name is for all others."""


def _source_port(wire: _Wire, card: Card, paths: Wires) -> str:
    kind = CONVERTERS[card.kind][0] if card.kind in CONVERTERS else card.kind
    if kind == "router":
        name = port_name(wire.source_handle)
        return name if name not in {"", "output", "value"} else ""
    port = _SOURCES.get(kind, {"": "output"}).get(wire.source_handle)
    if port is None:
        port = _SOURCES.get(kind, {"": "output"})[""]
    if port == "body" and not paths.leads_into_body(wire.source, wire.target):
        return "output"
    return port


def _target_port(wire: _Wire, card: Card, draft: Draft, ids: dict[str, str]) -> str:
    kind = CONVERTERS[card.kind][0] if card.kind in CONVERTERS else card.kind
    if kind in SUBFLOWS:
        return subflow_port(draft.config(ids[wire.target]), "input", wire.target_handle)
    if kind == "output":
        return "value"
    if kind == "iterator":
        return "items"
    if kind == "exit":
        return "feedback" if wire.target_handle == "feedback" else "input"
    config = draft.config(ids[wire.target])
    if kind == "tool":
        port = PORTS.get(as_text(config.get("tool")), "input")
        return wire.target_handle if wire.target_handle not in {"", "input", "in", "value"} else port
    name = port_name(wire.target_handle)
    texts = [as_text(config.get(field)) for field in TEXTS.get(kind, ())]
    return name if name and any(name in names_in(text) for text in texts) else "input"
