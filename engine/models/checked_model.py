"""Cleans requests and replies for every kind of model, so that the engine, the history and HTTP can carry them.

No lone surrogate and no NUL passes in either direction. A plugin's model is trusted no more than a server: whatever it
raises becomes a `ModelError`, and whatever it returns a `Reply` with the right types.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from engine.models.base import (
    Finish,
    Message,
    Model,
    ModelError,
    ModelErrorKind,
    OnText,
    Price,
    Reply,
    Request,
    ToolCall,
    ToolDefinition,
    Usage,
    estimated_usage,
)
from engine.models.keys import Keys
from engine.models.reply_text import ReplyText
from engine.models.tool_calls import PartialCalls
from engine.values import Value, clean_text, clean_value, is_clean_text, map_texts


def clean_request(request: Request) -> Request:
    """The request with every text in it cleaned (`clean_text`); the very same where nothing is to be cleaned."""
    if _is_clean_request(request):
        return request
    return replace(
        request,
        messages=tuple(
            Message(
                message.role,
                clean_text(message.text),
                _clean_calls(message.tool_calls),
                clean_text(message.tool_call_id),
            )
            for message in request.messages
        ),
        tools=tuple(
            ToolDefinition(clean_text(tool.name), clean_text(tool.description), _clean_object(tool.parameters))
            for tool in request.tools
        ),
        schema=None if request.schema is None else _clean_object(request.schema),
        stop=tuple(clean_text(text) for text in request.stop),
        extra_parameters=None if request.extra_parameters is None else _clean_object(request.extra_parameters),
    )


def _is_clean_request(request: Request) -> bool:
    """Whether a request has nothing but messages of clean text, as most have."""
    if request.tools or request.stop or request.schema is not None or request.extra_parameters is not None:
        return False
    for message in request.messages:
        if message.tool_calls or message.tool_call_id or not is_clean_text(message.text):
            return False
    return True


def clean_reply(reply: Reply) -> Reply:
    """The reply with every text in it cleaned (`clean_text`); the very same where nothing is to be cleaned."""
    texts = f"{reply.text}{reply.model}{reply.reasoning}{reply.refusal}"
    if not reply.tool_calls and is_clean_text(texts):
        return reply
    return replace(
        reply,
        text=clean_text(reply.text),
        model=clean_text(reply.model),
        tool_calls=_clean_calls(reply.tool_calls),
        reasoning=clean_text(reply.reasoning),
        refusal=clean_text(reply.refusal),
    )


def _clean_calls(calls: tuple[ToolCall, ...]) -> tuple[ToolCall, ...]:
    return tuple(
        ToolCall(
            clean_text(call.id), clean_text(call.name), cast("dict[str, Value] | str", clean_value(call.arguments))
        )
        for call in calls
    )


def _clean_object(value: dict[str, Value]) -> dict[str, Value]:
    return cast("dict[str, Value]", clean_value(value))


class PluginModel:
    """A plugin's model, held to the protocol.

    Args:
        model: What the plugin made.
        name: How documents call it (`mine:small`).
        keys: The user's keys, none of which may appear in a reply.
    """

    def __init__(self, model: Model, name: str, keys: Keys) -> None:
        self._model = model
        self._name = name
        self._keys = keys

    @property
    def name(self) -> str:
        """The name by which documents and people call it."""
        return self._name

    @property
    def note(self) -> str:
        """What a person should know before trusting it."""
        return self._model.note

    async def price(self) -> Price | None:
        """What it costs, as the plugin says."""
        return await self._model.price()

    async def close(self) -> None:
        """Close the plugin's model."""
        await self._model.close()

    async def complete(self, request: Request, on_text: OnText | None = None) -> Reply:
        """Make one call.

        Raises:
            ModelError: The call gave no usable reply, or the plugin failed (`BAD_REPLY`).
        """
        streamed = ReplyText(self._keys, on_text)

        def add(piece: Any) -> None:
            if isinstance(piece, str):
                streamed.add(piece)

        try:
            reply: Any = await self._model.complete(clean_request(request), None if on_text is None else add)
        except ModelError as error:
            error.message, error.remedy = self._cleaned(error.message), self._cleaned(error.remedy)
            error.partial = streamed.text or self._cleaned(error.partial)
            raise
        except Exception as error:
            raise self._failure(f"failed ({type(error).__name__})", streamed.text) from error
        streamed.finish()
        if not isinstance(reply, Reply):
            raise self._failure("returned something that is no reply")
        return self._read(reply, request)

    def _read(self, reply: Reply, request: Request) -> Reply:
        """The reply with its parts checked; what is missing or of another type is replaced."""
        said: Any = reply  # its types are only declared
        texts = ReplyText(self._keys)
        parts = (said.text, said.reasoning, said.refusal)
        for part, add in zip(parts, (texts.add, texts.add_reasoning, texts.add_refusal), strict=True):
            if isinstance(part, str):
                add(part)
        texts.finish()
        cost, calls = said.cost_usd, self._read_calls(said.tool_calls)
        return replace(
            reply,
            text=texts.text,
            reasoning=texts.reasoning,
            refusal=texts.refusal,
            finish=said.finish if isinstance(said.finish, Finish) else Finish.OTHER,
            usage=said.usage
            if _is_usage(said.usage)
            else estimated_usage(request, texts.text, texts.reasoning, tool_calls=calls),
            model=self._cleaned(said.model) if isinstance(said.model, str) else "",
            cost_usd=float(cost) if type(cost) in {int, float} and 0 <= cost <= 1e9 else None,
            tool_calls=calls,
        )

    def _read_calls(self, calls: Any) -> tuple[ToolCall, ...]:
        partial = PartialCalls()
        if isinstance(calls, (list, tuple)):
            partial.take(list(cast("list[Any]", calls)))
        return tuple(
            ToolCall(
                self._cleaned(call.id),
                self._cleaned(call.name),
                cast("dict[str, Value] | str", map_texts(call.arguments, self._cleaned)),
            )
            for call in partial.whole(())
        )

    def _cleaned(self, text: str) -> str:
        return self._keys.redact_reply(clean_text(text))

    def _failure(self, what: str, partial: str = "") -> ModelError:
        return ModelError(
            ModelErrorKind.BAD_REPLY,
            f"The model {self._name!r} of a plugin {what}.",
            "Report it to whoever makes the plugin, or choose another model.",
            partial=partial,
        )


def _is_usage(usage: Any) -> bool:
    counts = (usage.input_tokens, usage.output_tokens) if isinstance(usage, Usage) else (None,)
    return all(type(count) is int and count >= 0 for count in counts)
