"""The declaration of an exit condition: `ConditionSpec`, and what its decision and its explanation read.

Form, checks, decision, explanation, chart and LangGraph export all come from a `ConditionSpec`, for the conditions of
the program and of plugins alike. This module knows neither how a loop runs nor which conditions there are.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, Generic, Protocol, TypeVar

from pydantic import BaseModel, ConfigDict

from engine.document.problems import FieldProblem
from engine.errors import EngineError
from engine.expr import Expression, ExpressionError, Scope, compile_expression
from engine.formatting import format_count, format_percent
from engine.models.protocol import sum_costs
from engine.text_sanitizing import quoted
from engine.values import Value, immutable, to_text

_PREVIEW_LENGTH: Final = 60


@immutable
class EndedIteration:
    """An iteration that has just ended, as exit conditions see it.

    Attributes:
        index: Its number, from 0.
        result: The value that reached the exit.
        branch: The branch that the controlling router chose; None without one.
        similarity: Similarity to the previous result; None where it is not computed or there is no previous result.
        scope: Names for expressions: `output`, `similarity`, `cost_usd`, `elapsed_s`, `nodes`, `loop`. Empty unless
            a condition of the loop needs it.
        has_result: Whether a value reached the exit.
        score: The value of the score expression, else the judge's score; None without one.
        is_judged_done: The judge's verdict; None where the judge was not asked.
        spent_usd: US dollars that the loop has spent so far, as far as prices are known.
        elapsed_s: Seconds since the loop started.
    """

    index: int
    result: Value
    branch: str | None
    similarity: float | None
    scope: Scope
    has_result: bool = True
    score: float | None = None
    is_judged_done: bool | None = None
    spent_usd: float = 0.0
    elapsed_s: float = 0.0


class ExitCondition(ABC):
    """The decision of one condition. It may hold state: each run of a loop creates its own.

    After each iteration every condition of the loop observes it. Then they are asked in order until one stops the loop.
    """

    def observe(self, iteration: EndedIteration) -> None:  # noqa: B027 - most conditions need no state
        """Update the state, also for an iteration after which the loop is known to have continued."""

    @abstractmethod
    def reason(self, iteration: EndedIteration) -> str | None:
        """Return the exit reason if the loop stops after this iteration, else None.

        Raises:
            EngineError: The condition cannot be decided; the loop ends as `error`.
        """

    def tested(self, iteration: EndedIteration) -> Value:
        """Return the value to record in the history of the iteration; None for nothing."""
        return None


class ConditionConfig(BaseModel):
    """The settings of an exit condition. Each condition declares its own fields in a subclass."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)


ConfigT = TypeVar("ConfigT", bound=ConditionConfig)


def stateless(
    reason: str,
    holds: Callable[[ConfigT, EndedIteration], bool],
    tested: Callable[[EndedIteration], Value] = lambda _iteration: None,
) -> Callable[[ConfigT], ExitCondition]:
    """Return a `ConditionSpec.make` for a condition that looks at one iteration alone.

    Args:
        reason: Its exit reason.
        holds: Whether it stops the loop after an iteration.
        tested: The value to record in the history of an iteration.
    """
    return lambda config: _Stateless(reason, lambda iteration: holds(config, iteration), tested)


class _Stateless(ExitCondition):
    def __init__(
        self, reason: str, holds: Callable[[EndedIteration], bool], tested: Callable[[EndedIteration], Value]
    ) -> None:
        self._reason, self._holds, self._tested = reason, holds, tested

    def reason(self, iteration: EndedIteration) -> str | None:
        return self._reason if self._holds(iteration) else None

    def tested(self, iteration: EndedIteration) -> Value:
        return self._tested(iteration)


class Need(StrEnum):
    """What the loop must provide for a condition."""

    EVALUATOR = "evaluator"
    """A router in the body that controls the loop."""
    JUDGE = "judge"
    """The verdict of the loop's judge."""
    SCORE = "score"
    """A score for each iteration: by an expression or by the judge."""
    SIMILARITY = "similarity"
    """The similarity of each result to the previous one."""
    COST = "cost"
    """What the loop has spent."""
    SCOPE = "scope"
    """The names of expressions; conditions with expressions get them anyway."""


class IterationRecord(Protocol):  # its members are documented at `engine.events.LoopIterationCompleted`
    """The fields of a stored iteration that explanations read."""

    # ruff: noqa: D102

    @property
    def index(self) -> int: ...
    @property
    def result(self) -> Value: ...
    @property
    def branch(self) -> str | None: ...
    @property
    def reason(self) -> str | None: ...
    @property
    def score(self) -> float | None: ...
    @property
    def similarity(self) -> float | None: ...
    @property
    def tested(self) -> Mapping[str, Value]: ...
    @property
    def cost_usd(self) -> float | None: ...
    @property
    def duration_s(self) -> float: ...


@dataclass(frozen=True, slots=True)
class Evidence:
    """The iterations from which a condition's verdict is explained. Nothing is evaluated again.

    Attributes:
        iterations: The iterations up to the one that is explained, in order; at least one.
        computed_similarity: Similarity of the last result to the one before, for runs that did not record it.
        node_outputs: Outputs of the body's nodes in the last iteration, by id, as far as they are known.
        delay_s: The loop's pause between iterations, in seconds.
    """

    iterations: Sequence[IterationRecord]
    computed_similarity: float | None = None
    node_outputs: Mapping[str, Value] = field(default_factory=dict[str, Value])
    delay_s: float = 0.0

    @property
    def last(self) -> IterationRecord:
        """The iteration that is explained."""
        return self.iterations[-1]

    @property
    def similarity(self) -> float | None:
        """Similarity of its result to the one before."""
        return self.computed_similarity if self.last.similarity is None else self.last.similarity

    @property
    def quoted_reason(self) -> str:
        """The router's or judge's reason after a colon; empty without one."""
        reason = " ".join((self.last.reason or "").split())
        return f": {reason}" if reason else ""

    def number(self, condition: str) -> float | None:
        """The number that the condition of that name recorded."""
        value = self.last.tested.get(condition)
        return float(value) if isinstance(value, (int, float)) else None

    def values_in(self, expression: str) -> str:
        """The known values of the names in an expression, in parentheses; empty where none is known."""
        try:
            paths = sorted(compile_expression(expression).paths)
        except ExpressionError:
            return ""
        known = self._known_values()
        names = dict.fromkeys(path[:2] for path in paths)
        parts = [f"{'.'.join(name)} {known[name]}" for name in names if name in known]
        return f" ({', '.join(parts)})" if parts else ""

    def _known_values(self) -> dict[tuple[str, ...], str]:
        cost = sum_costs(iteration.cost_usd for iteration in self.iterations)
        elapsed = sum(iteration.duration_s for iteration in self.iterations) + self.delay_s * self.last.index
        return {
            ("output",): preview_value(self.last.result),
            ("similarity",): "null" if self.similarity is None else f"{self.similarity:.3f}",
            ("cost_usd",): "null" if cost is None else f"{cost:.6g}",
            ("elapsed_s",): f"about {elapsed:.1f}",
            ("loop", "iteration"): str(self.last.index + 1),
            ("loop", "index"): str(self.last.index),
            **{("nodes", name): preview_value(value) for name, value in self.node_outputs.items()},
        }


class SeriesSource(StrEnum):
    """Where the chart of iterations takes the values of a condition's series from."""

    SIMILARITY = "similarity"
    SCORE = "score"
    COST = "cost"
    TIME = "time"
    TESTED = "tested"
    """The number that the condition recorded."""


@dataclass(frozen=True, slots=True)
class ChartSeries(Generic[ConfigT]):
    """The series that the chart of iterations draws for a condition.

    Attributes:
        source: Where its values come from.
        threshold: The value at which the condition stops the loop, drawn as a line; None for no line.
        threshold_label: What that line is called: `stable at`.
        title: The legend's title, for a series of recorded values.
        format: Formats one value, for a series of recorded values.
    """

    source: SeriesSource
    threshold: Callable[[ConfigT], float | None] = lambda _config: None
    threshold_label: str = ""
    title: str = ""
    format: Callable[[float], str] = format_percent


class PythonWriter(Protocol):
    """What the LangGraph export offers to a condition that writes itself as Python.

    The test runs where an iteration ends: `loop` is the record of the loop, `result` the iteration's result (`NOTHING`
    without one), `similar` its similarity, `verdict` the router's and `judged` the judge's verdict.
    """

    @property
    def key(self) -> str:
        """A key for the condition's state in `loop['watched']`."""
        ...

    @property
    def score(self) -> str:
        """The source of the iteration's score."""
        ...

    def expression(self, text: str, /) -> str:
        """The Python source of a CEL expression.

        Raises:
            EngineError: It has no counterpart in Python.
        """
        ...


@dataclass(frozen=True, slots=True)
class PythonTest:
    """A condition as Python source.

    Attributes:
        source: An expression that is true where the loop stops.
        observes: Whether it has to be evaluated after each iteration, whatever the other conditions say.
        module: The module (`__name__`) whose functions the source calls; they are copied into the export, with all
            that they call. Empty where it calls none.
    """

    source: str
    observes: bool = False
    module: str = ""


@dataclass(frozen=True, slots=True)
class ConditionSpec(Generic[ConfigT]):
    """The declaration of an exit condition.

    Attributes:
        name: Its name in documents, and the key of the value that it records.
        label: When it stops a loop, as the form words the choice: `When the text stops changing`.
        help: One line on when it stops a loop.
        config: Its settings.
        make: Creates the decision for one run of a loop; must accept all settings that `config` accepts. For a
            decision without state: `stateless`.
        explain: Describes what it looked at after an iteration: `similarity 91% < 95%`.
        explain_stop: Describes why it stopped the loop; by default as `explain`.
        explain_unmet: Describes that it did not hold when the loop ran out of iterations; by default as `explain`.
        card_label: What stops the loop in a word or two, for the loop's card; empty for its name.
        exit_reason: The exit reason that it returns; empty for its name.
        exit_reason_label: That reason in a few words; empty for the name of the reason.
        is_limit: Whether it only limits the loop: a loop that it stops has not converged.
        is_shared_reason: Whether a loop may end with its exit reason for another cause (the budget of the run).
        needs: What the loop must provide.
        expressions: Names of the settings that hold CEL expressions; none of them may be empty.
        precedes_judge: Whether the judge is not asked when the condition holds and stands first in the list.
        check: Finds problems that `config` cannot find; each names a field of `config`.
        inner: Name of the setting that lists the conditions that it combines; empty where it combines none.
        combine: Creates the decision of a condition with `inner`, in place of `make`.
        series: The series that the chart of iterations draws for it.
        to_python: Writes it for the LangGraph export; None where it cannot be exported.
    """

    name: str
    label: str
    help: str
    config: type[ConfigT]
    make: Callable[[ConfigT], ExitCondition]
    explain: Callable[[ConfigT, Evidence], str]
    explain_stop: Callable[[ConfigT, Evidence], str] | None = None
    explain_unmet: Callable[[ConfigT, Evidence], str] | None = None
    card_label: str = ""
    exit_reason: str = ""
    exit_reason_label: str = ""
    is_limit: bool = False
    is_shared_reason: bool = False
    needs: frozenset[Need] = frozenset()
    expressions: tuple[str, ...] = ()
    precedes_judge: bool = False
    check: Callable[[ConfigT], Iterable[FieldProblem]] = lambda _config: ()
    inner: str = ""
    combine: Callable[[tuple[ExitCondition, ...]], ExitCondition] | None = None
    series: ChartSeries[ConfigT] | None = None
    to_python: Callable[[ConfigT, PythonWriter], PythonTest] | None = None

    @property
    def reason(self) -> str:
        """The exit reason of a loop that it stops."""
        return self.exit_reason or self.name

    @property
    def added_help(self) -> str:
        """The help, or nothing if it only repeats the label."""
        repeated = f"Stops {self.label[:1].lower()}{self.label[1:]}."
        return "" if self.help == repeated else self.help


AnyConditionSpec = ConditionSpec[Any]


def quote_expression(expression: str) -> str:
    """Quote an expression on one line."""
    return f"“{' '.join(expression.split())}”"


def compare(value: float, limit: float, write: Callable[[float], str]) -> str:
    """Compare a value with its limit: `91% < 95%`."""
    return f"{write(value)} {'≥' if value >= limit else '<'} {write(limit)}"


def preview_value(value: Value) -> str:
    """Shorten a value for a sentence: the start of a long one with its length."""
    text = to_text(value)
    line = " ".join(text[: _PREVIEW_LENGTH * 4].split())
    if len(text) > _PREVIEW_LENGTH:
        return f"“{line[:_PREVIEW_LENGTH]}…” ({format_count(len(text), 'character')})"
    return f"“{line}”" if isinstance(value, str) else line or "null"


class LoopExpressionError(EngineError):
    """An expression of a loop or an iterator failed or returned a value of the wrong type."""

    def __init__(self, field: str, expression: Expression, fault: str, remedy: str) -> None:
        super().__init__(f'The expression in "{field}" ({expression.text}) {fault}', remedy)


def evaluate(field: str, expression: Expression, scope: Scope) -> Value:
    """Return the value of an expression; `field` names the setting that holds it.

    Raises:
        LoopExpressionError: The expression fails.
    """
    try:
        return expression.evaluate(scope)
    except ExpressionError as error:
        raise LoopExpressionError(field, expression, f"failed: {error.message}", error.remedy) from error


def is_true(field: str, expression: Expression, scope: Scope) -> bool:
    """Return whether a boolean expression is true.

    Raises:
        LoopExpressionError: The expression fails, or returns something else than true or false.
    """
    value = evaluate(field, expression, scope)
    if isinstance(value, bool):
        return value
    fault = f"returned {quoted(value)}, not true or false."
    raise LoopExpressionError(field, expression, fault, "Write a comparison, such as size(output) < 500.")


def score_of(expression: Expression, scope: Scope) -> float:
    """Return the score that an expression gives an iteration.

    Raises:
        LoopExpressionError: The expression fails, or does not return a number of ordinary size.
    """
    score = evaluate("score", expression, scope)
    if isinstance(score, bool) or not isinstance(score, (int, float)):
        fault = f"returned {quoted(score)}, not a number."
        raise LoopExpressionError("score", expression, fault, "Write an expression that returns a number.")
    try:
        return float(score)
    except OverflowError as error:
        fault, remedy = "returned a number that is too large.", "Write an expression that returns an ordinary number."
        raise LoopExpressionError("score", expression, fault, remedy) from error
