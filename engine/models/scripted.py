"""A model whose replies come from a file: for tests, teaching and demonstrations without cost.

It speaks the same protocol as the others; the engine knows nothing special about it. Which reply a call gets depends
only on its place in the run, on its last user message and on the calls before it, and is settled when the call begins:
delays do not change it, also where calls run side by side. The file is described in `engine.models.script`.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path

from engine.models.base import Finish, ModelError, ModelErrorKind, OnText, Price, Reply, Request, Usage
from engine.models.model_names import SCRIPTED_PREFIX
from engine.models.reply_text import ReplyText
from engine.models.script import ScriptedError, ScriptedReply, ScriptedRule, compile_pattern, load_script

SCRIPTED_NOTE = "scripted: its replies come from a file"

_CHARACTERS_PER_TOKEN = 4
_DEFAULT_RULE = -1


class ScriptedModel:
    """A model that plays a script. It remembers which replies it has given, so one serves one run."""

    def __init__(self, file: Path) -> None:
        """Read the script.

        Raises:
            ModelError: The file is missing or is no script.
        """
        self._file = file
        self._script = load_script(file)
        self._searches = {
            rule.pattern: compile_pattern(rule.pattern) for rule in self._script.rules if rule.pattern is not None
        }
        self._given: Counter[int] = Counter()
        self._failed: Counter[tuple[int, str]] = Counter()
        self._due: dict[str, tuple[ScriptedReply, ScriptedError | None]] = {}

    @property
    def name(self) -> str:
        """The name by which people call it."""
        return f"{SCRIPTED_PREFIX}{self._file}"

    @property
    def note(self) -> str:
        """What a person should know before trusting it."""
        return SCRIPTED_NOTE

    async def price(self) -> Price | None:
        """What the script says that it costs."""
        price = self._script.price
        if price == "unknown":
            return None
        return Price(price.input_usd_per_million_tokens / 1e6, price.output_usd_per_million_tokens / 1e6)

    def resume_from(self, earlier: Iterable[Request], in_flight: Collection[str]) -> None:
        """Continue as if these calls had been made, and no others; the calls in flight get the same replies again."""
        self._given.clear()
        self._failed.clear()
        self._due.clear()
        for request in earlier:
            self._due.pop(request.path, None)
            with suppress(ModelError):  # a call without a reply takes none away from others
                self._due[request.path] = self._choose(request)
        self._due = {path: chosen for path, chosen in self._due.items() if path in in_flight}

    async def complete(self, request: Request, on_text: OnText | None = None) -> Reply:
        """Give the reply that the script has for this call.

        Raises:
            ModelError: The script says so, or has no reply for it (`NOT_FOUND`).
        """
        reply, error = self._due.pop(request.path, None) or self._choose(request)
        await asyncio.sleep(reply.delay_s)
        if error:
            if on_text and error.partial:
                on_text(error.partial)
            raise ModelError(
                error.kind,
                error.message or f"The scripted model {str(self._file)!r} says that this call fails ({error.kind}).",
                retry_after=error.retry_after,
                partial=error.partial,
            )
        texts = ReplyText(on_text=on_text)
        texts.add_reasoning(reply.reasoning)
        for number, piece in enumerate(reply.pieces()):
            if number:
                await asyncio.sleep(reply.chunk_delay_s)
            texts.add(piece)
        texts.finish()
        calls = reply.calls()
        finish = Finish.TOOL_CALLS if calls and reply.finish is Finish.STOP else reply.finish
        return Reply(
            texts.text,
            finish,
            _usage(request, reply),
            self.name,
            tool_calls=calls,
            reasoning=texts.reasoning,
            refusal=reply.refusal,
        )

    async def close(self) -> None:
        """Nothing to give back."""

    def _choose(self, request: Request) -> tuple[ScriptedReply, ScriptedError | None]:
        """Find the reply, and the error that comes in its place, if one does; count both."""
        number, reply = self._find(request)
        if reply.error is None or reply.fail_times is None:
            return reply, reply.error
        key = (number, request.path)
        self._failed[key] += 1
        return reply, reply.error if self._failed[key] <= reply.fail_times else None

    def _find(self, request: Request) -> tuple[int, ScriptedReply]:
        for number, rule in enumerate(self._script.rules):
            if not self._fits(rule, request):
                continue
            if rule.reply:
                return number, rule.reply
            replies = rule.replies or []
            if self._given[number] < len(replies):
                self._given[number] += 1
                return number, replies[self._given[number] - 1]
        if self._script.default:
            return _DEFAULT_RULE, self._script.default
        raise self._no_rule(request.path)

    def _fits(self, rule: ScriptedRule, request: Request) -> bool:
        node, iteration = read_path(request.path)
        return (
            rule.path in {None, request.path}
            and rule.node in {None, node}
            and rule.iteration in {None, iteration}
            and (rule.pattern is None or bool(self._searches[rule.pattern](_last_user_text(request))))
        )

    def _no_rule(self, path: str) -> ModelError:
        node, iteration = read_path(path)
        place = f"node {node!r}" if node else "a call outside of a run"
        if iteration is not None:
            place += f" in iteration {iteration} ({path})"
        return ModelError(
            ModelErrorKind.NOT_FOUND,
            f"The scripted model {str(self._file)!r} has no reply for {place}.",
            "Add a rule that fits, or a 'default'.",
        )


def read_path(path: str) -> tuple[str, int | None]:
    """Return the node's id and the innermost loop's iteration of a place in a run (`outer[1].inner[0].draft`)."""
    indexes = re.findall(r"\[(\d+)\]", path)
    return path.rpartition(".")[2].partition("[")[0], int(indexes[-1]) if indexes else None


def _last_user_text(request: Request) -> str:
    text = next((message.text for message in reversed(request.messages) if message.role == "user"), "")
    return text.encode(errors="replace").decode()  # RE2 reads UTF-8, which has no lone surrogates


def _usage(request: Request, reply: ScriptedReply) -> Usage:
    """The tokens that the script states, else an estimate from the texts' lengths."""
    if reply.usage:
        return Usage(reply.usage.input_tokens, reply.usage.output_tokens)
    asked = sum(len(message.text) for message in request.messages)
    return Usage(_tokens(asked), _tokens(len(reply.reply_text()) + len(reply.reasoning)), exact=False)


def _tokens(characters: int) -> int:
    return -(-characters // _CHARACTERS_PER_TOKEN)
