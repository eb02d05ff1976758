"""A loop controlled by a router, and the two common wirings of its `continue` branch."""

from __future__ import annotations

from typing import Any

import pytest

from engine.events import LoopIterationCompleted, NodeCompleted
from tests.engine.semantics.documents import around, formula, judge, llm, rules, transform
from tests.engine.semantics.kit import play
from tests.engine.semantics.models import Answer, by_node, numbered, verdict

_UNCONNECTED = "loop -> draft -> check\ncheck.done -> exit"


def _judged(*body: Any, edges: str = _UNCONNECTED, **config: Any) -> Any:
    return around(llm("draft"), judge(), *body, edges=edges, exit_condition="evaluator", **config)


def _after(iterations: int, **more: Any) -> Answer:
    """Numbered drafts, and a judge that is done after a number of iterations."""
    return by_node(draft=numbered, check=[verdict("continue")] * (iterations - 1) + [verdict("done", "good")], **more)


@pytest.mark.parametrize("iterations", [1, 2, 5])
async def test_a_loop_stops_after_the_iteration_in_which_its_router_chose_done(iterations: int) -> None:
    played = await play(_judged(), _after(iterations))

    assert played.loop.iterations_run == iterations
    assert played.loop.exit_reason == "evaluator_done"
    assert played.loop.converged is True
    assert played.out == f"draft {iterations - 1}"
    assert played.loop.returned == iterations - 1
    assert [record.branch for record in played.loop.iterations] == ["continue"] * (iterations - 1) + ["done"]
    assert played.loop.iterations[-1].reason == "good"


async def test_done_in_the_last_iteration_is_done() -> None:
    played = await play(_judged(max_iterations=2, on_max_iterations="fail"), _after(2))

    assert (played.loop.exit_reason, played.loop.converged) == ("evaluator_done", True)


async def test_an_unconnected_continue_branch_feeds_back_the_routers_value() -> None:
    played = await play(_judged(), _after(3))

    assert played.iteration_inputs == ["seed", "draft 0", "draft 1"]
    assert [record.feedback for record in played.loop.iterations[:2]] == ["draft 0", "draft 1"]
    assert played.results == ["draft 0", "draft 1", "draft 2"]


async def test_a_continue_branch_that_ends_in_a_transform_feeds_back_its_output() -> None:
    workflow = _judged(transform("again", "better: {{input}}"), edges=f"{_UNCONNECTED}\ncheck.continue -> again")

    played = await play(workflow, _after(3))

    assert played.iteration_inputs == ["seed", "better: draft 0", "better: draft 1"]
    assert [record.feedback for record in played.loop.iterations[:2]] == ["better: draft 0", "better: draft 1"]
    assert played.results == ["draft 0", "draft 1", "draft 2"]
    assert played.out == "draft 2"


async def test_a_continue_branch_can_go_through_several_nodes() -> None:
    workflow = _judged(
        llm("advise"), transform("again", "{{input}}!"), edges=f"{_UNCONNECTED}\ncheck.continue -> advise -> again"
    )

    played = await play(workflow, _after(2, advise="shorter"))

    assert played.iteration_inputs == ["seed", "shorter!"]


async def test_a_value_at_the_exits_feedback_precedes_a_dangling_branch() -> None:
    workflow = _judged(
        transform("dangling", "not this"),
        transform("wanted", "this"),
        edges=f"{_UNCONNECTED}\ncheck.continue -> dangling\ncheck.continue -> wanted -> exit.feedback",
    )

    played = await play(workflow, _after(2))

    assert played.iteration_inputs == ["seed", "this"]


async def test_a_continue_branch_can_lead_directly_to_the_exits_feedback() -> None:
    played = await play(_judged(edges=f"{_UNCONNECTED}\ncheck.continue -> exit.feedback"), _after(2))

    assert played.iteration_inputs == ["seed", "draft 0"]


async def test_of_two_dangling_branches_the_live_one_is_fed_back() -> None:
    workflow = around(
        rules("check", {"done": "size(input) > 9", "shorten": "input.endsWith('b')", "continue": "else"}),
        transform("b", "{{input}}b"),
        transform("c", "{{input}}c"),
        edges="loop -> check\ncheck.done -> exit\ncheck.continue -> b\ncheck.shorten -> c",
        exit_condition="evaluator",
    )

    played = await play(workflow)

    assert played.iteration_inputs == ["seed", "seedb", "seedbc", "seedbcb", "seedbcbc"]


async def test_done_can_lead_to_the_exit_through_other_nodes() -> None:
    workflow = _judged(transform("shine", "*{{input}}*"), edges="loop -> draft -> check\ncheck.done -> shine -> exit")

    played = await play(workflow, _after(2))

    assert played.out == "*draft 1*"
    assert played.results == ["draft 0", "*draft 1*"]


async def test_a_router_by_rules_can_control_a_loop_without_a_model() -> None:
    workflow = around(
        rules("check", {"done": "size(input) >= 7", "continue": "else"}),
        transform("grow", "{{input}}+"),
        edges="loop -> check\ncheck.done -> exit\ncheck.continue -> grow",
        exit_condition="evaluator",
        max_iterations=50,
    )

    played = await play(workflow)

    assert (played.out, played.loop.iterations_run) == ("seed+++", 4)


async def test_of_several_routers_the_named_one_controls_the_loop() -> None:
    routers = [
        rules("one", {"done": "true", "continue": "else"}),
        rules("two", {"done": "loop.iteration == 3", "continue": "else"}),
    ]
    workflow = around(
        *routers,
        edges="loop -> one\none.done -> two\ntwo.done -> exit",
        exit_condition="evaluator",
        evaluator="two",
    )

    played = await play(workflow)

    assert played.loop.iterations_run == 3


async def test_a_router_whose_done_does_not_lead_to_the_exit_does_not_control_the_loop() -> None:
    workflow = around(
        rules("side", {"done": "true", "other": "else"}),
        formula("seen", "1"),
        llm("draft"),
        judge(),
        edges="loop -> side\nside.done -> seen\nloop -> draft -> check\ncheck.done -> exit",
        exit_condition="evaluator",
    )

    played = await play(workflow, _after(2))

    assert played.loop.iterations_run == 2


@pytest.mark.parametrize(
    "reply", ["not done yet", "it is done, more or less", "rubbish", "{}", '{"branch": "maybe", "reason": ""}']
)
async def test_an_unreadable_verdict_never_ends_a_loop_as_done(reply: str) -> None:
    played = await play(_judged(max_iterations=2), by_node(draft=numbered, check=reply))

    assert played.loop.exit_reason == "max_iterations"
    assert played.loop.converged is False
    assert [record.branch for record in played.loop.iterations] == ["continue", "continue"]
    assert len(played.model.prompts("check")) == 4
    assert all("could not be read" in record.reason for record in played.loop.iterations)
    routers = [event for event in played.of(NodeCompleted) if event.path.endswith(".check")]
    assert [len(event.warnings) for event in routers] == [2, 2]


async def test_done_with_a_full_stop_is_done() -> None:
    played = await play(_judged(), by_node(draft=numbered, check="Done."))

    assert (played.loop.exit_reason, played.loop.iterations_run) == ("evaluator_done", 1)
    assert played.loop.iterations[0].warnings == ()


async def test_branch_and_reason_are_recorded() -> None:
    played = await play(_judged(max_iterations=1), by_node(draft=numbered, check=verdict("continue", "too long")))

    (record,) = played.loop.iterations
    assert (record.branch, record.reason) == ("continue", "too long")
    (event,) = played.of(LoopIterationCompleted)
    assert (event.branch, event.reason) == ("continue", "too long")
    (router,) = played.of(NodeCompleted, "loop[0].check")
    assert router.outputs == {"continue": "draft 0", "reason": "too long"}


async def test_json_passes_through_an_evaluator_loop_unchanged() -> None:
    workflow = around(
        rules("check", {"done": "input.n >= 3", "continue": "else"}),
        formula("more", "{'n': input.n + 1}"),
        formula("start", "loop.index == 0 ? {'n': 0} : input"),
        edges="loop -> start -> check\ncheck.done -> exit\ncheck.continue -> more",
        exit_condition="evaluator",
    )

    played = await play(workflow)

    assert played.out == {"n": 3}
    assert played.iteration_inputs == ["seed", {"n": 1}, {"n": 2}, {"n": 3}]
