"""What *Result* shows of one execution of a node, as plain data: parts with a heading and a text each. No Qt here."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from app.runs.executions import NodePicture, NodeState
from engine.events import LoopIterationCompleted
from engine.formatting import format_count, format_duration, format_json, format_money, format_percent, format_score
from engine.models.base import ToolCall, Usage
from engine.nodes.spec import ModelCall
from engine.text_sanitizing import one_line
from engine.values import Value, compact_json

_INDENTED: Final = 20_000

_STATES: Final = {
    NodeState.WAITING: "Has not run yet",
    NodeState.RUNNING: "Running",
    NodeState.DONE: "Done",
    NodeState.SKIPPED: "Skipped",
    NodeState.STOPPED: "Stopped before it finished",
    NodeState.CACHED: "Done, taken from an earlier run",
    NodeState.FAILED: "Failed",
    NodeState.ASKING: "Waiting for you",
}

STATE_ICONS: Final = {
    NodeState.WAITING: "mdi6.circle-outline",
    NodeState.RUNNING: "mdi6.progress-clock",
    NodeState.DONE: "mdi6.check-circle-outline",
    NodeState.SKIPPED: "mdi6.skip-next-circle-outline",
    NodeState.STOPPED: "mdi6.stop-circle-outline",
    NodeState.CACHED: "mdi6.check-circle-outline",
    NodeState.FAILED: "mdi6.alert-circle-outline",
    NodeState.ASKING: "mdi6.account-question-outline",
}


def state_label(execution: NodePicture) -> str:
    """What the node is doing or has done, with the number of retries."""
    words = _STATES[execution.state]
    if execution.retries and execution.state is NodeState.RUNNING:
        return f"{words}, tried again {_times(execution.retries)}"
    return words


def _times(count: int) -> str:
    return "once" if count == 1 else format_count(count, "time")


def token_label(usage: Usage) -> str:
    """Tokens in and out, `~` before an estimate."""
    sent, received = usage.input_tokens, usage.output_tokens
    return f"{format_count(sent, exact=usage.exact)} in · {format_count(received, exact=usage.exact)} out"


def usage_label(value: Value) -> str:
    """What a model node gives as its usage, in words; empty for any other value."""
    if not isinstance(value, dict) or value.keys() != {"input_tokens", "output_tokens", "exact", "cost_usd"}:
        return ""
    match value:
        case {"input_tokens": int(given), "output_tokens": int(made), "exact": bool(exact), "cost_usd": cost}:
            price = format_money(cost if isinstance(cost, int | float) else None)
            return f"{token_label(Usage(given, made, exact=exact))} · {price}"
        case _:
            return ""


def execution_metrics(execution: NodePicture) -> str:
    """Tokens, cost, time and the name of the output in the state, in one line, as far as there are any."""
    parts: list[str] = []
    if execution.usage is not None:
        parts.append(token_label(execution.usage))
    if execution.calls or execution.usage is not None:
        parts.append(format_money(execution.cost_usd))
    if execution.duration_s is not None:
        parts.append(format_duration(execution.duration_s))
    if execution.output_key:
        parts.append(f"state.{execution.output_key}")
    return " · ".join(parts)


def value_text(value: Value) -> str:
    """A value as a person reads it: a text as it is, anything else as indented JSON."""
    if isinstance(value, str):
        return value
    text = json.dumps(value, ensure_ascii=False)
    # Indenting takes Python's slow way of writing JSON, and a text of this length is not read line by line.
    return text if len(text) > _INDENTED else format_json(value)


MAX_STEP_CHARACTERS: Final = 4000
"""Characters of a thought or of a tool's result that are shown among the steps; the whole is in the messages."""
_ARGUMENT_CHARS: Final = 300


def agent_steps_text(execution: NodePicture) -> str:
    """The steps of an agent, those so far while it is at work; empty where it has called no tool."""
    return "\n\n".join("\n".join(lines) for lines in _steps(execution))


def tool_call_line(tool: str, arguments: Value) -> str:
    """A call in a line: `→ calculator(expression: 3 * 4)`."""
    if isinstance(arguments, dict):
        given = ", ".join(
            f"{name}: {one_line(value_text(value), _ARGUMENT_CHARS)}" for name, value in arguments.items()
        )
    else:
        given = one_line(value_text(arguments), _ARGUMENT_CHARS)
    return f"→ {one_line(tool, 60)}({given})"


def _steps(execution: NodePicture) -> Iterator[list[str]]:
    given = execution.outputs.get("steps")
    steps: list[Any] = given if isinstance(given, list) else []
    if steps and all(isinstance(step, dict) and step.keys() >= {"turn", "tool", "arguments"} for step in steps):
        turn = None
        for step in steps:
            is_new, turn = step["turn"] != turn, step["turn"]
            thought = _cut(step.get("thought")) if is_new else ""
            head = [f"Turn {turn}", *([thought] if thought else [])] if is_new else []
            yield [*head, *_call(step["tool"], step["arguments"], step.get("result"), step.get("error"))]
        return
    for called in execution.tool_calls:
        yield _call(called.tool, called.used_arguments, called.result, called.error)


def _call(tool: str, arguments: Value, result: Value, error: Value) -> list[str]:
    if error:
        return [tool_call_line(tool, arguments), f"✗ {_cut(error)}"]
    return [tool_call_line(tool, arguments), *([f"= {_cut(result)}"] if result is not None and result != "" else [])]


def _cut(value: Value) -> str:
    text = value_text(value).strip() if value is not None else ""
    return text if len(text) <= MAX_STEP_CHARACTERS else f"{text[:MAX_STEP_CHARACTERS]}…"


_ROLES: Final = {
    "system": "System prompt",
    "user": "Prompt",
    "assistant": "Earlier reply",
    "tool": "Tool",
}
_SHORT: Final = 80


@dataclass(frozen=True, slots=True)
class ResultSection:
    """One part.

    Attributes:
        key: Says which it is, the same as long as it is about the same.
        heading: What stands over it.
        value: What it shows: a value, written out only when it is shown.
        details: A line below the text: tokens, cost, parameters.
        is_folded: Whether it is shown only when a person unfolds it.
    """

    key: str
    heading: str
    value: Value
    details: str = ""
    is_folded: bool = False

    @property
    def text(self) -> str:
        """The value as a person reads it."""
        return value_text(self.value)


def result_sections(execution: NodePicture) -> list[ResultSection]:
    """The parts that an execution has, in the order in which they are read."""
    steps = agent_steps_text(execution)
    parts = [ResultSection("steps", "Steps", steps)] if steps else []
    for number, call in enumerate(execution.calls, 1):
        parts.extend(_call_parts(call, number, len(execution.calls)))
    if not execution.calls and execution.text:
        heading = "Reply so far" if execution.state is NodeState.RUNNING else "Reply as far as it came"
        parts.append(ResultSection("stream", heading, execution.text))
    replies = {call.reply.text for call in execution.calls}
    for port, value in execution.outputs.items():
        if isinstance(value, str) and value in replies:  # it stands there already, as the reply
            continue
        parts.append(ResultSection(f"out:{port}", f"Gave: {port}", usage_label(value) or value))
    parts.extend(ResultSection(f"in:{port}", f"Got: {port}", value) for port, value in execution.inputs.items())
    return parts


def _call_parts(call: ModelCall, number: int, count: int) -> list[ResultSection]:
    which = f", call {number} of {count}" if count > 1 else ""
    parts: list[ResultSection] = []
    for index, message in enumerate(call.request.messages):
        text = _with_calls(message.text, message.tool_calls)
        parts.append(
            ResultSection(f"call:{number}:{index}", f"{_ROLES.get(message.role, message.role)} as sent{which}", text)
        )
    told = [call.reply.model or call.model, token_label(call.reply.usage)]
    told += [format_money(call.cost_usd), format_duration(call.duration_s)]
    if call.reply.finish != "stop":
        told.append(f"ended by {call.reply.finish.value.replace('_', ' ')}")
    told += _parameters(call)
    if call.reply.reasoning:
        parts.append(
            ResultSection(f"call:{number}:reasoning", f"Reasoning{which}", call.reply.reasoning, is_folded=True)
        )
    if call.reply.refusal:
        parts.append(ResultSection(f"call:{number}:refusal", f"Refusal{which}", call.reply.refusal))
    reply = _with_calls(call.reply.text, call.reply.tool_calls)
    parts.append(ResultSection(f"call:{number}:reply", f"Reply{which}", reply, " · ".join(told)))
    return parts


def _with_calls(text: str, calls: tuple[ToolCall, ...]) -> str:
    """What a model said, and below it the tools that it wanted called."""
    wanted = [tool_call_line(call.name, call.arguments) for call in calls]
    return "\n".join([text, *wanted]) if text else "\n".join(wanted)


def _parameters(call: ModelCall) -> list[str]:
    request = call.request
    told: list[str] = []
    if request.temperature is not None:
        told.append(f"temperature {request.temperature:g}")
    if request.max_tokens is not None:
        told.append(f"max tokens {format_count(request.max_tokens)}")
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


def iteration_summary(iteration: LoopIterationCompleted, *, is_returned: bool) -> str:
    """One iteration in a line: number, verdict, score, similarity, cost, time, first words."""
    parts = [str(iteration.index + 1)]
    if is_returned:
        parts.append("returned")
    if iteration.branch:
        parts.append(iteration.branch)
    if iteration.score is not None:
        parts.append(f"score {format_score(iteration.score)}")
    if iteration.similarity is not None:
        parts.append(f"{format_percent(iteration.similarity)} similar")
    if iteration.usage.total_tokens:
        parts.append(format_money(iteration.cost_usd))
    parts.append(format_duration(iteration.duration_s))
    if iteration.warnings:
        parts.append(format_count(len(iteration.warnings), "warning"))
    return " · ".join(parts)


def value_preview(value: Value) -> str:
    """The beginning of a value in one line."""
    text = value[: 4 * _SHORT] if isinstance(value, str) else compact_json(value)
    words = " ".join(text.split())
    return words if len(words) <= _SHORT else f"{words[:_SHORT]}…"
