"""The work of every contender: an instant function, three times per iteration.

Standard library only: the peers' workers, in an environment without the engine, import this.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Final

START: Final = "abcdefghijklm"
"""The input of the first step. Its length is prime, so that a missing step changes the result."""

STEPS: Final = ("draft", "critique", "merge")
"""The three steps of a body."""

_LETTERS: Final = bytes(b"abcdefghijklmnopqrstuvwxyz"[index // 8] if index < 208 else 32 for index in range(256))
"""The character for each byte: a letter, or a space for one in five."""


def step(text: str) -> str:
    """Do one step: move the first letter to the end."""
    return text[1:] + text[:1]


def after(steps: int) -> str:
    """The text after that many steps."""
    shift = steps % len(START)
    return START[shift:] + START[:shift]


def fresh(number: int, characters: int) -> str:
    """A unique text of random letters and spaces, the same for the same number.

    It is made in a few microseconds, since every contender's time holds that of making it.
    """
    drawn = random.Random(number).randbytes(characters).translate(_LETTERS).decode("ascii")
    return f"a{drawn[1:-1]}z"[:characters]  # a space at an end is what some would strip


def disk_bytes(path: Path) -> int:
    """The size of a database on disk, with its journal files."""
    return sum(file.stat().st_size for file in path.parent.glob(f"{path.name}*"))
