"""The base class of all errors that the engine raises on purpose.

Bad input, missing things and failing networks raise an `EngineError`, whose text says what is wrong, where, and what to
do. Any other exception is a bug.
"""

from __future__ import annotations

from collections.abc import Iterable


class EngineError(Exception):
    """An error that a person can act on.

    Attributes:
        message: One sentence: what is wrong and where.
        remedy: One sentence: what to do; empty if the message says it.
    """

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message} {self.remedy}".rstrip()


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a question with the known name most similar to an unknown one, or an empty text."""
    import difflib  # rarely needed, and slow to import

    candidates = list(known)
    lowered = {candidate.lower(): candidate for candidate in reversed(candidates)}
    near = difflib.get_close_matches(name[:100].lower(), list(lowered), n=1)
    return f'Did you mean "{lowered[near[0]]}"?' if near else ""
