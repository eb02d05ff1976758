"""Exit conditions, one file each, and the cap of every loop's max iterations. Imports nothing slow."""

from __future__ import annotations

from typing import Final

MAX_ITERATIONS_CAP: Final = 50
"""The maximum that a file can ask for. The user can raise it in the settings or on the command line."""

_shown_cap = MAX_ITERATIONS_CAP


def shown_cap() -> int:
    """The user's cap for texts about a document; runs and checks get it as an argument."""
    return _shown_cap


def set_shown_cap(cap: int) -> None:
    """Set the cap for texts about a document, from the user's settings."""
    global _shown_cap  # noqa: PLW0603 - the program has one user
    _shown_cap = cap


def clamped(max_iterations: int, cap: int) -> int:
    """Clamp a number of iterations to 1 … cap."""
    return min(max(max_iterations, 1), cap)
