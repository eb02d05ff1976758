"""The pairs of node types between which a part of a workflow runs again and again.

One opens the part and hands each pass its values, the other collects what a pass came to and names the one that opened.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Pair:
    """Two node types that belong together.

    Attributes:
        start: The type that opens the part.
        end: The type that closes it.
        field: The setting of the end that holds the id of its start.
        body_ports: The outputs of the start that lead into the part; all others have a value only after it.
    """

    start: str
    end: str
    field: str
    body_ports: tuple[str, ...]


LOOP: Final = Pair("loop", "exit", "loop", ("body",))
ITERATOR: Final = Pair("iterator", "aggregator", "iterator", ("item", "index"))

PAIR_BY_START: Final = {pair.start: pair for pair in (LOOP, ITERATOR)}
PAIR_BY_END: Final = {pair.end: pair for pair in (LOOP, ITERATOR)}


def is_body_port(node_type: str, port: str) -> bool:
    """Whether an output leads into the part that its node opens."""
    pair = PAIR_BY_START.get(node_type)
    return pair is not None and port in pair.body_ports
