"""Every combination of exit condition, on_max_iterations, output and feedback, compared with a small model.

The model below was written from docs/semantics.md only and shares no code with the engine.
"""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from engine import Workflow, validate
from tests.engine.semantics.documents import Part, around, llm, rules
from tests.engine.semantics.kit import play
from tests.engine.semantics.models import Call, Said

CAP = 4
CONDITIONS = ["max_iterations", "until", "evaluator", "stable_output", "judge", "plateau", "oscillation", "time+until"]
ENDS = ["return_last", "return_best", "return_with_flag", "fail"]
OUTPUTS = ["final", "last_iteration", "all_iterations"]
FEEDBACKS = ["replace", "append", "append_window"]
REASONS = {"evaluator": "evaluator_done", "judge": "judge_done"}


def reply(index: int, body_input: str) -> str:
    """The draft of an iteration: a row of letters whose length depends on the iteration and its input."""
    return "x" * (1 + (index * 5 + len(body_input)) % 4)


def holds(condition: str, results: list[str]) -> bool:
    last, earlier = results[-1], results[:-1]
    scores = [len(result) for result in results]
    return {
        "max_iterations": False,
        "until": len(results) == 3,
        "time+until": False,  # both would have to hold, and no time passes
        "evaluator": len(last) == 3,
        "judge": len(last) == 3,
        "stable_output": bool(earlier) and earlier[-1] == last,
        "plateau": bool(earlier) and scores[-1] <= max(scores[:-1]),
        "oscillation": last in earlier[:-1],
    }[condition]


def expected(condition: str, end: str, output: str, feedback: str) -> tuple[str, Any, bool]:
    """The exit reason, the output, and whether the loop fails."""
    body_input, results, reason = "seed", [], "max_iterations"
    while len(results) < CAP:
        results.append(reply(len(results), body_input))
        if holds(condition, results):
            reason = REASONS.get(condition, condition)
            break
        accumulated = {"append": [body_input, results[-1]], "append_window": ["seed", *results[-2:]]}
        body_input = "\n---\n".join(accumulated.get(feedback, [results[-1]]))
    if reason == "max_iterations" and condition != "max_iterations" and end == "fail":
        return reason, None, True
    is_best = reason == "max_iterations" and end == "return_best"
    chosen = max(results, key=len) if is_best else results[-1]
    listed = "\n".join(f"--- iteration {number} ---\n{text}" for number, text in enumerate(results, 1))
    return reason, {"final": chosen, "last_iteration": chosen, "all_iterations": listed}[output], False


def workflow(condition: str, end: str, output: str, feedback: str) -> Workflow:
    config: dict[str, Any] = {
        "max_iterations": CAP,
        "on_max_iterations": end,
        "output_mode": output,
        "feedback_mode": feedback,
        "append_window": 2,
        "score": "size(output)",
    }
    body: list[Part] = [llm("draft", "{{input}}")]
    edges = "loop -> draft -> exit"
    if condition == "evaluator":
        body.append(rules("check", {"done": "size(input) == 3", "continue": "else"}))
        edges = "loop -> draft -> check\ncheck.done -> exit"
        config["exit_condition"] = "evaluator"
    elif condition == "until":
        config["until"] = "loop.iteration == 3"
    elif condition == "stable_output":
        config |= {"exit_condition": "stable_output", "stability_threshold": 1.0}
    elif condition == "judge":
        config |= {"exit_condition": "judge", "judge": {"criteria": "Three letters.", "retries": 0}}
    elif condition == "plateau":
        config["exit_conditions"] = [{"condition": "plateau"}]
    elif condition == "oscillation":
        config["exit_conditions"] = [{"condition": "oscillation", "threshold": 1.0}]
    elif condition == "time+until":
        listed = [{"condition": "time", "seconds": 1e6}, {"condition": "until", "until": "true"}]
        config |= {"exit_conditions": listed, "exit_when": "all"}
    return around(*body, edges=edges, **config)


def answer(call: Call) -> Said:
    if call.node == "judge":
        return json.dumps({"done": len(call.prompt) == 3, "score": 5, "reason": "counted"})
    return reply(call.iteration, call.prompt)


@pytest.mark.parametrize("condition", CONDITIONS)
async def test_every_combination_matches_the_model(condition: str) -> None:
    for end, output, feedback in itertools.product(ENDS, OUTPUTS, FEEDBACKS):
        document = workflow(condition, end, output, feedback)
        reason, out, fails = expected(condition, end, output, feedback)

        assert not [problem for problem in validate(document) if problem.severity == "error"]
        played = await play(document, answer, ends="failed" if fails else "completed")

        case = (condition, end, output, feedback)
        assert played.loop.exit_reason == reason, case
        assert played.loop.converged == (reason != "max_iterations"), case
        if not fails:
            given = played.out
            assert (given["draft"] if isinstance(given, dict) else given) == out, case
        flagged = end == "return_with_flag" and reason == "max_iterations" and condition != "max_iterations"
        assert bool(played.result.warnings) == flagged, case
