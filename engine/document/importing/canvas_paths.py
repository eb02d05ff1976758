"""Who leads where on a canvas: what lies in a loop, which exit ends it, and which edges go round in a circle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

_OPENING: Final = {"loop": "exit", "iterator": "aggregator"}
_CLOSING: Final = {end: start for start, end in _OPENING.items()}
_MOST_OPEN: Final = 64
"""How deep parts lie inside one another, at the most; no document may have more."""


class Wires:
    """The edges of a canvas.

    Attributes:
        kinds: What each card is.
        closing: The numbers of the edges that close a circle.
        ends: For each loop the exit that ends it, for each iterator the aggregator.
    """

    def __init__(self, kinds: dict[str, str], edges: Sequence[tuple[str, str]]) -> None:
        self.kinds = kinds
        leads: dict[str, list[tuple[int, str]]] = {card: [] for card in kinds}
        for number, (source, target) in enumerate(edges):
            leads[source].append((number, target))
        self.closing, backwards = _closing(leads, {target for _, target in edges})
        self._next = {
            card: [target for number, target in targets if number not in self.closing]
            for card, targets in leads.items()
        }
        self._nearest = self._nearest_ends(backwards)
        self.ends: dict[str, str] = {}
        for card, kind in kinds.items():
            if kind in _OPENING:
                end = next((end for target in self._next[card] if (end := self.end_around(target))), None)
                if end is not None and _CLOSING[kinds[end]] == kind:
                    self.ends[card] = end

    def end_around(self, card: str) -> str | None:
        """The exit or aggregator that ends the innermost part that a card lies in, itself if it is one."""
        found = self._nearest[card].get(0)
        return None if found is None else found[1]

    def _nearest_ends(self, backwards: Sequence[str]) -> dict[str, dict[int, tuple[int, str]]]:
        """For each card, by how many more parts are open when it is reached: the nearest end, and how far it is.

        Args:
            backwards: The cards, each after all that it leads to.
        """
        nearest: dict[str, dict[int, tuple[int, str]]] = {}
        for card in backwards:
            kind = self.kinds[card]
            opened = 1 if kind in _OPENING else -1 if kind in _CLOSING else 0
            found: dict[int, tuple[int, str]] = {}
            for target in self._next[card]:
                for after, (steps, end) in nearest[target].items():
                    depth = after - opened
                    if 0 <= depth <= _MOST_OPEN and (depth not in found or steps + 1 < found[depth][0]):
                        found[depth] = (steps + 1, end)
            if kind in _CLOSING:
                found[0] = (0, card)
            nearest[card] = found
        return nearest

    def leads_into_body(self, loop: str, target: str) -> bool:
        """Whether an edge from a loop to that card leads into its body, and not past its exit."""
        return loop in self.ends and self.end_around(target) == self.ends[loop]


def _closing(leads: dict[str, list[tuple[int, str]]], led_to: set[str]) -> tuple[frozenset[int], list[str]]:
    """The edges that lead back to a card on the way, gone along from the cards that nothing leads to.

    Also all cards, each after those that its other edges lead to.
    """
    found: set[int] = set()
    done: dict[str, None] = {}
    for start in sorted(leads, key=lambda card: card in led_to):
        if start in done:
            continue
        on_the_way = {start}
        way = [(start, iter(leads[start]))]
        while way:
            card, targets = way[-1]
            step = next(targets, None)
            if step is None:
                way.pop()
                on_the_way.discard(card)
                done[card] = None
            elif step[1] in on_the_way:
                found.add(step[0])
            elif step[1] not in done:
                on_the_way.add(step[1])
                way.append((step[1], iter(leads[step[1]])))
    return frozenset(found), list(done)
