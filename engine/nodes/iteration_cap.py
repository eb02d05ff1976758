"""How many iterations a file may ask for. Alone, so that whoever needs only the number loads no node types."""

from __future__ import annotations

from typing import Final

MAX_ITERATIONS_CAP: Final = 50
"""The most iterations that a file can ask for. The app and the command line may raise it, a file may not."""
