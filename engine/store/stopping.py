"""Why a loop stopped, and what was looked at after each of its iterations: the same words in every place.

Everything is read off the loop's settings and the iterations that it told; nothing is evaluated again.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pydantic import ValidationError

from engine.document.model import Workflow
from engine.events import LoopIterationCompleted
from engine.expr import ExpressionError, compile_expression
from engine.formatting import (
    format_count,
    format_duration,
    format_exit_reason,
    format_money,
    format_percent,
    format_score,
    format_spending,
)
from engine.nodes.loop_config import LoopConfig
from engine.nodes.loop_exits import ListedCondition
from engine.nodes.pairs import ITERATOR
from engine.plan.subflows import node_at
from engine.values import Value, to_text

_SHOWN: Final = 60


def loop_config(workflow: Workflow, path: str, total: int | None = None) -> LoopConfig:
    """The settings of the loop at a path of a run (`outer[1].inner`); the defaults where they cannot be read.

    Of an iterator those that both have; it counts no iterations, so its `max_iterations` is 0.

    Args:
        workflow: The document as it ran.
        path: The loop.
        total: The count that held for the run, clamped to its cap; None where no iteration began.
    """
    node = node_at(workflow, path)
    given = node.config if node is not None else {}
    if node is not None and node.type == ITERATOR.start:
        given = {**given, "max_iterations": 0}
    elif total:
        given = {**given, "max_iterations": total}
    try:
        return LoopConfig.model_validate(given)
    except ValidationError:
        return LoopConfig()


def why_stopped(
    config: LoopConfig,
    iterations: Sequence[LoopIterationCompleted],
    exit_reason: str,
    total: int | None,
    *,
    error: str = "",
    similarity: float | None = None,
    given: Mapping[str, Value] | None = None,
) -> str:
    """Say in one sentence why a loop stopped.

    `Stopped after 4 of 10: this result is 96.2% the same as the one before (threshold 95%).`

    Args:
        config: The loop's settings.
        iterations: Those that ended, in order.
        exit_reason: Its exit reason.
        total: How many it might have run at the most; None where no iteration began.
        error: What failed, where an error ended it.
        similarity: Of the last result to the one before, where it was worked out since.
        given: What the body's nodes gave in the last iteration, by id, where it is known.
    """
    tested = _Tested(config, iterations, similarity, given or {})
    if exit_reason == "error" and error:
        reason = f"{format_exit_reason(exit_reason)}: {error}"
    else:
        reason = " and ".join(tested.reason(part) for part in exit_reason.split("+"))
    end = "" if reason.endswith((".", "!", "?", "…")) else "."
    if total is None and not iterations:
        return f"Ran no iteration: {reason}{end}"
    return f"Stopped after {len(iterations)} of {len(iterations) if total is None else total}: {reason}{end}"


def what_was_tested(
    config: LoopConfig,
    iterations: Sequence[LoopIterationCompleted],
    index: int,
    *,
    similarity: float | None = None,
    given: Mapping[str, Value] | None = None,
) -> tuple[str, ...]:
    """What was looked at after an iteration, in the order in which it was, and what that said.

    `similarity 91% < 95%`, `the evaluator chose 'continue'`, `iteration 2 of at most 5`.

    Args:
        config: The loop's settings.
        iterations: Those that ended, in order.
        index: The iteration, from 0.
        similarity: Of its result to the one before, where it was worked out since.
        given: What the body's nodes gave in it, by id, where it is known.
    """
    tested = _Tested(config, iterations[: index + 1], similarity, given or {})
    score = tested.last.score
    scored = [f"score {format_score(score)}"] if score is not None else []
    looked_at = [tested.looked_at(condition) for condition in asked_conditions(config)]
    counted = [f"iteration {index + 1} of at most {config.max_iterations}"] if config.max_iterations > 0 else []
    return (*looked_at, *scored, *counted)


def asked_conditions(config: LoopConfig) -> list[ListedCondition]:
    """The conditions that a loop has beside the count, in the order in which they are asked."""
    asked = [ListedCondition(condition="until", until=config.until)] if config.until.strip() else []
    if config.exit_conditions:
        return [*asked, *config.exit_conditions]
    if config.exit_condition == "max_iterations":
        return asked
    threshold, patience = config.stability_threshold, config.stability_patience
    return [*asked, ListedCondition(condition=config.exit_condition, threshold=threshold, patience=patience)]


@dataclass(frozen=True, slots=True)
class _Tested:
    """A loop's settings, its iterations up to one of them, and what is known of that one beside."""

    config: LoopConfig
    iterations: Sequence[LoopIterationCompleted]
    worked_out: float | None
    given: Mapping[str, Value]

    @property
    def last(self) -> LoopIterationCompleted:
        return self.iterations[-1]

    @property
    def similarity(self) -> float | None:
        return self.worked_out if self.last.similarity is None else self.last.similarity

    def reason(self, exit_reason: str) -> str:
        """Why the loop stopped, with the figures where there are any."""
        kind = _CONDITIONS.get(exit_reason, "")
        condition = next((each for each in asked_conditions(self.config) if each.condition == kind), None)
        if condition is not None and self.iterations and (kind in self.last.tested or kind not in _ALSO_LIMITS):
            return _MET[kind](self, condition)
        if exit_reason == "max_iterations" and self.iterations:
            return self._counted()
        if exit_reason == "condition":
            return f"the condition {_quoted(self.config.condition)} was not met"
        if exit_reason == "timeout" and self.config.timeout_s is not None:
            return f"time limit of {format_duration(self.config.timeout_s)} reached"
        return format_exit_reason(exit_reason)

    def looked_at(self, condition: ListedCondition) -> str:
        """What a condition looked at after the last of the iterations."""
        return _LOOKED_AT[condition.condition](self, condition)

    def _counted(self) -> str:
        """The count came, and what else had been asked for did not."""
        others: list[str] = []
        for condition in asked_conditions(self.config):
            if condition.condition == "until" and self.config.exit_when == "any":
                others.append(f"{_quoted(condition.until)} was false{self.values(condition.until)}")
            else:
                others.append(self.looked_at(condition))
        return "; ".join([format_exit_reason("max_iterations"), *others])

    def figure(self, name: str) -> float | None:
        """The number that a condition had tested."""
        value = self.last.tested.get(name)
        return float(value) if isinstance(value, (int, float)) else None

    def told_reason(self) -> str:
        """What the router or the judge said of it, behind a colon."""
        reason = " ".join((self.last.reason or "").split())
        return f": {reason}" if reason else ""

    def values(self, expression: str) -> str:
        """The values that an expression names, in brackets, as far as they are known."""
        try:
            paths = sorted(compile_expression(expression).paths)
        except ExpressionError:
            return ""
        known = self._known()
        names = dict.fromkeys(path[:2] for path in paths)
        parts = [f"{'.'.join(name)} {known[name]}" for name in names if name in known]
        return f" ({', '.join(parts)})" if parts else ""

    def _known(self) -> dict[tuple[str, ...], str]:
        """The names of such an expression whose values the iterations tell, with those values in words."""
        costs = [iteration.cost_usd for iteration in self.iterations]
        cost = None if None in costs else sum(cost for cost in costs if cost is not None)
        elapsed = sum(iteration.duration_s for iteration in self.iterations) + self.config.delay_s * self.last.index
        return {
            ("output",): _shown(self.last.result),
            ("similarity",): "null" if self.similarity is None else f"{self.similarity:.3f}",
            ("cost_usd",): "null" if cost is None else f"{cost:.6g}",
            ("elapsed_s",): f"about {elapsed:.1f}",
            ("loop", "iteration"): str(self.last.index + 1),
            ("loop", "index"): str(self.last.index),
            **{("nodes", name): _shown(value) for name, value in self.given.items()},
        }


def _verdict(tested: _Tested, _condition: ListedCondition) -> str:
    if tested.last.branch is None:
        return "the evaluator chose nothing"
    return f"the evaluator chose '{tested.last.branch}'{tested.told_reason()}"


def _judged(tested: _Tested, _condition: ListedCondition) -> str:
    score = "" if tested.last.score is None else f" (score {format_score(tested.last.score)})"
    found = "done" if tested.last.tested.get("judge") is True else "not done"
    return f"the judge found it {found}{score}{tested.told_reason()}"


def _stable(tested: _Tested, condition: ListedCondition) -> str:
    times = f", {condition.patience} times in a row" if condition.patience > 1 else ""
    threshold = f"(threshold {format_percent(condition.threshold)}){times}"
    if tested.similarity is None:
        return f"the result no longer changed {threshold}"
    return f"this result is {format_percent(tested.similarity)} the same as the one before {threshold}"


def _similarity(tested: _Tested, condition: ListedCondition) -> str:
    if tested.similarity is None:
        return "no similarity, there is no result before"
    text = f"similarity {_against(tested.similarity, condition.threshold, format_percent)}"
    if condition.patience == 1:
        return text
    row = itertools.takewhile(
        lambda each: (each.similarity or -1.0) >= condition.threshold, reversed(tested.iterations)
    )
    return f"{text}, {sum(1 for _ in row)} of {condition.patience} times in a row"


def _plateau(tested: _Tested, condition: ListedCondition) -> str:
    best = tested.figure("plateau")
    at = "" if best is None else f" ({format_score(best)})"
    iterations = format_count(condition.patience, "iteration")
    return f"the best score{at} has risen by no more than {condition.epsilon:g} in {iterations}"


def _best_score(tested: _Tested, _condition: ListedCondition) -> str:
    best = tested.figure("plateau")
    return "no score" if best is None else f"best score {format_score(best)}"


def _came_back(tested: _Tested, condition: ListedCondition) -> str:
    closest = tested.figure("oscillation")
    assert closest is not None, "a loop that ends so has compared"
    threshold = format_percent(condition.threshold)
    return f"this result is {format_percent(closest)} the same as an earlier one (threshold {threshold})"


def _closest(tested: _Tested, condition: ListedCondition) -> str:
    closest = tested.figure("oscillation")
    if closest is None:
        return "no earlier result to come back to"
    return f"similarity to an earlier one {_against(closest, condition.threshold, format_percent)}"


def _spent(tested: _Tested, condition: ListedCondition) -> str:
    spent = tested.figure("budget")
    return "spent $?" if spent is None else f"spent {_against(spent, condition.budget_usd, format_money)}"


def _time(tested: _Tested, condition: ListedCondition) -> str:
    passed = tested.figure("time")
    return "time unknown" if passed is None else f"time {_against(passed, condition.seconds, format_duration)}"


def _added(tested: _Tested, name: str) -> str:
    value = tested.last.tested.get(name)
    return name if value is None else f"{name} {_shown(value)}"


def _against(figure: float, limit: float, write: Callable[[float], str]) -> str:
    return f"{write(figure)} {'≥' if figure >= limit else '<'} {write(limit)}"


_Words = Callable[[_Tested, ListedCondition], str]
_MET: Final[dict[str, _Words]] = {
    "evaluator": _verdict,
    "judge": _judged,
    "until": lambda tested, one: f"{_quoted(one.until)} became true{tested.values(one.until)}",
    "stable_output": _stable,
    "plateau": _plateau,
    "oscillation": _came_back,
    "budget": lambda tested, one: f"{format_spending(tested.figure('budget') or 0.0, one.budget_usd, 'usd')} spent",
    "time": lambda tested, one: (
        f"{format_duration(tested.figure('time') or 0.0)} of {format_duration(one.seconds)} had passed"
    ),
}
_LOOKED_AT: Final[dict[str, _Words]] = {
    "evaluator": _verdict,
    "judge": _judged,
    "until": lambda tested, one: f"until {_quoted(one.until)}{tested.values(one.until)}",
    "stable_output": _similarity,
    "plateau": _best_score,
    "oscillation": _closest,
    "max_iterations": lambda tested, one: f"iteration {tested.last.index + 1} of {one.count}",
    "budget": _spent,
    "time": _time,
    "plugin": lambda tested, one: _added(tested, one.plugin_condition),
}
_CONDITIONS: Final = {
    "evaluator_done": "evaluator",
    "judge_done": "judge",
    "until": "until",
    "stable_output": "stable_output",
    "plateau": "plateau",
    "oscillation": "oscillation",
    "budget": "budget",
    "timeout": "time",
}
"""By exit reason, the condition that gives it."""
_ALSO_LIMITS: Final = frozenset({"budget", "time", "oscillation"})
"""Conditions that ended the loop only where they tested something: a run has a budget and a time limit too."""


def _quoted(expression: str) -> str:
    return f"“{' '.join(expression.split())}”"


def _shown(value: Value) -> str:
    """A value in few words: a short one as it is, of a long one the beginning and how long it is."""
    text = to_text(value)
    line = " ".join(text[: _SHOWN * 4].split())
    if len(text) > _SHOWN:
        return f"“{line[:_SHOWN]}…” ({format_count(len(text), 'character')})"
    return f"“{line}”" if isinstance(value, str) else line or "null"
