"""What an exit condition is: it looks at each iteration that has ended and says whether the loop stops, and why."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from engine.expr import Scope
from engine.values import Value


@dataclass(frozen=True, slots=True)
class EndedIteration:
    """An iteration that has just ended, as exit conditions see it.

    Attributes:
        index: Its number, from 0.
        result: What reached the exit.
        branch: What the controlling router chose; None without one.
        similarity: To the result before; None where it is not worked out or there is none before.
        scope: Names for expressions: `output`, `similarity`, `cost_usd`, `elapsed_s`, `nodes`, `loop`.
        has_result: Whether anything is such a result.
        score: What its score expression or its judge gave; None without one.
        is_judged_done: What the judge said; None where none was asked.
        spent_usd: US dollars of known price that the loop has spent so far.
        elapsed_s: Seconds since the loop began.
    """

    index: int
    result: Value
    branch: str | None
    similarity: float | None
    scope: Scope
    has_result: bool = True
    score: float | None = None
    is_judged_done: bool | None = None
    spent_usd: float = 0.0
    elapsed_s: float = 0.0


class ExitCondition(ABC):
    """One way for a loop to stop. It may keep state; a loop makes its own for every run of it.

    After each iteration all conditions of the loop observe it; then they are asked in order, to the first that stops.
    """

    name: str
    """What it is called in `exit_reason` and among the values tested."""

    def observe(self, iteration: EndedIteration) -> None:  # noqa: B027 - most conditions look at one iteration alone
        """Take note of an iteration, also of one of which it is known that the loop went on after it."""

    @abstractmethod
    def reason(self, iteration: EndedIteration) -> str | None:
        """Why the loop stops after this iteration; None where it goes on.

        Raises:
            EngineError: It cannot be told; the loop ends as `error`.
        """

    def tested(self, iteration: EndedIteration) -> Value:
        """The value that it looked at, where the iteration's record does not have it anyway; None for none."""
        return None
