"""What an agent did, as a text: what it thought, which tools it called, what they gave. No Qt here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from app.inspector.words import value_text
from app.runs.executions import NodePicture
from engine.document.wording import one_line
from engine.values import Value

MOST: Final = 4000
"""Characters of a thought or of a tool's result that are shown among the steps; the whole is in the messages."""
_SHORT: Final = 300


def steps_text(execution: NodePicture) -> str:
    """The steps of an agent, those so far while it is at work; empty where it has called no tool."""
    return "\n\n".join("\n".join(lines) for lines in _steps(execution))


def call_line(tool: str, arguments: Value) -> str:
    """A call in a line: `→ calculator(expression: 3 * 4)`."""
    if isinstance(arguments, dict):
        given = ", ".join(f"{name}: {one_line(value_text(value), _SHORT)}" for name, value in arguments.items())
    else:
        given = one_line(value_text(arguments), _SHORT)
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
        return [call_line(tool, arguments), f"✗ {_cut(error)}"]
    return [call_line(tool, arguments), *([f"= {_cut(result)}"] if result is not None and result != "" else [])]


def _cut(value: Value) -> str:
    text = value_text(value).strip() if value is not None else ""
    return text if len(text) <= MOST else f"{text[:MOST]}…"
