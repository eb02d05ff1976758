"""What a run asks of the place where it is kept: a protocol, so that the runner knows no database.

A run writes every event but the pieces of streamed replies, and never waits while it does; it waits between nodes and
before each model call until what it has written is safe.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final, Protocol

from engine.errors import EngineError
from engine.events import AnyEvent
from engine.models.protocol import Reply, Request, Usage
from engine.nodes.context import Answer
from engine.nodes.spec import CacheMode, ModelCall, ModelChoice
from engine.values import TooDeepError, Value, compact_json


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
class PostedAnswer:
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


class RunStorage(ReplyCache, Protocol):
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

    def left_answers(self, run_id: str) -> Sequence[PostedAnswer]:
        """The answers that other processes have left for a run. Reads the disk; from any thread.

        Raises:
            EngineError: They cannot be read now.
        """
        ...


_LATER_SETTINGS: Final = frozenset({"top_p", "stop", "reasoning_effort", "extra_parameters"})


class RunCache:
    """The cache as one run uses it.

    Args:
        replies: Where replies are kept.
        run_id: The run; what it adds is kept as long as it is.
    """

    def __init__(self, replies: ReplyCache, run_id: str) -> None:
        self._replies = replies
        self._run_id = run_id

    async def reply(self, key: str) -> Reply | None:
        """The reply that was kept under that key, as one that used no tokens and cost nothing; None without one."""
        kept = await asyncio.to_thread(self._replies.cached, key)
        return None if kept is None else replace(kept, usage=Usage(), cost_usd=0.0, warnings=())

    def keep(self, key: str, reply: Reply) -> None:
        """Keep a reply for later."""
        self._replies.keep_reply(key, self._run_id, reply)

    async def result(self, key: str) -> tuple[Value] | None:
        """What a tool gave, alone in a tuple; None where nothing was kept."""
        kept = await self.reply(key)
        return None if kept is None else (json.loads(kept.text),)

    def store_tool_result(self, key: str, result: Value) -> None:
        """Keep what a tool gave; what is nested too deeply to be written is not kept."""
        try:
            self.keep(key, Reply(compact_json(result)))
        except TooDeepError:
            return


def may_reuse(mode: CacheMode, request: Request | None = None) -> bool:
    """Whether an earlier reply to a request, or a tool's earlier result, may be used again."""
    return mode == "always" or (mode == "repeatable" and (request is None or request.temperature == 0))


def request_key(node_type: str, choice: ModelChoice, model: str, request: Request) -> str | None:
    """What a model call is found by; None where that cannot be written."""
    asked = asdict(replace(request, path=""))
    # Settings that came later count only where they are set, so that replies kept before they existed are still found.
    asked = {name: value for name, value in asked.items() if value or name not in _LATER_SETTINGS}
    return _key({"node": node_type, "model": model, "api_base": choice.api_base, "request": asked})


def tool_key(tool: str, arguments: Mapping[str, Value], folder: Path | None) -> str | None:
    """What a tool's result is found by: also by the folder, in which the same name is another file."""
    return _key({"tool": tool, "arguments": dict(arguments), "folder": None if folder is None else str(folder)})


def recalled_call(model: str, request: Request, reply: Reply) -> ModelCall:
    """The call that was not made, as the history keeps it."""
    return ModelCall(model, request, reply, 0.0, 0.0)


def _key(parts: dict[str, Any]) -> str | None:
    try:
        text = compact_json(parts)
    except TooDeepError:
        return None
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
