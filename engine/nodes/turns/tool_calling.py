"""Think, act, observe: the model is called again and again, the tools that it wants are called in between.

A turn is one call of the model. The work is done when it answers without wanting a tool, or calls `finish`.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from engine.models.protocol import Message, ModelError, ModelErrorKind, Reply, ToolCall
from engine.nodes.agent_config import TOOL_CALLING as NAME
from engine.nodes.agent_config import AgentConfig
from engine.nodes.agent_tools import EXIT_LOOP, FINISH
from engine.nodes.context import NodeContext, ToolOutcome
from engine.nodes.model_fields import call_model
from engine.nodes.structured import UnreadableReplyError, read, read_whole
from engine.nodes.turns.base import AgentEnd, TurnStrategy
from engine.nodes.turns.toolbox import Toolbox, told
from engine.text_sanitizing import shown
from engine.values import Value

MOST_CALLS: Final = 20
"""The most tools that are called in one turn."""

_SAY_SOMETHING: Final = Message("user", "You said nothing. Answer, or call a tool.")


@dataclass(slots=True)
class _Conversation:
    """How far an agent has come: what a later attempt goes on from.

    Attributes:
        messages: What was said so far.
        turn: How many turns it has taken.
        thought: The text of the last turn.
        pending: The calls of the last turn that have not been carried out yet.
        carried_out: How many of the last turn's have.
        steps: What it did.
        last_text: The last text that was not empty.
    """

    messages: list[Message]
    turn: int = 0
    thought: str = ""
    pending: deque[ToolCall] = field(default_factory=deque[ToolCall])
    carried_out: int = 0
    steps: list[Value] = field(default_factory=list[Value])
    last_text: str = ""


async def _run(context: NodeContext[AgentConfig], messages: list[Message]) -> AgentEnd:
    if context.kept is None:
        context.kept = _Conversation(messages)
    conversation: _Conversation = context.kept
    toolbox = Toolbox(context)
    while True:
        end = await _carry_out(context, conversation, toolbox)
        if end is not None:
            return end
        if conversation.turn >= context.config.max_turns:
            return AgentEnd("max_turns", conversation.last_text or None, tuple(conversation.steps))
        reply = await _think(context, conversation, toolbox)
        if not reply.tool_calls:
            end = _answered(context.config, conversation, reply)
            if end is not None:
                return end


async def _think(context: NodeContext[AgentConfig], conversation: _Conversation, toolbox: Toolbox) -> Reply:
    """One turn: call the model, and take up what it says."""
    try:
        reply = await call_model(context, context.config, conversation.messages, tools=toolbox.definitions)
    except ModelError as error:
        if error.kind is ModelErrorKind.EMPTY_REPLY:  # the next attempt asks for an answer
            conversation.messages.append(_SAY_SOMETHING)
        raise
    conversation.turn += 1
    conversation.thought = reply.text
    if reply.text.strip():
        conversation.last_text = reply.text
    conversation.messages.append(Message("assistant", reply.text, reply.tool_calls))
    conversation.pending = deque(reply.tool_calls)
    conversation.carried_out = 0
    return reply


async def _carry_out(
    context: NodeContext[AgentConfig], conversation: _Conversation, toolbox: Toolbox
) -> AgentEnd | None:
    """Carry out the calls of the last turn, one after the other; the end of the work, if one of them ends it."""
    while conversation.pending:
        call = conversation.pending[0]
        if conversation.carried_out >= MOST_CALLS:
            outcome = await toolbox.refuse(call, f"Not made: at most {MOST_CALLS} tools are called in one turn.")
        else:
            outcome = await toolbox.call(call)
        conversation.pending.popleft()
        conversation.carried_out += 1
        conversation.messages.append(Message("tool", told(outcome), tool_call_id=call.id))
        conversation.steps.append(_step(conversation, call, outcome))
        if outcome.error:
            continue
        if call.name == FINISH:
            return AgentEnd("finished", outcome.result, tuple(conversation.steps))
        if call.name == EXIT_LOOP:
            context.exit_loop()
            return AgentEnd("exited_loop", None, tuple(conversation.steps))
    return None


def _step(conversation: _Conversation, call: ToolCall, outcome: ToolOutcome) -> Value:
    return {
        "turn": conversation.turn,
        "thought": conversation.thought,
        "tool": call.name,
        "arguments": call.arguments if outcome.edited_arguments is None else outcome.edited_arguments,
        "result": outcome.result,
        "error": outcome.error,
    }


def _answered(config: AgentConfig, conversation: _Conversation, reply: Reply) -> AgentEnd | None:
    """The end of the work where the model answered; None where it did not, or not as its schema says."""
    steps = tuple(conversation.steps)
    if config.reply_schema is None:
        return AgentEnd("finished", reply.text, steps)
    try:
        return AgentEnd("finished", read_whole(reply, partial(read, schema=config.reply_schema)), steps)
    except UnreadableReplyError as failure:
        again = f"That could not be read: {shown(str(failure), 300)} Answer again, with the JSON alone."
        conversation.messages.append(Message("user", again))
        return None


TOOL_CALLING: Final = TurnStrategy(
    NAME, "Tool calling", "Thinks, calls tools, looks at what they gave, and goes on until it is done.", _run
)
