"""The work that every contender does: an instant function, three times an iteration.

Standard library only: the peers' workers, in an environment without the engine, import this.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Final

START: Final = "abcdefghijklm"
"""What the first step starts from. Its length is prime, so that one step left out shows in the outcome."""

STEPS: Final = ("draft", "critique", "merge")
"""The three steps of a body."""

_LETTERS: Final = bytes(b"abcdefghijklmnopqrstuvwxyz"[index // 8] if index < 208 else 32 for index in range(256))
"""By byte, the letter or, for one in five, the space that stands for it."""


def step(text: str) -> str:
    """Do one step: the first letter goes to the end."""
    return text[1:] + text[:1]


def after(steps: int) -> str:
    """What the text is after that many steps."""
    shift = steps % len(START)
    return START[shift:] + START[:shift]


def fresh(number: int, characters: int) -> str:
    """A text that is like no other: random letters and spaces, the same for the same number.

    It is made in a few microseconds, since every contender's time holds that of making it.
    """
    drawn = random.Random(number).randbytes(characters).translate(_LETTERS).decode("ascii")
    return f"a{drawn[1:-1]}z"[:characters]  # a space at an end is what some would strip


def disk_bytes(path: Path) -> int:
    """What a database takes on disk, with the files beside it."""
    return sum(file.stat().st_size for file in path.parent.glob(f"{path.name}*"))
