"""Cutting a text or Markdown file into the passages that a search finds.

A passage is a section, or as many of a long section's paragraphs as fit. Knows nothing of files, indexes and queries.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

MAX_PASSAGE_CHARACTERS = 1_500
"""How long a passage grows before the next paragraph opens a new one, and where a longer paragraph is cut."""

_MAX_HEADING_CHARACTERS = 200
_LINE_END = re.compile(r"\r\n|\r|\n")
_HEADING = re.compile(r" {0,3}(#{1,6})(?=[ \t]|$)")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of a file.

    Attributes:
        title: The headings that it stands under, outermost first, joined by ' > '.
        line: The line of the file where it starts, from 1.
        text: Its text, without the headings.
    """

    title: str
    line: int
    text: str


def cut_into_passages(text: str, name: str, *, markdown: bool) -> list[Passage]:
    """Cut a file's text.

    Args:
        text: The whole file.
        name: The title of what stands under no heading.
        markdown: Whether lines that open with `#` are headings; the underlined kind is read as plain text.
    """
    passages: list[Passage] = []
    for title, first_line, lines in _sections(_LINE_END.split(text), name, markdown=markdown):
        passages.extend(_cut_section(title, first_line, lines))
    return passages


def _sections(lines: list[str], name: str, *, markdown: bool) -> Iterator[tuple[str, int, list[str]]]:
    """Give each section's title, the number of its first line and its lines."""
    headings: list[tuple[int, str]] = []
    start = 0
    fence = ""
    for number, line in enumerate(lines):
        if not markdown:
            break
        mark = _FENCE.match(line)
        if mark is not None and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1]
        heading = None if fence else _HEADING.match(line)
        if heading is None:
            continue
        yield _title(headings, name), start + 1, lines[start:number]
        level = len(heading[1])
        headings = [(other, text) for other, text in headings if other < level]
        headings.append((level, _heading_text(line[heading.end() :])))
        start = number + 1
    yield _title(headings, name), start + 1, lines[start:]


def _heading_text(line: str) -> str:
    """A heading without the `#` that may close it, which stand apart: `C#` keeps its own."""
    text = line.strip()
    unclosed = text.rstrip("#")
    return (unclosed.rstrip() if not unclosed or unclosed[-1] in " \t" else text)[:_MAX_HEADING_CHARACTERS]


def _title(headings: list[tuple[int, str]], name: str) -> str:
    return " > ".join(text for _, text in headings if text) or name


def _cut_section(title: str, first_line: int, lines: list[str]) -> Iterator[Passage]:
    taken: list[str] = []
    length = 0
    start = first_line
    for number, paragraph in _paragraphs(first_line, lines):
        if taken and length + len(paragraph) > MAX_PASSAGE_CHARACTERS:
            yield Passage(title, start, "\n\n".join(taken))
            taken, length = [], 0
        if not taken:
            start = number
        taken.append(paragraph)
        length += len(paragraph)
    if taken:
        yield Passage(title, start, "\n\n".join(taken))


def _paragraphs(first_line: int, lines: list[str]) -> Iterator[tuple[int, str]]:
    """Give blocks between empty lines with the numbers of their first lines, each cut at the longest allowed length."""
    block: list[str] = []
    length = 0
    for number, line in enumerate([*lines, ""], first_line):
        if block and (not line.strip() or length + len(line) > MAX_PASSAGE_CHARACTERS):
            yield number - len(block), "\n".join(block)
            block, length = [], 0
        for at in range(0, len(line) - MAX_PASSAGE_CHARACTERS, MAX_PASSAGE_CHARACTERS):
            yield number, line[at : at + MAX_PASSAGE_CHARACTERS]
        rest = line[(len(line) - 1) // MAX_PASSAGE_CHARACTERS * MAX_PASSAGE_CHARACTERS :] if line else ""
        if rest.strip():
            block.append(rest)
            length += len(rest)
