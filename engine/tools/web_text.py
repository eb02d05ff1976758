"""Turning the body of a web reply into text: character sets, and HTML without its markup.

The HTML scanner is our own because `html.parser` takes quadratic time on broken markup: 800 kB of `<!--` kept it busy
for minutes. This one goes through the text once, whatever it holds. It aims at readable text, not at a faithful tree.
Knows nothing of the network.
"""

from __future__ import annotations

import codecs
import html
import re

# What browsers know (WHATWG Encoding Standard), by Python's names. Its other codecs are no character sets, or slow.
_CHARSET = re.compile(
    r"utf-8(?:-sig)?|utf-16(?:-[lb]e)?|ascii|iso8859-\d{1,2}|cp(?:125\d|866|874|932|949)|koi8-[ru]|mac-roman"
    r"|gbk|gb2312|gb18030|big5(?:hkscs)?|euc_(?:jp|kr)|shift_jis|iso2022_jp"
)
_META_CHARSET = re.compile(rb"""<meta[^>]{0,200}charset\s{0,9}=\s{0,9}["']?([\w.:-]{1,40})""", re.IGNORECASE)

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


def decode_body(body: bytes, charset: str, *, is_html: bool) -> str:
    """Decode a body.

    A byte order mark counts first, then the `charset` of the reply's header, then that of an HTML page; else it is
    UTF-8. What does not fit becomes U+FFFD.
    """
    if body.startswith(codecs.BOM_UTF8):
        charset = "utf-8-sig"
    elif body.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        charset = "utf-16"
    elif not charset and is_html and (meta := _META_CHARSET.search(body[:4096])):
        charset = meta[1].decode("ascii", "replace")
    return body.decode(_codec(charset), "replace")


def _codec(charset: str) -> str:
    try:
        name = codecs.lookup(charset.strip(" '\"")).name
    except (LookupError, ValueError):
        return "utf-8"
    return name if _CHARSET.fullmatch(name) else "utf-8"


def readable_text(page: str) -> str:
    """Reduce HTML to its text: no tags, comments, scripts and styles; a line for each block, entities resolved."""
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


def _tidy(text: str) -> str:
    text = html.unescape(_LONG_REFERENCE.sub("\ufffd", text))
    lines = (_SPACES.sub(" ", line).strip() for line in text.split("\n"))
    return "\n".join(line for line in lines if line)


class _Scanner:
    """Finds where a piece of markup ends: without an end, at the end of the page, so that no search is made twice."""

    def __init__(self, page: str) -> None:
        self._page = page
        # Case folding that keeps every position: only ASCII letters matter in the name of a tag.
        self._lower = page.translate({upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)})

    def _after(self, mark: str, at: int) -> int:
        found = self._lower.find(mark, at)
        return len(self._page) if found < 0 else found + len(mark)

    def after_declaration(self, start: int) -> int:
        """The position after a comment, a doctype or a processing instruction that opens at `start`."""
        if self._page.startswith("<!--", start):
            return self._after("-->", start + 2)
        return self._after(">", start)

    def after_tag(self, at: int) -> int:
        """The position after a tag whose name ends at `at`; a `>` inside a quoted attribute does not end it."""
        while stop := _TAG_STOP.search(self._page, at):
            if stop[0] == ">":
                return stop.end()
            closing = self._page.find(stop[0][-1], stop.end())
            if closing < 0:  # A quote that is never closed is a slip of the author's: the next '>' ends the tag.
                return self._after(">", stop.end())
            at = closing + 1
        return len(self._page)

    def after_hidden(self, tag: str, at: int) -> int:
        """The position after the closing tag of an element whose content is not shown."""
        return self._after(">", self._after(f"</{tag}", at))
