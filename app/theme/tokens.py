"""Design tokens: colors, spacing and font sizes.

Both themes, dark and light, have the same names. No other module defines a color or font size. No Qt here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from engine.nodes.spec import Category, PortType

UNIT: Final = 4
"""Base unit of spacing in pixels."""

FONT_FAMILY: Final = "Inter"
FONT_SIZE: Final = 13.0
FONT_SIZE_SMALL: Final = 11.5
FONT_SIZE_TITLE: Final = 14.0
FONT_SIZE_HEADING: Final = 24.0


@dataclass(frozen=True, slots=True)
class Theme:
    """The colors of one theme, each `#rrggbb`.

    Attributes:
        name: `dark` or `light`; also the folder of the style sheet's images.
        ground: Background of the canvas and the start page.
        panel: Background of panels, bars and dialogs.
        card: Background of cards, menus and buttons.
        field: Background of input fields.
        hover: Background under the pointer.
        selection: Background of selected items.
        line: Separators; decoration only.
        edge: Borders of controls.
        outline: Borders of controls that show a state, such as check boxes: contrast at least 3 : 1.
        text: Primary text.
        dim: Secondary text.
        faint: Disabled text.
        accent: The accent color; as text, and as a background under `on_accent`.
        on_accent: Text and icons on `accent`.
        good: Success; also as text.
        warning: Warning; also as text.
        bad: Error; also as text.
        good_soft: Background of a success badge.
        warning_soft: Background of a warning badge.
        bad_soft: Background of an error badge.
        category: Colors of the node categories.
        port: Colors of the port types.
    """

    name: str
    ground: str
    panel: str
    card: str
    field: str
    hover: str
    selection: str
    line: str
    edge: str
    outline: str
    text: str
    dim: str
    faint: str
    accent: str
    on_accent: str
    good: str
    warning: str
    bad: str
    good_soft: str
    warning_soft: str
    bad_soft: str
    category: dict[Category, str]
    port: dict[PortType, str]


DARK: Final = Theme(
    name="dark",
    ground="#14161b",
    panel="#1b1e25",
    card="#232832",
    field="#20242d",
    hover="#2d3340",
    selection="#2e3354",
    line="#2c313c",
    edge="#3b4250",
    outline="#7f879b",
    text="#e6e8ee",
    dim="#9ea5b5",
    faint="#6b7282",
    accent="#8b99ff",
    on_accent="#12141a",
    good="#41c48a",
    warning="#f0b44c",
    bad="#f27d7d",
    good_soft="#1d3b33",
    warning_soft="#40341f",
    bad_soft="#44282d",
    category={
        Category.IO: "#58a6d6",
        Category.AI: "#a88bf2",
        Category.LOGIC: "#e08a4f",
        Category.TOOLS: "#47b5a3",
    },
    port={
        PortType.ANY: "#9ea5b5",
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
    field="#f7f8fb",
    hover="#eceef4",
    selection="#e3e7fc",
    line="#dfe2ea",
    edge="#c8cdd9",
    outline="#7d8597",
    text="#1d2230",
    dim="#565e70",
    faint="#9097a6",
    accent="#4456d6",
    on_accent="#ffffff",
    good="#14744a",
    warning="#8a5a0c",
    bad="#b93232",
    good_soft="#dff3e8",
    warning_soft="#faeed6",
    bad_soft="#fbe4e4",
    category={
        Category.IO: "#23719f",
        Category.AI: "#6f4bd0",
        Category.LOGIC: "#a9551d",
        Category.TOOLS: "#1a7568",
    },
    port={
        PortType.ANY: "#565e70",
        PortType.TEXT: "#2b6ca9",
        PortType.JSON: "#7d4abf",
        PortType.NUMBER: "#2f7a33",
        PortType.BOOLEAN: "#a35a17",
        PortType.LIST: "#7d6713",
    },
)
