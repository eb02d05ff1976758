"""Earlier replies used again: where a node's settings ask for it, the very same request is not made twice.

A reply is found by what was asked: the node's type, the model and where it is served, and the whole request but its
place in the run; a tool's result by the tool and its arguments. It costs nothing and needs no budget.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final

from engine.models.base import Reply, Request, Usage
from engine.nodes.cache_field import CacheMode
from engine.nodes.spec import ModelCall, ModelChoice
from engine.runner.journal import ReplyCache
from engine.values import TooDeepError, Value, compact_json

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

    def keep_result(self, key: str, result: Value) -> None:
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
