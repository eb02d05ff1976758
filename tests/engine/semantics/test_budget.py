"""The budget of a run: a call that does not fit is not made. A reply of ten tokens costs ten dollars here."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from engine.events import BudgetWarning, NodeStarted
from engine.models.protocol import Usage
from tests.engine.semantics.documents import Part, entry, flow, judge, llm, part, result
from tests.engine.semantics.kit import play, settle
from tests.engine.semantics.models import DOLLAR_A_TOKEN_OUT, TEN_OUT, Answer, Call, FunctionModel, Said, numbered


def _dear(answer: Answer | Said = numbered, usage: Usage = TEN_OUT) -> FunctionModel:
    return FunctionModel(answer, price=DOLLAR_A_TOKEN_OUT, usage=usage)


def _ten(node_id: str, prompt: str = "{{input}}", **config: Any) -> Part:
    """A model node whose call is estimated at ten dollars at most."""
    return llm(node_id, prompt, max_tokens=10, **config)


def _row(*names: str, **settings: Any) -> Any:
    chain = " -> ".join(names)
    return flow(entry(), *(_ten(name) for name in names), result(), edges=f"text -> {chain} -> out", settings=settings)


async def test_a_call_that_does_not_fit_the_budget_is_not_made() -> None:
    played = await play(_row("a", "b", "c", budget_usd=25), _dear(), ends="failed")

    assert played.model.paths == ["a", "b"]
    assert played.result.cost_usd == 20
    assert played.result.node == "c"
    assert "budget" in played.result.error.lower()
    assert played.result.remedy


async def test_a_call_that_just_fits_is_made() -> None:
    assert (await play(_row("a", "b", budget_usd=20), _dear())).result.cost_usd == 20


async def test_unused_reserve_of_a_call_is_available_to_the_next() -> None:
    played = await play(_row("a", "b", "c", budget_usd=14), _dear(usage=Usage(0, 2)))

    assert played.result.cost_usd == 6


async def test_a_call_that_exceeds_its_estimate_leaves_less_for_the_next() -> None:
    played = await play(_row("a", "b", budget_usd=25), _dear(usage=Usage(0, 20)), ends="failed")

    assert played.model.paths == ["a"]


async def test_run_options_override_the_budget_of_the_document() -> None:
    assert len((await play(_row("a", "b", budget_usd=5), _dear(), budget_usd=100)).model.calls) == 2
    assert (await play(_row("a", "b", budget_usd=100), _dear(), budget_usd=5, ends="failed")).model.calls == []


async def test_a_budget_of_zero_allows_free_calls() -> None:
    assert (await play(_row("a", budget_usd=0), "free")).out == "free"
    assert (await play(_row("a", budget_usd=0), _dear(), ends="failed")).model.calls == []


async def test_tokens_are_a_budget_too() -> None:
    nodes = [llm(name, max_tokens=400) for name in "abc"]
    workflow = flow(entry(), *nodes, result(), edges="text -> a -> b -> c -> out", settings={"budget_tokens": 1000})

    played = await play(workflow, FunctionModel(numbered, usage=Usage(10, 400)), ends="failed")

    assert played.model.paths == ["a", "b"]
    assert played.result.usage == Usage(20, 800)
    assert "token" in played.result.error.lower()


async def test_prompt_tokens_count_against_the_budget_before_the_call() -> None:
    workflow = flow(
        entry(), llm("a", max_tokens=1), result(), edges="text -> a -> out", settings={"budget_tokens": 1000}
    )

    played = await play(workflow, "x", {"text": "many words " * 5000}, ends="failed")

    assert played.model.calls == []


async def _at_leisure(call: Call) -> str:
    """A reply that arrives after everything else that can happen."""
    await settle()
    return call.node


@pytest.mark.parametrize("settings", [{"budget_usd": 15}, {"budget_usd": 19.99}])
async def test_parallel_calls_cannot_exceed_the_budget_together(settings: dict[str, Any]) -> None:
    workflow = flow(
        entry(), _ten("a"), _ten("b"), result(), edges="text -> a -> out\ntext -> b -> out", settings=settings
    )

    played = await play(workflow, _dear(_at_leisure), ends="failed")

    assert len(played.model.calls) == 1
    assert played.result.cost_usd is not None
    assert played.result.cost_usd <= 10


async def test_parallel_calls_that_fit_together_run_together() -> None:
    both = asyncio.Barrier(2)

    async def answer(_call: Any) -> str:
        await both.wait()
        return "x"

    workflow = flow(
        entry(), _ten("a"), _ten("b"), result(), edges="text -> a -> out\ntext -> b -> out", settings={"budget_usd": 20}
    )

    assert (await play(workflow, _dear(answer))).result.cost_usd == 20


async def test_parallel_calls_cannot_exceed_the_token_budget_together() -> None:
    nodes = [llm(name, max_tokens=400) for name in "ab"]
    workflow = flow(
        entry(), *nodes, result(), edges="text -> a -> out\ntext -> b -> out", settings={"budget_tokens": 600}
    )

    played = await play(workflow, FunctionModel(_at_leisure, usage=Usage(10, 400)), ends="failed")

    assert len(played.model.calls) == 1


async def test_a_money_budget_with_a_model_of_unknown_price_does_not_start() -> None:
    played = await play(_row("a", budget_usd=5), FunctionModel("x", price=None), ends="failed")

    assert played.model.calls == []
    assert played.of(NodeStarted) == []
    assert "fake/model" in played.result.error
    assert "price" in played.result.remedy


@pytest.mark.parametrize(
    ("settings", "more"), [({"allow_unknown_price": True}, {}), ({}, {"allow_unknown_price": True})]
)
async def test_an_unknown_price_can_be_allowed(settings: dict[str, Any], more: dict[str, Any]) -> None:
    workflow = _row("a", "b", budget_usd=5, **settings)

    played = await play(workflow, FunctionModel("x", price=None), **more)

    assert len(played.model.calls) == 2
    assert played.result.cost_usd is None


async def test_a_price_set_by_the_user_counts() -> None:
    price = {"input_usd_per_million": 0, "output_usd_per_million": 1_000_000}
    workflow = _row("a", "b", "c", budget_usd=25, model="some/model", prices={"some/model": price})

    played = await play(workflow, FunctionModel("x", name="some/model", price=None, usage=TEN_OUT), ends="failed")

    assert len(played.model.calls) == 2
    assert played.result.cost_usd == 20


async def test_an_unknown_price_does_not_matter_without_a_money_budget() -> None:
    assert (await play(_row("a"), FunctionModel("x", price=None))).out == "x"


async def test_a_nearly_used_up_budget_warns_once() -> None:
    played = await play(_row(*"abcdefghij", budget_usd=100), _dear())

    (warning,) = played.of(BudgetWarning)
    assert (warning.unit, warning.limit, warning.path) == ("usd", 100, "")
    assert 50 <= warning.spent < 100


async def test_a_barely_used_budget_does_not_warn() -> None:
    assert (await play(_row("a", budget_usd=1000), _dear())).of(BudgetWarning) == []


_LARGE_SCHEMA: dict[str, Any] = {"type": "object", "description": "x" * 79_000}
_LARGE = "many words " * 1000


@pytest.mark.parametrize(
    "node",
    [
        llm("a", max_tokens=10, reply_schema=_LARGE_SCHEMA),
        part("a", "agent", prompt="{{input}}", max_tokens=10, reply_schema=_LARGE_SCHEMA, retries=0),
        part("a", "agent", prompt="x", max_tokens=10, turn_strategy="single_call", reply_schema=_LARGE_SCHEMA),
        llm("a", max_tokens=10, system=_LARGE),
        judge("a", criteria=_LARGE, max_tokens=10),
    ],
)
async def test_a_call_whose_request_is_larger_than_the_budget_is_not_made(node: Part) -> None:
    edges = "text -> a.input\na.done -> out" if node.type == "router" else "text -> a.input\na.output -> out"
    workflow = flow(entry(), node, result(), edges=edges, settings={"budget_tokens": 400})

    played = await play(workflow, "{}", ends="failed")

    assert played.model.calls == []
    assert "400 tokens" in played.result.error


async def test_without_max_tokens_a_reply_is_estimated_at_the_models_limit() -> None:
    workflow = flow(
        entry(), llm("a", max_tokens=None), result(), edges="text -> a -> out", settings={"budget_tokens": 9000}
    )

    limited = await play(workflow, "x")
    unlimited = await play(workflow.model_copy(update={"settings": {}}), "x")

    assert limited.model.calls[0].request.max_tokens == 4096
    assert unlimited.model.calls[0].request.max_tokens is None


async def test_asking_again_charges_the_unreadable_reply() -> None:
    schema = {"type": "object", "required": ["a"]}
    workflow = flow(
        entry(),
        llm("a", max_tokens=10, reply_schema=schema),
        result(),
        edges="text -> a -> out",
        settings={"budget_tokens": 400},
    )

    played = await play(workflow, FunctionModel(_LARGE, usage=Usage(10, 10)), ends="failed")

    assert len(played.model.calls) == 1
    assert "400 tokens" in played.result.error
