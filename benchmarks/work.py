"""The work that every contender does: an instant function, three times an iteration.

Standard library only: the peers' workers, in an environment without the engine, import this.
"""

from __future__ import annotations

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
