from __future__ import annotations

import json
from typing import Any

import pytest

from engine.document.files import loads
from engine.nodes.loop import LoopConfig
from engine.store.exit_explanation import describe_conditions, explain_exit, loop_config
from tests.engine.cli.kit import Events, refine


def iterations(*fields: dict[str, Any]) -> list[Any]:
    event = Events()
    return [
        event.iteration(
            "loop", number, each.get("result", f"r{number}"), **{k: v for k, v in each.items() if k != "result"}
        )
        for number, each in enumerate(fields)
    ]


def similar(*figures: float | None) -> list[Any]:
    return iterations(*({"similarity": figure} for figure in figures))


STABLE = LoopConfig(stop_when=[{"condition": "stable_output"}])
PATIENT = LoopConfig(stop_when=[{"condition": "stable_output", "patience": 2}])
EVALUATED = LoopConfig(stop_when=[{"condition": "evaluator"}])
CONTINUED = {"branch": "continue", "reason": "Too long."}
DONE = {"branch": "done", "reason": "All  points\nare met."}


@pytest.mark.parametrize(
    ("config", "ended", "reason", "total", "sentence"),
    [
        (LoopConfig(), similar(None, None), "max_iterations", 2, "Stopped after 2 of 2: max iterations reached."),
        (
            STABLE,
            similar(None, 0.5, 0.9, 0.962),
            "stable_output",
            10,
            "Stopped after 4 of 10: the result is 96.2% the same as the previous one (threshold 95%).",
        ),
        (
            PATIENT,
            similar(None, 0.96, 1.0),
            "stable_output",
            5,
            "Stopped after 3 of 5: the result is 100% the same as the previous one (threshold 95%), 2 times in a row.",
        ),
        (
            STABLE,
            similar(None, 0.9499),
            "max_iterations",
            2,
            "Stopped after 2 of 2: max iterations reached; similarity 94.9% < 95%.",
        ),
        (
            EVALUATED,
            iterations(CONTINUED, DONE),
            "evaluator_done",
            5,
            "Stopped after 2 of 5: the evaluator chose 'done': All points are met.",
        ),
        (
            EVALUATED,
            iterations(CONTINUED),
            "max_iterations",
            1,
            "Stopped after 1 of 1: max iterations reached; the evaluator chose 'continue': Too long.",
        ),
        (
            LoopConfig(stop_when=[{"condition": "until", "expression": "size(output)<6 || similarity>1"}]),
            iterations({"result": "a much longer one"}, {"result": "short", "similarity": 0.61}),
            "until",
            5,
            "Stopped after 2 of 5: “size(output)<6 || similarity>1” became true (output “short”, similarity 0.610).",
        ),
        (
            LoopConfig(stop_when=[{"condition": "until", "expression": "cost_usd > 1.0"}]),
            iterations({"cost_usd": 0.25}, {"cost_usd": 0.5}),
            "max_iterations",
            2,
            "Stopped after 2 of 2: max iterations reached; “cost_usd > 1.0” was false (cost_usd 0.75).",
        ),
        (LoopConfig(timeout_s=30), similar(None), "timeout", 5, "Stopped after 1 of 5: time limit of 30.0 s reached."),
        (LoopConfig(), similar(None), "budget", 5, "Stopped after 1 of 5: budget used up."),
        (LoopConfig(), similar(None), "cancelled", 5, "Stopped after 1 of 5: cancelled."),
        (LoopConfig(), [], "error", 5, "Stopped after 0 of 5: an error occurred: The key was refused."),
        (LoopConfig(), [], "disabled", None, "Ran no iteration: disabled."),
        (
            LoopConfig(condition="size(input) > 9"),
            [],
            "condition",
            None,
            "Ran no iteration: the condition “size(input) > 9” was not met.",
        ),
        (LoopConfig(), similar(None), "judge_done", 5, "Stopped after 1 of 5: the judge accepted the result."),
        (LoopConfig(), similar(None), "something_new", 5, "Stopped after 1 of 5: something_new."),
    ],
)
def test_exit_explanation_is_one_sentence_with_values(
    config: LoopConfig, ended: list[Any], reason: str, total: int | None, sentence: str
):
    assert explain_exit(config, ended, reason, total, error="The key was refused.") == sentence


def test_exit_explanation_shows_known_node_outputs_of_an_expression():
    config = LoopConfig(stop_when=[{"condition": "until", "expression": "nodes.check == 'fine'"}])
    given = {"check": "fine", "draft": "x"}
    sentence = "Stopped after 1 of 5: “nodes.check == 'fine'” became true"
    assert explain_exit(config, similar(None), "until", 5, given=given) == f"{sentence} (nodes.check “fine”)."
    assert explain_exit(config, similar(None), "until", 5) == f"{sentence}."


def test_similarity_computed_later_is_used_if_none_was_recorded():
    assert "96% the same" in explain_exit(STABLE, similar(None, None), "stable_output", 5, similarity=0.96)


def test_conditions_are_described_after_each_iteration():
    ended = similar(None, 0.91, 0.97)
    assert [describe_conditions(STABLE, ended, index) for index in range(3)] == [
        ("no similarity: there is no previous result", "iteration 1 of at most 5"),
        ("similarity 91% < 95%", "iteration 2 of at most 5"),
        ("similarity 97% ≥ 95%", "iteration 3 of at most 5"),
    ]


def test_condition_descriptions_count_patience():
    ended = similar(None, 0.96, 0.2, 0.97, 0.98)
    assert [describe_conditions(PATIENT, ended, index)[0] for index in range(1, 5)] == [
        "similarity 96% ≥ 95%, 1 of 2 times in a row",
        "similarity 20% < 95%, 0 of 2 times in a row",
        "similarity 97% ≥ 95%, 1 of 2 times in a row",
        "similarity 98% ≥ 95%, 2 of 2 times in a row",
    ]


def test_no_similarity_at_all_is_enough_for_a_threshold_of_0():
    config = LoopConfig(stop_when=[{"condition": "stable_output", "threshold": 0, "patience": 2}])
    assert "1 of 2" in describe_conditions(config, similar(None, 0.0), 1)[0]


def test_condition_descriptions_have_verdict_score_and_expression():
    config = LoopConfig(
        stop_when=[{"condition": "until", "expression": "size(output) < 3"}, {"condition": "evaluator"}], score="1.0"
    )
    ended = iterations({**CONTINUED, "score": 1.5, "result": "long " * 40})
    until = "until “size(output) < 3” (output “" + "long " * 12 + "…” (200 characters))"
    assert describe_conditions(config, ended, 0) == (
        until,
        "the evaluator chose 'continue': Too long.",
        "score 1.5",
        "iteration 1 of at most 5",
    )


def test_loop_config_finds_a_nested_loop_by_path():
    workflow = loads(json.dumps(refine(3, stop_when=[{"condition": "stable_output", "threshold": 0.8}])))
    assert loop_config(workflow, "outer[1].loop").conditions[0].config.threshold == 0.8
    assert loop_config(workflow, "outer[1].gone").stop_when == []
    broken = loads(json.dumps(refine(3, stop_when="many")))
    assert loop_config(broken, "loop") == LoopConfig()


LIMITED = LoopConfig.model_validate(
    {
        "stop_when": [
            {"condition": "until", "expression": "size(output) > 99"},
            {"condition": "budget", "budget_usd": 0.5},
            {"condition": "time", "seconds": 30.0},
            {"condition": "max_iterations", "count": 3},
        ]
    }
)


def test_limits_in_a_list_are_described_with_their_usage() -> None:
    ended = iterations({"result": "x", "tested": {"budget": 0.75, "time": 12.0}})
    assert explain_exit(LIMITED, ended, "budget", 5) == "Stopped after 1 of 5: $0.75 of $0.50 spent."
    assert describe_conditions(LIMITED, ended, 0) == (
        "until “size(output) > 99” (output “x”)",
        "spent $0.75 ≥ $0.50",
        "time 12.0 s < 30.0 s",
        "iteration 1 of 3",
        "iteration 1 of at most 5",
    )
    late = iterations({"tested": {"time": 31.0}})
    assert explain_exit(LIMITED, late, "timeout", 5) == "Stopped after 1 of 5: 31.0 s of 30.0 s had passed."


def test_budget_or_timeout_of_the_run_is_not_taken_for_the_loops_own_condition() -> None:
    assert explain_exit(LIMITED, iterations({}), "budget", 5) == "Stopped after 1 of 5: budget used up."


ALL = LoopConfig.model_validate(
    {
        "stop_when": [
            {"condition": "stable_output", "threshold": 0.9},
            {"condition": "plateau", "patience": 2, "epsilon": 0.5},
            {"condition": "oscillation", "threshold": 0.8},
        ],
        "stop_mode": "all",
        "score": "0",
    }
)
JUDGED = LoopConfig.model_validate({"stop_when": [{"condition": "judge"}], "judge": {"criteria": "It rhymes."}})


def test_judge_is_described_with_score_and_reason() -> None:
    ended = iterations(
        {"score": 3.0, "reason": "No rhyme.", "tested": {"judge": False}},
        {"score": 8.5, "reason": "It rhymes.", "tested": {"judge": True}},
    )
    assert explain_exit(JUDGED, ended, "judge_done", 5) == (
        "Stopped after 2 of 5: the judge accepted the result (score 8.5): It rhymes."
    )
    assert describe_conditions(JUDGED, ended, 0)[0] == "the judge did not accept the result (score 3): No rhyme."
    assert explain_exit(JUDGED, ended[:1], "max_iterations", 1) == (
        "Stopped after 1 of 1: max iterations reached; the judge did not accept the result (score 3): No rhyme."
    )


def test_all_conditions_that_had_to_hold_together_are_explained() -> None:
    ended = iterations(
        {"score": 7.0, "tested": {"plateau": 7.0}},
        {"score": 7.0, "similarity": 0.95, "tested": {"plateau": 7.0, "oscillation": 0.85}},
    )
    assert explain_exit(ALL, ended, "stable_output+plateau+oscillation", 5) == (
        "Stopped after 2 of 5: the result is 95% the same as the previous one (threshold 90%) and "
        "the best score (7) has risen by no more than 0.5 in 2 iterations and "
        "the result is 85% the same as an earlier one (threshold 80%)."
    )
    assert describe_conditions(ALL, ended, 0) == (
        "no similarity: there is no previous result",
        "best score 7",
        "no earlier result to repeat",
        "score 7",
        "iteration 1 of at most 5",
    )
    assert describe_conditions(ALL, ended, 1)[2] == "similarity to an earlier result 85% ≥ 80%"
