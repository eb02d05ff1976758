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


def step(text: str) -> str:
    """Do one step: the first letter goes to the end."""
    return text[1:] + text[:1]


def after(steps: int) -> str:
    """What the text is after that many steps."""
    shift = steps % len(START)
    return START[shift:] + START[:shift]


def fresh(number: int, characters: int) -> str:
    """A text that is like no other: that many letters in words of its own, the same for the same number."""
    drawn = random.Random(number)
    words: list[str] = []
    missing = characters
    while missing > 0:
        word = "".join(drawn.choices("abcdefghijklmnopqrstuvwxyz", k=min(drawn.randrange(3, 10), missing)))
        words.append(word)
        missing -= len(word) + 1
    return " ".join(words)[:characters]


def disk_bytes(path: Path) -> int:
    """What a database takes on disk, with the files beside it."""
    return sum(file.stat().st_size for file in path.parent.glob(f"{path.name}*"))
