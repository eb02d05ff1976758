"""A budget that is used up inside a loop. A reply of ten tokens costs ten dollars here."""

from __future__ import annotations

from typing import Any

import pytest

from engine.events import BudgetWarning
from engine.models.protocol import Usage
from tests.engine.semantics.documents import Part, around, entry, flow, leave, llm, loop, result, rules, transform
from tests.engine.semantics.kit import Played, play, settle
from tests.engine.semantics.models import (
    DOLLAR_A_TOKEN_OUT,
    TEN_OUT,
    Answer,
    Call,
    FunctionModel,
    Said,
    by_node,
    numbered,
)


def _dear(answer: Answer | Said = numbered, usage: Usage = TEN_OUT) -> FunctionModel:
    return FunctionModel(answer, price=DOLLAR_A_TOKEN_OUT, usage=usage)


def _ten(node_id: str, prompt: str = "{{input}}", **config: Any) -> Part:
    """A model node whose call is estimated at ten dollars at most."""
    return llm(node_id, prompt, max_tokens=10, **config)


def _in_loop(*, settings: dict[str, Any] | None = None, **config: Any) -> Any:
    return flow(
        entry(),
        loop(max_iterations=9, **config),
        _ten("draft"),
        leave(),
        result(),
        edges="text -> loop -> draft -> exit -> out",
        settings=settings,
    )


def _stopped_by_budget(played: Played, *, whole: int) -> None:
    assert played.loop.exit_reason == "budget"
    assert played.loop.converged is False
    assert played.loop.iterations_run == whole
    assert len(played.results) == whole


@pytest.mark.parametrize(
    "workflow", [_in_loop(budget_usd=25), _in_loop(settings={"budget_usd": 25})], ids=["loop", "run"]
)
async def test_a_used_up_budget_returns_the_last_whole_iteration(workflow: Any) -> None:
    played = await play(workflow, _dear())

    _stopped_by_budget(played, whole=2)
    assert played.out == "draft 1"
    assert played.loop.returned == 1


async def test_a_budget_used_up_within_an_iteration_returns_the_iteration_before() -> None:
    workflow = flow(
        entry(),
        loop(max_iterations=9, budget_usd=35),
        _ten("draft"),
        _ten("polish"),
        leave(),
        result(),
        edges="text -> loop -> draft -> polish -> exit -> out",
    )

    played = await play(workflow, _dear())

    assert played.model.paths == ["loop[0].draft", "loop[0].polish", "loop[1].draft"]
    _stopped_by_budget(played, whole=1)
    assert played.out == "polish 0"
    assert played.loop.cost_usd == 30


async def test_a_used_up_budget_can_return_the_best_iteration() -> None:
    workflow = _in_loop(budget_usd=35, on_budget="return_best", score="size(output)")

    played = await play(workflow, _dear(by_node(draft=["aa", "aaaa", "a"])))

    _stopped_by_budget(played, whole=3)
    assert (played.out, played.loop.returned) == ("aaaa", 1)


async def test_a_used_up_budget_can_fail_the_loop() -> None:
    played = await play(_in_loop(budget_usd=25, on_budget="fail"), _dear(), ends="failed")

    assert played.loop.exit_reason == "budget"
    assert "budget" in played.result.error.lower()


async def test_a_budget_used_up_before_a_whole_iteration_fails_the_loop() -> None:
    played = await play(_in_loop(budget_usd=5), _dear(), ends="failed")

    assert played.model.calls == []
    assert "budget" in played.result.error.lower()


async def test_the_budget_of_a_loop_covers_that_loop_only() -> None:
    workflow = flow(
        entry(),
        _ten("before"),
        loop(max_iterations=2, budget_usd=20),
        _ten("draft"),
        leave(),
        _ten("after"),
        result(),
        edges="text -> before -> loop -> draft -> exit -> after -> out",
    )

    played = await play(workflow, _dear())

    assert played.loop.exit_reason == "max_iterations"
    assert played.loop.cost_usd == 20
    assert played.result.cost_usd == 40


async def test_the_budget_of_an_outer_loop_covers_the_inner_loop() -> None:
    workflow = flow(
        entry(),
        loop("outer", max_iterations=3, budget_usd=35),
        loop("inner", max_iterations=2),
        _ten("draft"),
        leave("inner_exit", "inner"),
        leave("outer_exit", "outer"),
        result(),
        edges="text -> outer -> inner -> draft -> inner_exit -> outer_exit -> out",
    )

    played = await play(workflow, _dear())

    assert len(played.model.calls) == 3
    assert played.result.cost_usd == 30
    assert played.result.loops["outer"].exit_reason == "budget"


async def test_two_parallel_calls_in_a_body_use_up_the_budget() -> None:
    workflow = around(
        _ten("a"),
        _ten("b"),
        transform("join", "{{left}} {{right}}"),
        edges="loop -> a -> join.left\nloop -> b -> join.right\njoin -> exit",
        max_iterations=9,
        budget_usd=35,
    )

    async def answer(call: Call) -> str:
        await settle()
        return numbered(call)

    played = await play(workflow, _dear(answer))

    _stopped_by_budget(played, whole=1)
    assert len(played.model.calls) == 3
    assert played.loop.cost_usd == 30
    assert played.out == "a 0 b 0"


async def test_a_loop_without_model_calls_needs_no_budget() -> None:
    workflow = around(
        rules("pick", {"done": "size(input) > 6", "continue": "else"}),
        transform("more", "{{input}}+"),
        edges="loop -> pick\npick.done -> exit\npick.continue -> more",
        exit_condition="evaluator",
        budget_usd=0,
    )

    assert (await play(workflow)).out == "seed+++"


async def test_a_money_budget_of_a_loop_with_a_model_of_unknown_price_does_not_start() -> None:
    played = await play(_in_loop(budget_usd=25), FunctionModel("x", price=None), ends="failed")

    assert played.model.calls == []
    assert "price" in played.result.remedy
    assert (await play(_in_loop(budget_usd=25), FunctionModel("x", price=None), allow_unknown_price=True)).out == "x"


async def test_a_nearly_used_up_loop_budget_warns_with_the_loops_path() -> None:
    played = await play(_in_loop(budget_usd=100), _dear())

    (warning,) = played.of(BudgetWarning)
    assert (warning.path, warning.unit, warning.limit) == ("loop", "usd", 100)
