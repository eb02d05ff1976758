"""Reading a model's structured reply: finding the JSON in it and holding it against a schema.

A reply that does not fit is asked for once more with the error. What a model writes is data here, never anything else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar

from engine.models.base import Finish, Message, Reply
from engine.nodes.context import NodeContext
from engine.nodes.json_text import parse_json
from engine.nodes.model_fields import ModelFields, call_model
from engine.nodes.schema import SchemaError, compile_schema
from engine.values import Value

_FENCE: Final = re.compile(r"```[a-zA-Z]*\n(.*?)```", re.DOTALL)


ReadT = TypeVar("ReadT")


class UnreadableReplyError(Exception):
    """A reply in which there is no JSON that fits; the text says why, for the model and for the history."""


async def ask(
    context: NodeContext[Any],
    config: ModelFields,
    messages: list[Message],
    schema: dict[str, Value],
    read_reply: Callable[[str], ReadT],
    what: str = "reply",
) -> ReadT:
    """Ask for a structured reply; once more, with the error, where the first cannot be read.

    Args:
        context: The node that asks.
        config: Its model and how it is asked.
        messages: The question.
        schema: The JSON Schema that the reply is to follow.
        read_reply: Reads a reply, or raises `UnreadableReplyError`.
        what: What a warning calls the reply.

    Raises:
        UnreadableReplyError: The second reply could not be read either.
        ModelError, BudgetError: A call gave no reply, or did not fit into the budget.
    """

    async def answer(asked: list[Message]) -> Reply:
        return await call_model(context, config, asked, schema=schema)

    def read_whole(reply: Reply) -> ReadT:
        try:
            return read_reply(reply.text)
        except UnreadableReplyError as failure:
            raise cut_off(reply, failure) from failure

    reply = await answer(messages)
    try:
        return read_whole(reply)
    except UnreadableReplyError as failure:
        context.warn(f"The {what} could not be read ({str(failure).rstrip('.')}); asked once more.")
        again = f"That could not be read: {failure} Answer again, with the JSON object alone."
    return read_whole(await answer([*messages, Message("assistant", reply.text), Message("user", again)]))


def cut_off(reply: Reply, failure: UnreadableReplyError) -> UnreadableReplyError:
    """Why a reply cannot be read: that it was cut off, where it was."""
    if reply.finish is not Finish.LENGTH:
        return failure
    return UnreadableReplyError("the reply was cut off at its token limit, before the end of the JSON.")


def read(text: str, schema: dict[str, Value]) -> Value:
    """The JSON value in a reply.

    Raises:
        UnreadableReplyError: There is none, or it does not fit the schema.
    """
    failure = "there is no JSON in it."
    for candidate in _candidates(text):
        try:
            value = parse_json(candidate)
        except ValueError:
            continue
        try:
            errors = compile_schema(schema).errors(value)
        except SchemaError as error:
            raise UnreadableReplyError(error.message) from error
        if not errors:
            return value
        failure = errors[0]
    raise UnreadableReplyError(failure)


def _candidates(text: str) -> Iterator[str]:
    """The places of a reply where its JSON may be: all of it, a fenced block, from the first brace to the last."""
    yield text
    yield from _FENCE.findall(text)
    for opening, closing in ("{}", "[]"):
        start, end = text.find(opening), text.rfind(closing)
        if 0 <= start < end:
            yield text[start : end + 1]
