"""Read the project's Markdown pages: code blocks, headings and links."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from tests.architecture.project import ROOT

_FENCE = re.compile(r"^(```+)([^\n`]*)\n(.*?)^\1[ ]*$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"!?\[[^\]\[]*(?:\[[^\]]*\][^\]\[]*)*\]\(([^()\s]+)(?:\s+\"[^\"]*\")?\)")
_CODE = re.compile(r"`[^`\n]*`")
_HEADING = re.compile(r"^#{1,6} +(.+?)#* *$", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A code block: language, text, and the line at which it starts."""

    language: str
    text: str
    line: int


def read(page: str) -> str:
    """The text of a page, by its path in the project."""
    return (ROOT / page).read_text(encoding="utf-8")


def blocks(page: str) -> list[Block]:
    """All code blocks of a page, in order."""
    text = read(page)
    return [
        Block(found[2].strip(), found[3], text.count("\n", 0, found.start()) + 1) for found in _FENCE.finditer(text)
    ]


def links(text: str) -> list[str]:
    """The targets of the links in a text."""
    return _LINK.findall(_CODE.sub("", _FENCE.sub("", text)))


def anchors(file: Path) -> set[str]:
    """The anchors of a page's headings."""
    headings = _HEADING.findall(_FENCE.sub("", file.read_text(encoding="utf-8")))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}
