"""What the first model node of a loop's body is told about its iteration.

An exported LangGraph module carries the functions here with it, copied as they stand; so they need nothing but each
other.
"""

from __future__ import annotations

from engine.values import Value, immutable, to_text

NO_CHANCE = 40
"""From how many characters on a result that stands in a prompt does not stand there by chance, as a 5 might."""


def with_note(prompt: str, iteration: int, total: int, previous: str) -> str:
    """The prompt with a note below it: which iteration this is, and what the one before gave.

    A long result that stands in the prompt already is not paid for twice.

    Args:
        prompt: The prompt.
        iteration: The iteration's number, from 1.
        total: How many there are at the most.
        previous: The result before, as text.
    """
    place = f"This is iteration {iteration} of {total}."
    if iteration == 1:
        note = place
    elif len(previous) >= NO_CHANCE and previous in prompt:
        note = f"{place} What the iteration before gave stands above; improve on it."
    else:
        note = f"{place} The iteration before gave:\n{previous}\n\nImprove on it."
    return f"{prompt}\n\n{note}" if prompt else note


@immutable
class IterationNote:
    """Which iteration this is, of how many, and what the one before gave.

    Attributes:
        iteration: Its number, from 1.
        total: How many there are at the most.
        previous: The result before; null in the first iteration.
    """

    iteration: int
    total: int
    previous: Value

    def added_to(self, prompt: str) -> str:
        """The prompt with the note below it."""
        return with_note(prompt, self.iteration, self.total, to_text(self.previous))
