"""What *Result* shows of one execution of a node, as plain data: parts with a heading and a text each. No Qt here."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final

from app.inspector.agent_steps import call_line, steps_text
from app.inspector.words import cost_words, token_words, usage_words, value_text
from app.runs.executions import NodePicture, NodeState
from engine.events import LoopIterationCompleted
from engine.models.base import ToolCall
from engine.nodes.spec import ModelCall
from engine.runner.words import counted_warnings, money, seconds
from engine.values import Value, compact_json, short_number

_ROLES: Final = {
    "system": "System prompt",
    "user": "Prompt",
    "assistant": "Earlier reply",
    "tool": "Tool",
}
_SHORT: Final = 80


@dataclass(frozen=True, slots=True)
class Part:
    """One part.

    Attributes:
        key: Says which it is, the same as long as it is about the same.
        heading: What stands over it.
        value: What it shows: a value, written out only when it is shown.
        facts: A line below the heading.
        is_folded: Whether it is shown only when a person unfolds it.
    """

    key: str
    heading: str
    value: Value
    facts: str = ""
    is_folded: bool = False

    @property
    def text(self) -> str:
        """The value as a person reads it."""
        return value_text(self.value)


def parts_of(execution: NodePicture) -> list[Part]:
    """The parts that an execution has, in the order in which they are read."""
    steps = steps_text(execution)
    parts = [Part("steps", "Steps", steps)] if steps else []
    for number, call in enumerate(execution.calls, 1):
        parts.extend(_call_parts(call, number, len(execution.calls)))
    if not execution.calls and execution.text:
        heading = "Reply so far" if execution.state is NodeState.RUNNING else "Reply as far as it came"
        parts.append(Part("stream", heading, execution.text))
    replies = {call.reply.text for call in execution.calls}
    for port, value in execution.outputs.items():
        if isinstance(value, str) and value in replies:  # it stands there already, as the reply
            continue
        parts.append(Part(f"out:{port}", f"Gave: {port}", usage_words(value) or value))
    parts.extend(Part(f"in:{port}", f"Got: {port}", value) for port, value in execution.inputs.items())
    return parts


def _call_parts(call: ModelCall, number: int, count: int) -> list[Part]:
    which = f", call {number} of {count}" if count > 1 else ""
    parts: list[Part] = []
    for index, message in enumerate(call.request.messages):
        text = _with_calls(message.text, message.tool_calls)
        parts.append(Part(f"call:{number}:{index}", f"{_ROLES.get(message.role, message.role)} as sent{which}", text))
    told = [call.reply.model or call.model, token_words(call.reply.usage)]
    told += [cost_words(call.cost_usd), seconds(call.duration_s)]
    if call.reply.finish != "stop":
        told.append(f"ended by {call.reply.finish.value.replace('_', ' ')}")
    told += _parameters(call)
    if call.reply.reasoning:
        parts.append(Part(f"call:{number}:reasoning", f"Reasoning{which}", call.reply.reasoning, is_folded=True))
    if call.reply.refusal:
        parts.append(Part(f"call:{number}:refusal", f"Refusal{which}", call.reply.refusal))
    reply = _with_calls(call.reply.text, call.reply.tool_calls)
    parts.append(Part(f"call:{number}:reply", f"Reply{which}", reply, " · ".join(told)))
    return parts


def _with_calls(text: str, calls: tuple[ToolCall, ...]) -> str:
    """What a model said, and below it the tools that it wanted called."""
    wanted = [call_line(call.name, call.arguments) for call in calls]
    return "\n".join([text, *wanted]) if text else "\n".join(wanted)


def _parameters(call: ModelCall) -> list[str]:
    request = call.request
    told: list[str] = []
    if request.temperature is not None:
        told.append(f"temperature {request.temperature:g}")
    if request.max_tokens is not None:
        told.append(f"at most {request.max_tokens:,} tokens")
    if request.seed is not None:
        told.append(f"seed {request.seed}")
    if request.top_p is not None:
        told.append(f"top P {request.top_p:g}")
    if request.stop:
        told.append("stops at " + ", ".join(json.dumps(text, ensure_ascii=False) for text in request.stop))
    if request.reasoning_effort is not None:
        told.append(f"reasoning effort {request.reasoning_effort}")
    if request.extra_parameters:
        told.append(compact_json(request.extra_parameters))
    if request.schema is not None:
        told.append("structured")
    return told


def iteration_line(iteration: LoopIterationCompleted, *, is_returned: bool) -> str:
    """One iteration in a line: number, verdict, score, similarity, cost, time, first words."""
    parts = [str(iteration.index + 1)]
    if is_returned:
        parts.append("returned")
    if iteration.branch:
        parts.append(iteration.branch)
    if iteration.score is not None:
        parts.append(f"score {short_number(iteration.score)}")
    if iteration.similarity is not None:
        parts.append(f"{iteration.similarity:.0%} similar")
    if iteration.usage.total_tokens:
        parts.append("free" if iteration.cost_usd == 0 else money(iteration.cost_usd))
    parts.append(seconds(iteration.duration_s))
    if iteration.warnings:
        parts.append(counted_warnings(len(iteration.warnings)))
    return " · ".join(parts)


def first_words(value: Value) -> str:
    """The beginning of a value in one line."""
    text = value[: 4 * _SHORT] if isinstance(value, str) else compact_json(value)
    words = " ".join(text.split())
    return words if len(words) <= _SHORT else f"{words[:_SHORT]}…"
