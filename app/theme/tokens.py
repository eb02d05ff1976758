"""The colours and measures from which everything on the screen is made.

Two sets, dark and light, with the same names. No other module writes a colour or a font size of its own. No Qt here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from engine.nodes.spec import Category, PortType

UNIT: Final = 4
"""Everything is spaced in multiples of this many pixels."""

FONT_FAMILY: Final = "Inter"
FONT_SIZE: Final = 13.0
FONT_SIZE_SMALL: Final = 11.5
FONT_SIZE_TITLE: Final = 14.0


@dataclass(frozen=True, slots=True)
class Theme:
    """One set of colours, each `#rrggbb`."""

    name: str
    ground: str
    panel: str
    card: str
    line: str
    text: str
    dim: str
    accent: str
    on_accent: str
    good: str
    warning: str
    bad: str
    category: dict[Category, str]
    port: dict[PortType, str]


DARK: Final = Theme(
    name="dark",
    ground="#14161b",
    panel="#1b1e25",
    card="#232832",
    line="#2c313c",
    text="#e6e8ee",
    dim="#9aa1b1",
    accent="#7c8cff",
    on_accent="#12141a",
    good="#41c48a",
    warning="#f0b44c",
    bad="#ef6b6b",
    category={
        Category.IO: "#58a6d6",
        Category.AI: "#9d7bf0",
        Category.LOGIC: "#e08a4f",
        Category.TOOLS: "#47b5a3",
    },
    port={
        PortType.ANY: "#9aa1b1",
        PortType.TEXT: "#7fb2e6",
        PortType.JSON: "#c79bf2",
        PortType.NUMBER: "#8fd08a",
        PortType.BOOLEAN: "#e6a56e",
        PortType.LIST: "#e6d06e",
    },
)

LIGHT: Final = Theme(
    name="light",
    ground="#f4f5f8",
    panel="#ffffff",
    card="#ffffff",
    line="#dfe2ea",
    text="#1d2230",
    dim="#596174",
    accent="#4c5fe0",
    on_accent="#ffffff",
    good="#1f9d66",
    warning="#b7791f",
    bad="#cf3f3f",
    category={
        Category.IO: "#2b7fb8",
        Category.AI: "#7450d6",
        Category.LOGIC: "#c2662b",
        Category.TOOLS: "#21897a",
    },
    port={
        PortType.ANY: "#596174",
        PortType.TEXT: "#2f74b5",
        PortType.JSON: "#8350c4",
        PortType.NUMBER: "#3a8a3d",
        PortType.BOOLEAN: "#b5661f",
        PortType.LIST: "#93791a",
    },
)
