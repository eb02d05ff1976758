"""Retries: attempts, delays, timeouts and errors. Delays are in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest

from engine.errors import EngineError
from engine.events import AnyEvent, NodeRetrying
from engine.models.protocol import ModelError, ModelErrorKind
from engine.nodes.spec import NodeConfig, NodeError, Outputs
from engine.runner.budget import BudgetError
from engine.runner.event_log import EventLog
from engine.runner.retry import NodeFailure, run_attempts
from engine.tools.tool import ToolError
from tests.engine.semantics.virtual_time import virtually
from tests.wording import mentions

PASSES = NodeError("It was busy.", "Wait.", retryable=True)


def ignore(_event: AnyEvent) -> None:
    """Reduce nothing."""


class Tried:
    """A node whose attempts end one after the other as a list says: an error, a number of seconds, or outputs."""

    def __init__(self, *ends: Any, timeout_s: float | None = None, **config: Any) -> None:
        self.ends = list(ends)
        self.starts: list[float] = []
        self.event_log = EventLog("run1", ignore)
        self.error: BaseException | None = None
        self.outputs: Outputs | None = None
        scope: Any = SimpleNamespace(
            run_context=SimpleNamespace(event_log=self.event_log, is_stopping=False, replay=None, model_warnings={})
        )
        settings = NodeConfig.model_validate({"retry_delay_s": 0.0, **config})
        virtually(self._run(run_attempts(scope, "loop[1].draft", settings, self._attempt, timeout_s)))

    async def _run(self, attempts: Awaitable[Outputs]) -> None:
        try:
            self.outputs = await attempts
        except BaseException as error:
            self.error = error

    async def _attempt(self) -> Outputs:
        self.starts.append(asyncio.get_running_loop().time())
        end = self.ends.pop(0)
        if isinstance(end, BaseException):
            raise end
        if isinstance(end, (int, float)):
            await asyncio.sleep(end)
            return {"output": "late"}
        return end

    @property
    def retries(self) -> list[NodeRetrying]:
        return [event for event in self.event_log.events if isinstance(event, NodeRetrying)]

    @property
    def delays(self) -> list[float]:
        return [retry.delay_s for retry in self.retries]


def test_a_successful_attempt_is_not_repeated() -> None:
    tried = Tried({"output": 1}, retries=3)

    assert (tried.outputs, len(tried.starts), tried.event_log.events) == ({"output": 1}, 1, [])


@pytest.mark.parametrize(
    ("failure", "attempts"),
    [
        (PASSES, 3),
        (NodeError("No.", retryable=False), 1),
        (ToolError("Busy.", retryable=True), 3),
        (ToolError("No."), 1),
        (NodeFailure("loop[1].draft", "Draft", NodeError("No.")), 3),
        (EngineError("No."), 1),
        (BudgetError("Spent.", "", ""), 1),
        *[(ModelError(kind, "Failed."), 3 if ModelError(kind, "").retryable else 1) for kind in ModelErrorKind],
        (ZeroDivisionError("x"), 1),
        (TimeoutError("x"), 1),
    ],
    ids=lambda value: getattr(value, "kind", type(value).__name__) if isinstance(value, Exception) else str(value),
)
def test_only_retryable_failures_are_retried(failure: Exception, attempts: int) -> None:
    tried = Tried(failure, failure, failure, retries=2)

    assert len(tried.starts) == attempts
    assert len(tried.retries) == attempts - 1
    assert isinstance(tried.error, EngineError)


def test_the_last_failure_is_raised() -> None:
    last = NodeError("Still busy.", retryable=True)

    assert Tried(PASSES, last, retries=1).error is last


def test_a_retry_reports_its_number_delay_and_error() -> None:
    tried = Tried(PASSES, PASSES, {"output": 1}, retries=5)

    assert tried.outputs == {"output": 1}
    assert [(event.path, event.attempt, event.delay_s, event.error) for event in tried.retries] == [
        ("loop[1].draft", 1, 0.0, "It was busy. Wait."),
        ("loop[1].draft", 2, 0.0, "It was busy. Wait."),
    ]


def test_the_delay_doubles_with_jitter() -> None:
    tried = Tried(*[PASSES] * 6, {"output": 1}, retries=6, retry_delay_s=2.0)

    assert all(0.75 * 2 * 2**n <= delay <= 1.25 * 2 * 2**n for n, delay in enumerate(tried.delays))
    waited = [after - before for before, after in zip(tried.starts, tried.starts[1:], strict=False)]
    assert waited == pytest.approx(tried.delays)


def test_delays_differ_between_nodes() -> None:
    delays = {Tried(PASSES, {}, retries=1, retry_delay_s=2.0).delays[0] for _ in range(5)}

    assert len(delays) > 1


@pytest.mark.parametrize(
    ("asked", "first_s", "least", "most"), [(7.0, 0.0, 7, 7), (7.0, 100.0, 75, 125), (0.0, 2.0, 1.5, 2.5)]
)
def test_the_delay_is_at_least_what_a_provider_asks_for(
    asked: float, first_s: float, least: float, most: float
) -> None:
    busy = ModelError(ModelErrorKind.RATE_LIMIT, "Busy.", retry_after=asked)

    (delay,) = Tried(busy, {}, retries=1, retry_delay_s=first_s).delays

    assert least <= delay <= most


def test_a_delay_is_at_most_an_hour() -> None:
    busy = ModelError(ModelErrorKind.RATE_LIMIT, "Busy.", retry_after=10**9)

    assert Tried(busy, {}, retries=1).delays == [3600.0]
    assert Tried(*[PASSES] * 20, {}, retries=20, retry_delay_s=3600.0).delays == [
        pytest.approx(3600.0, rel=0.25),
        *[3600.0] * 19,
    ]


def test_an_attempt_that_exceeds_its_timeout_fails_with_a_remedy() -> None:
    tried = Tried(1000.0, timeout_s=2.5)

    assert isinstance(tried.error, NodeError)
    assert "timeout of 2.5 s" in tried.error.message
    assert tried.error.remedy.startswith("Raise 'Timeout (seconds)'")
    assert tried.error.retryable


def test_every_attempt_has_the_full_timeout() -> None:
    tried = Tried(1000.0, 2.0, timeout_s=2.5, retries=1)

    assert tried.outputs == {"output": "late"}
    assert tried.starts == pytest.approx([0.0, 2.5])


def test_a_timeout_error_of_the_node_itself_is_unexpected() -> None:
    tried = Tried(TimeoutError("socket"), timeout_s=2.5, retries=3)

    assert len(tried.starts) == 1
    assert str(tried.error).startswith("Unexpected error: TimeoutError: socket.")


@pytest.mark.parametrize(
    "foreign", [ZeroDivisionError("by zero"), KeyError("x"), RecursionError("deep"), MemoryError()]
)
def test_a_foreign_error_asks_to_be_reported(foreign: Exception) -> None:
    error = Tried(foreign).error

    assert isinstance(error, NodeError)
    assert error.__cause__ is foreign
    assert type(foreign).__name__ in error.message
    assert mentions(error.remedy, "bug … report it")


def test_a_used_up_budget_is_not_retried() -> None:
    spent = BudgetError("Spent.", "", "loop")

    assert Tried(spent, retries=3).error is spent


@pytest.mark.parametrize("timeout_s", [None, 5.0])
async def test_cancellation_is_never_retried(timeout_s: float | None) -> None:
    event_log = EventLog("run1", ignore)
    scope: Any = SimpleNamespace(
        run_context=SimpleNamespace(event_log=event_log, is_stopping=False, replay=None, model_warnings={})
    )
    started = asyncio.Event()

    async def attempt() -> Outputs:
        started.set()
        await asyncio.Event().wait()
        return {}

    work = asyncio.create_task(_made(scope, attempt, timeout_s))
    await started.wait()
    work.cancel()
    await asyncio.wait([work])

    assert work.cancelled()
    assert event_log.events == []


async def _made(scope: Any, attempt: Callable[[], Awaitable[Outputs]], timeout_s: float | None) -> Outputs:
    return await run_attempts(scope, "draft", NodeConfig.model_validate({"retries": 3}), attempt, timeout_s)
