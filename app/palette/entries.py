"""Entries of the palette: node types by category and templates, or search results. No Qt here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from app.gallery.templates import Template
from engine.nodes.registry import Registry
from engine.nodes.spec import AnySpec, Category
from engine.tools.registry import all_tools, builtin_tools

BEGINS: Final = 100
BEGINS_A_WORD: Final = 80
IS_IN: Final = 60
IS_IN_HELP: Final = 40
IN_ORDER: Final = 20
"""Score of names that contain the letters in order with others between them."""

LEAST_IN_HELP: Final = 3
"""Minimum length to search descriptions: fewer letters begin a word in almost all of them."""


def match_score(typed: str, names: tuple[str, ...], help_line: str = "") -> int:
    """Score how well a search text matches names or description; 0 for no match."""
    wanted = " ".join(typed.casefold().split())
    if not wanted:
        return BEGINS
    best = max((_fit_name(wanted, name.casefold()) for name in names), default=0)
    if best >= IS_IN:
        return best
    in_help = len(wanted) >= LEAST_IN_HELP and _begins_a_word(wanted, help_line.casefold())
    return max(best, IS_IN_HELP if in_help else 0)


def _fit_name(wanted: str, name: str) -> int:
    if name.startswith(wanted):
        return BEGINS
    if _begins_a_word(wanted, name):
        return BEGINS_A_WORD
    if wanted in name:
        return IS_IN
    letters = iter(name)
    return IN_ORDER if all(letter in letters for letter in wanted.replace(" ", "")) else 0


def _begins_a_word(wanted: str, text: str) -> bool:
    return f" {wanted}" in f" {text.replace('-', ' ').replace('_', ' ')}"


NODE_MIME: Final = "application/x-loopwright-node"
TEMPLATE_MIME: Final = "application/x-loopwright-template"
"""MIME types of dragged entries."""

CATEGORY_TITLES: Final = {
    Category.IO: "Input and output",
    Category.AI: "AI",
    Category.LOGIC: "Logic",
    Category.TOOLS: "Tools",
}
TITLES: Final = {"loop": "Loop and Exit"}
"""Titles of types that add a partner."""
ONLY_WHEN_SOUGHT: Final = frozenset({"exit", "aggregator"})
"""Types that are added by their partner and rarely alone: listed in search results only."""
TEMPLATE_ICON: Final = "mdi6.file-tree-outline"
TOOL_ICON: Final = "mdi6.toolbox-outline"
LONGEST_HELP: Final = 200
"""Maximum length of a tool's description: servers write them for models, at any length."""


class EntryKind(StrEnum):
    """Kind of a palette entry."""

    HEADER = "header"
    NODE = "node"
    TEMPLATE = "template"


@dataclass(frozen=True, slots=True)
class PaletteEntry:
    """Entry of the palette.

    Attributes:
        kind: Its kind.
        title: Its title.
        key: Name of the node type, `tool:NAME` of a tool, or path of a template; empty for a header.
        help: One-line description.
        icon: Name of its icon.
        category: Category that determines its colour.
    """

    kind: EntryKind
    title: str
    key: str = ""
    help: str = ""
    icon: str = ""
    category: Category | None = None


def palette_entries(registry: Registry, templates: Iterable[Template], typed: str = "") -> list[PaletteEntry]:
    """Return all entries under headers, or the matches of a search text, best first."""
    nodes = [*(_node_row(spec) for spec in registry), *tool_entries()]
    offered = [_template_row(template) for template in templates]
    if typed.strip():
        scored = [(match_score(typed, (row.title, row.key), row.help), row) for row in nodes]
        scored += [(match_score(typed, (row.title,), row.help), row) for row in offered]
        return [row for score, row in sorted(scored, key=lambda found: -found[0]) if score]
    listed: list[PaletteEntry] = []
    for category in Category:
        members = [row for row in nodes if row.category is category and row.key not in ONLY_WHEN_SOUGHT]
        listed += _under(CATEGORY_TITLES[category], members)
    return listed + _under("Templates", offered)


def _under(title: str, members: list[PaletteEntry]) -> list[PaletteEntry]:
    return [PaletteEntry(EntryKind.HEADER, title), *members] if members else []


def _node_row(spec: AnySpec) -> PaletteEntry:
    title = TITLES.get(spec.type, spec.title)
    return PaletteEntry(EntryKind.NODE, title, spec.type, spec.help, spec.icon, spec.category)


def tool_entries() -> Iterator[PaletteEntry]:
    """Yield an entry for each tool of a server or plugin; built-in tools are set on the tool node."""
    built_in = builtin_tools()
    for tool in all_tools().values():
        if tool.name not in built_in:
            text = " ".join(tool.help.split())
            text = text if len(text) <= LONGEST_HELP else f"{text[: LONGEST_HELP - 1].rstrip()}…"
            yield PaletteEntry(EntryKind.NODE, tool.title, f"tool:{tool.name}", text, TOOL_ICON, Category.TOOLS)


def _template_row(template: Template) -> PaletteEntry:
    return PaletteEntry(EntryKind.TEMPLATE, template.title, str(template.path), template.about, TEMPLATE_ICON)
