"""Escape and truncate untrusted texts, such as paths, ids and model replies, for display."""

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
"""Invisible characters that Unicode counts as printable."""


def shown(text: object, length: int = SHOWN_LENGTH) -> str:
    """Escape and truncate a text for a one-line message.

    Args:
        text: A text, or any value, which is converted with `str`.
        length: Maximum length; the middle of a longer text is left out.

    Returns:
        The text with control characters, unusual spaces and lone surrogates as backslash escapes.
    """
    whole = str(text)
    if len(whole) > length:
        half = (length - 1) // 2
        whole = f"{whole[:half]}…{whole[-half:]}"
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in whole)


def quoted(value: Value, length: int = 60) -> str:
    """Format a value as JSON, escaped and truncated for a one-line message."""
    return shown(compact_json(value), length)


def harmless(text: str) -> str:
    """Escape everything that could control a terminal; tabs and newlines stay."""
    return _HARMFUL.sub(lambda c: c[0].encode("unicode_escape").decode("ascii"), text.replace("\r\n", "\n"))


def visible(text: str) -> str:
    """Escape every invisible character of a text to which a person consents; nothing is truncated."""
    return "".join(
        c if c in "\n\t" or (c.isprintable() and c not in _INVISIBLE) else c.encode("unicode_escape").decode("ascii")
        for c in text.replace("\r\n", "\n")
    )


def one_line(text: str, width: int) -> str:
    """Escape a text, join its lines, and truncate it to `width` characters (at least 4)."""
    # Process only the beginning, because the text may have a megabyte.
    line = " ".join(harmless(text[: width * 4]).split())
    return line if len(line) <= width and len(text) <= width * 4 else f"{line[: width - 3]}..."
