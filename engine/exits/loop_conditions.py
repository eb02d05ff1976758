"""The known exit conditions, the conditions that a loop lists, and the loop's decision to stop.

The built-in conditions are listed here and nowhere else. A plugin adds its own through `add_condition`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, TypeVar, cast

from pydantic import ValidationError

from engine.document.problems import FieldProblem, Severity, config_errors, faults
from engine.errors import EngineError, did_you_mean
from engine.exits import (
    all_of,
    budget,
    evaluator,
    judge,
    max_iterations,
    oscillation,
    plateau,
    score,
    stable_output,
    time_limit,
    until,
)
from engine.exits.all_of import AllOf
from engine.exits.condition import AnyConditionSpec, ConditionConfig, EndedIteration, Evidence, ExitCondition, Need
from engine.exits.max_iterations import MAX_ITERATIONS
from engine.text_sanitizing import shown
from engine.values import Value, as_object

KEY: Final = "condition"
"""The key of a listed condition that names it; all other keys are its settings."""
_REPORT: Final = "Report it to the author of the condition."

_BUILT_IN: Final = (
    *(max_iterations, judge, stable_output, score, until, evaluator),
    *(plateau, oscillation, time_limit, budget, all_of),
)
_SPECS: dict[str, AnyConditionSpec] = {module.SPEC.name: module.SPEC for module in _BUILT_IN}

_OTHER_REASONS: Final = {
    "all_items": "all items processed",
    "exit_loop": "a node ended the loop",
    "condition": "the condition was not met",
    "disabled": "disabled",
    "error": "an error occurred",
    "cancelled": "cancelled",
}
"""Labels of the exit reasons that belong to no condition."""

ResultT = TypeVar("ResultT")


def condition_specs() -> Mapping[str, AnyConditionSpec]:
    """The known conditions by name, in the order in which they are offered; read-only."""
    return MappingProxyType(_SPECS)


def add_condition(spec: AnyConditionSpec) -> None:
    """Add a condition, before documents are checked.

    Raises:
        ValueError: There is another one of that name.
    """
    if _SPECS.get(spec.name, spec) is not spec:
        raise ValueError(f"there is an exit condition {spec.name!r} already")
    _SPECS[spec.name] = spec


def exit_reason_labels() -> dict[str, str]:
    """Labels of all known exit reasons, those of plugins included."""
    labels = {spec.reason: spec.exit_reason_label or spec.reason for spec in _SPECS.values() if not spec.inner}
    return labels | _OTHER_REASONS


def format_exit_reason(exit_reason: str) -> str:
    """Format a loop's exit reason, which may join several with `+`. An unknown reason is its own label."""
    labels = exit_reason_labels()
    return " and ".join(labels.get(reason, reason) for reason in exit_reason.split("+"))


def has_converged(exit_reason: str) -> bool:
    """Whether a condition that is more than a limit ended the loop."""
    limits = {spec.reason for spec in _SPECS.values() if spec.is_limit}
    return not limits.issuperset(exit_reason.split("+"))


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition that a loop lists.

    Attributes:
        spec: Its declaration.
        config: Its settings.
        field: Its place in the loop's settings: `stop_when.0`.
        inner: The conditions that it combines.
    """

    spec: AnyConditionSpec
    config: ConditionConfig
    field: str
    inner: tuple[Condition, ...] = ()

    @property
    def leaves(self) -> tuple[Condition, ...]:
        """The conditions that it combines; the condition itself if it combines none."""
        return tuple(leaf for one in self.inner for leaf in one.leaves) if self.spec.inner else (self,)

    @property
    def needs(self) -> frozenset[Need]:
        """What the loop must provide for it."""
        needs = self.spec.needs | {Need.SCOPE} if self.spec.expressions else self.spec.needs
        return needs.union(*(inner.needs for inner in self.inner))

    @property
    def expressions(self) -> tuple[tuple[str, str], ...]:
        """Its CEL expressions: place in the loop's settings, and text."""
        own = tuple((f"{self.field}.{name}", str(getattr(self.config, name))) for name in self.spec.expressions)
        return (*own, *(pair for inner in self.inner for pair in inner.expressions))

    def make(self) -> ExitCondition:
        """Create its decision for one run of a loop.

        Raises:
            EngineError: It cannot be created.
        """
        if self.spec.combine is not None:
            return self.spec.combine(tuple(inner.make() for inner in self.inner))
        return _CheckedCondition(self.spec, self.config)

    def explain(self, evidence: Evidence) -> str:
        """Describe what it looked at."""
        return self._explained(self.spec.explain, evidence)

    def explain_stop(self, evidence: Evidence) -> str:
        """Describe why it stopped the loop."""
        return self._explained(self.spec.explain_stop or self.spec.explain, evidence)

    def explain_unmet(self, evidence: Evidence) -> str:
        """Describe that it did not hold."""
        return self._explained(self.spec.explain_unmet or self.spec.explain, evidence)

    def _explained(self, explain: Callable[[Any, Evidence], str], evidence: Evidence) -> str:
        try:
            return explain(self.config, evidence)
        except Exception:  # a plugin's explanation must not keep a history from being read
            return self.spec.exit_reason_label or self.spec.reason


class _CheckedCondition(ExitCondition):
    """A condition's decision with its results checked, so that a plugin's fault is a readable error."""

    def __init__(self, spec: AnyConditionSpec, config: ConditionConfig) -> None:
        self._name = spec.name
        made = cast("object", self._call(lambda: spec.make(config)))
        if not isinstance(made, ExitCondition):
            raise EngineError(f'The exit condition "{self._name}" created no ExitCondition.', _REPORT)
        self._condition = made

    def observe(self, iteration: EndedIteration) -> None:
        self._call(lambda: self._condition.observe(iteration))

    def reason(self, iteration: EndedIteration) -> str | None:
        reason = cast("object", self._call(lambda: self._condition.reason(iteration)))
        if reason is None or isinstance(reason, str):
            return reason
        raise self._wrong_result(f"{type(reason).__name__} as its exit reason, not a text")

    def tested(self, iteration: EndedIteration) -> Value:
        tested = self._call(lambda: self._condition.tested(iteration))
        if next(faults(tested), None) is not None:
            raise self._wrong_result("a value to record that is not JSON")
        return tested

    def _wrong_result(self, what: str) -> EngineError:
        return EngineError(f'The exit condition "{self._name}" returned {what}.', _REPORT)

    def _call(self, work: Callable[[], ResultT]) -> ResultT:
        try:
            return work()
        except EngineError:
            raise
        except Exception as error:
            message = f'The exit condition "{self._name}" failed: {type(error).__name__}.'
            raise EngineError(message, _REPORT) from error


def read_conditions(entries: Iterable[object], field: str) -> tuple[Condition, ...]:
    """Read the conditions that a loop lists; unknown and invalid entries are left out.

    Args:
        entries: The entries of the list.
        field: The place of the list in the loop's settings.
    """
    found = (_read(entry, f"{field}.{index}")[0] for index, entry in enumerate(entries))
    return tuple(condition for condition in found if condition is not None)


def condition_problems(entries: Iterable[object], field: str) -> Iterator[FieldProblem]:
    """Find the problems of the conditions that a loop lists, except for expressions that do not compile."""
    for index, entry in enumerate(entries):
        place = f"{field}.{index}"
        condition, problems = _read(entry, place)
        yield from problems
        if condition is None:
            continue
        for name in condition.spec.expressions:
            if not str(getattr(condition.config, name)).strip():
                yield FieldProblem("no-expression", f"{place}.{name}", "The expression is empty.", "Write one.")
        yield from _own_problems(condition)
        if condition.spec.inner:
            inner = getattr(condition.config, condition.spec.inner)
            yield from condition_problems(inner, f"{place}.{condition.spec.inner}")


def _read(entry: object, place: str) -> tuple[Condition | None, list[FieldProblem]]:
    settings = as_object(entry)
    name = settings.get(KEY)
    spec = _SPECS.get(name) if isinstance(name, str) else None
    if spec is None:
        return None, [_unknown(name, place)]
    given = {key: value for key, value in settings.items() if key != KEY}
    try:
        config = spec.config.model_validate(given)
    except ValidationError as error:
        return None, [
            FieldProblem("bad-config", f"{place}.{where}", message, remedy)
            for where, message, remedy in config_errors(spec.config, error)
        ]
    problems: list[FieldProblem] = []
    for key in (key for key in given if key not in spec.config.model_fields):
        message = f'The exit condition "{spec.name}" has no setting "{shown(key, 60)}"; it is kept and has no effect.'
        problems.append(FieldProblem("unknown-config-key", f"{place}.{key}", message, "Remove it.", Severity.WARNING))
    inner = read_conditions(getattr(config, spec.inner), f"{place}.{spec.inner}") if spec.inner else ()
    return Condition(spec, config, place, inner), problems


def _unknown(name: object, place: str) -> FieldProblem:
    message = f'There is no exit condition "{shown(name, 60)}".' if name else "The entry names no exit condition."
    choice = f"Choose one of {', '.join(_SPECS)}; one of a plugin needs the plugin."
    remedy = f"{did_you_mean(str(name), _SPECS)} {choice}".lstrip()
    return FieldProblem("unknown-condition", f"{place}.{KEY}", message, remedy)


def _own_problems(condition: Condition) -> list[FieldProblem]:
    try:
        found = list(condition.spec.check(condition.config))
    except Exception as error:  # whatever a plugin raises
        message = f'The exit condition "{condition.spec.name}" failed: {type(error).__name__}.'
        return [FieldProblem("condition-failed", condition.field, message, _REPORT)]
    return [
        FieldProblem(one.code, f"{condition.field}.{one.field or KEY}", one.message, one.remedy, one.severity)
        for one in found
    ]


class StopDecision:
    """The decision of one run of a loop. It holds state; each run creates its own.

    Args:
        conditions: The conditions that the loop lists.
        mode: `any`: the first one that holds stops the loop. `all`: all of them must hold after the same iteration.
        max_iterations: The number of iterations that caps all conditions.
    """

    def __init__(self, conditions: Sequence[Condition], mode: str, max_iterations: int) -> None:
        made = [condition.make() for condition in conditions]
        leaves = zip(conditions, made, strict=True)
        self._recording: list[tuple[str, ExitCondition]] = [
            pair for condition, decision in leaves for pair in _recording(condition, decision)
        ]
        self._max_iterations = max_iterations
        self._asked: list[ExitCondition] = [AllOf(made)] if mode == "all" and made else made
        leading = itertools.takewhile(lambda pair: pair[0].spec.precedes_judge, zip(conditions, made, strict=True))
        self._before_judge = [] if mode == "all" else [decision for _, decision in leading]
        self.needs_scope = any(Need.SCOPE in condition.needs for condition in conditions)

    def reason_before_judge(self, iteration: EndedIteration) -> str | None:
        """Return the exit reason of a condition that is checked before the judge is asked, or None."""
        return next(filter(None, (condition.reason(iteration) for condition in self._before_judge)), None)

    def observe(self, iteration: EndedIteration) -> None:
        """Update the state of all conditions."""
        for condition in self._asked:
            condition.observe(iteration)

    def reason(self, iteration: EndedIteration) -> str | None:
        """Return the exit reason if the loop stops after this iteration, else None.

        Raises:
            EngineError: A condition cannot be decided; the loop ends as `error`.
        """
        for condition in self._asked:
            if reason := condition.reason(iteration):
                return reason
        return MAX_ITERATIONS if iteration.index + 1 >= self._max_iterations else None

    def tested(self, iteration: EndedIteration) -> dict[str, Value]:
        """Return the values that the conditions record, by condition."""
        tested: dict[str, Value] = {}
        for name, condition in self._recording:
            value = condition.tested(iteration)
            if value is not None:
                tested[name] = value
        return tested


def _recording(condition: Condition, decision: ExitCondition) -> list[tuple[str, ExitCondition]]:
    """The decisions that record values, by the names of their conditions."""
    if not isinstance(decision, AllOf):
        return [(condition.spec.name, decision)]
    pairs = zip(condition.inner, decision.conditions, strict=True)
    return [pair for inner, made in pairs for pair in _recording(inner, made)]
