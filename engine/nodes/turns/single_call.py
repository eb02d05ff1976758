"""One call of the model and no tools: for classifying, extracting, summarising."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

from engine.models.protocol import Message
from engine.nodes.agent_config import AgentConfig
from engine.nodes.context import NodeContext
from engine.nodes.model_fields import call_model
from engine.nodes.spec import FieldProblem, NodeError
from engine.nodes.structured import UnreadableReplyError, ask, read
from engine.nodes.turns.base import AgentEnd, TurnStrategy


def _check(config: AgentConfig) -> Iterator[FieldProblem]:
    if config.tools:
        yield FieldProblem(
            "tools-on-single-call",
            "tools",
            f"An agent of the strategy single_call calls its model once, and no tools; it has {len(config.tools)}.",
            "Remove the tools, or choose the strategy tool_calling.",
        )


async def _run(context: NodeContext[AgentConfig], messages: list[Message]) -> AgentEnd:
    config = context.config
    if config.reply_schema is not None:
        schema = config.reply_schema
        try:
            return AgentEnd("finished", await ask(context, config, messages, schema, partial(read, schema=schema)))
        except UnreadableReplyError as error:
            raise NodeError(
                f"The reply does not follow the JSON Schema, asked twice: {error}",
                "Make the schema simpler, allow more tokens in the reply, or take a stronger model.",
                retryable=True,
            ) from error
    reply = await call_model(context, config, messages)
    if reply.tool_calls:
        raise NodeError(
            f'The model wants the tool "{reply.tool_calls[0].name[:100]}" called, although it was given none.',
            "Choose the strategy tool_calling, or another model.",
        )
    return AgentEnd("finished", reply.text)


SINGLE_CALL: Final = TurnStrategy("single_call", "Single call", "Calls the model once, without tools.", _run, _check)
