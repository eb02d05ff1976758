"""Storage of runs as the runner sees it: protocols of the journal and the reply cache, and keys of cached replies.

A run writes all events except the pieces of streamed replies, and does not wait for the disk. Between nodes and before
each model call it waits until the written events are stored.

A cached reply is found by the node's type, the model, its address and the request; a tool's result by the tool, its
arguments and the folder. A cache hit costs nothing and needs no budget.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final, Protocol

from engine.errors import EngineError
from engine.events import AnyEvent
from engine.models.protocol import ModelChoice, Reply, Request, Usage
from engine.nodes.context import Answer
from engine.nodes.spec import CacheMode
from engine.values import TooDeepError, Value, compact_json


@dataclass(frozen=True, slots=True)
class RunHead:
    """What is known about a run before its first event.

    Attributes:
        run_id: The run.
        document: The document as it runs, as the text of a workflow file.
        options: The options as a JSON object (`engine.runner.options.options_to_json`).
        source: The file of the document, for people; empty if it was never saved.
        parent: The run that it was forked from; empty for other runs.
        forked_at: The place of the fork in the parent; empty for other runs.
    """

    run_id: str
    document: str
    options: dict[str, Any]
    source: str = ""
    parent: str = ""
    forked_at: str = ""


@dataclass(frozen=True, slots=True)
class PostedAnswer:
    """An answer from another process, for the process that executes the run.

    Attributes:
        path: Path of the node that asked.
        question: Number (`seq`) of the event that reported the question.
        answer: The answer.
    """

    path: str
    question: int
    answer: Answer


class Journal(Protocol):
    """Stores the events of one run. `write` and `close` return at once and do not wait for the disk."""

    def watch(self, stored: Callable[[int], None], failed: Callable[[EngineError], None]) -> None:
        """Set the callbacks for progress; called once, before the first `write`.

        Args:
            stored: Called with the number (`seq`) of an event once it and all before it are stored. From any thread.
            failed: Called once with the reason if nothing more will be stored. From any thread.
        """
        ...

    def write(self, event: AnyEvent) -> None:
        """Store the next event of the run."""
        ...

    def close(self) -> None:
        """Report that no more events follow, and that this process releases the run."""
        ...


class ReplyCache(Protocol):
    """Stores replies for reuse."""

    def cached_reply(self, key: str) -> Reply | None:
        """Return the reply with that key, or None. From any thread."""
        ...

    def cache_reply(self, key: str, run_id: str, reply: Reply) -> None:
        """Store a reply for as long as its run is stored. Returns at once."""
        ...


class RunStorage(ReplyCache, Protocol):
    """Stores runs."""

    def begin(self, head: RunHead) -> Journal:
        """Start to store a run.

        Raises:
            EngineError: It cannot be stored.
        """
        ...

    def reopen(self, run_id: str) -> Journal:
        """Continue to store a run that was interrupted or has ended.

        Raises:
            EngineError: There is no such run, another process executes it, or it cannot be stored.
        """
        ...

    def pending_answers(self, run_id: str) -> Sequence[PostedAnswer]:
        """Return the answers from other processes for a run. Reads the disk; from any thread.

        Raises:
            EngineError: They cannot be read now.
        """
        ...


_LATER_SETTINGS: Final = frozenset({"top_p", "stop", "reasoning_effort", "extra_parameters"})
"""Settings that are part of a key only if they are set, so that replies cached by older versions are still found."""


class RunCache:
    """The reply cache of one run.

    Args:
        replies: The stored replies.
        run_id: The run; its replies are stored as long as the run is.
    """

    def __init__(self, replies: ReplyCache, run_id: str) -> None:
        self._replies = replies
        self._run_id = run_id

    async def reply(self, key: str) -> Reply | None:
        """Return the cached reply, without tokens and cost, or None."""
        cached = await asyncio.to_thread(self._replies.cached_reply, key)
        return None if cached is None else replace(cached, usage=Usage(), cost_usd=0.0, warnings=())

    def store_reply(self, key: str, reply: Reply) -> None:
        """Cache a reply."""
        self._replies.cache_reply(key, self._run_id, reply)

    async def tool_result(self, key: str) -> tuple[Value] | None:
        """Return the cached result of a tool in a tuple, or None."""
        cached = await self.reply(key)
        return None if cached is None else (json.loads(cached.text),)

    def store_tool_result(self, key: str, result: Value) -> None:
        """Cache the result of a tool, unless it is nested too deeply."""
        with suppress(TooDeepError):
            self.store_reply(key, Reply(compact_json(result)))


def may_reuse(mode: CacheMode, request: Request | None = None) -> bool:
    """Whether a cached reply to a request, or a cached result of a tool, may be reused."""
    return mode == "always" or (mode == "repeatable" and (request is None or request.temperature == 0))


def request_key(node_type: str, choice: ModelChoice, model: str, request: Request) -> str | None:
    """Return the cache key of a model call; None if it is nested too deeply."""
    fields = asdict(replace(request, path=""))
    fields = {name: value for name, value in fields.items() if value or name not in _LATER_SETTINGS}
    return _key({"node": node_type, "model": model, "api_base": choice.api_base, "request": fields})


def tool_key(tool: str, arguments: Mapping[str, Value], folder: Path | None) -> str | None:
    """Return the cache key of a tool call; it includes the folder, because file names are relative to it."""
    return _key({"tool": tool, "arguments": dict(arguments), "folder": None if folder is None else str(folder)})


def _key(parts: dict[str, Any]) -> str | None:
    try:
        text = compact_json(parts)
    except TooDeepError:
        return None
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
