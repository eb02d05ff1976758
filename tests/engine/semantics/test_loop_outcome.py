"""Outputs, conditions and retries of loops."""

from __future__ import annotations

import re
from typing import Any

import pytest

from engine.events import LoopIterationStarted, NodeCompleted, NodeRetrying
from engine.models.protocol import ModelError, ModelErrorKind, Usage
from tests.engine.semantics.documents import around, entry, flow, formula, judge, leave, llm, loop, result, transform
from tests.engine.semantics.kit import play
from tests.engine.semantics.models import DOLLAR_A_TOKEN_OUT, TEN_OUT, FunctionModel, by_node, numbered, verdict

_OVERLOADED = ModelError(ModelErrorKind.SERVER, "The server is overloaded.")
_WRONG_KEY = ModelError(ModelErrorKind.AUTHENTICATION, "The key is wrong.")


def _drafts(**config: Any) -> Any:
    return around(llm("draft"), edges="loop -> draft -> exit", **{"max_iterations": 3, **config})


async def test_a_loops_ports_report_what_happened() -> None:
    workflow = flow(
        entry(),
        loop(max_iterations=5, exit_condition="evaluator"),
        llm("draft"),
        judge(),
        leave(),
        *(result(port) for port in ("output", "iterations", "count", "exit_reason", "converged", "out")),
        edges="""
            text -> loop -> draft -> check
            check.done -> exit -> out
            loop.output -> output
            loop.iterations -> iterations
            loop.count -> count
            loop.exit_reason -> exit_reason
            loop.converged -> converged
        """,
    )

    played = await play(workflow, by_node(draft=numbered, check=[verdict("continue", "more"), verdict("done", "fine")]))

    outputs = played.result.outputs
    assert outputs["out"] == outputs["output"] == "draft 1"
    assert (outputs["count"], outputs["exit_reason"], outputs["converged"]) == (2, "evaluator_done", True)
    first, second = outputs["iterations"]  # type: ignore[misc]
    assert (first["index"], first["input"], first["result"], first["feedback"]) == (0, "seed", "draft 0", "draft 0")
    assert (first["branch"], first["reason"]) == ("continue", "more")
    assert (second["index"], second["input"], second["result"]) == (1, "draft 0", "draft 1")
    assert (second["branch"], second["reason"]) == ("done", "fine")
    assert {"score", "similarity", "cost_usd", "duration_s"} <= set(first)


async def test_converged_is_false_for_count_budget_and_time() -> None:
    workflow = flow(
        entry(),
        loop(max_iterations=2),
        llm("draft"),
        leave(),
        result(),
        result("converged"),
        edges="text -> loop -> draft -> exit -> out\nloop.converged -> converged",
    )

    assert (await play(workflow, numbered)).result.outputs == {"out": "draft 1", "converged": False}


async def test_tokens_and_price_are_counted_by_iteration_loop_and_run() -> None:
    workflow = flow(
        entry(),
        llm("before"),
        loop(max_iterations=2),
        llm("draft"),
        llm("polish"),
        leave(),
        result(),
        edges="text -> before -> loop -> draft -> polish -> exit -> out",
    )

    played = await play(workflow, FunctionModel(numbered, price=DOLLAR_A_TOKEN_OUT, usage=TEN_OUT))

    assert [record.cost_usd for record in played.loop.iterations] == [20, 20]
    assert [record.usage for record in played.loop.iterations] == [Usage(0, 20), Usage(0, 20)]
    assert (played.loop.cost_usd, played.result.cost_usd) == (40, 50)
    assert played.result.usage == Usage(0, 50)


async def test_an_unknown_price_in_one_iteration_is_unknown_for_the_loop() -> None:
    played = await play(_drafts(), FunctionModel(numbered, price=None))

    assert played.loop.cost_usd is None
    assert [record.cost_usd for record in played.loop.iterations] == [None] * 3


async def test_output_mode_last_iteration_returns_the_output_of_every_node() -> None:
    workflow = around(
        llm("draft"),
        llm("critique"),
        judge(),
        edges="loop -> draft -> critique -> check\ncheck.done -> exit",
        exit_condition="evaluator",
        output_mode="last_iteration",
    )

    played = await play(
        workflow, by_node(draft=numbered, critique=numbered, check=[verdict("continue"), verdict("done", "fine")])
    )

    assert played.out == {
        "draft": "draft 1",
        "critique": "critique 1",
        "check": {"selected_branch": "done", "value": "critique 1", "reason": "fine"},
    }


async def test_output_mode_all_iterations_returns_results_under_headings() -> None:
    played = await play(_drafts(output_mode="all_iterations"), numbered)

    pieces = re.split(r"\s*^--- iteration (\d+) ---$\s*", str(played.out), flags=re.MULTILINE)
    assert pieces == ["", "1", "draft 0", "2", "draft 1", "3", "draft 2"]


async def test_output_mode_all_iterations_returns_a_list_for_json() -> None:
    workflow = around(
        formula("next", "{'n': loop.index}"),
        edges="loop -> next -> exit",
        max_iterations=3,
        output_mode="all_iterations",
    )

    assert (await play(workflow)).out == [{"n": 0}, {"n": 1}, {"n": 2}]


async def test_the_output_mode_changes_no_iteration() -> None:
    for mode in ("final", "last_iteration", "all_iterations"):
        played = await play(_drafts(output_mode=mode), numbered)
        assert played.iteration_inputs == ["seed", "draft 0", "draft 1"]


@pytest.mark.parametrize(("text", "runs"), [("long enough", 3), ("no", 0)])
async def test_a_condition_on_the_input_decides_whether_a_loop_runs(text: str, runs: int) -> None:
    workflow = flow(
        entry(),
        loop(max_iterations=3, condition="size(input) > 5"),
        llm("draft"),
        leave(),
        result(),
        result("count"),
        edges="text -> loop -> draft -> exit -> out\nloop.count -> count",
    )

    played = await play(workflow, numbered, {"text": text})

    assert played.result.outputs == {"out": "draft 2" if runs else text, "count": runs}
    assert len(played.model.calls) == runs
    assert played.loop.iterations_run == runs


async def test_a_skipped_loop_passes_json_through_unchanged() -> None:
    workflow = flow(
        entry(type="json"),
        loop(condition="input.go"),
        llm("draft"),
        leave(),
        result(),
        edges="text -> loop -> draft -> exit -> out",
    )

    assert (await play(workflow, "x", {"text": {"go": False, "n": 1}})).out == {"go": False, "n": 1}


@pytest.mark.parametrize("condition", ["size(input)", "input.nothing", "1 / 0 > 1"])
async def test_a_failing_condition_is_an_error_and_never_false(condition: str) -> None:
    played = await play(_drafts(condition=condition), numbered, ends="failed")

    assert played.model.calls == []
    assert played.result.node == "loop"


async def test_retries_restart_the_whole_loop() -> None:
    workflow = _drafts(retries=1, retry_delay_s=0)

    played = await play(workflow, by_node(draft=["one", _OVERLOADED, "two", "three", "four"]))

    assert [event.index for event in played.of(LoopIterationStarted)] == [0, 1, 0, 1, 2]
    assert played.model.prompts("draft") == ["seed", "one", "seed", "two", "three"]
    assert played.results == ["two", "three", "four"]
    assert played.out == "four"
    assert len(played.of(NodeRetrying, "loop")) == 1


async def test_a_loop_that_fails_more_often_than_its_retries_fails() -> None:
    played = await play(_drafts(retries=1, retry_delay_s=0), by_node(draft=["one", _OVERLOADED]), ends="failed")

    assert played.loop.exit_reason == "error"
    assert "overloaded" in played.result.error


async def test_the_cost_of_a_failed_attempt_is_counted() -> None:
    workflow = _drafts(retries=1, retry_delay_s=0, max_iterations=2)
    model = FunctionModel(by_node(draft=["one", _OVERLOADED, "two", "three"]), price=DOLLAR_A_TOKEN_OUT, usage=TEN_OUT)

    assert (await play(workflow, model)).result.cost_usd == 30


async def test_on_error_continue_outputs_the_given_value() -> None:
    workflow = _drafts(on_error="continue", error_value="sorry")

    played = await play(workflow, by_node(draft=["one", _WRONG_KEY]))

    assert played.out == "sorry"
    assert played.loop.exit_reason == "error"


async def test_on_error_branch_outputs_the_message_at_the_error_port() -> None:
    workflow = flow(
        entry(),
        loop(on_error="branch"),
        llm("draft"),
        leave(),
        result(),
        transform("excuse", "sorry: {{input}}"),
        result("bad"),
        edges="text -> loop -> draft -> exit -> out\nloop.error -> excuse -> bad",
    )

    played = await play(workflow, _WRONG_KEY)

    assert list(played.result.outputs) == ["bad"]
    assert "key is wrong" in str(played.result.outputs["bad"])


async def test_a_failure_in_a_body_can_be_handled_without_ending_the_loop() -> None:
    workflow = around(
        llm("draft", on_error="continue", error_value="nothing"), edges="loop -> draft -> exit", max_iterations=3
    )

    played = await play(workflow, by_node(draft=["one", _WRONG_KEY, "three"]))

    assert played.results == ["one", "nothing", "three"]
    assert played.of(NodeCompleted, "loop[1].draft")[0].error
