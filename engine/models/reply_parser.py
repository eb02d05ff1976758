"""Reads what a server sends, whole or piece by piece, into a `Reply`. Types from a server are never trusted.

It is fed with the server's JSON in the format of OpenAI, Ollama or Anthropic (`engine.models.reply_hook`), and where
the format is another one with what litellm made of it.
"""

from __future__ import annotations

from typing import Any, Final, cast

from engine.errors import EngineError
from engine.models.keys import Destination, Keys
from engine.models.protocol import Finish, ModelErrorKind, OnText, Reply, Request, ToolCall, Usage, estimated_usage
from engine.models.reply_text import ReplyText
from engine.models.server_errors import model_error
from engine.models.tool_calls import PartialCalls
from engine.values import Value, clean_text, compact_json, map_texts

_MOST_TOKENS: Final = 10**12
_MOST_USD: Final = 1e9
_LONGEST_NAME: Final = 300
_DEEPEST_PART: Final = 20
_CACHED: Final = ("creation", "read")
_SCHEMA_TOOL: Final = "json_tool_call"
"""What litellm calls the tool with which it asks some models for a structured reply."""

_FINISHES: Final = {
    **dict.fromkeys(("stop", "end_turn", "stop_sequence", "eos", "eos_token", "complete", "completed"), Finish.STOP),
    **dict.fromkeys(
        ("length", "max_tokens", "max_output_tokens", "model_length", "model_context_window_exceeded"), Finish.LENGTH
    ),
    **dict.fromkeys(
        ("content_filter", "content_filtered", "safety", "recitation", "blocklist", "prohibited_content", "refusal"),
        Finish.CONTENT_FILTER,
    ),
    **dict.fromkeys(("tool_calls", "tool_call", "tool_use", "function_call"), Finish.TOOL_CALLS),
}


class ReplyParser:
    """Parses one reply.

    Args:
        name: The model's full name (`openai/gpt-4o-mini`).
        place: Where the request went, for error messages.
        keys: The user's keys, none of which may appear in a reply.
        request: What was asked.
        on_text: Receives each piece of the answer, when `pass_on` is called.

    Attributes:
        failure: The error that the server reported in the middle of the reply; None for none.
        is_fed: The server's own JSON has been read, so what litellm makes of it does not matter.
    """

    def __init__(
        self, name: str, place: Destination, keys: Keys, request: Request, on_text: OnText | None = None
    ) -> None:
        self.failure: Exception | None = None
        self.is_fed = False
        self._prefix, self._model = name.split("/", 1)
        self._place = place
        self._keys = keys
        self._request = request
        self._on_text = on_text
        self._new_pieces: list[str] = []
        self._text = ReplyText(keys, self._new_pieces.append)
        self._calls = PartialCalls()
        self._finish = ""
        self._usage: dict[str, Any] = {}
        self._name = ""
        self._any_message = False
        self._choice: int | None = None
        self._unusable = False

    @property
    def partial(self) -> str:
        """The answer so far."""
        return self._text.text

    @property
    def has_begun(self) -> bool:
        """Whether anything of an answer has arrived."""
        return bool(self._text.text or self._text.reasoning or self._calls)

    @property
    def usage(self) -> Usage | None:
        """The tokens so far; None where neither a part of an answer nor a count has arrived."""
        return self._read_usage() if self.has_begun or self._usage else None

    def pass_on(self) -> None:
        """Give the new pieces of the answer to whoever listens."""
        pieces = self._new_pieces[:]
        self._new_pieces.clear()
        for piece in pieces:
            if self._on_text is not None:
                self._on_text(piece)

    def take(self, sent: Any) -> None:
        """Take a reply or a chunk of one as litellm returns it."""
        if not self.is_fed:
            self.take_openai(sent.model_dump())

    def end(self, stream: Any = None) -> Reply:
        """Return the reply when all of it has been taken.

        Args:
            stream: litellm's stream, if the reply came as one.

        Raises:
            ModelError: The reply is unusable (`BAD_REPLY`).
            Exception: The `failure`.
        """
        self._text.finish()
        if self.failure is not None:
            raise self.failure
        if stream is not None and not self.is_fed:
            # litellm makes up the end, and the usage, of a stream in which the server sent none.
            self._any_message &= bool(self._text.text) or getattr(stream, "received_finish_reason", None) is not None
            if all(getattr(chunk, "usage", None) is None for chunk in getattr(stream, "chunks", ())):
                self._usage.clear()
        calls = self._read_calls()
        empty = not (self._text.text or calls or self._text.reasoning or self._text.refusal)
        if not self._any_message or (empty and self._unusable):
            raise model_error(ModelErrorKind.BAD_REPLY, self._model, self._place)
        return Reply(
            self._text.text,
            self._finish_of(calls),
            self._read_usage(calls),
            self._cleaned(self._name)[:_LONGEST_NAME] or self._model,
            read_cost_usd(self._usage, self._prefix),
            calls,
            self._text.reasoning,
            self._text.refusal,
        )

    # The formats.

    def take_openai(self, body: dict[str, Any]) -> None:
        """Take a reply or a chunk of one in OpenAI's format."""
        self._take_model(body.get("model"))
        self._take_usage(body.get("usage"))
        for choice in _choices(body.get("choices")):
            index = choice.get("index")
            if self._choice is not None and type(index) is int and index != self._choice:
                continue  # one answer was asked for
            self._take_finish(choice.get("finish_reason"))
            message = next((choice[key] for key in ("message", "delta", "text") if choice.get(key) is not None), None)
            if isinstance(message, str):
                message = {"content": message}
            if isinstance(message, dict):
                self._choice = index if type(index) is int else 0
                self._take_message(cast("dict[str, Any]", message))
                if "message" in choice:
                    return

    def take_ollama(self, body: dict[str, Any]) -> None:
        """Take a reply or a chunk of one in Ollama's format."""
        self._take_model(body.get("model"))
        self._take_usage({"prompt_tokens": body.get("prompt_eval_count"), "completion_tokens": body.get("eval_count")})
        if body.get("done") is True:
            self._take_finish(body.get("done_reason"))
        message = body.get("message", body.get("response"))
        if isinstance(message, str):
            message = {"content": message}
        if isinstance(message, dict):
            self._take_message(cast("dict[str, Any]", message))

    def take_anthropic(self, body: dict[str, Any]) -> None:
        """Take a reply or an event of a stream in Anthropic's format."""
        event = body.get("type")
        message = body.get("message") if event == "message_start" else body
        if isinstance(message, dict):
            message = cast("dict[str, Any]", message)
            self._take_model(message.get("model"))
            self._take_anthropic_usage(message.get("usage"))
            self._take_finish(message.get("stop_reason"))
            if message.get("content") is not None:
                self._any_message = True
                for place, block in enumerate(_dicts(message["content"])):
                    self._take_block(block, place)
                if isinstance(message["content"], str):
                    self._take_content(message["content"])
        index = body.get("index")
        for block in _dicts(body.get("content_block")):
            self._any_message = True
            self._take_block(block, index, in_pieces=True)
        for delta in _dicts(body.get("delta")):
            self._any_message = True
            self._take_finish(delta.get("stop_reason"))
            self._take_content(delta.get("text"))
            self._take_reasoning(delta.get("thinking"))
            if delta.get("partial_json"):
                self._calls.take({"index": index, "function": {"arguments": delta["partial_json"]}})

    def _take_block(self, block: dict[str, Any], index: Any, *, in_pieces: bool = False) -> None:
        if block.get("type") != "tool_use":
            self._take_part(block)
            return
        arguments = block.get("input")
        if in_pieces and not arguments:
            arguments = ""  # they follow
        call: dict[str, Any] = {"id": block.get("id"), "function": {"name": block.get("name"), "arguments": arguments}}
        self._calls.take({**call, "index": index})

    def _take_message(self, message: dict[str, Any]) -> None:
        self._any_message = True
        reasoning = (message.get(key) for key in ("reasoning_content", "reasoning", "thinking", "thinking_blocks"))
        details = message.get("reasoning_details")
        self._take_reasoning(next((found for found in reasoning if found), details))
        self._take_content(message.get("content"))
        self._take_refusal(message.get("refusal"))
        if message.get("tool_calls"):
            self._calls.take(message["tool_calls"])
        elif message.get("function_call"):
            self._calls.take({"function": message["function_call"]})

    # The parts of a message.

    def _take_content(self, content: Any, depth: int = 0) -> None:
        if isinstance(content, str):
            self._text.add(content)
        elif isinstance(content, (bool, int, float)):
            self._add_as_json(content)
        elif depth > _DEEPEST_PART:
            self._unusable = True
        elif isinstance(content, dict):
            self._take_part(cast("dict[str, Any]", content), depth + 1)
        elif isinstance(content, list):
            for part in cast("list[Any]", content):
                self._take_content(part, depth + 1)
        elif content is not None:
            self._unusable = True

    def _take_part(self, part: dict[str, Any], depth: int = 0) -> None:
        """Take a part of a content; one of a kind that is not known counts as text where it has any."""
        kind = part.get("type")
        kind = kind.lower() if isinstance(kind, str) else ""
        if any(word in kind for word in ("thinking", "reasoning", "thought")) or part.get("thought") is True:
            self._take_reasoning(part)
        elif kind == "refusal":
            self._take_refusal(part.get("refusal", part.get("text")))
        elif kind in {"tool_use", "tool_call", "function"}:
            self._calls.take({**part, "arguments": part.get("arguments", part.get("input"))})
        else:
            held = next((part[key] for key in ("text", "output_text", "content", "value") if key in part), None)
            if held is not None:
                self._take_content(held, depth + 1)
            elif kind or not part:
                self._unusable = True
            else:
                self._add_as_json(part)

    def _add_as_json(self, value: Any) -> None:
        """Add a value that stands for the text: some servers parse a structured reply themselves."""
        try:
            self._text.add(compact_json(value))
        except (ValueError, EngineError):
            self._unusable = True

    def _take_reasoning(self, value: Any, depth: int = 0) -> None:
        if isinstance(value, str):
            self._text.add_reasoning(value)
        elif isinstance(value, list) and depth <= _DEEPEST_PART:
            for part in cast("list[Any]", value):
                self._take_reasoning(part, depth + 1)
        elif isinstance(value, dict) and depth <= _DEEPEST_PART:
            part = cast("dict[str, Any]", value)
            keys = ("thinking", "reasoning", "reasoning_content", "text", "content", "summary")
            self._take_reasoning(next((part[key] for key in keys if part.get(key)), None), depth + 1)

    def _take_refusal(self, value: Any) -> None:
        if isinstance(value, str):
            self._text.add_refusal(value)
        else:
            for part in _dicts(value):
                if isinstance(said := part.get("refusal", part.get("text")), str):
                    self._text.add_refusal(said)

    # What stands around the message.

    def _take_model(self, name: Any) -> None:
        if isinstance(name, str) and not self._name:
            self._name = name

    def _take_finish(self, reason: Any) -> None:
        if reason is not None:
            self._finish = reason.lower() if isinstance(reason, str) else "unknown"

    def _take_usage(self, usage: Any) -> None:
        """Take each number that is one; a stream may state them in several chunks."""
        for given in _dicts(usage):
            for name, other in (("prompt_tokens", "input_tokens"), ("completion_tokens", "output_tokens")):
                count = next((given[key] for key in (name, other) if given.get(key) is not None), None)
                if _is_count(count):
                    self._usage[name] = count
                elif count is not None:
                    self._usage.pop(name, None)
            if given.get("cost") is not None:
                self._usage["cost"] = given["cost"]

    def _take_anthropic_usage(self, usage: Any) -> None:
        """Tokens read from the prompt cache, or written to it, are not part of the others there."""
        for given in _dicts(usage):
            counts: list[Any] = [
                given.get("input_tokens"),
                *(given.get(f"cache_{done}_input_tokens") or 0 for done in _CACHED),
            ]
            total = sum(counts) if all(_is_count(count) for count in counts) else counts[0]
            self._take_usage({**given, "input_tokens": total})

    # The whole reply.

    def _read_calls(self) -> tuple[ToolCall, ...]:
        calls = tuple(
            ToolCall(
                self._cleaned(call.id),
                self._cleaned(call.name),
                cast("dict[str, Value] | str", map_texts(call.arguments, self._cleaned)),
            )
            for call in self._calls.whole(self._request.tools)
        )
        if self._request.schema is not None and calls and calls[0].name == _SCHEMA_TOOL:
            arguments = calls[0].arguments
            self._text.add(arguments if isinstance(arguments, str) else compact_json(arguments))
            self._text.finish()
            return calls[1:]
        return calls

    def _finish_of(self, calls: tuple[ToolCall, ...]) -> Finish:
        # A server that sends no reason, but ends the reply in good form, has finished it.
        finish = _FINISHES.get(self._finish, Finish.OTHER) if self._finish else Finish.STOP
        if finish in {Finish.STOP, Finish.TOOL_CALLS}:
            return Finish.TOOL_CALLS if calls else Finish.STOP
        return finish

    def _read_usage(self, calls: tuple[ToolCall, ...] = ()) -> Usage:
        """The tokens as the server counted them; what it did not count is estimated."""
        sent, received = self._usage.get("prompt_tokens"), self._usage.get("completion_tokens")
        if sent is not None and received is not None and (sent or received):
            return Usage(sent, received)
        estimate = estimated_usage(self._request, self._text.text, self._text.reasoning, tool_calls=calls)
        return Usage(sent or estimate.input_tokens, received or estimate.output_tokens, exact=False)

    def _cleaned(self, text: str) -> str:
        return self._keys.redact_reply(clean_text(text))


def read_cost_usd(usage: Any, prefix: str) -> float | None:
    """The price in US dollars that the provider gave with a reply. OpenRouter does; others' are litellm's own."""
    if prefix != "openrouter":
        return None
    cost: Any = cast("dict[str, Any]", usage).get("cost") if isinstance(usage, dict) else getattr(usage, "cost", None)
    if isinstance(cost, bool) or not isinstance(cost, (int, float)):
        return None
    return float(cost) if 0 <= cost <= _MOST_USD else None


def _choices(sent: Any) -> list[dict[str, Any]]:
    """The choices of a reply; a server may send one alone, or an object with their numbers."""
    if isinstance(sent, dict) and not {"message", "delta", "text"} & cast("dict[str, Any]", sent).keys():
        return _dicts(list(cast("dict[str, Any]", sent).values()))
    return _dicts(sent)


def _dicts(value: Any) -> list[dict[str, Any]]:
    """The objects in a list, or the one that stands where a list could."""
    values: list[Any] = cast("list[Any]", value) if isinstance(value, list) else [value]
    return [cast("dict[str, Any]", item) for item in values if isinstance(item, dict)]


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value <= _MOST_TOKENS
