"""Budgets: a tree of limits and spending for a batch, its runs, their loops and iterations.

A charge counts in a budget and in all budgets above it. A model call that might exceed one of them is not made.
Parallel calls reserve their estimated maximum, so that together they cannot exceed a budget.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Final, cast

from engine.errors import EngineError, Fix
from engine.formatting import format_count, format_money, format_spending
from engine.models.protocol import Price, Request, Usage, with_instruction
from engine.values import Value, compact_json

_BYTES_PER_TOKEN: Final = 3
_TOKENS_PER_ITEM: Final = 16
"""Tokens around each message, tool or tool call in a request."""
_NOT_BILLED: Final = frozenset({"path", "role"})
_DEFAULT_MAX_TOKENS: Final = 4096
_ROUNDING: Final = 1e-9
WARN_AT: Final = 0.8
"""The share of a budget at which a warning is emitted."""


class BudgetError(EngineError):
    """A model call was not made because it does not fit into a budget.

    Attributes:
        path: Path of the loop that has the budget; empty for the run.
        node: Path of the node that wanted to make the call.
    """

    def __init__(self, message: str, remedy: str, path: str, *, fix: str = "") -> None:
        super().__init__(message, remedy, fix=fix)
        self.path = path
        self.node = ""


@dataclass(frozen=True, slots=True)
class Estimate:
    """The maximum cost of a call, estimated before it."""

    cost_usd: float
    tokens: int


def estimate(request: Request, price: Price | None, counted: int | None = None) -> Estimate:
    """Estimate the maximum cost of a call: the whole request and the longest reply.

    Args:
        request: The request.
        price: The model's price; None if unknown.
        counted: The tokens of `request_texts`; None counts three bytes per token.
    """
    tokens_in, tokens_out = request_tokens(request, counted), reply_tokens(request)
    cost = price.cost_usd(Usage(tokens_in, tokens_out)) if price is not None else 0.0
    return Estimate(cost, tokens_in + tokens_out)


def request_texts(request: Request) -> list[str]:
    """Return all texts and values in a request that count as tokens."""
    return list(filter(None, _texts(_longest(request))))


def request_tokens(request: Request, counted: int | None = None) -> int:
    """Estimate the tokens of a request from all texts and values in it, as `estimate` does."""
    request = _longest(request)
    calls = sum(len(message.tool_calls) for message in request.messages)
    items = len(request.messages) + calls + len(request.tools)
    return (_rough_tokens(_texts(request)) if counted is None else counted) + _TOKENS_PER_ITEM * items


def _longest(request: Request) -> Request:
    """Return a request in the longest form in which its schema may be sent."""
    if request.schema is None:
        return request
    return replace(request, messages=with_instruction(request.messages, request.schema), schema=None)


def text_tokens(pieces: Sequence[str]) -> int:
    """Estimate the tokens of an incomplete reply: the number of its pieces, or more if they are long."""
    return max(len(pieces), _rough_tokens(pieces))


def _rough_tokens(texts: Iterable[str]) -> int:
    return -(-sum(len(text.encode("utf-8", "surrogatepass")) for text in texts) // _BYTES_PER_TOKEN)


def _texts(part: object) -> Iterator[str]:
    """Yield all texts in a part of a request, and its JSON values as texts."""
    if isinstance(part, str):
        yield part
    elif isinstance(part, tuple):
        for member in cast("tuple[object, ...]", part):
            yield from _texts(member)
    elif isinstance(part, (dict, list)):
        yield compact_json(cast("Value", part))
    elif is_dataclass(part):
        for field in fields(part):
            if field.name not in _NOT_BILLED:
                yield from _texts(getattr(part, field.name))


def reply_tokens(request: Request) -> int:
    """Return the maximum tokens of a reply, which limits requests under a budget."""
    return request.max_tokens or _DEFAULT_MAX_TOKENS


class Budget:
    """The limits and the spending of a run, a loop, an iteration or a batch.

    Attributes:
        path: Path of the loop; empty for a run.
        name: `batch` for a batch; empty for a run or a loop.
        title: The title of the loop.
        has_refused: Whether it has refused a call.
        limited: Whether it, or a budget above it, has a limit.
        reserved_usd, reserved_tokens, calls_in_flight: Reservations of calls in flight, and their number.
        input_tokens, output_tokens, exact: Tokens used so far, and whether the figures are exact.
        spent_usd: US dollars spent on calls of known price.
        price_unknown: Whether there was a call of unknown price.
    """

    __slots__ = (
        "calls_in_flight",
        "exact",
        "has_refused",
        "input_tokens",
        "limit_tokens",
        "limit_usd",
        "limited",
        "name",
        "output_tokens",
        "parent",
        "path",
        "price_unknown",
        "reserved_tokens",
        "reserved_usd",
        "spent_usd",
        "title",
        "waiting",
        "warned",
    )

    def __init__(
        self,
        path: str = "",
        parent: Budget | None = None,
        limit_usd: float | None = None,
        limit_tokens: int | None = None,
        *,
        name: str = "",
        title: str = "",
    ) -> None:
        self.path = path
        self.name = name
        self.title = title
        self.has_refused = False
        self.parent = parent
        self.limit_usd = limit_usd
        self.limit_tokens = limit_tokens
        self.limited: bool = (
            limit_usd is not None or limit_tokens is not None or (parent is not None and parent.limited)
        )
        self.input_tokens = 0
        self.output_tokens = 0
        self.exact = True
        self.spent_usd = 0.0
        self.price_unknown = False
        self.warned = False
        self.calls_in_flight = 0
        self.reserved_usd = 0.0
        self.reserved_tokens = 0
        self.waiting: deque[asyncio.Future[None]] = deque() if parent is None else parent.waiting

    @property
    def usage(self) -> Usage:
        """Tokens used so far."""
        return Usage(self.input_tokens, self.output_tokens, self.exact)

    @property
    def cost_usd(self) -> float | None:
        """US dollars spent so far; None if one of the prices is unknown."""
        return None if self.price_unknown else self.spent_usd

    def charge(self, usage: Usage, cost_usd: float | None) -> None:
        """Charge a call to this budget and all budgets above it."""
        input_tokens, output_tokens, exact = usage.input_tokens, usage.output_tokens, usage.exact
        budget: Budget | None = self
        while budget is not None:
            budget.input_tokens += input_tokens
            budget.output_tokens += output_tokens
            if not exact:
                budget.exact = False
            if cost_usd is None:
                budget.price_unknown = True
            else:
                budget.spent_usd += cost_usd
            budget = budget.parent

    async def reserve(self, needed: Estimate) -> None:
        """Reserve the estimated maximum of a call in this budget and all budgets above it.

        Waits for calls in flight whose reservations leave too little.

        Raises:
            BudgetError: The call does not fit.
        """
        while (obstacle := self._obstacle(needed)) is not None:
            budget, may_fit_later = obstacle
            if not may_fit_later:
                self._mark_refusal(needed)
                raise budget.refusal(needed)
            future = asyncio.get_running_loop().create_future()
            self.waiting.append(future)
            await future
        self._add_reservation(needed, 1)

    def release(self, needed: Estimate) -> None:
        """Release the reservation of a finished call, and wake all calls that wait, in order."""
        self._add_reservation(needed, -1)
        waiting = list(self.waiting)
        self.waiting.clear()
        for future in waiting:
            if not future.done():
                future.set_result(None)

    def new_warnings(self) -> list[tuple[Budget, str, float, float]]:
        """Return budgets that reached `WARN_AT` and were not returned before: budget, unit, spent, limit."""
        found: list[tuple[Budget, str, float, float]] = []
        budget: Budget | None = self
        while budget is not None:
            if not budget.warned and not budget.name:  # a batch reports its own budget
                spent = ((budget.limit_usd, budget.spent_usd, "usd"), (budget.limit_tokens, budget.tokens, "tokens"))
                for limit, amount, unit in spent:
                    if limit is not None and amount >= WARN_AT * limit and not budget.warned:
                        budget.warned = True
                        found.append((budget, unit, amount, limit))
            budget = budget.parent
        return found

    @property
    def tokens(self) -> int:
        """Tokens used so far, in and out together."""
        return self.input_tokens + self.output_tokens

    def _add_reservation(self, amount: Estimate, sign: int) -> None:
        budget: Budget | None = self
        while budget is not None:
            budget.calls_in_flight += sign
            # Reset rounding errors when no call is in flight.
            budget.reserved_usd = budget.reserved_usd + sign * amount.cost_usd if budget.calls_in_flight else 0.0
            budget.reserved_tokens += sign * amount.tokens
            budget = budget.parent

    def _obstacle(self, needed: Estimate) -> tuple[Budget, bool] | None:
        """Return the budget that a call exceeds, and whether it may fit after calls in flight; None if it fits."""
        found: tuple[Budget, bool] | None = None
        budget: Budget | None = self
        while budget is not None:
            for limit, spent, reserved, amount in (
                (budget.limit_usd, budget.spent_usd, budget.reserved_usd, needed.cost_usd),
                (budget.limit_tokens, budget.tokens, budget.reserved_tokens, needed.tokens),
            ):
                if limit is not None and spent + amount > limit + _ROUNDING:
                    return budget, False
                if limit is not None and budget.calls_in_flight and spent + reserved + amount > limit + _ROUNDING:
                    found = found or (budget, True)
            budget = budget.parent
        return found

    def _mark_refusal(self, needed: Estimate) -> None:
        budget: Budget | None = self
        while budget is not None:
            for limit, amount in (
                (budget.limit_usd, budget.spent_usd + needed.cost_usd),
                (budget.limit_tokens, budget.tokens + needed.tokens),
            ):
                if limit is not None and amount > limit + _ROUNDING:
                    budget.has_refused = True
            budget = budget.parent

    def refusal(self, needed: Estimate) -> BudgetError:
        """Return the error for a call that does not fit."""
        whose = f'of the loop "{self.title or self.path}"' if self.path else f"of the {self.name or 'run'}"
        if self.limit_usd is not None and self.spent_usd + needed.cost_usd > self.limit_usd + _ROUNDING:
            left = format_spending(max(self.limit_usd - self.spent_usd, 0), self.limit_usd, "usd")
            need, name = f"up to {format_money(needed.cost_usd)}", "budget_usd"
        else:
            limit = self.limit_tokens or 0
            left = format_spending(max(limit - self.tokens, 0), limit, "tokens")
            need, name = f"up to {format_count(needed.tokens, 'token')}", "budget_tokens"
        return BudgetError(
            f"The budget {whose} is too small for the next call: {left} are left, and the call may need {need}.",
            "Raise the budget, shorten the prompt, or lower 'Max tokens'.",
            self.path,
            # The budget of a batch belongs to the batch, whose rows do not know it.
            fix="" if self.name else Fix.RAISE_BUDGET.of(f"{self.path}.{name}".lstrip(".")),
        )
