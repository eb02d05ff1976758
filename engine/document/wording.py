"""How a foreign text, such as a path or a node id, is shown inside a sentence of ours. Knows nothing of documents."""

from __future__ import annotations

SHOWN_LENGTH = 200


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
