"""Conversion of HTML to readable text.

The scanner reads a page once and aims at readable text, not at a faithful tree. `html.parser` takes quadratic time on
broken markup (100 kB of `<a ` keep it busy for minutes), and fails on some.
"""

from __future__ import annotations

import html
import re

_HIDDEN = frozenset({"script", "style", "noscript", "template", "svg", "iframe", "textarea", "select"})
_BREAK_TEXT = """
    address article aside blockquote br caption dd details div dl dt fieldset figcaption figure footer form h1 h2 h3 h4
    h5 h6 header hr legend li main nav ol option p pre section summary table tbody tfoot thead title tr ul
"""
_BREAKS = frozenset(_BREAK_TEXT.split())
_TAG_NAME = re.compile(r"/?[a-zA-Z][^\s/>]{0,40}")
_TAG_STOP = re.compile(r""">|=\s{0,20}["']""")
_LONG_REFERENCE = re.compile(r"&#[xX]?[0-9a-fA-F]{9,};?")
_SPACES = re.compile(r"[ \t\r\f\v\xa0]+")


def readable_text(page: str) -> str:
    """Convert HTML to text: no tags, comments, scripts and styles; a line for each block, entities resolved."""
    pieces: list[str] = []
    scanner = _Scanner(page)
    at = 0
    while (start := page.find("<", at)) >= 0:
        pieces.append(page[at:start])
        name = _TAG_NAME.match(page, start + 1)
        if name is None:
            if page.startswith(("!", "?"), start + 1):
                at = scanner.after_declaration(start)
            else:
                pieces.append("<")
                at = start + 1
            continue
        tag = name[0].lower()
        at = scanner.after_tag(name.end())
        if tag in _HIDDEN:
            at = scanner.after_hidden(tag, at)
        elif tag.lstrip("/") in _BREAKS:
            pieces.append("\n")
        elif tag.lstrip("/") in {"td", "th"}:
            pieces.append(" ")
    if at < len(page):
        pieces.append(page[at:])
    return _tidy("".join(pieces))


def page_title(page: str) -> str:
    """The title of a page, else its first heading, else its whole text, as readable text."""
    for tag in ("title", "h1"):
        parts = re.split(rf"</?{tag}\b", page, maxsplit=2, flags=re.IGNORECASE)
        if len(parts) > 1 and (title := readable_text(f"<{tag}{parts[1]}")):
            return title
    return readable_text(page)


def _tidy(text: str) -> str:
    text = html.unescape(_LONG_REFERENCE.sub("\ufffd", text))
    lines = (_SPACES.sub(" ", line).strip() for line in text.split("\n"))
    return "\n".join(line for line in lines if line)


class _Scanner:
    """Finds where a piece of markup ends; without an end, at the end of the page, so that no search is repeated."""

    def __init__(self, page: str) -> None:
        self._page = page
        # Lower case without moving any character: only ASCII letters matter in the name of a tag.
        self._lower = page.translate({upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)})

    def _after(self, mark: str, at: int) -> int:
        found = self._lower.find(mark, at)
        return len(self._page) if found < 0 else found + len(mark)

    def after_declaration(self, start: int) -> int:
        """The position after a comment, a doctype or a processing instruction that starts at `start`."""
        if self._page.startswith("<!--", start):
            return self._after("-->", start + 2)
        return self._after(">", start)

    def after_tag(self, at: int) -> int:
        """The position after a tag whose name ends at `at`; a `>` inside a quoted attribute does not end it."""
        while stop := _TAG_STOP.search(self._page, at):
            if stop[0] == ">":
                return stop.end()
            closing = self._page.find(stop[0][-1], stop.end())
            if closing < 0:  # an unclosed quote: the next '>' ends the tag
                return self._after(">", stop.end())
            at = closing + 1
        return len(self._page)

    def after_hidden(self, tag: str, at: int) -> int:
        """The position after the closing tag of an element whose content is hidden."""
        return self._after(">", self._after(f"</{tag}", at))
