"""Turn strategy of an agent that answers, is asked whether it is sure, and answers again."""

from __future__ import annotations

from engine.models.protocol import Message
from engine.nodes.agent import AgentEnd, TurnStrategy
from engine.nodes.agent_tools import AgentConfig
from engine.nodes.context import NodeContext


async def _run(context: NodeContext[AgentConfig], messages: list[Message]) -> AgentEnd:
    first = await context.complete(context.config.choice, messages)
    again = [*messages, Message("assistant", first.text), Message("user", "Are you sure? Answer once more.")]
    return AgentEnd("finished", (await context.complete(context.config.choice, again)).text)


ONCE_MORE = TurnStrategy("once_more", "Once more", "Answers, is asked whether it is sure, and answers again.", _run)
