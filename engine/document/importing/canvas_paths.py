"""Who leads where on a canvas: what lies in a loop, which exit ends it, and which edges go round in a circle."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final

_OPENING: Final = {"loop": "exit", "iterator": "aggregator"}
_CLOSING: Final = {end: start for start, end in _OPENING.items()}


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
        self.closing = _closing(leads, {target for _, target in edges})
        self._next = {
            card: [target for number, target in targets if number not in self.closing]
            for card, targets in leads.items()
        }
        self.ends: dict[str, str] = {}
        for card, kind in kinds.items():
            if kind in _OPENING:
                end = next((end for target in self._next[card] if (end := self.end_around(target))), None)
                if end is not None and _CLOSING[kinds[end]] == kind:
                    self.ends[card] = end

    def end_around(self, card: str) -> str | None:
        """The exit or aggregator that ends the innermost part that a card lies in, itself if it is one."""
        seen = {(card, 0)}
        waiting = deque(seen)
        while waiting:
            at, depth = waiting.popleft()
            kind = self.kinds[at]
            if kind in _CLOSING:
                if depth == 0:
                    return at
                depth -= 1
            elif kind in _OPENING:
                depth += 1
            for target in self._next[at]:
                if (target, depth) not in seen and depth <= len(self.kinds):
                    seen.add((target, depth))
                    waiting.append((target, depth))
        return None

    def leads_into_body(self, loop: str, target: str) -> bool:
        """Whether an edge from a loop to that card leads into its body, and not past its exit."""
        return loop in self.ends and self.end_around(target) == self.ends[loop]


def _closing(leads: dict[str, list[tuple[int, str]]], led_to: set[str]) -> frozenset[int]:
    """The edges that lead back to a card on the way, gone along from the cards that nothing leads to."""
    found: set[int] = set()
    done: set[str] = set()
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
                done.add(card)
            elif step[1] in on_the_way:
                found.add(step[0])
            elif step[1] not in done:
                on_the_way.add(step[1])
                way.append((step[1], iter(leads[step[1]])))
    return frozenset(found)
