"""Places in a text as Qt counts them: a character beyond U+FFFF takes two. No Qt here."""

from __future__ import annotations


def to_units(text: str) -> str:
    """The text with one character for each that Qt counts, so that places agree."""
    if text.isascii() or max(text) <= "\uffff":
        return text
    raw = text.encode("utf-16-le", "surrogatepass")
    return "".join(chr(raw[index] | raw[index + 1] << 8) for index in range(0, len(raw), 2))


def from_units(units: str) -> str:
    """The text again; half a character becomes U+FFFD, since Qt could not show it."""
    return units.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
