"""What a run asks of the place where it is kept: a protocol, so that the runner knows no database.

A run writes every event but the pieces of streamed replies, and never waits while it does; it waits between nodes and
before each model call until what it has written is safe.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from engine.errors import EngineError
from engine.events import AnyEvent
from engine.models.base import Reply
from engine.nodes.context import Answer


@dataclass(frozen=True, slots=True)
class RunHead:
    """What is known of a run before its first event.

    Attributes:
        run_id: The run.
        document: The document as it runs, as the text of a workflow file.
        options: How it is to be done, as a JSON object (`engine.runner.options.options_to_json`).
        source: The file that the document came from, for people; empty where it never was saved.
        parent: The run that it was forked from; empty for any other.
        forked_at: The place in the parent; empty for any other.
    """

    run_id: str
    document: str
    options: dict[str, Any]
    source: str = ""
    parent: str = ""
    forked_at: str = ""


@dataclass(frozen=True, slots=True)
class LeftAnswer:
    """An answer that another process left for a run, for the process at work on it to take.

    Attributes:
        path: The node that asks.
        question: The number (`seq`) of the event that told the question.
        answer: The answer.
    """

    path: str
    question: int
    answer: Answer


class Journal(Protocol):
    """Where one run is kept while it goes. `write` and `close` return at once, whatever the disk does."""

    def watch(self, kept: Callable[[int], None], failed: Callable[[EngineError], None]) -> None:
        """Name who is told of progress; called once, before the first `write`.

        Args:
            kept: Called with the number (`seq`) of an event when it and all before it are safe. From any thread.
            failed: Called once when nothing more will be kept, with the reason for people. From any thread.
        """
        ...

    def write(self, event: AnyEvent) -> None:
        """Take the run's next event."""
        ...

    def close(self) -> None:
        """Say that nothing more comes, and that this process has done with the run."""
        ...


class ReplyCache(Protocol):
    """Where replies are kept to be used again."""

    def cached(self, key: str) -> Reply | None:
        """The reply kept under that key; None where there is none. From any thread."""
        ...

    def keep_reply(self, key: str, run_id: str, reply: Reply) -> None:
        """Keep a reply as long as its run is kept. Returns at once."""
        ...


class RunKeeper(ReplyCache, Protocol):
    """Where runs are kept."""

    def begin(self, head: RunHead) -> Journal:
        """Begin to keep a run.

        Raises:
            EngineError: It cannot be kept.
        """
        ...

    def reopen(self, run_id: str) -> Journal:
        """Go on keeping a run that has broken off or ended.

        Raises:
            EngineError: There is no such run, another process is at work on it, or it cannot be kept.
        """
        ...

    def left_answers(self, run_id: str) -> Sequence[LeftAnswer]:
        """The answers that other processes have left for a run. Reads the disk; from any thread.

        Raises:
            EngineError: They cannot be read now.
        """
        ...
