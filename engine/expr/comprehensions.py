"""What `map`, `filter`, `all`, `exists`, `exists_one`, `||` and `&&` do: they decide themselves what they evaluate.

Knows evaluations as functions of a frame, nothing of syntax.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from engine.expr.errors import ExpressionError, LimitError
from engine.expr.limits import MAX_WALK, Frame
from engine.expr.operators import as_bool
from engine.expr.scope import describe
from engine.formatting import format_count
from engine.values import Value

Step: TypeAlias = "Callable[[Frame], Value]"
"""A compiled piece of an expression."""


@dataclass(frozen=True, slots=True)
class Body:
    """What a comprehension does with each element.

    Attributes:
        name: The comprehension's own name.
        condition: What to ask of an element; None when it takes all.
        outcome: What an element gives; None when it gives itself.
        cost: Steps that the body takes for one element.
        position: Where the comprehension stands in the expression.
    """

    name: str
    condition: Step | None
    outcome: Step | None
    cost: int
    position: int | None


def decide(frame: Frame, steps: Iterable[Step], decisive: bool, position: int | None) -> bool:
    """Evaluate steps until one gives the decisive answer; the other answer when none does.

    As CEL has it, a step that fails counts only when no other decides (`x > 1 || true` is true whatever `x` is).

    Raises:
        ExpressionError: A step failed, or gave neither true nor false, and none decided.
    """
    failure: ExpressionError | None = None
    for step in steps:
        try:
            if as_bool(step(frame), position) is decisive:
                return decisive
        except LimitError:
            raise
        except ExpressionError as error:
            failure = failure or error
    if failure is not None:
        raise failure
    return not decisive


def collect(frame: Frame, target: Value, body: Body) -> list[Value]:
    """Do `map` and `filter`: what the body gives for each element that meets its condition."""
    condition, outcome = body.condition, body.outcome
    return [
        item if outcome is None else outcome(frame)
        for item in _elements(frame, target, body)
        if condition is None or as_bool(condition(frame), body.position)
    ]


def exists_one(frame: Frame, target: Value, body: Body) -> Value:
    """Tell whether exactly one element meets the condition."""
    return len(collect(frame, target, body)) == 1


def quantify(frame: Frame, target: Value, body: Body) -> Value:
    """Do `all` and `exists`."""
    assert body.condition is not None
    condition = body.condition
    steps = (condition for _ in _elements(frame, target, body))
    return decide(frame, steps, body.name == "exists", body.position)


def _elements(frame: Frame, target: Value, body: Body) -> Iterator[Value]:
    """Go through the elements of a list or the names of an object, binding the frame's variable to each."""
    if not isinstance(target, (list, dict)):
        raise ExpressionError(
            f"`{body.name}` walks over a list or an object, but this is {describe(target)}.", "", body.position
        )
    if len(target) > MAX_WALK:
        raise LimitError(
            f"`{body.name}` would walk over {format_count(len(target), 'element')}; at most {MAX_WALK:,} are allowed.",
            "Let an iterator node do it.",
            body.position,
        )
    for item in target:
        frame.charge(body.cost, body.position)
        frame.variable = item
        yield item


COMPREHENSIONS: dict[str, Callable[[Frame, Value, Body], Value]] = {
    "map": collect,
    "filter": collect,
    "all": quantify,
    "exists": quantify,
    "exists_one": exists_one,
}
"""Every comprehension by its name."""
