"""Checks of messages that do not depend on their wording."""

from __future__ import annotations


def mentions(message: str, parts: str) -> bool:
    """Whether a message has these parts in this order.

    Args:
        message: The message.
        parts: What matters in it (names, values, places), with ` … ` for the words between: `` `size` … a number``.
    """
    for part in parts.split(" … "):
        _, found, message = message.partition(part)
        if not found:
            return False
    return True
