"""Budgets: estimates before a call, reservations during it, charges after it, in a tree of budgets."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.models.protocol import LongPrice, Message, Price, Request, ToolCall, ToolDefinition, Usage, with_instruction
from engine.runner.budget import Budget, BudgetError, Estimate, estimate, reply_tokens, text_tokens
from engine.values import immutable
from tests.examples import examples
from tests.wording import mentions

DOLLAR = Estimate(1.0, 10)


def request(*texts: str, max_tokens: int | None = 100) -> Request:
    return Request(tuple(Message("user", text) for text in texts), max_tokens=max_tokens)


async def turn() -> None:
    """Let all tasks that can continue do so."""
    for _ in range(10):
        await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("texts", "tokens"),
    [([""], 16), (["abc"], 17), (["abcd"], 18), (["é" * 3], 18), (["\ud800"], 17), (["abc", "abc"], 34)],
)
def test_tokens_are_estimated_at_three_bytes_each_plus_overhead(texts: list[str], tokens: int) -> None:
    assert estimate(request(*texts), None) == Estimate(0.0, tokens + 100)


LONG = "x" * 3000
ONE = request("a")
CALL = ToolCall("1", "search", {})


@pytest.mark.parametrize(
    "longer",
    [
        replace(ONE, schema={"type": "string", "description": LONG}),
        replace(ONE, tools=(ToolDefinition("search", LONG, {}),)),
        replace(ONE, tools=(ToolDefinition("search", "", {"properties": {LONG: {}}}),)),
        replace(ONE, tools=(ToolDefinition(LONG, "", {}),)),
        replace(ONE, messages=(*ONE.messages, Message("system", LONG))),
        replace(ONE, messages=(*ONE.messages, Message("tool", LONG, tool_call_id="1"))),
        replace(ONE, messages=(*ONE.messages, Message("assistant", "", (replace(CALL, arguments={"q": LONG}),)))),
        replace(ONE, messages=(*ONE.messages, Message("assistant", "", (replace(CALL, arguments=LONG),)))),
        replace(ONE, messages=(*ONE.messages, Message("assistant", "", (replace(CALL, name=LONG),)))),
    ],
)
def test_every_part_of_a_request_counts(longer: Request) -> None:
    assert estimate(longer, None).tokens >= estimate(ONE, None).tokens + 1000


def test_a_schema_counts_once_in_its_longest_form() -> None:
    schema: dict[str, Any] = {"type": "string", "description": LONG}
    in_words = Request(with_instruction(ONE.messages, schema), max_tokens=100)

    assert estimate(replace(ONE, schema=schema), None) == estimate(in_words, None)


def test_new_fields_of_requests_count() -> None:
    @immutable
    class Later(Request):
        images: tuple[str, ...] = ()
        options: dict[str, Any] | None = None

    plain = Later(ONE.messages, max_tokens=100)

    assert estimate(replace(plain, images=(LONG,)), None).tokens >= estimate(plain, None).tokens + 1000
    assert estimate(replace(plain, options={"a": LONG}), None).tokens >= estimate(plain, None).tokens + 1000


def test_the_path_of_a_request_does_not_count() -> None:
    assert estimate(replace(ONE, path=LONG), None) == estimate(ONE, None)


@pytest.mark.parametrize(
    ("pieces", "tokens"), [([], 0), (["a"], 1), (["a", "b"], 2), (["abcdef", "g"], 3), (["x" * 300], 100)]
)
def test_an_incomplete_reply_is_estimated_by_pieces_or_length(pieces: list[str], tokens: int) -> None:
    assert text_tokens(pieces) == tokens


def test_a_reply_is_estimated_at_its_maximum() -> None:
    assert reply_tokens(request("a", max_tokens=7)) == 7
    assert reply_tokens(request("a", max_tokens=None)) == 4096


def test_an_estimate_includes_the_price_of_all_tokens() -> None:
    assert estimate(request("abc"), Price(0.01, 0.5)) == Estimate(pytest.approx(17 * 0.01 + 100 * 0.5), 117)


def test_prices_per_call_and_for_long_requests() -> None:
    price = Price(0.01, 0.5, 2.0, (LongPrice(17, 0.02, 1.0), LongPrice(100, 0.03, 1.0)))

    assert price.cost_usd(Usage(17, 100)) == pytest.approx(17 * 0.01 + 100 * 0.5 + 2.0)
    assert price.cost_usd(Usage(18, 100)) == pytest.approx(18 * 0.02 + 100 * 1.0 + 2.0)
    assert price.cost_usd(Usage(101, 0)) == pytest.approx(101 * 0.03 + 2.0)
    assert estimate(request("abcd"), price).cost_usd == pytest.approx(18 * 0.02 + 100 * 1.0 + 2.0)


def test_a_charge_counts_in_all_budgets_above() -> None:
    run = Budget()
    loop = Budget("loop", run)
    iteration, other = Budget("loop", loop), Budget("loop", loop)

    iteration.charge(Usage(10, 5), 0.25)
    other.charge(Usage(1, 1, exact=False), 0.5)

    assert (iteration.usage, iteration.cost_usd) == (Usage(10, 5), 0.25)
    assert (other.usage, other.cost_usd) == (Usage(1, 1, exact=False), 0.5)
    assert (loop.usage, loop.cost_usd) == (Usage(11, 6, exact=False), 0.75)
    assert (run.usage, run.cost_usd, run.tokens) == (Usage(11, 6, exact=False), 0.75, 17)


def test_an_unknown_price_makes_the_cost_unknown_in_all_budgets_above() -> None:
    run = Budget()
    first, second = Budget("a", run), Budget("b", run)

    first.charge(Usage(1, 1), None)
    second.charge(Usage(1, 1), 0.5)

    assert (first.cost_usd, second.cost_usd, run.cost_usd) == (None, 0.5, None)


@pytest.mark.parametrize(
    ("limit", "spent", "fits"), [(1.0, 0.0, True), (1.0, 1e-6, False), (0.999, 0.0, False), (0.0, 0.0, False)]
)
async def test_a_call_that_fits_exactly_is_made(limit: float, spent: float, fits: bool) -> None:
    budget = Budget(limit_usd=limit)
    budget.charge(Usage(1, 1), spent)

    if fits:
        await budget.reserve(DOLLAR)
        assert budget.reserved_usd == 1.0
    else:
        with pytest.raises(BudgetError):
            await budget.reserve(DOLLAR)
        assert budget.reserved_usd == 0.0


async def test_rounding_errors_refuse_no_call() -> None:
    budget = Budget(limit_usd=0.3)
    budget.charge(Usage(1, 1), 0.1)

    await budget.reserve(Estimate(0.2, 1))

    assert 0.1 + 0.2 > 0.3


async def test_a_free_call_fits_an_empty_budget() -> None:
    await Budget(limit_usd=0.0).reserve(Estimate(0.0, 10**6))


@pytest.mark.parametrize(
    ("limits", "path", "fix", "message"),
    [
        (
            {"limit_usd": 0.5},
            "",
            "raise_budget:budget_usd",
            "budget of the run … $0.50 of $0.50 … $1.00",
        ),
        (
            {"limit_tokens": 9},
            "",
            "raise_budget:budget_tokens",
            "budget of the run … 9 of 9 tokens … 10 tokens",
        ),
        (
            {"limit_usd": 0.5, "title": "Refine"},
            "outer[1].x",
            "raise_budget:outer[1].x.budget_usd",
            'budget of the loop "Refine" … $0.50 of $0.50 … $1.00',
        ),
    ],
)
async def test_a_refusal_names_the_budget_the_rest_and_the_remedy(
    limits: dict[str, Any], path: str, fix: str, message: str
) -> None:
    with pytest.raises(BudgetError) as caught:
        await Budget(path, Budget(), **limits).reserve(DOLLAR)

    assert mentions(caught.value.message, message), caught.value.message
    assert (caught.value.path, caught.value.fix) == (path, fix)
    assert mentions(caught.value.remedy, "Raise the budget … 'Max tokens'")


async def test_an_exceeded_budget_has_nothing_left() -> None:
    budget = Budget(limit_usd=1.0)
    budget.charge(Usage(1, 1), 2.5)

    with pytest.raises(BudgetError, match=r"\$0 of \$1\.00 are left"):
        await budget.reserve(DOLLAR)


async def test_the_budget_of_a_run_limits_its_loops() -> None:
    run = Budget(limit_usd=0.5)
    inside = Budget("loop", Budget("loop", run, limit_usd=100.0))

    with pytest.raises(BudgetError) as caught:
        await inside.reserve(DOLLAR)

    assert caught.value.path == ""
    assert (inside.calls_in_flight, run.calls_in_flight) == (0, 0)


def test_a_budget_is_limited_if_one_above_it_is() -> None:
    assert Budget("inside", Budget(limit_tokens=5)).limited
    assert Budget("inside", Budget(), limit_usd=0.0).limited
    assert not Budget("inside", Budget()).limited


async def test_a_call_waits_for_reservations_of_another() -> None:
    run = Budget(limit_usd=1.5)
    await run.reserve(DOLLAR)
    waiting = asyncio.create_task(run.reserve(DOLLAR))
    await turn()
    assert not waiting.done()

    run.charge(Usage(1, 1), 0.25)
    run.release(DOLLAR)

    await waiting
    assert (run.calls_in_flight, run.reserved_usd, run.reserved_tokens) == (1, 1.0, 10)


async def test_a_call_that_does_not_fit_after_waiting_is_refused() -> None:
    run = Budget(limit_usd=1.5)
    await run.reserve(DOLLAR)
    waiting = asyncio.create_task(run.reserve(DOLLAR))
    await turn()

    run.charge(Usage(1, 1), 0.75)
    run.release(DOLLAR)

    with pytest.raises(BudgetError, match=r"\$0\.75 of \$1\.50 are left"):
        await waiting
    assert run.calls_in_flight == 0


async def test_calls_in_different_loops_wait_in_order_for_the_budget_of_the_run() -> None:
    run = Budget(limit_tokens=10)
    loops = [Budget(f"loop{number}", run) for number in range(4)]
    order: list[int] = []

    async def call(number: int) -> None:
        await loops[number].reserve(Estimate(0.0, 10))
        order.append(number)
        await turn()
        loops[number].release(Estimate(0.0, 10))

    await asyncio.gather(*(call(number) for number in range(4)))

    assert order == [0, 1, 2, 3]
    assert (run.calls_in_flight, run.reserved_tokens) == (0, 0)


async def test_a_small_call_overtakes_a_waiting_one() -> None:
    run = Budget(limit_usd=1.5)
    await run.reserve(DOLLAR)
    waiting = asyncio.create_task(run.reserve(DOLLAR))
    await turn()

    await run.reserve(Estimate(0.5, 1))

    assert not waiting.done()
    waiting.cancel()
    await asyncio.wait([waiting])


async def test_a_cancelled_waiting_call_blocks_no_other() -> None:
    run = Budget(limit_usd=1.0)
    await run.reserve(DOLLAR)
    stopped, waiting = asyncio.create_task(run.reserve(DOLLAR)), asyncio.create_task(run.reserve(DOLLAR))
    await turn()
    stopped.cancel()
    await turn()

    run.release(DOLLAR)
    await waiting

    assert stopped.cancelled()
    assert run.calls_in_flight == 1


async def test_nothing_is_reserved_without_calls_in_flight() -> None:
    run = Budget(limit_usd=10.0)
    parts = [
        Estimate(0.1, 1),
        Estimate(0.2, 1),
        Estimate(0.3, 1),
    ]  # whose sum, taken apart again, leaves something over
    for part in parts:
        await run.reserve(part)
    for part in parts:
        run.release(part)

    assert run.reserved_usd == 0.0
    assert run.reserved_tokens == 0


def test_a_budget_warning_is_returned_once_for_each_budget() -> None:
    run = Budget(limit_tokens=100)
    loop = Budget("loop", run, limit_usd=1.0)

    loop.charge(Usage(79, 0), 0.79)
    assert loop.new_warnings() == []
    loop.charge(Usage(1, 0), 0.01)
    warnings = loop.new_warnings()

    assert [(budget.path, unit, spent, limit) for budget, unit, spent, limit in warnings] == [
        ("loop", "usd", pytest.approx(0.8), 1.0),
        ("", "tokens", 80, 100),
    ]
    loop.charge(Usage(20, 0), 0.2)
    assert loop.new_warnings() == []


calls = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 50), st.floats(0, 1), st.integers(0, 3)), min_size=1, max_size=12
)


@examples(60)
@given(calls, st.integers(0, 120), st.integers(0, 80))
def test_parallel_calls_never_exceed_a_budget(
    made: list[tuple[int, int, float, int]], run_limit: int, loop_limit: int
) -> None:
    """Each call: the loop that makes it, what it may take at most, which part of that it takes, how long it lasts."""
    run = Budget(limit_tokens=run_limit)
    loops = [Budget(f"loop{number}", run, limit_tokens=loop_limit) for number in range(3)]
    refused: list[int] = []

    async def call(loop: Budget, most: int, part: float, turns: int) -> None:
        needed = Estimate(0.0, most)
        try:
            await loop.reserve(needed)
        except BudgetError:
            refused.append(most)
            return
        for _ in range(turns):
            await asyncio.sleep(0)
        loop.charge(Usage(0, int(most * part)), 0.0)
        loop.release(needed)

    async def all_of_them() -> None:
        await asyncio.wait_for(asyncio.gather(*(call(loops[where], *how) for where, *how in made)), 10)

    asyncio.run(all_of_them())

    assert run.tokens <= run_limit
    assert all(loop.tokens <= loop_limit for loop in loops)
    assert run.calls_in_flight == run.reserved_tokens == 0
    assert all(most > 0 for most in refused)
