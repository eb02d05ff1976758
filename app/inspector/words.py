"""What a run did, in the words of the inspector. No Qt here."""

from __future__ import annotations

import json
from typing import Final

from app.runs.executions import NodePicture, NodeState
from engine.models.base import Usage
from engine.runner.words import money, seconds
from engine.values import Value

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


def state_words(execution: NodePicture) -> str:
    """What the node is doing or has done, with the number of retries."""
    words = _STATES[execution.state]
    if execution.retries and execution.state is NodeState.RUNNING:
        return f"{words}, tried again {_times(execution.retries)}"
    return words


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def token_words(usage: Usage) -> str:
    """Tokens in and out, `about` where a number is an estimate."""
    count = f"{usage.input_tokens:,} in · {usage.output_tokens:,} out"
    return count if usage.exact else f"about {count}"


def usage_words(value: Value) -> str:
    """What a model node gives as its usage, in words; empty for any other value."""
    if not isinstance(value, dict) or value.keys() != {"input_tokens", "output_tokens", "exact", "cost_usd"}:
        return ""
    match value:
        case {"input_tokens": int(given), "output_tokens": int(made), "exact": bool(exact), "cost_usd": cost}:
            price = cost_words(cost if isinstance(cost, int | float) else None)
            return f"{token_words(Usage(given, made, exact=exact))} · {price}"
        case _:
            return ""


def cost_words(cost_usd: float | None) -> str:
    """What it cost; a local model's calls are free."""
    return "free, local" if cost_usd == 0 else money(cost_usd)


def facts(execution: NodePicture) -> str:
    """Tokens, cost, time and the name of the output in the state, in one line, as far as there are any."""
    parts: list[str] = []
    if execution.usage is not None:
        parts.append(token_words(execution.usage))
    if execution.calls or execution.usage is not None:
        parts.append(cost_words(execution.cost_usd))
    if execution.duration_s is not None:
        parts.append(seconds(execution.duration_s))
    if execution.output_key:
        parts.append(f"state.{execution.output_key}")
    return " · ".join(parts)


def value_text(value: Value) -> str:
    """A value as a person reads it: a text as it is, anything else as indented JSON."""
    if isinstance(value, str):
        return value
    text = json.dumps(value, ensure_ascii=False)
    # Indenting takes Python's slow way of writing JSON, and a text of this length is not read line by line.
    return text if len(text) > _INDENTED else json.dumps(value, ensure_ascii=False, indent=2)
