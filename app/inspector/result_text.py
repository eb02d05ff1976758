"""Texts of the Result tab: the sections of a node's execution as plain data, its state and its metrics."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

from engine.events import LoopIterationCompleted
from engine.formatting import (
    format_count,
    format_duration,
    format_json,
    format_money,
    format_percent,
    format_score,
    format_tokens,
)
from engine.models.protocol import ModelCall, ToolCall, Usage
from engine.run_state.state import NodeExecution, NodeState
from engine.text_sanitizing import one_line
from engine.values import Value, compact_json, value_of_json

_MAX_INDENTED_CHARACTERS: Final = 20_000

_STATES: Final = {
    NodeState.PENDING: "Not run yet",
    NodeState.RUNNING: "Running",
    NodeState.COMPLETED: "Done",
    NodeState.SKIPPED: "Skipped",
    NodeState.CANCELLED: "Stopped",
    NodeState.INTERRUPTED: "Interrupted",
    NodeState.CACHED: "Done (reused from an earlier run)",
    NodeState.PINNED: "Pinned: the node did not run",
    NodeState.FAILED: "Failed",
    NodeState.WAITING: "Waiting for you",
}

STATE_ICONS: Final = {
    NodeState.PENDING: "mdi6.circle-outline",
    NodeState.RUNNING: "mdi6.progress-clock",
    NodeState.COMPLETED: "mdi6.check-circle-outline",
    NodeState.SKIPPED: "mdi6.skip-next-circle-outline",
    NodeState.CANCELLED: "mdi6.stop-circle-outline",
    NodeState.INTERRUPTED: "mdi6.stop-circle-outline",
    NodeState.CACHED: "mdi6.check-circle-outline",
    NodeState.PINNED: "mdi6.pin-outline",
    NodeState.FAILED: "mdi6.alert-circle-outline",
    NodeState.WAITING: "mdi6.account-question-outline",
}


def state_label(execution: NodeExecution) -> str:
    """Return the state of a node, with the number of the current retry."""
    label = _STATES[execution.state]
    if execution.retries and execution.state is NodeState.RUNNING:
        return f"{label} (retry {execution.retries})"
    return label


def token_label(usage: Usage) -> str:
    """Return the input and output tokens, with `~` before estimates."""
    tokens_in, tokens_out = usage.input_tokens, usage.output_tokens
    return f"{format_count(tokens_in, exact=usage.exact)} in · {format_count(tokens_out, exact=usage.exact)} out"


def usage_label(value: Value) -> str:
    """Return the usage output of a model node as text; empty for any other value."""
    if not isinstance(value, dict) or value.keys() != {"input_tokens", "output_tokens", "exact", "cost_usd"}:
        return ""
    match value:
        case {"input_tokens": int(tokens_in), "output_tokens": int(tokens_out), "exact": bool(exact), "cost_usd": cost}:
            price = format_money(cost if isinstance(cost, int | float) else None)
            return f"{token_label(Usage(tokens_in, tokens_out, exact=exact))} · {price}"
        case _:
            return ""


def execution_metrics(execution: NodeExecution) -> str:
    """Return tokens, cost, duration and state variable of an execution in one line, as far as known."""
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
    """Return a value for reading: a text unchanged, anything else as indented JSON."""
    if isinstance(value, str):
        return value
    text = json.dumps(value, ensure_ascii=False)
    # Indenting uses Python's slow JSON encoder, and nobody reads texts of this length line by line.
    return text if len(text) > _MAX_INDENTED_CHARACTERS else format_json(value)


MAX_STEP_CHARACTERS: Final = 4000
"""Maximum length of a thought or tool result in the steps; the messages contain the full text."""

_MAX_ARGUMENT_CHARACTERS: Final = 300


def agent_steps_text(execution: NodeExecution) -> str:
    """Return the steps of an agent so far; empty if it has called no tool."""
    return "\n\n".join("\n".join(lines) for lines in _steps(execution))


def tool_call_line(tool: str, arguments: Value) -> str:
    """Return a tool call in one line: `→ calculator(expression: 3 * 4)`."""
    if isinstance(arguments, dict):
        text = ", ".join(
            f"{name}: {one_line(value_text(value), _MAX_ARGUMENT_CHARACTERS)}" for name, value in arguments.items()
        )
    else:
        text = one_line(value_text(arguments), _MAX_ARGUMENT_CHARACTERS)
    return f"→ {one_line(tool, 60)}({text})"


def _steps(execution: NodeExecution) -> Iterator[list[str]]:
    output = execution.outputs.get("steps")
    steps: list[Any] = output if isinstance(output, list) else []
    if steps and all(isinstance(step, dict) and step.keys() >= {"turn", "tool", "arguments"} for step in steps):
        turn = None
        for step in steps:
            is_new, turn = step["turn"] != turn, step["turn"]
            thought = _truncated(step.get("thought")) if is_new else ""
            head = [f"Turn {turn}", *([thought] if thought else [])] if is_new else []
            yield [*head, *_call(step["tool"], step["arguments"], step.get("result"), step.get("error"))]
        return
    for called in execution.tool_calls:
        yield _call(called.tool, called.used_arguments, called.result, called.error)


def _call(tool: str, arguments: Value, result: Value, error: Value) -> list[str]:
    if error:
        return [tool_call_line(tool, arguments), f"✗ {_truncated(error)}"]
    return [
        tool_call_line(tool, arguments),
        *([f"= {_truncated(result)}"] if result is not None and result != "" else []),
    ]


def _truncated(value: Value) -> str:
    text = value_text(value).strip() if value is not None else ""
    return text if len(text) <= MAX_STEP_CHARACTERS else f"{text[:MAX_STEP_CHARACTERS]}…"


_ROLES: Final = {
    "system": "System prompt",
    "user": "Prompt",
    "assistant": "Earlier reply",
    "tool": "Tool",
}
_PREVIEW_LENGTH: Final = 80


@dataclass(frozen=True, slots=True)
class ResultSection:
    """One section of a result.

    Attributes:
        key: Stable identifier.
        heading: Heading.
        value: The value, converted to text only when it is shown.
        details: A line below the text: tokens, cost, parameters.
        is_collapsible: Whether it is collapsed at first.
        is_exact: Whether it is always plain text: what was sent, and what is still growing.
    """

    key: str
    heading: str
    value: Value
    details: str = ""
    is_collapsible: bool = False
    is_exact: bool = False


def result_sections(execution: NodeExecution) -> list[ResultSection]:
    """Return the sections of an execution, in reading order. No value is shown twice."""
    steps = agent_steps_text(execution)
    sections = [ResultSection("steps", "Steps", steps, is_exact=True)] if steps else []
    for number, call in enumerate(execution.calls, 1):
        sections.extend(_call_sections(call, number, len(execution.calls)))
    if not execution.calls and execution.text:
        heading = "Reply so far" if execution.state is NodeState.RUNNING else "Partial reply"
        sections.append(ResultSection("stream", heading, execution.text, is_exact=True))
    for port, value in execution.outputs.items():
        is_metric = execution.usage is not None and usage_label(value)
        if not is_metric and not any(_is_reply(call.reply.text, value) for call in execution.calls):
            sections.append(ResultSection(f"out:{port}", f"Output: {port}", usage_label(value) or value))
    sections += [ResultSection(f"in:{port}", f"Input: {port}", value) for port, value in execution.inputs.items()]
    return _without_repeats(sections)


def _is_reply(reply: str, value: Value) -> bool:
    """Return whether an output is a reply, or what its JSON means."""
    return value == reply or (isinstance(value, dict | list) and bool(value) and json_container(reply) == value)


def _without_repeats(sections: list[ResultSection]) -> list[ResultSection]:
    """Drop a value that an earlier section shows, whose details then name it."""
    kept: list[ResultSection] = []
    for section in sections:
        is_long = isinstance(section.value, str | dict | list) and bool(section.value)
        same = next((at for at, other in enumerate(kept) if is_long and other.value == section.value), None)
        if same is None:
            kept.append(section)
        else:
            details = (kept[same].details, f"same as {section.heading}")
            kept[same] = replace(kept[same], details=" · ".join(filter(None, details)))
    return kept


@lru_cache(maxsize=16)
def _parsed(text: str) -> Value:
    try:
        return value_of_json(text)
    except ValueError:
        return None


def json_container(value: Value) -> Value:
    """Return the object or list to show as a tree, also of a text that is JSON; None if there is none."""
    if isinstance(value, str) and value.lstrip()[:1] in {"{", "["}:
        value = _parsed(value)
    return value if isinstance(value, dict | list) and value else None


def _call_sections(call: ModelCall, number: int, count: int) -> list[ResultSection]:
    suffix = f", call {number} of {count}" if count > 1 else ""
    sections: list[ResultSection] = []

    def add(key: str, heading: str, text: str, details: str = "", *, is_collapsible: bool = False) -> None:
        is_exact = key.isdecimal()  # a message
        heading = f"{heading}{suffix}"
        sections.append(ResultSection(f"call:{number}:{key}", heading, text, details, is_collapsible, is_exact))

    for index, message in enumerate(call.request.messages):
        heading = f"{_ROLES.get(message.role, message.role)} as sent"
        add(str(index), heading, _with_tool_calls(message.text, message.tool_calls))
    details = [call.reply.model or call.model]
    if count > 1:  # of a single call, these are the node's own
        details += [token_label(call.reply.usage), format_money(call.cost_usd), format_duration(call.duration_s)]
    if call.reply.finish != "stop":
        details.append(f"finish reason: {call.reply.finish.value.replace('_', ' ')}")
    details += _parameters(call)
    if call.reply.reasoning:
        add("reasoning", "Reasoning", call.reply.reasoning, is_collapsible=True)
    if call.reply.refusal:
        add("refusal", "Refusal", call.reply.refusal)
    add("reply", "Reply", _with_tool_calls(call.reply.text, call.reply.tool_calls), " · ".join(details))
    return sections


def _with_tool_calls(text: str, calls: tuple[ToolCall, ...]) -> str:
    lines = [tool_call_line(call.name, call.arguments) for call in calls]
    return "\n".join([text, *lines]) if text else "\n".join(lines)


def _parameters(call: ModelCall) -> list[str]:
    request = call.request
    parameters: list[str] = []
    if request.temperature is not None:
        parameters.append(f"temperature {request.temperature:g}")
    if request.max_tokens is not None:
        parameters.append(f"max tokens {format_count(request.max_tokens)}")
    if request.seed is not None:
        parameters.append(f"seed {request.seed}")
    if request.top_p is not None:
        parameters.append(f"top-p {request.top_p:g}")
    if request.stop:
        parameters.append("stop sequences " + ", ".join(json.dumps(text, ensure_ascii=False) for text in request.stop))
    if request.reasoning_effort is not None:
        parameters.append(f"reasoning effort {request.reasoning_effort}")
    if request.extra_parameters:
        parameters.append(compact_json(request.extra_parameters))
    if request.schema is not None:
        parameters.append("JSON schema")
    return parameters


def cost(iteration: LoopIterationCompleted) -> str:
    """Format the cost; empty without model calls."""
    is_free = not iteration.usage.total_tokens and not iteration.cost_usd
    return "" if is_free else format_money(iteration.cost_usd)


def iteration_facts(iteration: LoopIterationCompleted, similarity: float | None, *, with_tokens: bool = True) -> str:
    """Summarize an iteration in one line: verdict without its reason, score, similarity, tokens, cost and duration."""
    parts = [iteration.branch or ""]
    if iteration.score is not None:
        parts.append(f"score {format_score(iteration.score)}")
    if similarity is not None:
        parts.append(f"{format_percent(similarity)} similar")
    if with_tokens and iteration.usage.total_tokens:
        parts.append(format_tokens(iteration.usage))
    parts += [cost(iteration), format_duration(iteration.duration_s)]
    if iteration.warnings:
        parts.append(format_count(len(iteration.warnings), "warning"))
    return " · ".join(filter(None, parts))


def iteration_summary(iteration: LoopIterationCompleted, *, is_returned: bool) -> str:
    """Return one line about an iteration, with its number and whether the loop returned its result."""
    facts = iteration_facts(iteration, iteration.similarity, with_tokens=False)
    return " · ".join(filter(None, [str(iteration.index + 1), "returned" if is_returned else "", facts]))


def value_preview(value: Value) -> str:
    """Return the beginning of a value in one line."""
    text = value[: 4 * _PREVIEW_LENGTH] if isinstance(value, str) else compact_json(value)
    line = " ".join(text.split())
    return line if len(line) <= _PREVIEW_LENGTH else f"{line[:_PREVIEW_LENGTH]}…"
