"""Reading a model's structured reply: finding the JSON in it and holding it against a schema.

A reply that does not fit is asked for once more with the error. What a model writes is data here, never anything else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from engine.models.base import Message
from engine.nodes.json_text import parse_json
from engine.nodes.schema import SchemaError, compile_schema
from engine.nodes.spec import NodeContext
from engine.values import Value

if TYPE_CHECKING:
    from engine.nodes.model_fields import ModelFields

_FENCE: Final = re.compile(r"```[a-zA-Z]*\n(.*?)```", re.DOTALL)


class UnreadableReplyError(Exception):
    """A reply in which there is no JSON that fits; the text says why, for the model and for the history."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The outcome of asking for a structured reply.

    Attributes:
        value: The value, where one of the two replies could be read.
        text: The last reply as it came.
        failure: Why the last reply could not be read; empty where it could.
    """

    value: Value
    text: str
    failure: str


async def ask(
    context: NodeContext[Any], config: ModelFields, messages: list[Message], schema: dict[str, Value]
) -> Asked:
    """Ask for a reply that fits a JSON Schema; once more, with the error, where the first does not."""
    text, failure = "", ""
    for attempt in range(2):
        reply = await context.complete(
            config.choice,
            messages,
            temperature=config.temperature,
            max_tokens=config.max_tokens,
            schema=schema,
            seed=config.seed,
        )
        text = reply.text
        try:
            return Asked(read(text, schema), text, "")
        except UnreadableReplyError as error:
            failure = str(error)
        if attempt == 0:
            context.warn(f"The reply could not be read ({failure}); asked once more.")
            messages = [
                *messages,
                Message("assistant", text),
                Message("user", f"That could not be read: {failure} Answer again, with the JSON object alone."),
            ]
    return Asked(None, text, failure)


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
