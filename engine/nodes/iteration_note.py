"""What the first model node of a loop's body is told about its iteration."""

from __future__ import annotations

from dataclasses import dataclass

from engine.values import Value, to_text


@dataclass(frozen=True, slots=True)
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
        """The prompt with the note below it. A result that stands in the prompt already is not paid for twice."""
        place = f"This is iteration {self.iteration} of {self.total}."
        given = to_text(self.previous)
        if self.iteration == 1:
            note = place
        elif given and given in prompt:
            note = f"{place} What the iteration before gave stands above; improve on it."
        else:
            note = f"{place} The iteration before gave:\n{given}\n\nImprove on it."
        return f"{prompt}\n\n{note}" if prompt else note
