"""The `{{names}}` in a canvas's prompts: a name there may stand for another card, here it is what an edge brings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from engine.document.importing.canvas_card import Card, port_name
from engine.document.importing.canvas_nodes import CONVERTERS
from engine.document.importing.draft import Draft
from engine.document.importing.report import Report
from engine.document.importing.values import as_text
from engine.document.wording import shown

TEXTS: Final = {
    "llm": ("system", "prompt"),
    "router": ("criteria",),
    "transform": ("template",),
    "approval": ("message",),
}
"""By node type, the settings in which names stand."""

_HOLE: Final = re.compile(r"(?<!\\)\{\{(.{0,300}?)\}\}", re.DOTALL)
_PATH: Final = re.compile(r"\s*([A-Za-z0-9_][A-Za-z0-9_-]*)((?:\.[A-Za-z_][A-Za-z0-9_]*)*)\s*")
_OURS: Final = frozenset({"loop", "state"})
_OUTPUTS: Final = frozenset({"", ".output", ".value", ".response", ".result", ".text", ".content"})


def names_in(text: str) -> frozenset[str]:
    """The bare names that a text of ours uses."""
    return frozenset(match[1] for hole in _HOLE.finditer(text) if (match := _PATH.fullmatch(hole[1])))


def adapt_texts(
    cards: dict[str, Card], ids: dict[str, str], wires: Sequence[tuple[str, str, str]], draft: Draft, report: Report
) -> None:
    """Put our names into all prompts, and add the edges that they need.

    Args:
        cards: The cards by foreign id.
        ids: Our ids by foreign ones.
        wires: Source, target and target handle of each edge.
        draft: The document so far.
        report: Told what became of each name.
    """
    inputs = {
        as_text(draft.config(ids[card_id]).get("name")): card_id
        for card_id, card in cards.items()
        if card.kind == "input"
    }
    arriving: dict[str, list[tuple[str, str]]] = {}
    for source, target, handle in wires:
        arriving.setdefault(target, []).append((source, handle))
    for card_id, card in cards.items():
        node_type = CONVERTERS[card.kind][0] if card.kind in CONVERTERS else ""
        sources = [source for source, _ in arriving.get(card_id, ())]
        handles = {port_name(handle) for _, handle in arriving.get(card_id, ()) if handle}
        names = _Names(card, ids, inputs, sources, handles | {"input"}, draft, report)
        for field in TEXTS.get(node_type, ()):
            config = draft.config(ids[card_id])
            if field in config:
                config[field] = _HOLE.sub(names.filled, config[field])


class _Names:
    """What the names in one card's texts stand for."""

    def __init__(
        self,
        card: Card,
        ids: dict[str, str],
        inputs: dict[str, str],
        sources: Iterable[str],
        handles: Iterable[str],
        draft: Draft,
        report: Report,
    ) -> None:
        self._card = card
        self._ids = ids
        self._inputs = inputs
        self._sources = list(sources)
        self._handles = set(handles)
        self._draft = draft
        self._report = report

    def filled(self, hole: re.Match[str]) -> str:
        """The hole with our name in it."""
        path = _PATH.fullmatch(hole[1])
        where = f"{self._card.place}, {{{{{shown(hole[1].strip(), 60)}}}}}"
        if path is None:
            self._report.changed(where, "It stands as plain text: that is no name of a value here.")
            return "\\" + hole[0]
        name, rest = path[1], path[2]
        if name in _OURS and name not in self._ids:
            return hole[0]
        other = name if name in self._ids else self._inputs.get(name)
        if port_name(name) in self._handles and (other is None or name == "input"):
            return f"{{{{{port_name(name)}{rest}}}}}"
        if other is None or other == self._card.id:
            self._report.left(where, "Nothing leads to it; connect something.")
            return f"{{{{{port_name(name) or 'input'}{rest}}}}}"
        if self._sources == [other]:
            self._report.changed(where, "It is what the edge brings: {{input}}.")
            return f"{{{{input{'' if rest in _OUTPUTS else rest}}}}}"
        ours = self._ids[other]
        port = "value" if other in self._inputs.values() else "output"
        self._draft.connect(f"{ours}.{port}", f"{self._ids[self._card.id]}.{ours}")
        self._report.changed(where, f'An edge from "{ours}" brings it: {{{{{ours}}}}}.')
        return f"{{{{{ours}{'' if rest in _OUTPUTS else rest}}}}}"
