"""Frames and notes as the document's layout has them. No Qt here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from engine.document.config_path import UNSET, Unset
from engine.document.model import Workflow
from engine.document.operations import SetLayout
from engine.values import Value

Kind = Literal["frames", "notes"]

FARTHEST: Final = 990_000.0
"""Places further out than this are taken for nonsense; the view could not be moved to them."""

SMALLEST: Final = (80.0, 48.0)


@dataclass(frozen=True, slots=True)
class Remark:
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

    def moved(self, x: float, y: float) -> Remark:
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
        return SetLayout(self.path, self.to_json(entries(workflow, self.kind).get(self.id)))

    def unset(self) -> SetLayout:
        """The operation that takes it out."""
        value: Unset = UNSET
        return SetLayout(self.path, value)


def number(value: object, default: float | None = None) -> float | None:
    """A coordinate, where the value is a sensible one."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return default
    return float(value) if abs(value) <= FARTHEST else default


def entries(workflow: Workflow, name: str) -> dict[str, Any]:
    """One part of the layout by key; empty where it is missing or something else than an object."""
    found = workflow.layout.get(name)
    return found if isinstance(found, dict) else {}


def place_of(workflow: Workflow, node_id: str) -> tuple[float, float] | None:
    """The place of a node; None where the layout has none that makes sense."""
    place = entries(workflow, "nodes").get(node_id)
    if not isinstance(place, dict):
        return None
    x, y = number(place.get("x")), number(place.get("y"))
    return None if x is None or y is None else (x, y)


def remarks(workflow: Workflow) -> dict[tuple[str, str], Remark]:
    """All frames and notes that can be drawn, by their path in the layout."""
    found: dict[tuple[str, str], Remark] = {}
    for kind in ("frames", "notes"):
        for key, entry in entries(workflow, kind).items():
            if isinstance(entry, dict):
                remark = _remark(kind, key, entry)
                if remark is not None:
                    found[remark.path] = remark
    return found


def _remark(kind: Kind, key: str, entry: Mapping[str, Any]) -> Remark | None:
    x, y = number(entry.get("x")), number(entry.get("y"))
    if x is None or y is None:
        return None
    default = (320.0, 200.0) if kind == "frames" else (200.0, 96.0)
    width = max(number(entry.get("width"), default[0]) or 0.0, SMALLEST[0])
    height = max(number(entry.get("height"), default[1]) or 0.0, SMALLEST[1])
    text = entry.get("title" if kind == "frames" else "text", "")
    colour = entry.get("colour", "grey")
    return Remark(
        kind,
        key,
        x,
        y,
        width,
        height,
        text if isinstance(text, str) else "",
        colour if isinstance(colour, str) else "grey",
    )
