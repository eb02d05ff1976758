"""Fallback models: which failures switch to the next model, what the run reports, and what it costs."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from engine import Run
from engine.events import NodeCalled, NodeCompleted, NodeFailed, NodeRetrying, RunFailed
from engine.models.protocol import ModelError, ModelErrorKind, Price, Reply, ToolCall, Usage
from engine.runner.run import RunOrigin, prepare
from tests.engine.semantics.agents import agent
from tests.engine.semantics.documents import around, entry, flow, llm, result
from tests.engine.semantics.kit import options, play
from tests.engine.semantics.list_journal import ListJournal
from tests.engine.semantics.models import Call, FakeModels, FunctionModel
from tests.engine.semantics.test_node_settings import ASKING, asking, of_the_asker, says
from tests.engine.store.memory_store import MemoryStore


def failing(kind: ModelErrorKind = ModelErrorKind.AUTHENTICATION, name: str = "first/model") -> FunctionModel:
    return FunctionModel(lambda _call: ModelError(kind, f"{name} says {kind}."), name=name)


def catalog(*models: FunctionModel) -> FakeModels:
    return FakeModels(FunctionModel(says, name="usual/model"), **{model.name: model for model in models})


@pytest.mark.parametrize("kind", ASKING)
async def test_every_node_that_calls_a_model_falls_back(kind: str) -> None:
    first, second = failing(), FunctionModel(says, name="second/model")
    config = {"model": "first/model", "fallback_models": ["second/model"], "retries": 0}

    played = await play(asking(kind, **config), catalog(first, second), store=MemoryStore())

    asked = [call.path for call in of_the_asker(first.calls)]
    assert asked == [call.path for call in of_the_asker(second.calls)]
    for path in asked:
        (completed,) = played.of(NodeCompleted, path)
        assert any("first/model" in warning and "second/model" in warning for warning in completed.warnings)
        assert [call.model for call in completed.calls] == ["second/model"]
        (retry,) = played.of(NodeRetrying, path)
        assert (retry.fallback, retry.delay_s) == ("second/model", 0.0)


@pytest.mark.parametrize(
    ("kind", "calls"),
    [
        (ModelErrorKind.AUTHENTICATION, 1),
        (ModelErrorKind.MISSING_KEY, 1),
        (ModelErrorKind.NOT_FOUND, 1),
        (ModelErrorKind.BAD_REQUEST, 1),
        (ModelErrorKind.CONTEXT_LENGTH, 1),
        (ModelErrorKind.CONTENT_FILTER, 1),
        (ModelErrorKind.UNAVAILABLE, 1),
        (ModelErrorKind.RATE_LIMIT, 3),
        (ModelErrorKind.TIMEOUT, 3),
        (ModelErrorKind.CONNECTION, 3),
        (ModelErrorKind.SERVER, 3),
        (ModelErrorKind.BAD_REPLY, 3),
        (ModelErrorKind.INTERRUPTED, 3),
    ],
)
async def test_a_fallback_follows_the_sensible_retries(kind: ModelErrorKind, calls: int) -> None:
    first, second = failing(kind), FunctionModel(says, name="second/model")
    config = {"model": "first/model", "fallback_models": ["second/model"], "retries": 2, "retry_delay_s": 0}

    played = await play(asking("llm", **config), catalog(first, second))

    assert (len(first.calls), len(second.calls), played.out) == (calls, 1, "an answer")
    assert [event.fallback for event in played.of(NodeRetrying)] == [*[""] * (calls - 1), "second/model"]
    assert [event.attempt for event in played.of(NodeRetrying)] == list(range(1, calls + 1))


async def test_each_fallback_has_its_retries_and_the_last_failure_is_the_nodes() -> None:
    models = [failing(ModelErrorKind.SERVER, name) for name in ("first/model", "second/model", "third/model")]
    names = [model.name for model in models]
    config = {"model": names[0], "fallback_models": names[1:], "retries": 1, "retry_delay_s": 0}

    played = await play(asking("llm", **config), catalog(*models), ends="failed")

    assert [len(model.calls) for model in models] == [2, 2, 2]
    assert played.of(NodeFailed)[0].error == "third/model says server."
    assert [event.fallback for event in played.of(NodeRetrying)] == ["", "second/model", "", "third/model", ""]


async def test_a_fallback_takes_over_from_a_model_that_hangs() -> None:
    first = FunctionModel(lambda call: _hang(), name="first/model")
    second = FunctionModel(says, name="second/model")
    config = {"model": "first/model", "fallback_models": ["second/model"], "retries": 0, "timeout_s": 0.01}

    played = await play(asking("llm", **config), catalog(first, second))

    assert played.out == "an answer"


async def _hang() -> Any:
    await asyncio.get_running_loop().create_future()


async def test_an_agent_continues_with_the_fallback_where_the_model_failed() -> None:

    def begins(call: Call) -> Any:
        if len(first.calls) == 1:
            return Reply("", tool_calls=(ToolCall("1", "read_file", {"path": "a.txt"}),))
        return ModelError(ModelErrorKind.NOT_FOUND, "It is gone.")

    first = FunctionModel(begins, name="first/model")
    second = FunctionModel("two", name="second/model")
    node = agent("ask", tools=["read_file"], model="first/model", fallback_models=["second/model"])
    workflow = flow(entry(), node, result(), edges="text -> ask -> out")

    played = await play(workflow, catalog(first, second), store=MemoryStore())

    assert played.out == "two"
    assert [event.call.model for event in played.of(NodeCalled)] == ["first/model", "second/model"]
    assert [message.role for message in second.calls[0].request.messages][-2:] == ["assistant", "tool"]


async def test_the_next_execution_starts_with_the_first_model_again() -> None:
    replies = iter([ModelError(ModelErrorKind.NOT_FOUND, "Gone."), "from the first"])
    first = FunctionModel(lambda _call: next(replies), name="first/model")
    second = FunctionModel("from the second", name="second/model")
    draft = llm("draft", model="first/model", fallback_models=["second/model"])

    played = await play(around(draft, edges="loop -> draft -> exit", max_iterations=2), catalog(first, second))

    assert [call.path for call in second.calls] == ["loop[0].draft"]
    assert played.out == "from the first"


async def test_a_used_up_budget_is_no_reason_to_fall_back() -> None:
    first = FunctionModel(says, name="first/model", price=Price(1.0, 1.0))
    second = FunctionModel(says, name="second/model", price=Price(0.0, 0.0))
    config = {"model": "first/model", "fallback_models": ["second/model"]}

    await play(asking("llm", **config), catalog(first, second), ends="failed", budget_usd=0.01)

    assert (first.calls, second.calls) == ([], [])


async def test_a_fallbacks_own_price_counts() -> None:
    first = failing()
    second = FunctionModel(says, name="second/model", price=Price(0.001, 0.002), usage=Usage(10, 5))
    config = {"model": "first/model", "fallback_models": ["second/model"]}

    played = await play(asking("llm", **config), catalog(first, second), budget_usd=10.0)

    assert played.result.cost_usd == pytest.approx(0.02)


async def test_a_money_budget_needs_the_price_of_a_fallback_too() -> None:
    first, second = FunctionModel(says, name="first/model"), FunctionModel(says, name="second/model", price=None)
    config = {"model": "first/model", "fallback_models": ["second/model"]}

    played = await play(asking("llm", **config), catalog(first, second), ends="failed", budget_usd=10.0)

    assert "second/model" in played.of(RunFailed)[0].error
    assert first.calls == []


async def test_a_model_that_replaces_all_others_has_no_fallback() -> None:
    only = failing(name="only/model")
    config = {"model": "first/model", "fallback_models": ["second/model"], "retries": 0}

    await play(asking("llm", **config), catalog(only), ends="failed", model="only/model")

    assert len(only.calls) == 1


async def test_a_cached_reply_of_a_fallback_is_reused() -> None:
    store = MemoryStore()
    first, second = failing(), FunctionModel(says, name="second/model")
    config = {"model": "first/model", "fallback_models": ["second/model"], "cache": "always"}
    workflow = asking("llm", **config)

    await play(workflow, catalog(first, second), store=store)
    again = await play(workflow, catalog(first, second), store=store)

    assert (len(first.calls), len(second.calls), again.out) == (2, 1, "an answer")


async def test_a_call_of_a_fallback_is_not_repeated_on_resume() -> None:
    first = failing()
    replies = iter([Reply("", tool_calls=(ToolCall("1", "read_file", {"path": "a.txt"}),)), "done", "done again"])
    second = FunctionModel(lambda _call: next(replies), name="second/model")
    node = agent("ask", tools=["read_file"], model="first/model", fallback_models=["second/model"])
    workflow = flow(entry(), node, result(), edges="text -> ask -> out")
    events = (await play(workflow, catalog(first, second), store=MemoryStore())).events
    called = next(place for place, event in enumerate(events) if isinstance(event, NodeCalled))
    past = events[: called + 1]

    models = catalog(first, second)
    ready = prepare(workflow, {"text": "seed"}, options(models))
    resumed = Run(ready, RunOrigin(past[0].run_id, ListJournal(), past))
    outcome = await resumed.result()

    assert outcome.outputs == {"out": "done again"}
    assert (len(first.calls), len(second.calls)) == (1, 3)
    events = resumed.events_since(0, 1000)
    completed = next(event for event in events if isinstance(event, NodeCompleted) and event.path == "ask")
    assert any("second/model is used instead" in warning for warning in completed.warnings)


@pytest.mark.parametrize("kind", ASKING)
async def test_a_replys_warnings_are_reported_once_a_run(kind: str) -> None:
    model = FunctionModel(lambda call: Reply(reply_of(call), warnings=("The server refused the seed.",)))

    def reply_of(call: Call) -> str:
        return says(call)

    played = await play(asking(kind), model)

    warnings = [warning for event in played.of(NodeCompleted) for warning in event.warnings]
    assert warnings.count("The server refused the seed.") == 1


async def test_a_replys_warning_survives_a_restart_of_the_loop() -> None:
    failures = [ModelError(ModelErrorKind.AUTHENTICATION, "The key is wrong.")]

    def reply_of(call: Call) -> Any:
        if call.node == "second" and failures:
            return failures.pop()
        return Reply(call.path, warnings=("The server refused the seed.",))

    workflow = around(
        llm("first"), llm("second"), edges="loop -> first -> second -> exit", max_iterations=2, retries=1,
        retry_delay_s=0,
    )  # fmt: skip

    played = await play(workflow, reply_of)

    assert played.result.warnings == ("loop[0].first: The server refused the seed.",)
