"""Why a loop stopped, and what was looked at after each of its iterations: the same words in every place.

Everything is read off the loop's settings and the iterations that it told; nothing is evaluated again.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pydantic import ValidationError

from engine.document.model import Workflow
from engine.expr import ExpressionError, compile_expression
from engine.nodes.loop_config import LoopConfig
from engine.runner.events import LoopIterationCompleted
from engine.runner.words import exit_reason_words
from engine.values import Value, to_text

_SHOWN: Final = 60


def loop_config(workflow: Workflow, path: str) -> LoopConfig:
    """The settings of the loop at a path of a run (`outer[1].inner`); the usual ones where it has none to be read."""
    node = workflow.nodes_by_id.get(path.rpartition(".")[2])
    try:
        return LoopConfig.model_validate(node.config if node is not None else {})
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

    `Stopped after 4 of 10: this result is 96.2 % the same as the one before (threshold 95 %).`

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
        reason = f"an error ended it: {error}"
    elif exit_reason in _WITH_VALUES and (iterations or exit_reason in _BEFORE_ANY):
        reason = _WITH_VALUES[exit_reason](tested)
    else:
        reason = exit_reason_words(exit_reason)
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

    `similarity 91 % < 95 %`, `the evaluator chose 'continue'`, `iteration 2 of at most 5`.

    Args:
        config: The loop's settings.
        iterations: Those that ended, in order.
        index: The iteration, from 0.
        similarity: Of its result to the one before, where it was worked out since.
        given: What the body's nodes gave in it, by id, where it is known.
    """
    tested = _Tested(config, iterations[: index + 1], similarity, given or {})
    until = [f"until {_quoted(config.until)}{tested.values()}"] if config.until.strip() else []
    score = tested.last.score
    scored = [f"score {score:g}"] if score is not None else []
    return (*until, *tested.condition(), *scored, f"iteration {index + 1} of at most {config.max_iterations}")


def percent(share: float) -> str:
    """A share for people, to a tenth where it is not whole: `96.2 %`. Cut, so that none looks larger than it is."""
    figure = math.floor(share * 1000 + 1e-9) / 10
    return f"{figure:g} %" if figure == round(figure) else f"{figure:.1f} %"


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

    @property
    def threshold(self) -> str:
        return percent(self.config.stability_threshold)

    def counted(self) -> str:
        """The count came, and what else had been asked for did not."""
        until = self.config.until
        others = [f"{_quoted(until)} was false{self.values()}"] if until.strip() else []
        return "; ".join(["the count was reached", *others, *self.condition()])

    def verdict(self) -> str:
        """What the evaluator chose, and why."""
        if self.last.branch is None:
            return "the evaluator chose nothing"
        chosen = f"the evaluator chose '{self.last.branch}'"
        reason = " ".join((self.last.reason or "").split())
        return f"{chosen}: {reason}" if reason else chosen

    def stable(self) -> str:
        """How much the result is still what it was."""
        patience = self.config.stability_patience
        times = f", {patience} times in a row" if patience > 1 else ""
        if self.similarity is None:
            return f"the result no longer changed (threshold {self.threshold}){times}"
        return (
            f"this result is {percent(self.similarity)} the same as the one before (threshold {self.threshold}){times}"
        )

    def until(self) -> str:
        """The expression that became true, with its values."""
        return f"{_quoted(self.config.until)} became true{self.values()}"

    def not_met(self) -> str:
        """The condition that was not met."""
        return f"its condition {_quoted(self.config.condition)} was not met"

    def out_of_time(self) -> str:
        """The time limit that was up."""
        limit = self.config.timeout_s
        return "its time was up" if limit is None else f"its time limit of {limit:g} s was up"

    def condition(self) -> list[str]:
        """What the loop's own exit condition looked at, where that is more than the count."""
        if self.config.exit_condition == "evaluator":
            return [self.verdict()]
        return [self._stability()] if self.config.exit_condition == "stable_output" else []

    def _stability(self) -> str:
        if self.similarity is None:
            return "no similarity, there is no result before"
        wanted, patience = self.config.stability_threshold, self.config.stability_patience
        text = f"similarity {percent(self.similarity)} {'≥' if self.similarity >= wanted else '<'} {self.threshold}"
        row = itertools.takewhile(lambda each: (each.similarity or -1.0) >= wanted, reversed(self.iterations))
        return text if patience == 1 else f"{text}, {sum(1 for _ in row)} of {patience} times in a row"

    def values(self) -> str:
        """The values that `until` names, in brackets, as far as they are known."""
        try:
            paths = sorted(compile_expression(self.config.until).paths)
        except ExpressionError:
            return ""
        known = self._known()
        names = dict.fromkeys(path[:2] for path in paths)
        parts = [f"{'.'.join(name)} {known[name]}" for name in names if name in known]
        return f" ({', '.join(parts)})" if parts else ""

    def _known(self) -> dict[tuple[str, ...], str]:
        """The names of `until` whose values the iterations tell, with those values in words."""
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


_WITH_VALUES: Final[dict[str, Callable[[_Tested], str]]] = {
    "max_iterations": _Tested.counted,
    "evaluator_done": _Tested.verdict,
    "stable_output": _Tested.stable,
    "until": _Tested.until,
    "condition": _Tested.not_met,
    "timeout": _Tested.out_of_time,
}
_BEFORE_ANY: Final = frozenset({"condition", "timeout"})
"""Reasons that are told in full also where no iteration ended."""


def _quoted(expression: str) -> str:
    return f"“{' '.join(expression.split())}”"


def _shown(value: Value) -> str:
    """A value in few words: a short one as it is, of a long one the beginning and how long it is."""
    text = to_text(value)
    line = " ".join(text[: _SHOWN * 4].split())
    if len(text) > _SHOWN:
        return f"“{line[:_SHOWN]}…” ({len(text):,} characters)"
    return f"“{line}”" if isinstance(value, str) else line or "null"
