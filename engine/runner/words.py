"""Numbers, values and reasons in words, the same in every view and report."""

from __future__ import annotations

import json
from typing import Final

from engine.document.wording import indented
from engine.events import NodeRetrying
from engine.models.base import Usage
from engine.values import Value

EXIT_REASONS: Final = {
    "max_iterations": "the count was reached",
    "evaluator_done": "the evaluator chose 'done'",
    "stable_output": "the result no longer changed",
    "judge_done": "the judge found it done",
    "until": "its 'until' expression became true",
    "plateau": "the best score no longer rose",
    "oscillation": "the result came back to an earlier one",
    "all_items": "every item was worked on",
    "exit_loop": "one of its nodes ended it",
    "condition": "its condition was not met",
    "disabled": "it is disabled",
    "error": "an error ended it",
    "cancelled": "it was cancelled",
    "budget": "the budget was spent",
    "timeout": "its time was up",
}
"""Every reason for which a loop or an iterator ends, in words; several reasons are joined with `+`."""


def money(cost_usd: float | None) -> str:
    """A price: `?` for an unknown one, `$0` for a local model's."""
    if cost_usd is None:
        return "$?"
    if cost_usd == 0:
        return "$0"
    if cost_usd < 0.0001:
        return "under $0.0001"
    return f"${cost_usd:.4f}" if cost_usd < 1 else f"${cost_usd:,.2f}"


def tokens(usage: Usage) -> str:
    """How many tokens, `about` where a number in it is an estimate."""
    count = f"{usage.total_tokens:,} token{'' if usage.total_tokens == 1 else 's'}"
    return count if usage.exact else f"about {count}"


def seconds(duration_s: float) -> str:
    """A duration: `3.2 s`, `4 min 05 s`."""
    if duration_s < 60:
        return f"{duration_s:.1f} s"
    minutes, rest = divmod(round(duration_s), 60)
    return f"{minutes} min {rest:02d} s"


def retry_words(retry: NodeRetrying) -> str:
    """What follows a failed attempt: another one, or one with another model."""
    if retry.fallback:
        return f"{retry.error} It continues with the fallback {retry.fallback}."
    return f"attempt {retry.attempt} in {seconds(retry.delay_s)}: {retry.error}"


def written(value: Value) -> str:
    """A value for people: a text as it is, anything else as indented JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)


def laid_out(value: Value) -> str:
    """A value for people who approve it: JSON, but with each text of several lines below its name, line by line."""
    if not isinstance(value, dict) or not any(isinstance(one, str) and "\n" in one for one in value.values()):
        return written(value)
    return "\n".join(
        f"{name}:{indented(one)}" if isinstance(one, str) and "\n" in one else f"{name}: {written(one)}"
        for name, one in value.items()
    )


def exit_reason_words(exit_reason: str) -> str:
    """Why a loop stopped, where only its exit reason is known; `engine.store.stopping` says more where more is."""
    return " and ".join(EXIT_REASONS.get(one, one) for one in exit_reason.split("+"))


def counted_warnings(count: int) -> str:
    """A number of warnings."""
    return f"{count:,} warning{'' if count == 1 else 's'}"


def budget_warning(spent: float, limit: float, unit: str) -> str:
    """What is said when most of a budget is spent; `unit`: `usd` or `tokens`."""
    amounts = f"{spent:,.0f} of {limit:,.0f} tokens" if unit == "tokens" else f"{money(spent)} of {money(limit)}"
    return f"Most of the budget is spent ({amounts})."


def not_kept(error: str) -> str:
    """What is said of a run that the history no longer stores."""
    return f"The run is no longer stored in the history: {error}"


def count_came_first(iterations: int) -> str:
    """What is said of a loop that ended by its count although another condition was asked for."""
    return f"It did not stop by itself within {iterations} iterations."


def stop_sentence(exit_reason: str, iterations_run: int, total: int | None) -> str:
    """Say why a loop stopped (`Stopped after 3 of 3: the count was reached.`).

    Args:
        exit_reason: The loop's exit reason.
        iterations_run: How many iterations ran.
        total: How many it might have run at the most; None where no iteration began.
    """
    reason = exit_reason_words(exit_reason)
    if total is None:
        return f"Ran no iteration: {reason}."
    return f"Stopped after {iterations_run} of {total}: {reason}."
