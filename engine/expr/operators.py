"""What the operators of an expression do with JSON values.

As in CEL, except that JSON does not keep whole numbers and others apart, so that they mix freely here (`8.5 >= 8`,
`1 == 1.0`, `1 + 0.5`, `5.5 % 2`), and that it has no infinity, so that dividing by zero always fails.
Values of different kinds are never equal, and never an error to compare with `==`.
Whole numbers have 64 bits: a longer one that comes in compares and passes through unchanged, but arithmetic with it
fails.
Knows nothing of syntax.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import TypeAlias

from engine.expr.errors import ExpressionError
from engine.expr.limits import CHARACTERS_READ, Frame
from engine.expr.scope import Records, describe, member_of
from engine.values import Value

Operator: TypeAlias = "Callable[[Frame, int | None, Value, Value], Value]"
"""Takes the evaluation, the position of the operation, and both operands."""

_INTEGER_BITS = 63


def refuse(action: str, position: int | None, *values: Value, remedy: str = "") -> ExpressionError:
    """Make the error for operands of the wrong kind, such as "Cannot add a text and a number"."""
    kinds = " and ".join(describe(value) for value in values)
    return ExpressionError(f"Cannot {action} {kinds}.", remedy, position)


def is_number(value: Value) -> bool:
    """Tell a number; true and false are none."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def checked(number: float, position: int | None) -> int | float:
    """Give back a number that JSON and 64 bits can hold.

    Raises:
        ExpressionError: It is too large.
    """
    if isinstance(number, int):
        if -(1 << _INTEGER_BITS) <= number < 1 << _INTEGER_BITS:
            return number
    elif math.isfinite(number):
        return number
    raise ExpressionError("The number is too large: it does not fit into 64 bits.", "", position)


def add(frame: Frame, position: int | None, left: Value, right: Value) -> Value:
    """Add numbers, or join texts or lists."""
    if isinstance(left, str) and isinstance(right, str):
        frame.charge_text(len(left) + len(right), position)
        return left + right
    if isinstance(left, list) and isinstance(right, list):
        frame.charge(len(left) + len(right), position)
        return left + right
    if isinstance(left, str) or isinstance(right, str):
        raise refuse("add", position, left, right, remedy="Write string(…) around what is no text.")
    return _arithmetic("add", operator.add, position, left, right)


def subtract(_frame: Frame, position: int | None, left: Value, right: Value) -> Value:
    """Subtract numbers."""
    return _arithmetic("subtract", operator.sub, position, left, right)


def multiply(_frame: Frame, position: int | None, left: Value, right: Value) -> Value:
    """Multiply numbers; texts and lists are not repeated."""
    return _arithmetic("multiply", operator.mul, position, left, right)


def divide(_frame: Frame, position: int | None, left: Value, right: Value) -> Value:
    """Divide numbers; whole ones give a whole one, cut off towards zero."""
    return _arithmetic("divide", _quotient, position, left, right)


def remainder(_frame: Frame, position: int | None, left: Value, right: Value) -> Value:
    """Give the remainder of a division; it has the sign of the dividend."""
    return _arithmetic("divide", _remainder, position, left, right)


def _quotient(left: float, right: float) -> int | float:
    if isinstance(left, int) and isinstance(right, int):
        quotient = abs(left) // abs(right)
        return quotient if (left < 0) == (right < 0) else -quotient
    return left / right


def _remainder(left: float, right: float) -> int | float:
    if right == 0:
        raise ZeroDivisionError
    if isinstance(left, int) and isinstance(right, int):
        rest = abs(left) % abs(right)
        return -rest if left < 0 else rest
    return math.fmod(left, right)


def _arithmetic(
    action: str, work: Callable[[float, float], int | float], position: int | None, left: Value, right: Value
) -> Value:
    if (
        isinstance(left, bool)
        or isinstance(right, bool)
        or not isinstance(left, (int, float))
        or not isinstance(right, (int, float))
    ):
        raise refuse(action, position, left, right)
    checked(left, position)
    checked(right, position)
    try:
        return checked(work(left, right), position)
    except ZeroDivisionError:
        raise ExpressionError("This divides by zero.", "Test for zero before.", position) from None


def negate(position: int | None, value: Value) -> Value:
    """Give the negative of a number."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise refuse("take the negative of", position, value)
    return checked(-value, position)


def as_bool(value: Value, position: int | None) -> bool:
    """Take a value that must be true or false for one.

    Raises:
        ExpressionError: It is neither.
    """
    if isinstance(value, bool):
        return value
    raise ExpressionError(
        f"True or false is needed here, but this is {describe(value)}.", "Compare it with something.", position
    )


def ordering(symbol: str, compare: Callable[[float, float], bool]) -> Operator:
    """Make one of the operators `<`, `<=`, `>`, `>=`; they put numbers, texts, or false and true in order."""

    def ordered(frame: Frame, position: int | None, left: Value, right: Value) -> Value:
        if is_number(left) and is_number(right):
            return compare(left, right)  # pyright: ignore[reportArgumentType] is_number() has looked at both
        if isinstance(left, str) and isinstance(right, str):
            frame.charge(min(len(left), len(right)) // CHARACTERS_READ, position)
            return compare(left, right)  # pyright: ignore[reportArgumentType] an order of texts is none of floats
        if isinstance(left, bool) and isinstance(right, bool):
            return compare(left, right)
        raise refuse(f"compare by {symbol}", position, left, right)

    return ordered


def equal(frame: Frame, position: int | None, left: Value, right: Value) -> bool:
    """Tell whether two values are the same JSON, all the way down, where 1 and 1.0 are the same number."""
    if isinstance(left, str):
        if not isinstance(right, str) or len(left) != len(right):
            return False
        frame.charge(len(left) // CHARACTERS_READ, position)
        return left == right
    if is_number(left):
        return is_number(right) and left == right
    if isinstance(left, list) and isinstance(right, list):
        frame.charge(1 + len(left), position)
        return len(left) == len(right) and all(
            equal(frame, position, one, other) for one, other in zip(left, right, strict=True)
        )
    if isinstance(left, dict) and isinstance(right, dict):
        frame.charge(1 + len(left), position)
        return left.keys() == right.keys() and all(
            equal(frame, position, value, right[name]) for name, value in left.items()
        )
    return left is right


def unequal(frame: Frame, position: int | None, left: Value, right: Value) -> bool:
    """Tell whether two values differ."""
    return not equal(frame, position, left, right)


def is_in(frame: Frame, position: int | None, item: Value, container: Value) -> bool:
    """Tell whether a list has an element, or an object a name."""
    if isinstance(container, list):
        frame.charge(len(container), position)
        return any(equal(frame, position, item, other) for other in container)
    if isinstance(container, dict) and isinstance(item, str):
        return item in container
    remedy = "Write TEXT.contains(PART)." if isinstance(container, str) else ""
    raise ExpressionError(f"Cannot look for {describe(item)} in {describe(container)} with `in`.", remedy, position)


def element(position: int | None, container: Value, index: Value) -> Value:
    """Give the element of a list at a whole number from 0, or the member of an object by its name."""
    if isinstance(container, dict) and isinstance(index, str):
        return member_of(container, index, "This", position)
    if isinstance(container, list) and not isinstance(index, bool) and isinstance(index, (int, float)):
        place = checked(index, position)
        if place == place // 1 and 0 <= place < len(container):
            return container[int(place)]
        if isinstance(container, Records) and place == place // 1 and 0 <= place < container.most:
            return container.blank
        raise ExpressionError(
            f"The list has {len(container)} elements, and none at {place}.", "Count from 0.", position
        )
    raise ExpressionError(f"Cannot take from {describe(container)} by {describe(index)}.", "", position)


RELATIONS: dict[str, Operator] = {
    "relation_lt": ordering("<", operator.lt),
    "relation_le": ordering("<=", operator.le),
    "relation_gt": ordering(">", operator.gt),
    "relation_ge": ordering(">=", operator.ge),
    "relation_eq": equal,
    "relation_ne": unequal,
    "relation_in": is_in,
}
"""The comparing operators by their names in the grammar."""

ARITHMETIC: dict[str, Operator] = {
    "addition_add": add,
    "addition_sub": subtract,
    "multiplication_mul": multiply,
    "multiplication_div": divide,
    "multiplication_mod": remainder,
}
"""The calculating operators by their names in the grammar."""
