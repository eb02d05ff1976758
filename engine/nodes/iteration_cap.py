"""How many iterations a loop may run. Alone, so that whoever needs only the number loads no node types."""

from __future__ import annotations

from typing import Final

MAX_ITERATIONS_CAP: Final = 50
"""The most iterations that a file can ask for. The app and the command line may raise it, a file may not."""

_shown_cap = MAX_ITERATIONS_CAP


def shown_cap() -> int:
    """The person's own cap, to which texts about a document clamp its counts; runs and checks are given theirs."""
    return _shown_cap


def set_shown_cap(cap: int) -> None:
    """Let texts about documents clamp counts to another cap: the window does so from the person's settings."""
    global _shown_cap  # noqa: PLW0603 - one person uses the program
    _shown_cap = cap


def clamped(max_iterations: int, cap: int) -> int:
    """The count that a run holds to."""
    return min(max(max_iterations, 1), cap)
