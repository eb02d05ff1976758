"""What a node had done and got before its run broke off, without coming to its end."""

from __future__ import annotations

from dataclasses import dataclass, field

from engine.events import NodeToolCalled
from engine.models.base import Usage
from engine.nodes.context import Answer
from engine.runner.notes import Note
from engine.runner.state import StateView


@dataclass(slots=True)
class Spent:
    """What executions of a node cost, those that came to no end included."""

    usage: Usage = field(default_factory=Usage)
    cost_usd: float | None = 0.0

    def add(self, usage: Usage | None, cost_usd: float | None) -> None:
        """Count what one of them cost; None for a price that is unknown."""
        if usage is not None:
            self.usage += usage
        self.cost_usd = None if self.cost_usd is None or cost_usd is None else self.cost_usd + cost_usd


@dataclass(frozen=True, slots=True)
class Attempts:
    """The failed attempts of an execution.

    Attributes:
        made: How many there were.
        failed: How many of them used up a retry: those since the last change of the model.
        fallback: The model that was used from then on; empty for the node's own.
    """

    made: int = 0
    failed: int = 0
    fallback: str = ""


@dataclass(slots=True)
class Progress:
    """What an execution of a node had done and got, beside its model calls.

    Attributes:
        state: The named state when it began.
        tool_calls: The tool calls that had come to an end.
        answers: What people had answered that no tool call has used up.
        notes: The notes that it had got, each with how many model calls it had finished before.
        attempts: Its failed attempts.
        failed_after: How many model calls it had finished at each failure after which it went on.
    """

    state: StateView | None = None
    tool_calls: list[NodeToolCalled] = field(default_factory=list[NodeToolCalled])
    answers: list[Answer] = field(default_factory=list[Answer])
    notes: list[tuple[int, Note]] = field(default_factory=list[tuple[int, Note]])
    attempts: Attempts = field(default_factory=Attempts)
    failed_after: list[int] = field(default_factory=list[int])

    def fail(self, *, goes_on: bool) -> None:
        """An attempt has failed. Unless the next goes on from there, it gets all notes with its first call."""
        self.answers.clear()  # whoever waited for them asks again
        if not goes_on:
            self.tool_calls.clear()
            self.failed_after.clear()
            self.notes = [(0, note) for _, note in self.notes]
