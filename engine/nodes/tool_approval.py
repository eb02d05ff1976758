"""Approving a tool call: what a person is asked about it, and what their answer makes of its arguments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from engine.nodes.context import APPROVE, REJECT, Answer
from engine.tools.tool import AnyTool, Consent, ToolError
from engine.values import Value, compact_json

CHOICES: Final = (APPROVE, REJECT)


def approval_question(tool: str) -> str:
    """What a person is asked before a call."""
    return f'May the tool "{tool}" be called with these arguments?'


def approved_arguments(answer: Answer, arguments: Mapping[str, Value]) -> Mapping[str, Value]:
    """The arguments as a person leaves them who lets the call be made.

    Raises:
        ToolError: They refused it.
    """
    if answer.choice != APPROVE:
        reason = f" {answer.comment}" if answer.comment else ""
        raise ToolError(f"A person refused this call.{reason}", "Do without it, or do it differently.")
    if answer.value is None:
        return arguments
    if not isinstance(answer.value, dict):
        raise ToolError("The arguments that a person gave instead are no JSON object.", "Call it again.")
    return answer.value


def confirmed_as(tool: AnyTool, arguments: Mapping[str, Value]) -> str:
    """What tells one confirmed call from another; empty where a tool needs no confirmation."""
    if tool.consents_to_calls:
        return compact_json([tool.name, dict(arguments)])
    return f"{tool.name} {_host(arguments.get('url'))}" if tool.consent is Consent.HOST else ""


def _host(address: Value) -> str:
    try:
        return urlsplit(str(address)).hostname or str(address)
    except ValueError:
        return str(address)
