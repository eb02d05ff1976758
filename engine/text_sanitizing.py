"""How a foreign text or value, such as a path, a node id or a model's reply, is shown. Knows nothing of documents."""

from __future__ import annotations

import re

from engine.values import Value, compact_json

SHOWN_LENGTH = 200

_HARMFUL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # controls, the start of every escape sequence among them; tab and newline stay
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # what turns the direction of writing
    "\u2028\u2029\ud800-\udfff]"  # line breaks of another kind; half characters, which no encoding can write
)

_INVISIBLE = "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"
"""Printable by Unicode, and yet nothing is seen of them."""


def shown(text: object, length: int = SHOWN_LENGTH) -> str:
    """Write a foreign text so that a sentence that quotes it stays one readable line.

    Args:
        text: What to show; anything but a text is first written by `str`.
        length: The most characters to show of it; the middle of a longer one is left out.

    Returns:
        The text with control characters, unusual spaces and lone surrogates as backslash escapes.
    """
    whole = str(text)
    if len(whole) > length:
        half = (length - 1) // 2
        whole = f"{whole[:half]}…{whole[-half:]}"
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in whole)


def quoted(value: Value, length: int = 60) -> str:
    """Write a value as JSON, its middle left out where that is longer than `length`: for a sentence that quotes it."""
    return shown(compact_json(value), length)


def harmless(text: str) -> str:
    """The text with everything that could steer a terminal as an escape that can be read: backslash, x, 1b."""
    return _HARMFUL.sub(
        lambda found: found[0].encode("unicode_escape").decode("ascii"),
        text.replace("\r\n", "\n"),
    )


def visible(text: str) -> str:
    """A text to consent to: whole, line by line, with every character that cannot be seen as an escape."""
    shown_text = text.replace("\r\n", "\n")
    return "".join(
        c if c in "\n\t" or (c.isprintable() and c not in _INVISIBLE) else c.encode("unicode_escape").decode("ascii")
        for c in shown_text
    )


def one_line(text: str, width: int) -> str:
    """The text harmless and on one line, its end left out where it is longer than `width` characters (at least 4)."""
    # Only the beginning is looked at: the text may have a megabyte.
    line = " ".join(harmless(text[: width * 4]).split())
    return line if len(line) <= width and len(text) <= width * 4 else f"{line[: width - 3]}..."
