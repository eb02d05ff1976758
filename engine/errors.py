"""The root of every error that the engine raises on purpose.

Whatever leaves the engine because of bad input, a missing thing or a failing network is an `EngineError`: its text
is one sentence that says what is wrong, where, and what to do. Anything else is a bug of ours.
"""

from __future__ import annotations


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
