"""The operators, functions and comprehensions of expressions on JSON values. To add a function, add it to `FUNCTIONS`.

They follow CEL with these differences. JSON does not separate whole numbers from others, so they mix (`8.5 >= 8`,
`1 == 1.0`, `1 + 0.5`, `5.5 % 2`). It has no infinity, so division by zero always fails. Values of different types are
never equal, and comparing them with `==` is no error. Whole numbers have 64 bits: a longer one compares and passes
through unchanged, but arithmetic with it fails. A few functions for texts are extensions. Knows nothing of syntax.
"""

from __future__ import annotations

import functools
import math
import operator
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeGuard, cast

from engine.expr.scope import (
    CHARACTERS_READ,
    MAX_TEXT,
    MAX_WALK,
    PIECE,
    ExpressionError,
    Frame,
    LimitError,
    Records,
    describe,
    member_of,
    written_size,
)
from engine.formatting import format_count
from engine.values import Value, encodable_text, to_text

Operator: TypeAlias = "Callable[[Frame, int | None, Value, Value], Value]"
"""Takes the frame of the evaluation, the position of the operator, and both operands."""

_INTEGER_BITS = 63


def refuse(action: str, position: int | None, *values: Value, remedy: str = "") -> ExpressionError:
    """The error for operands of a wrong type, such as "Cannot add a text and a number"."""
    kinds = " and ".join(describe(value) for value in values)
    return ExpressionError(f"Cannot {action} {kinds}.", remedy, position)


def is_number(value: Value) -> TypeGuard[int | float]:
    """Whether a value is a number; true and false are none."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def checked(number: float, position: int | None) -> int | float:
    """Check that JSON and 64 bits can hold a number, and return it.

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
    """Add numbers, or concatenate texts or lists."""
    if isinstance(left, str) and isinstance(right, str):
        frame.charge_text(len(left) + len(right), position)
        return left + right
    if isinstance(left, list) and isinstance(right, list):
        frame.charge(len(left) + len(right), position)
        return left + right
    if isinstance(left, str) or isinstance(right, str):
        raise refuse("add", position, left, right, remedy="Convert the other value with string(…).")
    return _add_numbers(frame, position, left, right)


def arithmetic(action: str, work: Callable[[float, float], int | float]) -> Operator:
    """Make an operator on numbers."""

    def calculate(_frame: Frame, position: int | None, left: Value, right: Value) -> Value:
        if not is_number(left) or not is_number(right):
            raise refuse(action, position, left, right)
        checked(left, position)
        checked(right, position)
        try:
            return checked(work(left, right), position)
        except ZeroDivisionError:
            raise ExpressionError("This divides by zero.", "Test for zero before.", position) from None

    return calculate


_add_numbers = arithmetic("add", operator.add)


def divide(left: float, right: float) -> int | float:
    """A quotient; for integers, truncated towards zero."""
    if isinstance(left, int) and isinstance(right, int):
        quotient = abs(left) // abs(right)
        return quotient if (left < 0) == (right < 0) else -quotient
    return left / right


def remainder(left: float, right: float) -> int | float:
    """The remainder of a division, with the sign of the dividend."""
    if right == 0:
        raise ZeroDivisionError
    if isinstance(left, int) and isinstance(right, int):
        rest = abs(left) % abs(right)
        return -rest if left < 0 else rest
    return math.fmod(left, right)


def negate(position: int | None, value: Value) -> Value:
    """Negate a number."""
    if not is_number(value):
        raise refuse("take the negative of", position, value)
    return checked(-value, position)


def as_bool(value: Value, position: int | None) -> bool:
    """Check that a value is true or false, and return it.

    Raises:
        ExpressionError: It is neither.
    """
    if isinstance(value, bool):
        return value
    raise ExpressionError(
        f"True or false is needed here, but this is {describe(value)}.", "Compare it with something.", position
    )


def ordering(symbol: str, compare: Callable[[float, float], bool]) -> Operator:
    """Make one of the operators `<`, `<=`, `>`, `>=` for numbers, texts and booleans."""

    def ordered(frame: Frame, position: int | None, left: Value, right: Value) -> Value:
        if is_number(left) and is_number(right):
            return compare(left, right)
        if isinstance(left, str) and isinstance(right, str):
            frame.charge(min(len(left), len(right)) // CHARACTERS_READ, position)
            return compare(left, right)  # pyright: ignore[reportArgumentType] texts are compared as well
        if isinstance(left, bool) and isinstance(right, bool):
            return compare(left, right)
        raise refuse(f"compare by {symbol}", position, left, right)

    return ordered


def equal(frame: Frame, position: int | None, left: Value, right: Value) -> bool:
    """Whether two values are deeply equal as JSON; 1 equals 1.0."""
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


def is_in(frame: Frame, position: int | None, item: Value, container: Value) -> bool:
    """Whether a list has an element, or an object a member of that name."""
    if isinstance(container, list):
        frame.charge(len(container), position)
        return any(equal(frame, position, item, other) for other in container)
    if isinstance(container, dict) and isinstance(item, str):
        return item in container
    remedy = "Write TEXT.contains(PART)." if isinstance(container, str) else ""
    raise ExpressionError(f"Cannot look for {describe(item)} in {describe(container)} with `in`.", remedy, position)


def element(position: int | None, container: Value, index: Value) -> Value:
    """Return a list's element by its index from 0, or an object's member by its name."""
    if isinstance(container, dict) and isinstance(index, str):
        return member_of(container, index, "This", position)
    if isinstance(container, list) and is_number(index):
        place = checked(index, position)
        if place == place // 1 and 0 <= place < len(container):
            return container[int(place)]
        if isinstance(container, Records) and place == place // 1 and 0 <= place < container.most:
            return container.blank
        raise ExpressionError(
            f"The list has {len(container)} elements, but none at index {place}.", "Count from 0.", position
        )
    raise ExpressionError(f"Cannot take from {describe(container)} by {describe(index)}.", "", position)


RELATIONS: dict[str, Operator] = {
    "relation_lt": ordering("<", operator.lt),
    "relation_le": ordering("<=", operator.le),
    "relation_gt": ordering(">", operator.gt),
    "relation_ge": ordering(">=", operator.ge),
    "relation_eq": equal,
    "relation_ne": lambda frame, position, left, right: not equal(frame, position, left, right),
    "relation_in": is_in,
}
"""The relational operators by their names in the grammar."""

ARITHMETIC: dict[str, Operator] = {
    "addition_add": add,
    "addition_sub": arithmetic("subtract", operator.sub),
    "multiplication_mul": arithmetic("multiply", operator.mul),
    "multiplication_div": arithmetic("divide", divide),
    "multiplication_mod": arithmetic("divide", remainder),
}
"""The arithmetic operators by their names in the grammar."""


_MAX_PATTERN_LENGTH = 1_000
_MEMORY = 1 << 20
"""Bytes of a compiled pattern with the states that it collects in a search."""

_STATES_PER_STEP = 100
"""A pattern's instructions times a text's characters in one step, at worst (measured: states do not fit the memory)."""

_STEPS_PER_PATTERN_CHARACTER = 20
"""Steps of compilation (measured: 23 ms for `\\pL` 330 times, which is then too large)."""


def search(frame: Frame, position: int | None, text: str, pattern: str) -> bool:
    """Whether a pattern (in RE2 syntax) matches anywhere in a text.

    Raises:
        ExpressionError: The pattern is not well-formed, or too large.
        LimitError: The text is too long for this pattern.
    """
    if len(pattern) > _MAX_PATTERN_LENGTH:
        raise ExpressionError(
            f"The pattern has {format_count(len(pattern), 'character')}; "
            f"at most {format_count(_MAX_PATTERN_LENGTH)} are allowed.",
            "",
            position,
        )
    if pattern not in frame.patterns:
        frame.charge(len(pattern) * _STEPS_PER_PATTERN_CHARACTER, position)
    library = _library()
    try:
        compiled = _compile(encodable_text(pattern))
    except library.error as error:
        reason = error.args[0].decode("utf-8", "replace")
        raise ExpressionError(
            f"The pattern cannot be used: {reason[:100]}.", "Correct the pattern.", position
        ) from None
    frame.patterns.add(pattern)
    frame.charge(1 + compiled.programsize * len(text) // _STATES_PER_STEP, position)
    return compiled.search(encodable_text(text)) is not None


def _library() -> Any:
    """The package `re2`, which has no types."""
    import re2  # pyright: ignore[reportMissingTypeStubs]

    return cast("Any", re2)


@functools.lru_cache(maxsize=64)
def _compile(pattern: str) -> Any:
    library = _library()
    options = library.Options()
    options.max_mem = _MEMORY
    options.log_errors = False
    return library.compile(pattern, options)


_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")
_NUMBER = re.compile(r"[+-]?(?:[0-9]{1,400}(?:\.[0-9]{0,400})?|\.[0-9]{1,400})(?:[eE][+-]?[0-9]{1,4})?")


@dataclass(frozen=True, slots=True)
class Function:
    """A function of the language.

    Attributes:
        call: Takes the frame of the evaluation, the position of the call, and the arguments. For a method, the first
            argument stands before the dot.
        least: Minimum number of arguments.
        most: Maximum number of arguments.
        plain: Whether it can be called as `name(a, b)`.
        method: Whether it can be called as `a.name(b)`.
    """

    call: Callable[..., Value]
    least: int = 1
    most: int = 1
    plain: bool = False
    method: bool = False


def _text(name: str, value: Value, position: int | None) -> str:
    if isinstance(value, str):
        return value
    raise ExpressionError(f"`{name}` needs a text, but this is {describe(value)}.", "", position)


def _whole(name: str, value: Value, position: int | None) -> int:
    if is_number(value) and value == value // 1:
        return int(checked(value, position))
    raise ExpressionError(f"`{name}` needs a whole number, but this is {describe(value)}.", "", position)


def _size(_frame: Frame, position: int | None, value: Value) -> Value:
    if isinstance(value, (str, list, dict)):
        return len(value)
    raise ExpressionError(f"`size` needs a text, a list or an object, but this is {describe(value)}.", "", position)


def _contains(frame: Frame, position: int | None, text: Value, part: Value) -> Value:
    whole, wanted = _text("contains", text, position), _text("contains", part, position)
    _charge_search(frame, position, whole, wanted)
    return wanted in whole


def _charge_search(frame: Frame, position: int | None, text: str, part: str) -> None:
    """Count a search. In the worst case of a short part, the text is read once for each of its characters."""
    frame.charge(1 + len(text) * min(1 + len(part) // 10, 10) // CHARACTERS_READ, position)


def _text_test(name: str, test: Callable[[str, str], bool]) -> Callable[..., Value]:
    def call(_frame: Frame, position: int | None, text: Value, part: Value) -> Value:
        return test(_text(name, text, position), _text(name, part, position))

    return call


def _matches(frame: Frame, position: int | None, text: Value, pattern: Value) -> Value:
    return search(frame, position, _text("matches", text, position), _text("matches", pattern, position))


def _text_change(name: str, change: Callable[[str], str]) -> Callable[..., Value]:
    def call(frame: Frame, position: int | None, text: Value) -> Value:
        whole = _text(name, text, position)
        frame.charge_text(len(whole), position)
        return change(whole)

    return call


def _split(frame: Frame, position: int | None, text: Value, separator: Value) -> Value:
    whole, mark = _text("split", text, position), _text("split", separator, position)
    if not mark:
        raise ExpressionError("`split` needs a separator that is not empty.", "Name the separator.", position)
    _charge_search(frame, position, whole, mark)
    frame.charge_text(len(whole), position)
    frame.charge((whole.count(mark) + 1) * PIECE, position)
    return list[Value](whole.split(mark))


def _join(frame: Frame, position: int | None, items: Value, separator: Value = "") -> Value:
    mark = _text("join", separator, position)
    if not isinstance(items, list):
        raise ExpressionError(f"`join` needs a list, but this is {describe(items)}.", "", position)
    frame.charge(len(items), position)
    texts = [_text("join", item, position) for item in items]
    frame.charge_text(sum(map(len, texts)) + len(mark) * len(texts), position)
    return mark.join(texts)


def _replace(frame: Frame, position: int | None, text: Value, old: Value, new: Value) -> Value:
    whole, before = _text("replace", text, position), _text("replace", old, position)
    after = _text("replace", new, position)
    if not before:
        raise ExpressionError("`replace` needs a text to look for.", "Name what is to be replaced.", position)
    _charge_search(frame, position, whole, before)
    frame.charge_text(len(whole) + whole.count(before) * (len(after) - len(before)), position)
    return whole.replace(before, after)


def _substring(frame: Frame, position: int | None, text: Value, start: Value, end: Value = None) -> Value:
    whole, first = _text("substring", text, position), _whole("substring", start, position)
    last = max(first, len(whole)) if end is None else _whole("substring", end, position)
    if first < 0 or last < first:
        raise ExpressionError(
            f"`substring` cannot take the characters from {first} to {last}.", "Count from 0, start first.", position
        )
    piece = whole[first:last]
    frame.charge_text(len(piece), position)
    return piece


def _int(_frame: Frame, position: int | None, value: Value) -> Value:
    if isinstance(value, str) and _INTEGER.fullmatch(value):
        return checked(int(value), position)
    if is_number(value):
        return checked(math.trunc(checked(value, position)), position)
    return _not_converted("a whole number", value, position)


def _double(_frame: Frame, position: int | None, value: Value) -> Value:
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        return checked(float(value), position)
    if is_number(value):
        return float(checked(value, position))
    return _not_converted("a number", value, position)


def _bool(_frame: Frame, position: int | None, value: Value) -> Value:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value in {"true", "false"}:
        return value == "true"
    return _not_converted("true or false", value, position)


def _not_converted(wanted: str, value: Value, position: int | None) -> Value:
    shown = f"the text `{value[:30]}`" if isinstance(value, str) else describe(value)
    raise ExpressionError(f"Cannot turn {shown} into {wanted}.", "", position)


def _string(frame: Frame, position: int | None, value: Value) -> Value:
    frame.charge_text(written_size(value, MAX_TEXT), position)
    try:
        return to_text(value)
    except ValueError:
        raise ExpressionError("The number is too long to be written.", "", position) from None


def _dyn(_frame: Frame, _position: int | None, value: Value) -> Value:
    return value


FUNCTIONS: dict[str, Function] = {
    "size": Function(_size, plain=True, method=True),
    "contains": Function(_contains, 2, 2, method=True),
    "startsWith": Function(_text_test("startsWith", str.startswith), 2, 2, method=True),
    "endsWith": Function(_text_test("endsWith", str.endswith), 2, 2, method=True),
    "matches": Function(_matches, 2, 2, plain=True, method=True),
    "lower": Function(_text_change("lower", str.lower), method=True),
    "upper": Function(_text_change("upper", str.upper), method=True),
    "trim": Function(_text_change("trim", str.strip), method=True),
    "split": Function(_split, 2, 2, method=True),
    "join": Function(_join, 1, 2, method=True),
    "replace": Function(_replace, 3, 3, method=True),
    "substring": Function(_substring, 2, 3, method=True),
    "int": Function(_int, plain=True),
    "double": Function(_double, plain=True),
    "bool": Function(_bool, plain=True),
    "string": Function(_string, plain=True),
    "dyn": Function(_dyn, plain=True),
}
"""All functions by name. `has` and the comprehensions are not among them, since they take no values."""


Step: TypeAlias = "Callable[[Frame], Value]"
"""A compiled part of an expression."""


@dataclass(frozen=True, slots=True)
class Body:
    """The body of a comprehension.

    Attributes:
        name: The comprehension's name.
        condition: The condition on an element; None for all elements.
        outcome: The result for an element; None for the element itself.
        cost: Steps for one element.
        position: The comprehension's position in the expression.
    """

    name: str
    condition: Step | None
    outcome: Step | None
    cost: int
    position: int | None


def decide(frame: Frame, steps: Iterable[Step], decisive: bool, position: int | None) -> bool:
    """Evaluate steps until one returns the decisive answer; else return the other answer.

    As in CEL, a failed step counts only if no other step is decisive (`x > 1 || true` is true whatever `x` is).

    Raises:
        ExpressionError: A step failed or returned no boolean, and no step was decisive.
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
    """Evaluate `map` or `filter`: the results for all elements that meet the condition."""
    condition, outcome = body.condition, body.outcome
    return [
        item if outcome is None else outcome(frame)
        for item in _elements(frame, target, body)
        if condition is None or as_bool(condition(frame), body.position)
    ]


def exists_one(frame: Frame, target: Value, body: Body) -> Value:
    """Whether exactly one element meets the condition."""
    return len(collect(frame, target, body)) == 1


def quantify(frame: Frame, target: Value, body: Body) -> Value:
    """Evaluate `all` or `exists`."""
    assert body.condition is not None
    condition = body.condition
    steps = (condition for _ in _elements(frame, target, body))
    return decide(frame, steps, body.name == "exists", body.position)


def _elements(frame: Frame, target: Value, body: Body) -> Iterator[Value]:
    """Iterate over the elements of a list or the names of an object, and bind the frame's variable to each."""
    if not isinstance(target, (list, dict)):
        raise ExpressionError(
            f"`{body.name}` needs a list or an object, but this is {describe(target)}.", "", body.position
        )
    if len(target) > MAX_WALK:
        raise LimitError(
            f"`{body.name}` is applied to {format_count(len(target), 'element')}; "
            f"at most {format_count(MAX_WALK)} are allowed.",
            "Use an iterator node.",
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
"""All comprehensions by name."""
