"""The judge of a loop: a model that judges each result."""

from __future__ import annotations

import json
from typing import Any

import pytest

from engine import Workflow, validate
from engine.events import LoopIterationCompleted, NodeCompleted
from tests.engine.semantics.documents import around, formula, llm, part
from tests.engine.semantics.kit import Played, play
from tests.engine.semantics.models import DOLLAR_A_TOKEN_OUT, TEN_OUT, Call, FunctionModel, Said

RUBRIC = [{"name": "clear", "weight": 3.0}, {"name": "short", "description": "No word too many.", "weight": 1.0}]


def judged(judge: dict[str, Any], **config: Any) -> Workflow:
    settings = {"exit_condition": "judge", "max_iterations": 4, "judge": {"retries": 0, **judge}, **config}
    return around(llm("draft"), edges="loop -> draft -> exit", **settings)


def says(*verdicts: dict[str, Any] | str) -> Any:
    """A model that writes drafts, and judges them with these verdicts."""
    queue = [one if isinstance(one, str) else json.dumps({"reason": "because", **one}) for one in verdicts]

    def answer(call: Call) -> Said:
        return queue.pop(0) if call.node == "judge" else f"draft {call.iteration + 1}"

    return answer


def judge_calls(played: Played) -> list[Call]:
    return [call for call in played.model.calls if call.node == "judge"]


async def test_the_loop_stops_when_the_judge_says_done() -> None:
    played = await play(
        judged({"criteria": "It rhymes."}), says({"done": False, "score": 4}, {"done": True, "score": 9})
    )

    assert (played.loop.exit_reason, played.loop.converged) == ("judge_done", True)
    assert played.out == "draft 2"
    completed = played.of(LoopIterationCompleted)
    assert [(event.score, event.reason, event.tested) for event in completed] == [
        (4.0, "because", {"judge": False}),
        (9.0, "because", {"judge": True}),
    ]
    first = judge_calls(played)[0]
    assert first.path == "loop[0].judge"
    assert "It rhymes." in first.system
    assert first.prompt == "draft 1"


async def test_a_rubric_is_weighted_and_the_threshold_decides() -> None:
    verdicts = says(
        {"done": True, "scores": {"clear": 8, "short": 4}},  # 7.0
        {"done": False, "scores": {"clear": 8, "short": 8}},  # 8.0
    )
    played = await play(judged({"rubric": RUBRIC, "threshold": 8.0}), verdicts)

    assert [event.score for event in played.of(LoopIterationCompleted)] == [7.0, 8.0]
    assert played.loop.exit_reason == "judge_done"
    assert played.output_of("loop[1].judge", "scores") == {"clear": 8.0, "short": 8.0}
    system = judge_calls(played)[0].system
    assert "- clear: clear" in system
    assert "- short: No word too many." in system


async def test_several_judge_calls_decide_by_majority() -> None:
    verdicts = says(
        *({"done": done, "score": score} for done, score in [(True, 9), (False, 3), (False, 3)]),
        *({"done": done, "score": score} for done, score in [(True, 9), (False, 6), (True, 9)]),
    )
    played = await play(judged({"criteria": "It rhymes.", "runs": 3}), verdicts)

    assert [event.score for event in played.of(LoopIterationCompleted)] == [5.0, 8.0]
    assert len(judge_calls(played)) == 6
    assert played.loop.iterations_run == 2


async def test_an_unreadable_verdict_is_requested_again_and_then_counts_as_not_done() -> None:
    verdicts = says("done!", "yes, done", {"done": True, "score": 9})
    played = await play(judged({"criteria": "It rhymes."}), verdicts)

    assert [event.score for event in played.of(LoopIterationCompleted)] == [None, 9.0]
    warned = played.of(NodeCompleted, "loop[0].judge")[0].warnings
    assert len(warned) == 2
    assert "counts as not done" in warned[1]
    assert played.loop.exit_reason == "judge_done"


@pytest.mark.parametrize(
    "rubbish",
    [
        "{}",
        "[true]",
        '{"done": "almost", "score": 9, "reason": ""}',
        '{"done": true, "score": 11, "reason": ""}',
        '{"done": true, "score": 9, "reason": "',
        '{"done": false, "score": 9, "reason": ""} {"done": true, "score": 9, "reason": ""}',
    ],
)
async def test_an_unreadable_verdict_never_ends_a_loop_as_done(rubbish: str) -> None:
    played = await play(judged({"criteria": "It rhymes."}), says(*[rubbish] * 8))

    assert (played.loop.exit_reason, played.loop.converged) == ("max_iterations", False)
    assert played.loop.iterations_run == 4


async def test_until_is_checked_before_the_judge_which_is_then_not_called() -> None:
    played = await play(judged({"criteria": "It rhymes."}, until="loop.iteration == 1"), says())

    assert played.loop.exit_reason == "until"
    assert judge_calls(played) == []


async def test_the_judges_cost_is_part_of_its_iteration_and_of_the_budget() -> None:
    model = FunctionModel(
        says({"done": False, "score": 1}, {"done": True, "score": 1}), price=DOLLAR_A_TOKEN_OUT, usage=TEN_OUT
    )
    played = await play(judged({"criteria": "It rhymes."}), model)

    assert [event.cost_usd for event in played.of(LoopIterationCompleted)] == [20.0, 20.0]
    assert played.result.cost_usd == 40.0


async def test_the_criteria_can_name_outputs_of_the_iteration() -> None:
    criteria = "Better than: {{loop.previous}} ({{nodes.draft}}, {{loop.iteration}}, {{output}})"
    played = await play(judged({"criteria": criteria}), says({"done": False, "score": 1}, {"done": True, "score": 1}))

    assert "Better than: draft 1 (draft 2, 2, draft 2)" in judge_calls(played)[1].system


async def test_the_judge_has_its_own_model() -> None:
    played = await play(judged({"criteria": "It rhymes.", "model": "other/model"}), says({"done": True, "score": 1}))

    assert {call.model for call in judge_calls(played)} == {"fake/model"}
    assert ("other/model", None) in played.models.asked


async def test_a_node_can_be_called_judge_too() -> None:
    workflow = around(
        llm("judge"),
        edges="loop -> judge -> exit",
        exit_condition="judge",
        judge={"criteria": "It rhymes.", "retries": 0},
    )

    def answer(call: Call) -> Said:
        return "text" if call.node == "judge" else json.dumps({"done": True, "score": 5, "reason": "fine"})

    played = await play(workflow, answer)

    assert played.model.paths == ["loop[0].judge", "loop[0].judge_2"]
    assert played.loop.exit_reason == "judge_done"


@pytest.mark.parametrize(
    ("judge", "field", "code"),
    [
        ({}, "judge", "no-criteria"),
        ({"criteria": "  "}, "judge", "no-criteria"),
        ({"criteria": "{{nothing}}"}, "judge.criteria", "unknown-name"),
        ({"criteria": "{{unclosed"}, "judge.criteria", "bad-template"),
        ({"rubric": [{"name": "a"}, {"name": "a"}]}, "judge.rubric.1.name", "duplicate-name"),
        ({"rubric": [{"name": "a", "weight": 0.0}]}, "judge.rubric", "no-weight"),
    ],
)
def test_a_judge_without_criteria_is_a_problem_before_the_run(judge: dict[str, Any], field: str, code: str) -> None:
    problems = validate(judged(judge))

    assert [(problem.code, problem.field, problem.severity) for problem in problems] == [(code, field, "error")]


async def test_with_max_iterations_alone_a_judge_only_scores() -> None:
    workflow = around(
        formula("number", "string(loop.iteration)"),
        edges="loop -> number -> exit",
        max_iterations=3,
        on_max_iterations="return_best",
        judge={"criteria": "Large.", "retries": 0},
    )
    verdicts = says(*({"done": True, "score": score} for score in (4, 9, 7)))

    played = await play(workflow, verdicts)

    assert played.loop.exit_reason == "max_iterations"
    assert played.out == "2"
    assert played.loop.returned == 1


@pytest.mark.parametrize(
    ("judge", "writer", "usual", "is_hinted"),
    [
        ({"model": "a/b"}, {"model": "a/b"}, None, True),
        ({"model": "a/b"}, {}, "a/b", True),
        ({"model": "a/b"}, {"model": "a/c"}, "a/b", False),
        ({"model": "a/b"}, {"model": "a/b", "api_base": "http://localhost:1/v1"}, None, False),
        ({}, {"model": "a/b"}, "a/b", False),
    ],
)
def test_judging_with_the_writers_model_is_a_hint(
    judge: dict[str, Any], writer: dict[str, Any], usual: str | None, is_hinted: bool
) -> None:
    config: Any = {"exit_condition": "judge", "judge": {"criteria": "It rhymes.", **judge}}
    workflow = around(llm("draft", **writer), edges="loop -> draft -> exit", **config)
    workflow = workflow.model_copy(update={"settings": {} if usual is None else {"model": usual}})

    problems = [(problem.code, problem.node, problem.field) for problem in validate(workflow)]

    assert problems == ([("judge-is-writer", "loop", "judge.model")] if is_hinted else [])


def test_invalid_settings_of_the_writer_are_reported_without_the_judge_hint() -> None:
    asked: dict[str, Any] = {"exit_condition": "judge", "judge": {"criteria": "Is it good?", "model": "openai/x"}}
    workflow = around(
        llm("draft", temperature="hot", model="openai/x"), edges="loop -> draft -> exit", max_iterations=2, **asked
    )

    assert [(problem.code, problem.node) for problem in validate(workflow)] == [("bad-config", "draft")]


def test_an_unknown_node_type_beside_a_judge_is_reported() -> None:
    config: Any = {"exit_condition": "judge", "judge": {"criteria": "It rhymes.", "model": "a/b"}}
    workflow = around(part("draft", "nowhere"), edges="loop.body -> draft.input\ndraft.output -> exit.input", **config)

    assert "unknown-type" in {problem.code for problem in validate(workflow)}
