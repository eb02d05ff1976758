"""What a run may spend and has spent, as a tree: the run, its loops, their iterations; above runs, their batch.

A charge counts at every level. A model call that would not fit at some level is not made; calls side by side reserve
what they may cost, so that together they cannot overrun.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Final, cast

from engine.errors import EngineError
from engine.formatting import format_count, format_money, format_spending
from engine.models.protocol import Price, Request, Usage, with_instruction
from engine.values import Value, compact_json

_BYTES_A_TOKEN: Final = 3
_TOKENS_AN_ITEM: Final = 16
"""What surrounds a message, a tool or a tool call on the wire."""
_NOT_BILLED: Final = frozenset({"path", "role"})
_TOKENS_WITHOUT_LIMIT: Final = 4096
_ROUNDING: Final = 1e-9
WARN_AT: Final = 0.8
"""The part of a budget after which a warning is told."""


class BudgetError(EngineError):
    """A model call that was not made because it does not fit into what is left.

    Attributes:
        path: The loop whose budget it is; empty for the run's.
        node: Path of the node whose call it was.
    """

    def __init__(self, message: str, remedy: str, path: str) -> None:
        super().__init__(message, remedy)
        self.path = path
        self.node = ""


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a call may cost at the most, as far as that can be told before it."""

    cost_usd: float
    tokens: int


def estimate(request: Request, price: Price | None) -> Estimate:
    """The most that a call may use: everything that is sent, at three bytes a token, and the longest reply."""
    tokens_in, tokens_out = request_tokens(request), reply_tokens(request)
    cost = price.cost_usd(Usage(tokens_in, tokens_out)) if price is not None else 0.0
    return Estimate(cost, tokens_in + tokens_out)


def request_tokens(request: Request) -> int:
    """The estimated tokens of a request: every text and value in it, whichever fields a request has."""
    if request.schema is not None:  # the longest form in which a schema is sent, which some servers need
        request = replace(request, messages=with_instruction(request.messages, request.schema), schema=None)
    calls = sum(len(message.tool_calls) for message in request.messages)
    items = len(request.messages) + calls + len(request.tools)
    return -(-_size(request) // _BYTES_A_TOKEN) + _TOKENS_AN_ITEM * items


def text_tokens(pieces: Sequence[str]) -> int:
    """The estimated tokens of a reply that broke off: as many as its pieces, more where a piece is long."""
    return max(len(pieces), -(-_size(tuple(pieces)) // _BYTES_A_TOKEN))


def _size(part: object) -> int:
    """The bytes of all texts and JSON values in a part of a request."""
    if isinstance(part, str):
        return len(part.encode("utf-8", "surrogatepass"))
    if isinstance(part, tuple):
        return sum(map(_size, cast("tuple[object, ...]", part)))
    if isinstance(part, (dict, list)):
        return _size(compact_json(cast("Value", part)))
    if is_dataclass(part):
        return sum(_size(getattr(part, field.name)) for field in fields(part) if field.name not in _NOT_BILLED)
    return 0


def reply_tokens(request: Request) -> int:
    """The most tokens that a reply may have; under a budget, the request is sent with this limit."""
    return request.max_tokens or _TOKENS_WITHOUT_LIMIT


class Budget:
    """One level of spending.

    Attributes:
        path: The loop that it belongs to; empty for the run.
        name: What it is, if it is neither a run nor a loop: `batch`.
        has_refused: Whether a call was not made because it did not fit here.
        limited: Whether it, or a level above it, has a limit.
        reserved_usd, reserved_tokens, held: What calls under way may cost, and how many there are.
        input_tokens, output_tokens, exact: Tokens used so far, and whether the figures are exact.
        spent_usd: US dollars of known price.
        price_unknown: Whether a call of unknown price is among it.
    """

    __slots__ = (
        "exact",
        "has_refused",
        "held",
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
    ) -> None:
        self.path = path
        self.name = name
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
        self.held = 0
        self.reserved_usd = 0.0
        self.reserved_tokens = 0
        self.waiting: deque[asyncio.Future[None]] | None = None if parent is None else parent.waiting
        if parent is None:
            self.waiting = deque()

    @property
    def usage(self) -> Usage:
        """Tokens used so far."""
        return Usage(self.input_tokens, self.output_tokens, self.exact)

    @property
    def cost_usd(self) -> float | None:
        """US dollars spent so far; None as soon as one price in it is unknown."""
        return None if self.price_unknown else self.spent_usd

    def charge(self, usage: Usage, cost_usd: float | None) -> None:
        """Count what a call used, here and on every level above."""
        budget: Budget | None = self
        while budget is not None:
            budget.input_tokens += usage.input_tokens
            budget.output_tokens += usage.output_tokens
            budget.exact = budget.exact and usage.exact
            if cost_usd is None:
                budget.price_unknown = True
            else:
                budget.spent_usd += cost_usd
            budget = budget.parent

    async def reserve(self, needed: Estimate) -> None:
        """Set aside what a call may cost, on every level.

        Where it would fit but for what calls under way have reserved, it waits until one of them is through.

        Raises:
            BudgetError: It does not fit.
        """
        while (obstacle := self._obstacle(needed)) is not None:
            budget, may_fit = obstacle
            if not may_fit:
                self._note_refusal(needed)
                raise budget.refusal(needed)
            future = asyncio.get_running_loop().create_future()
            assert self.waiting is not None
            self.waiting.append(future)
            await future
        self.hold(needed, 1)

    def release(self, needed: Estimate) -> None:
        """Give back what was set aside for a call that is through, and let those who wait look again, in order."""
        self.hold(needed, -1)
        assert self.waiting is not None
        waiting = list(self.waiting)
        self.waiting.clear()
        for future in waiting:
            if not future.done():
                future.set_result(None)

    def nearly_spent(self) -> list[tuple[Budget, str, float, float]]:
        """Levels of which most is spent and that have not been told of yet: level, unit, spent, limit."""
        told: list[tuple[Budget, str, float, float]] = []
        budget: Budget | None = self
        while budget is not None:
            if not budget.warned and not budget.name:  # whoever runs a batch reports how it stands
                spent = ((budget.limit_usd, budget.spent_usd, "usd"), (budget.limit_tokens, budget.tokens, "tokens"))
                for limit, amount, unit in spent:
                    if limit is not None and amount >= WARN_AT * limit and not budget.warned:
                        budget.warned = True
                        told.append((budget, unit, amount, limit))
            budget = budget.parent
        return told

    @property
    def tokens(self) -> int:
        """Tokens used so far, in and out together."""
        return self.input_tokens + self.output_tokens

    def hold(self, amount: Estimate, sign: int) -> None:
        """Add to what is reserved, or take from it, on every level."""
        budget: Budget | None = self
        while budget is not None:
            budget.held += sign
            # With nothing under way there is nothing reserved, whatever floating point has left over.
            budget.reserved_usd = budget.reserved_usd + sign * amount.cost_usd if budget.held else 0.0
            budget.reserved_tokens += sign * amount.tokens
            budget = budget.parent

    def _obstacle(self, needed: Estimate) -> tuple[Budget, bool] | None:
        """The level where it does not fit, and whether it may once calls under way are through; None where it fits."""
        found: tuple[Budget, bool] | None = None
        budget: Budget | None = self
        while budget is not None:
            for limit, spent, reserved, amount in (
                (budget.limit_usd, budget.spent_usd, budget.reserved_usd, needed.cost_usd),
                (budget.limit_tokens, budget.tokens, budget.reserved_tokens, needed.tokens),
            ):
                if limit is not None and spent + amount > limit + _ROUNDING:
                    return budget, False
                if limit is not None and budget.held and spent + reserved + amount > limit + _ROUNDING:
                    found = found or (budget, True)
            budget = budget.parent
        return found

    def _note_refusal(self, needed: Estimate) -> None:
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
        """The error that says that a call does not fit here."""
        whose = f'of the loop "{self.path}"' if self.path else f"of the {self.name or 'run'}"
        if self.limit_usd is not None and self.spent_usd + needed.cost_usd > self.limit_usd + _ROUNDING:
            left = format_spending(max(self.limit_usd - self.spent_usd, 0), self.limit_usd, "usd")
            need = f"up to {format_money(needed.cost_usd)}"
        else:
            limit = self.limit_tokens or 0
            left = format_spending(max(limit - self.tokens, 0), limit, "tokens")
            need = f"up to {format_count(needed.tokens, 'token')}"
        return BudgetError(
            f"The budget {whose} is spent: {left} are left, and the next call may take {need}.",
            "Raise the budget, shorten what is sent, or lower 'Max tokens'.",
            self.path,
        )
