"""What an exported LangGraph module carries with it, copied as it stands here: what model calls cost.

So it needs nothing but litellm, which knows the prices, and its siblings. What is exported holds only what it uses.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

PRICES: dict[str, tuple[float, float]] = {}
SPENT: list[float] = []


def note_cost(model: str, usage: Mapping[str, Any]) -> None:
    """Note what a model call cost in US dollars: by PRICES (a token in, a token out), else as litellm knows it."""
    tokens_in, tokens_out = usage.get("input_tokens", 0), usage.get("output_tokens", 0)
    if model in PRICES:
        price_in, price_out = PRICES[model]
        SPENT.append(tokens_in * price_in + tokens_out * price_out)
    else:
        from litellm import cost_per_token

        SPENT.append(sum(cost_per_token(model=model, prompt_tokens=tokens_in, completion_tokens=tokens_out)))


def spent_since(before: float) -> float:
    """What was spent, in US dollars, since so much had been spent."""
    return sum(SPENT) - before


def may_spend(budget_usd: float) -> None:
    """Refuse a model call where the budget of the run is spent."""
    if sum(SPENT) >= budget_usd:
        raise RuntimeError(f"The budget of {budget_usd:g} US dollars is spent.")
