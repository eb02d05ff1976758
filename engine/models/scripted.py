"""Scripted model: its replies come from a file, for tests, teaching and demonstrations without cost.

The reply to a call depends only on its path in the run, its last user message and the calls before it, and is chosen
when the call starts: delays do not change it, even if calls run concurrently. `docs/scripted-model.md` describes the
file.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, ValidationError, model_validator

from engine.models.protocol import (
    SCRIPTED_PREFIX,
    Finish,
    ModelError,
    ModelErrorKind,
    OnText,
    Price,
    Reply,
    Request,
    ToolCall,
    Usage,
    estimated_tokens,
)
from engine.models.reply_text import ReplyText
from engine.safe_file_io import read_text_file
from engine.values import Value, encodable_text

MAX_FILE_BYTES = 4_000_000
_MAX_PATTERN_LENGTH = 1000
_UNION_MEMBERS = frozenset({"list[str]", "constrained-int", "ScriptedPrice", "literal['unknown']"})
"""Types that pydantic adds to the location of an error in a union; they are not keys of the file."""

_Seconds = Annotated[float, Field(ge=0, le=3600, allow_inf_nan=False)]
_Tokens = Annotated[int, Field(ge=0, le=1_000_000_000)]


class _Part(BaseModel):
    """A part of the file; unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ScriptedError(_Part):
    """A call that fails."""

    kind: ModelErrorKind = Field(description="What goes wrong: rate_limit, timeout, connection, server, …")
    message: str = Field("", description="The error message; a default if omitted.")
    retry_after: _Seconds | None = Field(None, description="Seconds that the provider asks to wait.")
    partial: str = Field("", description="The text that arrives before the failure.")


class ScriptedUsage(_Part):
    """The tokens of a call."""

    input_tokens: _Tokens = Field(0, description="Tokens of the prompt.")
    output_tokens: _Tokens = Field(0, description="Tokens of the reply.")


class ScriptedToolCall(_Part):
    """A tool call that the model requests."""

    name: str = Field(description="The tool.")
    arguments: dict[str, JsonValue] | str = Field(
        default_factory=dict[str, JsonValue], description="Its arguments; a text for invalid arguments."
    )


class ScriptedReply(_Part):
    """The outcome of a call: a text, a JSON value or tool calls, or an error, or first an error and then a reply."""

    text: str | None = Field(None, description="The reply as text.")
    json_value: JsonValue = Field(None, alias="json", description="The reply as JSON, for structured replies.")
    tool_calls: list[ScriptedToolCall] = Field(
        default_factory=list[ScriptedToolCall],
        description="Tool calls that the model requests; with or without a text.",
    )
    reasoning: str = Field(
        "", description="The model's reasoning, separate from the reply; it may also be in tags in the text."
    )
    refusal: str = Field("", description="Why the model declines to answer.")
    stream: list[str] | Annotated[int, Field(ge=1)] | None = Field(
        None, description="How it arrives: its pieces (then `text` may be omitted), or the length of each piece."
    )
    delay_s: _Seconds = Field(0.0, description="Seconds before the first piece.")
    chunk_delay_s: _Seconds = Field(0.0, description="Seconds between two pieces.")
    finish: Finish = Field(Finish.STOP, description="Why it ends: stop, length, content_filter, other.")
    usage: ScriptedUsage | None = Field(
        None, description="Its tokens; estimated from the lengths of the texts if omitted."
    )
    error: ScriptedError | None = Field(None, description="The call fails like this.")
    fail_times: Annotated[int, Field(ge=1, le=1000)] | None = Field(
        None, description="Number of calls from the same place in a run that fail with `error` before the reply."
    )

    @model_validator(mode="after")
    def _check_outcome(self) -> ScriptedReply:
        json.dumps(self.json_value, allow_nan=False)  # raises ValueError for NaN and Infinity
        answers = [self.text is not None, "json_value" in self.model_fields_set]
        if isinstance(self.stream, list):
            if self.text is not None and "".join(self.stream) != self.text:
                raise ValueError("the pieces in 'stream' do not make up 'text'")
            answers[0] = True
        if all(answers):
            raise ValueError("it has both a text and a json value")
        answers += [bool(self.tool_calls), bool(self.refusal), bool(self.reasoning)]
        if self.fail_times is not None and (self.error is None or not any(answers)):
            raise ValueError("'fail_times' needs an 'error' for the first calls and a reply for the next")
        if any(answers) == (self.error is not None and self.fail_times is None):
            raise ValueError(
                "it needs either a reply ('text', 'json', 'tool_calls', 'reasoning', 'refusal') or an 'error', or both "
                "with 'fail_times'"
            )
        return self

    def reply_text(self) -> str:
        """The whole reply as text; a JSON value is serialized."""
        if self.text is not None:
            return self.text
        if isinstance(self.stream, list):
            return "".join(self.stream)
        if "json_value" not in self.model_fields_set:
            return ""
        return json.dumps(self.json_value, ensure_ascii=False)

    def calls(self) -> tuple[ToolCall, ...]:
        """The tool calls."""
        return tuple(
            ToolCall(f"call_{number}", call.name, cast("dict[str, Value] | str", call.arguments))
            for number, call in enumerate(self.tool_calls, 1)
        )

    def pieces(self) -> list[str]:
        """The pieces in which the reply arrives."""
        if isinstance(self.stream, list):
            return self.stream
        text = self.reply_text()
        size = self.stream or len(text) or 1
        return [text[start : start + size] for start in range(0, len(text), size)]


def _from_text(value: object) -> object:
    return {"text": value} if isinstance(value, str) else value


_Reply = Annotated[ScriptedReply, BeforeValidator(_from_text)]


class ScriptedRule(_Part):
    """One or more replies, and which calls get them. A call must match every given condition."""

    path: str | None = Field(None, description="The whole path in the run: `outer[1].inner[0].draft`.")
    node: str | None = Field(None, description="The node's id, in any loop.")
    iteration: Annotated[int, Field(ge=0)] | None = Field(
        None, description="The iteration of the innermost loop, counted from 0."
    )
    pattern: Annotated[str, Field(max_length=_MAX_PATTERN_LENGTH)] | None = Field(
        None, description="A regular expression (RE2 syntax) to search for in the last user message."
    )
    reply: _Reply | None = Field(None, description="The reply to every matching call.")
    replies: Annotated[list[_Reply], Field(min_length=1)] | None = Field(
        None, description="Replies in this order, one per call; after the last the rule no longer matches."
    )

    @model_validator(mode="after")
    def _check_replies(self) -> ScriptedRule:
        if (self.reply is None) == (self.replies is None):
            raise ValueError("it needs either 'reply' or 'replies'")
        if any(reply.fail_times for reply in self.replies or ()):
            raise ValueError("'fail_times' is not allowed in 'replies': list the errors themselves")
        if self.pattern is not None:
            compile_pattern(self.pattern)
        return self


class ScriptedPrice(_Part):
    """The price of the model, to try out budgets."""

    input_usd_per_million_tokens: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    output_usd_per_million_tokens: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0


class Script(_Part):
    """The whole file."""

    rules: list[ScriptedRule] = Field(
        default_factory=list[ScriptedRule], description="The first matching rule decides."
    )
    default: _Reply | None = Field(None, description="The reply if no rule matches; without it such a call fails.")
    price: ScriptedPrice | Literal["unknown"] = Field(
        default_factory=ScriptedPrice, description="Its price; free if omitted."
    )


def compile_pattern(pattern: str) -> Callable[[str], object]:
    """Make a search function from a regular expression; RE2 takes linear time.

    Raises:
        ValueError: The expression is invalid.
    """
    re2: Any = importlib.import_module("re2")  # it has no types, and few files need it
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options=options).search
    except re2.error as error:
        raise ValueError(f"the pattern is not a valid regular expression ({error.args[0].decode()})") from None


def load_script(file: Path) -> Script:
    """Read a scripted model's file.

    Raises:
        ModelError: It is missing (`NOT_FOUND`), unreadable, too large, or invalid (`BAD_REQUEST`).
    """
    name = repr(str(file))
    try:
        content = read_text_file(file, MAX_FILE_BYTES)
    except FileNotFoundError:
        raise ModelError(
            ModelErrorKind.NOT_FOUND, f"The scripted model's file {name} does not exist.", "Give it as scripted:FILE."
        ) from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ModelError(
            ModelErrorKind.BAD_REQUEST, f"The scripted model's file {name} cannot be read: {reason}."
        ) from None
    try:
        return Script.model_validate_json(content)
    except ValidationError as error:
        raise _first_problem(name, error) from None


def _first_problem(file: str, error: ValidationError) -> ModelError:
    """Make a sentence from the first error that pydantic found."""
    problem = error.errors(include_url=False, include_context=False, include_input=False)[0]
    steps = (step for step in problem["loc"] if step not in _UNION_MEMBERS)
    path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps).lstrip(".")
    what = problem["msg"].removeprefix("Value error, ").rstrip(".")
    if problem["type"] == "extra_forbidden":
        what = "there is no such key"
    where = f" at {path}" if path else ""
    more = error.error_count() - 1
    others = f" (and {more} more)" if more else ""
    return ModelError(
        ModelErrorKind.BAD_REQUEST,
        f"The scripted model's file {file} is invalid{where}: {what}{others}.",
        "docs/scripted-model.md shows the format.",
    )


SCRIPTED_NOTE = "scripted: its replies come from a file"

_DEFAULT_RULE = -1


class ScriptedModel:
    """A model that plays a script. It remembers which replies it has given, so each run needs its own."""

    def __init__(self, file: Path) -> None:
        """Read the script.

        Raises:
            ModelError: The file is missing or invalid.
        """
        self._file = file
        self._script = load_script(file)
        self._searches = {
            rule.pattern: compile_pattern(rule.pattern) for rule in self._script.rules if rule.pattern is not None
        }
        self._given: Counter[int] = Counter()
        self._failed: Counter[tuple[int, str]] = Counter()
        self._assigned: dict[str, tuple[ScriptedReply, ScriptedError | None]] = {}

    @property
    def name(self) -> str:
        """Its name for documents and people."""
        return f"{SCRIPTED_PREFIX}{self._file}"

    @property
    def note(self) -> str:
        """What a person should know before using it."""
        return SCRIPTED_NOTE

    async def price(self) -> Price | None:
        """The price in the script."""
        price = self._script.price
        if price == "unknown":
            return None
        return Price(price.input_usd_per_million_tokens / 1e6, price.output_usd_per_million_tokens / 1e6)

    def resume_from(self, earlier: Iterable[Request], in_flight: Collection[str]) -> None:
        """Continue as if exactly these calls had been made; calls in flight get the same replies again."""
        self._given.clear()
        self._failed.clear()
        self._assigned.clear()
        for request in earlier:
            self._assigned.pop(request.path, None)
            with suppress(ModelError):  # a call without a reply uses none up
                self._assigned[request.path] = self._choose(request)
        self._assigned = {path: chosen for path, chosen in self._assigned.items() if path in in_flight}

    async def complete(self, request: Request, on_text: OnText | None = None) -> Reply:
        """Return the script's reply to this call.

        Raises:
            ModelError: The script contains an error, or no reply for it (`NOT_FOUND`).
        """
        reply, error = self._assigned.pop(request.path, None) or self._choose(request)
        await asyncio.sleep(reply.delay_s)
        if error:
            if on_text and error.partial:
                on_text(error.partial)
            raise ModelError(
                error.kind,
                error.message or f"The scripted model {str(self._file)!r} lets this call fail ({error.kind}).",
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
        """Do nothing."""

    def _choose(self, request: Request) -> tuple[ScriptedReply, ScriptedError | None]:
        """Find the reply, and the error that replaces it, if any; count both."""
        number, reply = self._find(request)
        if reply.error is None or reply.fail_times is None:
            return reply, reply.error
        key = (number, request.path)
        self._failed[key] += 1
        return reply, reply.error if self._failed[key] <= reply.fail_times else None

    def _find(self, request: Request) -> tuple[int, ScriptedReply]:
        for number, rule in enumerate(self._script.rules):
            if not self._matches(rule, request):
                continue
            if rule.reply:
                return number, rule.reply
            replies = rule.replies or []
            if self._given[number] < len(replies):
                self._given[number] += 1
                return number, replies[self._given[number] - 1]
        if self._script.default:
            return _DEFAULT_RULE, self._script.default
        node, iteration = read_path(request.path)
        caller = f"node {node!r}" if node else "a call outside of a run"
        if iteration is not None:
            caller += f" in iteration {iteration} ({request.path})"
        raise ModelError(
            ModelErrorKind.NOT_FOUND,
            f"The scripted model {str(self._file)!r} has no reply for {caller}.",
            "Add a matching rule, or a 'default'.",
        )

    def _matches(self, rule: ScriptedRule, request: Request) -> bool:
        node, iteration = read_path(request.path)
        return (
            rule.path in {None, request.path}
            and rule.node in {None, node}
            and rule.iteration in {None, iteration}
            and (rule.pattern is None or bool(self._searches[rule.pattern](_last_user_text(request))))
        )


def read_path(path: str) -> tuple[str, int | None]:
    """The node's id and the innermost loop's iteration of a path in a run (`outer[1].inner[0].draft`)."""
    indexes = re.findall(r"\[(\d+)\]", path)
    return path.rpartition(".")[2].partition("[")[0], int(indexes[-1]) if indexes else None


def _last_user_text(request: Request) -> str:
    text = next((message.text for message in reversed(request.messages) if message.role == "user"), "")
    return encodable_text(text)  # RE2 requires UTF-8


def _usage(request: Request, reply: ScriptedReply) -> Usage:
    """The tokens in the script, else an estimate from the lengths of the texts."""
    if reply.usage:
        return Usage(reply.usage.input_tokens, reply.usage.output_tokens)
    sent = sum(len(message.text) for message in request.messages)
    received = len(reply.reply_text()) + len(reply.reasoning)
    return Usage(estimated_tokens(sent), estimated_tokens(received), exact=False)
