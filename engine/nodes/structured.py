"""Structured replies of models: asked for, read, checked against a schema, and asked for once more with the error.

What a model writes is data here, never anything else. How a reply is read is in `engine.nodes.verdicts`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from engine.document.json_rules import faults as faults_in
from engine.models.protocol import Finish, Message, Reply
from engine.nodes.context import NodeContext
from engine.nodes.model_fields import ModelFields, call_model
from engine.nodes.schema import SchemaError, compile_schema
from engine.nodes.verdicts import Faults, UnreadableReplyError, read_structured
from engine.text_sanitizing import shown
from engine.values import Value

__all__ = ["UnreadableReplyError", "ask", "faults_by", "read", "read_whole"]

_JSON_BEGINS = ("{", "[", "```")
_JSON_ENDS = ("}", "]", "```")

_CUT_OFF: Final = {Finish.LENGTH: "at its token limit", Finish.CONTENT_FILTER: "by the provider's content filter"}

ReadT = TypeVar("ReadT")


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

    reply = await answer(messages)
    try:
        return read_whole(reply, read_reply)
    except UnreadableReplyError as failure:
        context.warn(f"The {what} could not be read ({str(failure).rstrip('.')}); asked once more.")
        again = f"That could not be read: {shown(str(failure), 500)} Answer again, with the JSON object alone."
    said = [Message("assistant", reply.text)] if reply.text.strip() else []  # servers refuse empty messages
    second = await answer([*messages, *said, Message("user", again)])
    return read_whole(second, read_reply)


def read_whole(reply: Reply, read_reply: Callable[[str], ReadT]) -> ReadT:
    """Read a reply. One that was cut off counts only if its JSON is whole, and begins or ends it.

    In the middle it may be an example, with the answer still to come; and "done" may be the beginning of a sentence.

    Raises:
        UnreadableReplyError: It cannot be read, or was cut off before what is to be read had ended.
    """
    if reply.finish not in _CUT_OFF:
        return read_reply(reply.text)
    text = reply.text.strip()
    try:
        if text.startswith(_JSON_BEGINS) or text.endswith(_JSON_ENDS):
            return read_reply(f"{text} [cut off]")
    except UnreadableReplyError:
        pass
    raise UnreadableReplyError(f"the reply was cut off {_CUT_OFF[reply.finish]}, before its end.")


def read(text: str, schema: dict[str, Value]) -> Value:
    """The JSON value in a reply.

    Raises:
        UnreadableReplyError: There is none, it does not fit the schema, or there are several that differ.
    """
    return read_structured(text, schema, faults_by(schema))


def faults_by(schema: dict[str, Value]) -> Faults:
    """Checks values against a schema, and against the rules that hold for all values.

    Raises:
        UnreadableReplyError: The schema cannot be used.
    """
    try:
        compiled = compile_schema(schema)
    except SchemaError as error:
        raise UnreadableReplyError(error.message) from error

    def faults(value: Any) -> Sequence[tuple[int, str]]:
        broken = next(faults_in(value), None)
        return compiled.faults(value) if broken is None else [(len(broken.path), broken.message)]

    return faults
