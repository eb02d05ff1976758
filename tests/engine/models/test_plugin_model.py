"""A plugin's model is held to the protocol: the outcome is a `ModelError` or a reply with the right types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest

from engine.models.catalog import PluginModel
from engine.models.keys import Keys
from engine.models.protocol import (
    Finish,
    Message,
    ModelError,
    ModelErrorKind,
    Price,
    Reply,
    Request,
    ToolCall,
    ToolDefinition,
    Usage,
    clean_request,
)

KEY = "sk-very-secret-0123456789"
ASKED = Request((Message("user", "What is up?"),))
UNCLEAN, CLEAN = "a\ud83d\0", "a\ufffd\ufffd"


class Scripted:
    """A model that does what a test says."""

    name = "mine:x"
    note = "mine"

    def __init__(self, answer: Callable[[Any], Any], price: Any) -> None:
        self.answer = answer
        self.price_or_error = price

    async def complete(self, request: Request, on_text: Any = None) -> Any:
        return self.answer(on_text)

    async def price(self) -> Any:
        if isinstance(self.price_or_error, Exception):
            raise self.price_or_error
        return self.price_or_error

    async def close(self) -> None:
        raise ZeroDivisionError


def model(answer: Callable[[Any], Any], price: Any = None) -> PluginModel:
    keys = Keys({"OPENAI_API_KEY": KEY})
    keys.get("openai")
    return PluginModel(cast("Any", Scripted(answer, price)), "mine:x", keys)


async def reply_of(reply: Any) -> Reply:
    return await model(lambda _on_text: reply).complete(ASKED)


async def failure_of(answer: Callable[[Any], Any], pieces: list[str] | None = None) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await model(answer).complete(ASKED, None if pieces is None else pieces.append)
    return caught.value


async def test_valid_reply_passes_unchanged() -> None:
    reply = Reply("Hi", Finish.LENGTH, Usage(3, 2), "m", 0.5, (ToolCall("a", "look", {"x": 1}),), "Hm.", "No.")

    assert await reply_of(reply) == reply


@pytest.mark.parametrize("answer", [None, "Hi", 7, {"text": "Hi"}, [Reply("Hi")]])
async def test_other_objects_are_a_bad_reply(answer: Any) -> None:
    assert (await failure_of(lambda _on_text: answer)).kind is ModelErrorKind.BAD_REPLY


@pytest.mark.parametrize("kind", [ZeroDivisionError, RecursionError, KeyError, OSError, StopAsyncIteration])
async def test_any_exception_is_a_model_error_with_the_partial_text(kind: type[Exception]) -> None:
    def fail(on_text: Any) -> None:
        on_text("Half")
        raise kind

    pieces: list[str] = []
    error = await failure_of(fail, pieces)

    assert (error.kind, error.partial, pieces) == (ModelErrorKind.BAD_REPLY, "Half", ["Half"])
    assert kind.__name__ in error.message


async def test_model_error_keeps_its_kind_and_is_cleaned() -> None:
    def fail(_on_text: Any) -> None:
        raise ModelError(ModelErrorKind.RATE_LIMIT, f"{UNCLEAN}{KEY}", UNCLEAN, retry_after=3, partial=UNCLEAN)

    error = await failure_of(fail)

    assert (error.kind, error.retry_after) == (ModelErrorKind.RATE_LIMIT, 3)
    assert (error.message, error.remedy, error.partial) == (f"{CLEAN}…", CLEAN, CLEAN)


async def test_fields_of_other_types_are_replaced() -> None:
    odd: Any = 7
    reply = await reply_of(Reply(odd, odd, odd, odd, odd, odd, odd, odd, odd))

    assert reply == Reply("", Finish.OTHER, Usage(3, 0, exact=False), "", 7.0, (), "", "")


async def test_warnings_are_cleaned_texts() -> None:
    assert (await reply_of(Reply("Hi", warnings=cast("Any", [UNCLEAN, KEY, 7])))).warnings == (CLEAN, "…")


@pytest.mark.parametrize("price", [7, Price(float("nan"), 0.0), Price(-1.0, 0.0), Price(0.0, cast("Any", "1"))])
async def test_invalid_price_is_unknown(price: Any) -> None:
    assert await model(lambda _on_text: None, price).price() is None
    assert await model(lambda _on_text: None, Price(0.5, 1.0)).price() == Price(0.5, 1.0)


async def test_failing_price_is_a_model_error_and_failing_close_is_nothing() -> None:
    failing = model(lambda _on_text: None, ZeroDivisionError())

    with pytest.raises(ModelError) as caught:
        await failing.price()
    assert "ZeroDivisionError" in caught.value.message
    await failing.close()


@pytest.mark.parametrize("cost", [float("nan"), float("inf"), -1.0, True, "1", 10**400])
async def test_invalid_cost_is_ignored(cost: Any) -> None:
    assert (await reply_of(Reply("Hi", cost_usd=cost))).cost_usd is None


@pytest.mark.parametrize("usage", [None, Usage(-1, 2), Usage(cast("Any", 1.5), 2), Usage(cast("Any", "1"), 2)])
async def test_invalid_usage_is_estimated(usage: Any) -> None:
    assert (await reply_of(Reply("Hello", usage=usage))).usage == Usage(3, 2, exact=False)


async def test_calls_get_unique_ids_and_parsed_arguments() -> None:
    calls: Any = [ToolCall("", "look", {}), ToolCall("a", "look", '{"x": 1}'), ToolCall("a", cast("Any", None), {}), 7]

    assert (await reply_of(Reply("", tool_calls=calls))).tool_calls == (
        ToolCall("call_1", "look", {}),
        ToolCall("a", "look", {"x": 1}),
        ToolCall("a_3", "", {}),
    )


async def test_reasoning_is_separated_and_keys_are_redacted() -> None:
    def answer(on_text: Any) -> Reply:
        for sign in text:
            on_text(sign)
        on_text(cast("Any", None))
        return Reply(text, model=KEY)

    text = f"<think>Hm.</think>It is {KEY}."
    pieces: list[str] = []
    reply = await model(answer).complete(ASKED, pieces.append)

    assert (reply.text, reply.reasoning, reply.model) == ("It is ….", "Hm.", "…")
    assert "".join(pieces) == reply.text


def test_every_part_of_a_request_is_cleaned() -> None:
    call = ToolCall(UNCLEAN, UNCLEAN, {UNCLEAN: [UNCLEAN]})
    request = Request(
        (Message("assistant", UNCLEAN, (call,)), Message("tool", UNCLEAN, tool_call_id=UNCLEAN)),
        schema={UNCLEAN: UNCLEAN},
        tools=(ToolDefinition(UNCLEAN, UNCLEAN, {UNCLEAN: {UNCLEAN: 1}}),),
        stop=(UNCLEAN,),
        extra_parameters={UNCLEAN: UNCLEAN},
    )

    clean_call = ToolCall(CLEAN, CLEAN, {CLEAN: [CLEAN]})
    assert clean_request(request) == Request(
        (Message("assistant", CLEAN, (clean_call,)), Message("tool", CLEAN, tool_call_id=CLEAN)),
        schema={CLEAN: CLEAN},
        tools=(ToolDefinition(CLEAN, CLEAN, {CLEAN: {CLEAN: 1}}),),
        stop=(CLEAN,),
        extra_parameters={CLEAN: CLEAN},
    )
    assert clean_request(clean_request(request)) == clean_request(request)


def test_deeply_nested_arguments_are_cleaned() -> None:
    deep: Any = UNCLEAN
    for _ in range(499):
        deep = [deep]
    request = Request((Message("assistant", "", (ToolCall("a", "look", {"x": deep}),)),))

    inner: Any = clean_request(request).messages[0].tool_calls[0].arguments
    inner = inner["x"]
    while inner != CLEAN:
        (inner,) = inner
