"""The root of every error that the engine raises on purpose.

Whatever leaves the engine because of bad input, a missing thing or a failing network is an `EngineError`: its text
is one sentence that says what is wrong, where, and what to do. Anything else is a bug of ours.
"""

from __future__ import annotations

from collections.abc import Iterable


class EngineError(Exception):
    """Something that a person can act on.

    Attributes:
        message: One sentence: what is wrong and where.
        remedy: One sentence that says what to do about it; empty where the message says it.
    """

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message} {self.remedy}".rstrip()


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The question that suggests the known name most similar to an unknown one; empty where none is similar."""
    import difflib  # rarely needed, and slow to import

    candidates = list(known)
    lowered = {candidate.lower(): candidate for candidate in reversed(candidates)}
    near = difflib.get_close_matches(name[:100].lower(), list(lowered), n=1)
    return f'Did you mean "{lowered[near[0]]}"?' if near else ""
