"""A minimal reference interpreter of a loop, written from docs/semantics.md only.

The body is fixed: `draft → critique → join`, and after it a router by rules whose `continue` is wired in one of three
ways, or a transform instead. Replies of the models are given by iteration. An evaluator's router leads to the exit by
`done`; in the other modes the exit gets every `join`, and the router has no effect.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

ExitCondition = Literal["max_iterations", "evaluator", "stable_output"]
Wiring = Literal["unconnected", "dangling", "feedback", "transform"]


@dataclass(frozen=True)
class Case:
    """A loop and the replies of its models."""

    drafts: tuple[str, ...]
    critiques: tuple[str, ...]
    wiring: Wiring
    exit_condition: ExitCondition
    feedback_mode: Literal["replace", "append", "append_window"]
    window: int
    cap: int
    threshold: float
    patience: int
    until_reads: str | None
    on_max_iterations: Literal["return_last", "return_best", "return_with_flag", "fail"]
    output_mode: Literal["final", "last_iteration", "all_iterations"]


@dataclass
class Outcome:
    """The outcome of a loop."""

    iteration_inputs: list[str] = field(default_factory=list)
    results: list[str] = field(default_factory=list)
    reason: str = ""
    failed: bool = False
    output: object = None


def distance(one: str, other: str) -> int:
    """The Levenshtein distance with unit costs, by the textbook algorithm."""
    row = list(range(len(other) + 1))
    for i, left in enumerate(one, 1):
        previous, row = row, [i]
        for j, right in enumerate(other, 1):
            row.append(min(previous[j] + 1, row[j - 1] + 1, previous[j - 1] + (left != right)))
    return row[-1]


def similarity(one: str, other: str) -> float:
    """The similarity of two texts, from 0 to 1."""
    longer = max(len(one), len(other))
    return 1.0 if longer == 0 else 1 - distance(one, other) / longer


def is_done(critique: str) -> bool:
    """The rule of the router's branch `done`."""
    return critique.endswith("!")


def interpret(case: Case, given: str) -> Outcome:
    """Run the loop of a case on an input."""
    outcome, start, alike = Outcome(), given, 0
    feedbacks: list[str] = []
    results = outcome.results
    for index in range(case.cap):
        draft, critique = case.drafts[index], case.critiques[index]
        value = f"{len(start)}:{draft}/{critique}"
        done = is_done(critique)
        result = f"[{value}]" if case.wiring == "transform" else value
        feedback = f"more: {value}" if case.wiring in {"dangling", "feedback"} and not done else result
        outcome.iteration_inputs.append(start)
        alike = alike + 1 if results and similarity(results[-1], result) >= case.threshold else 0
        results.append(result)
        feedbacks.append(feedback)
        if case.until_reads is not None and case.until_reads in critique:
            outcome.reason = "until"
        elif case.exit_condition == "evaluator" and done:
            outcome.reason = "evaluator_done"
        elif case.exit_condition == "stable_output" and alike >= case.patience:
            outcome.reason = "stable_output"
        elif index == case.cap - 1:
            outcome.reason = "max_iterations"
        if outcome.reason:
            break
        start = {
            "replace": feedback,
            "append": f"{start}\n---\n{feedback}",
            "append_window": "\n---\n".join([given, *feedbacks[-case.window :]]),
        }[case.feedback_mode]
    asked = case.exit_condition != "max_iterations" or case.until_reads is not None
    too_late = asked and outcome.reason == "max_iterations"
    outcome.failed = too_late and case.on_max_iterations == "fail"
    lengths = [len(result) for result in results]
    wants_best = outcome.reason == "max_iterations" and case.on_max_iterations == "return_best"
    best = lengths.index(max(lengths)) if wants_best else len(results) - 1
    if not outcome.failed:
        outcome.output = _output(case, results, best)
    return outcome


def _output(case: Case, results: list[str], chosen: int) -> object:
    if case.output_mode == "final":
        return results[chosen]
    if case.output_mode == "all_iterations":
        return [(str(number), text.rstrip("\n")) for number, text in enumerate(results, 1)]
    return {"draft": case.drafts[chosen], "critique": case.critiques[chosen]}
