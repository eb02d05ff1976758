"""Places in a run, as paths name them: `draft`, `loop[2]`, `loop[2].draft`, `outer[1].inner[0].draft`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from engine.errors import EngineError
from engine.text_sanitizing import shown

_STEP: Final = re.compile(r"([a-z][a-z0-9_]*)(?:\[(0|[1-9][0-9]{0,8})\])?")


class PlaceError(EngineError):
    """A text that names no place in a run."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a place: a node, or with an index (from 0) an iteration of a loop."""

    node: str
    index: int | None = None

    def __str__(self) -> str:
        return self.node if self.index is None else f"{self.node}[{self.index}]"


@dataclass(frozen=True, slots=True)
class Place:
    """A node or an iteration in a run; every step but the last is an iteration, or a subflow that it lies in."""

    steps: tuple[Step, ...]

    def __str__(self) -> str:
        return ".".join(str(step) for step in self.steps)

    @property
    def last(self) -> Step:
        """The node or iteration itself."""
        return self.steps[-1]

    @property
    def level(self) -> str:
        """The iteration or subflow that it lies in; empty for the outermost level."""
        return str(Place(self.steps[:-1]))

    def iterations(self) -> Iterator[tuple[str, int]]:
        """The iterations that lead there, outermost first: the loop's path, and the index."""
        around = ""
        for step in self.steps:
            if step.index is not None:
                yield f"{around}{step.node}", step.index
            around += f"{step}."


def parse_place(text: str) -> Place:
    """Read a place.

    Raises:
        PlaceError: It is none.
    """
    steps: list[Step] = []
    for part in text.strip().split("."):
        match = _STEP.fullmatch(part)
        if match is None:
            raise PlaceError(
                f"{shown(text)} is no place in a run.",
                "Write an iteration as loop[2], a node in it as loop[2].draft; iterations count from 0 there.",
            )
        steps.append(Step(match[1], None if match[2] is None else int(match[2])))
    return Place(tuple(steps))
