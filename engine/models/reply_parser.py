"""Parser of a server's reply, whole or in chunks. Types from a server are never trusted.

It gets the server's JSON in the format of OpenAI, Ollama or Anthropic (`engine.models.reply_hook`), and for other
formats what litellm made of it.
"""

from __future__ import annotations

from typing import Any, Final, cast

from engine.errors import EngineError
from engine.models.keys import Endpoint, Keys
from engine.models.protocol import (
    Finish,
    ModelErrorKind,
    OnText,
    Reply,
    Request,
    ToolCall,
    Usage,
    checked_cost_usd,
    estimated_usage,
)
from engine.models.reply_text import ReplyText
from engine.models.server_errors import model_error
from engine.models.tool_calls import PartialCalls
from engine.values import clean_text, compact_json

_MAX_TOKENS: Final = 10**12
_MAX_NAME_LENGTH: Final = 300
_MAX_PART_DEPTH: Final = 20
_CACHE_ACTIONS: Final = ("creation", "read")
_SCHEMA_TOOL: Final = "json_tool_call"
"""The tool by which litellm requests a structured reply from some models."""

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
        endpoint: Where the request went, for error messages.
        keys: The user's keys, none of which may appear in a reply.
        request: The request.
        on_text: Receives each new piece of the answer when `emit_text` is called.

    Attributes:
        failure: An error that the server reported in the middle of the reply.
        is_fed: Whether the server's own JSON is parsed, so that litellm's version is ignored.
    """

    def __init__(
        self, name: str, endpoint: Endpoint, keys: Keys, request: Request, on_text: OnText | None = None
    ) -> None:
        self.failure: Exception | None = None
        self.is_fed = False
        self._prefix, self._model = name.split("/", 1)
        self._endpoint = endpoint
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
        """Whether a part of an answer has arrived."""
        return bool(self._text.text or self._text.reasoning or self._calls)

    @property
    def usage(self) -> Usage | None:
        """The tokens so far; None if neither a part of an answer nor a count has arrived."""
        return self._read_usage() if self.has_begun or self._usage else None

    def emit_text(self) -> None:
        """Pass the new pieces of the answer to `on_text`."""
        pieces = self._new_pieces[:]
        self._new_pieces.clear()
        for piece in pieces:
            if self._on_text is not None:
                self._on_text(piece)

    def feed(self, reply: Any) -> None:
        """Parse a reply or a chunk as litellm returns it."""
        if not self.is_fed:
            self.feed_openai(reply.model_dump())

    def end(self, stream: Any = None) -> Reply:
        """Return the complete reply.

        Args:
            stream: litellm's stream, if the reply was streamed.

        Raises:
            ModelError: The reply is unusable (`BAD_REPLY`).
            Exception: The `failure`.
        """
        self._text.finish()
        if self.failure is not None:
            raise self.failure
        if stream is not None and not self.is_fed:
            # litellm invents the end and the usage of a stream if the server sent none.
            self._any_message &= bool(self._text.text) or getattr(stream, "received_finish_reason", None) is not None
            if all(getattr(chunk, "usage", None) is None for chunk in getattr(stream, "chunks", ())):
                self._usage.clear()
        calls = self._read_calls()
        empty = not (self._text.text or calls or self._text.reasoning or self._text.refusal)
        if not self._any_message or (empty and self._unusable):
            raise model_error(ModelErrorKind.BAD_REPLY, self._model, self._endpoint)
        return Reply(
            self._text.text,
            self._finish_of(calls),
            self._read_usage(calls),
            self._clean(self._name)[:_MAX_NAME_LENGTH] or self._model,
            # Others' prices are litellm's own.
            checked_cost_usd(self._usage.get("cost")) if self._prefix == "openrouter" else None,
            calls,
            self._text.reasoning,
            self._text.refusal,
        )

    # The formats.

    def feed_openai(self, body: dict[str, Any]) -> None:
        """Parse a reply or a chunk in OpenAI's format."""
        self._set_model(body.get("model"))
        self._add_usage(body.get("usage"))
        for choice in _choices(body.get("choices")):
            index = choice.get("index")
            if self._choice is not None and type(index) is int and index != self._choice:
                continue  # one answer was requested
            self._set_finish(choice.get("finish_reason"))
            message = next((choice[key] for key in ("message", "delta", "text") if choice.get(key) is not None), None)
            if isinstance(message, str):
                message = {"content": message}
            if isinstance(message, dict):
                self._choice = index if type(index) is int else 0
                self._add_message(cast("dict[str, Any]", message))
                if "message" in choice:
                    return

    def feed_ollama(self, body: dict[str, Any]) -> None:
        """Parse a reply or a chunk in Ollama's format."""
        self._set_model(body.get("model"))
        self._add_usage({"prompt_tokens": body.get("prompt_eval_count"), "completion_tokens": body.get("eval_count")})
        if body.get("done") is True:
            self._set_finish(body.get("done_reason"))
        message = body.get("message", body.get("response"))
        if isinstance(message, str):
            message = {"content": message}
        if isinstance(message, dict):
            self._add_message(cast("dict[str, Any]", message))

    def feed_anthropic(self, body: dict[str, Any]) -> None:
        """Parse a reply or an event of a stream in Anthropic's format."""
        event = body.get("type")
        message = body.get("message") if event == "message_start" else body
        if isinstance(message, dict):
            message = cast("dict[str, Any]", message)
            self._set_model(message.get("model"))
            self._feed_anthropic_usage(message.get("usage"))
            self._set_finish(message.get("stop_reason"))
            if message.get("content") is not None:
                self._any_message = True
                for position, block in enumerate(objects_in(message["content"])):
                    self._add_block(block, position)
                if isinstance(message["content"], str):
                    self._add_content(message["content"])
        index = body.get("index")
        for block in objects_in(body.get("content_block")):
            self._any_message = True
            self._add_block(block, index, is_chunk=True)
        for delta in objects_in(body.get("delta")):
            self._any_message = True
            self._set_finish(delta.get("stop_reason"))
            self._add_content(delta.get("text"))
            self._add_reasoning(delta.get("thinking"))
            if delta.get("partial_json"):
                self._calls.add({"index": index, "function": {"arguments": delta["partial_json"]}})

    def _add_block(self, block: dict[str, Any], index: Any, *, is_chunk: bool = False) -> None:
        if block.get("type") != "tool_use":
            self._add_part(block)
            return
        arguments = block.get("input")
        if is_chunk and not arguments:
            arguments = ""  # they follow in deltas
        call: dict[str, Any] = {"id": block.get("id"), "function": {"name": block.get("name"), "arguments": arguments}}
        self._calls.add({**call, "index": index})

    def _add_message(self, message: dict[str, Any]) -> None:
        self._any_message = True
        reasoning = (message.get(key) for key in ("reasoning_content", "reasoning", "thinking", "thinking_blocks"))
        details = message.get("reasoning_details")
        self._add_reasoning(next((found for found in reasoning if found), details))
        self._add_content(message.get("content"))
        self._add_refusal(message.get("refusal"))
        if message.get("tool_calls"):
            self._calls.add(message["tool_calls"])
        elif message.get("function_call"):
            self._calls.add({"function": message["function_call"]})

    # Parts of a message.

    def _add_content(self, content: Any, depth: int = 0) -> None:
        if isinstance(content, str):
            self._text.add(content)
        elif isinstance(content, (bool, int, float)):
            self._add_as_json(content)
        elif depth > _MAX_PART_DEPTH:
            self._unusable = True
        elif isinstance(content, dict):
            self._add_part(cast("dict[str, Any]", content), depth + 1)
        elif isinstance(content, list):
            for part in cast("list[Any]", content):
                self._add_content(part, depth + 1)
        elif content is not None:
            self._unusable = True

    def _add_part(self, part: dict[str, Any], depth: int = 0) -> None:
        """Add a part of a content; one of an unknown kind counts as text if it has any."""
        kind = part.get("type")
        kind = kind.lower() if isinstance(kind, str) else ""
        if any(word in kind for word in ("thinking", "reasoning", "thought")) or part.get("thought") is True:
            self._add_reasoning(part)
        elif kind == "refusal":
            self._add_refusal(part.get("refusal", part.get("text")))
        elif kind in {"tool_use", "tool_call", "function"}:
            self._calls.add({**part, "arguments": part.get("arguments", part.get("input"))})
        else:
            inner = next((part[key] for key in ("text", "output_text", "content", "value") if key in part), None)
            if inner is not None:
                self._add_content(inner, depth + 1)
            elif kind or not part:
                self._unusable = True
            else:
                self._add_as_json(part)

    def _add_as_json(self, value: Any) -> None:
        """Add a value in place of a text: some servers parse a structured reply themselves."""
        try:
            self._text.add(compact_json(value))
        except (ValueError, EngineError):
            self._unusable = True

    def _add_reasoning(self, value: Any, depth: int = 0) -> None:
        if isinstance(value, str):
            self._text.add_reasoning(value)
        elif isinstance(value, list) and depth <= _MAX_PART_DEPTH:
            for part in cast("list[Any]", value):
                self._add_reasoning(part, depth + 1)
        elif isinstance(value, dict) and depth <= _MAX_PART_DEPTH:
            part = cast("dict[str, Any]", value)
            keys = ("thinking", "reasoning", "reasoning_content", "text", "content", "summary")
            self._add_reasoning(next((part[key] for key in keys if part.get(key)), None), depth + 1)

    def _add_refusal(self, value: Any) -> None:
        if isinstance(value, str):
            self._text.add_refusal(value)
        else:
            for part in objects_in(value):
                if isinstance(text := part.get("refusal", part.get("text")), str):
                    self._text.add_refusal(text)

    # Data around the message.

    def _set_model(self, name: Any) -> None:
        if isinstance(name, str) and not self._name:
            self._name = name

    def _set_finish(self, reason: Any) -> None:
        if reason is not None:
            self._finish = reason.lower() if isinstance(reason, str) else "unknown"

    def _add_usage(self, usage: Any) -> None:
        """Add each valid count; a stream may report them in several chunks."""
        for given in objects_in(usage):
            for name, other in (("prompt_tokens", "input_tokens"), ("completion_tokens", "output_tokens")):
                count = next((given[key] for key in (name, other) if given.get(key) is not None), None)
                if _is_count(count):
                    self._usage[name] = count
                elif count is not None:
                    self._usage.pop(name, None)
            if given.get("cost") is not None:
                self._usage["cost"] = given["cost"]

    def _feed_anthropic_usage(self, usage: Any) -> None:
        """Add counts; Anthropic counts tokens read from or written to the prompt cache separately."""
        for given in objects_in(usage):
            counts: list[Any] = [
                given.get("input_tokens"),
                *(given.get(f"cache_{action}_input_tokens") or 0 for action in _CACHE_ACTIONS),
            ]
            total = sum(counts) if all(_is_count(count) for count in counts) else counts[0]
            self._add_usage({**given, "input_tokens": total})

    # The whole reply.

    def _read_calls(self) -> tuple[ToolCall, ...]:
        calls = self._calls.complete(self._request.tools, self._clean)
        if self._request.schema is not None and calls and calls[0].name == _SCHEMA_TOOL:
            arguments = calls[0].arguments
            self._text.add(arguments if isinstance(arguments, str) else compact_json(arguments))
            self._text.finish()
            return calls[1:]
        return calls

    def _finish_of(self, calls: tuple[ToolCall, ...]) -> Finish:
        # A reply that ends properly without a reason is complete.
        finish = _FINISHES.get(self._finish, Finish.OTHER) if self._finish else Finish.STOP
        if finish in {Finish.STOP, Finish.TOOL_CALLS}:
            return Finish.TOOL_CALLS if calls else Finish.STOP
        return finish

    def _read_usage(self, calls: tuple[ToolCall, ...] = ()) -> Usage:
        """The server's token counts; missing ones are estimated."""
        sent, received = self._usage.get("prompt_tokens"), self._usage.get("completion_tokens")
        if sent is not None and received is not None and (sent or received):
            return Usage(sent, received)
        estimate = estimated_usage(self._request, self._text.text, self._text.reasoning, tool_calls=calls)
        return Usage(sent or estimate.input_tokens, received or estimate.output_tokens, exact=False)

    def _clean(self, text: str) -> str:
        return self._keys.redact_reply(clean_text(text))


def _choices(value: Any) -> list[dict[str, Any]]:
    """The choices of a reply; a server may send one without a list, or an object by numbers."""
    if isinstance(value, dict) and not {"message", "delta", "text"} & cast("dict[str, Any]", value).keys():
        return objects_in(list(cast("dict[str, Any]", value).values()))
    return objects_in(value)


def objects_in(value: Any) -> list[dict[str, Any]]:
    """The objects in a list, or a single object in place of a list."""
    values: list[Any] = cast("list[Any]", value) if isinstance(value, list) else [value]
    return [cast("dict[str, Any]", item) for item in values if isinstance(item, dict)]


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value <= _MAX_TOKENS
