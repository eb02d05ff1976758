"""Conditions as rows of `value, comparison, value` for people who don't write expressions, and back.

`comparisons_of` reads the expressions that `expression_of` writes, and the usual variants of them. All others stay
expressions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Literal, TypeAlias

from engine.expr.expression import compile_expression
from engine.expr.scope import ExpressionError


class Comparison(StrEnum):
    """How a row compares its values; the text is what people read."""

    CONTAINS = "contains"
    NOT_CONTAINS = "does not contain"
    EQUALS = "equals"
    NOT_EQUALS = "does not equal"
    AT_LEAST = "is at least"
    AT_MOST = "is at most"
    GREATER = "is greater than"
    LESS = "is less than"
    LONGER = "is longer than"
    SHORTER = "is shorter than"
    STARTS_WITH = "starts with"
    ENDS_WITH = "ends with"
    MATCHES = "matches"
    EMPTY = "is empty"
    NOT_EMPTY = "is not empty"
    TRUE = "is true"
    FALSE = "is false"


UNARY: Final = frozenset({Comparison.EMPTY, Comparison.NOT_EMPTY, Comparison.TRUE, Comparison.FALSE})
"""Comparisons without a second value."""

Constant: TypeAlias = "str | int | float | bool | None"


@dataclass(frozen=True, slots=True)
class Name:
    """A value of the run, by its dotted name: `output`, `nodes.judge.score`."""

    path: str


@dataclass(frozen=True, slots=True)
class Row:
    """One comparison.

    Attributes:
        left: The value that is compared, by its dotted name.
        comparison: How.
        right: What it is compared with: a name, or a literal. None for a comparison in `UNARY`.
    """

    left: str
    comparison: Comparison
    right: Name | Constant = None


@dataclass(frozen=True, slots=True)
class Rows:
    """Comparisons of which all, or any, must hold."""

    rows: tuple[Row, ...]
    mode: Literal["all", "any"] = "all"


_TEMPLATES: Final[Mapping[Comparison, str]] = {
    Comparison.CONTAINS: "{a}.contains({b})",
    Comparison.NOT_CONTAINS: "!{a}.contains({b})",
    Comparison.EQUALS: "{a} == {b}",
    Comparison.NOT_EQUALS: "{a} != {b}",
    Comparison.AT_LEAST: "{a} >= {b}",
    Comparison.AT_MOST: "{a} <= {b}",
    Comparison.GREATER: "{a} > {b}",
    Comparison.LESS: "{a} < {b}",
    Comparison.LONGER: "size({a}) > {b}",
    Comparison.SHORTER: "size({a}) < {b}",
    Comparison.STARTS_WITH: "{a}.startsWith({b})",
    Comparison.ENDS_WITH: "{a}.endsWith({b})",
    Comparison.MATCHES: "{a}.matches({b})",
    Comparison.EMPTY: "size({a}) == 0",
    Comparison.NOT_EMPTY: "size({a}) > 0",
    Comparison.TRUE: "{a}",
    Comparison.FALSE: "!{a}",
}

_PATH: Final = r"(?:[A-Za-z_]\w*+(?:\.[A-Za-z_]\w*+|\[\d+\])*)"
_QUOTED: Final = re.compile(r'"(?:[^"\\\n]|\\.)*+"|\'(?:[^\'\\\n]|\\.)*+\'')
_PLACEHOLDER: Final = re.compile("\ue000(\\d+)\ue001")
_VALUE: Final = rf"(?:\ue000\d+\ue001|-?\d+(?:\.\d+)?(?:e-?\d+)?|{_PATH})"
_LITERALS: Final[Mapping[str, Constant]] = {"true": True, "false": False, "null": None}


def _pattern(template: str) -> re.Pattern[str]:
    """A template as a pattern that allows for other spaces, and for `a.size()` in place of `size(a)`."""
    size = rf"(?:size\(\s*(?P<a>{_PATH})\s*\)|(?P<a2>{_PATH})\.size\(\))"
    parts = re.split(r"(size\(\{a\}\)|\{a\}|\{b\}| )", template)
    known = {"size({a})": size, "{a}": rf"(?P<a>{_PATH})", "{b}": rf"\s*(?P<b>{_VALUE})\s*", " ": r"\s*"}
    return re.compile("".join(known.get(part, re.escape(part)) for part in parts))


_PATTERNS: Final = tuple(  # those that also match what is more special come last
    (comparison, _pattern(_TEMPLATES[comparison]))
    for comparison in sorted(_TEMPLATES, key=lambda one: (one is not Comparison.NOT_EMPTY, one is not Comparison.EMPTY))
)


def expression_of(rows: Rows) -> str:
    """Write rows as an expression; without rows it is empty."""
    joined = " && " if rows.mode == "all" else " || "
    return joined.join(_TEMPLATES[row.comparison].format(a=row.left, b=_written(row.right)) for row in rows.rows)


def comparisons_of(expression: str) -> Rows | None:
    """Read an expression as rows.

    Returns:
        The rows; None where the expression is more than comparisons joined by `&&` alone or `||` alone.
    """
    if not expression.strip():
        return Rows(())
    try:
        compile_expression(expression)
    except ExpressionError:
        return None
    quoted: list[str] = []

    def set_aside(match: re.Match[str]) -> str:
        quoted.append(match[0])
        return f"\ue000{len(quoted) - 1}\ue001"

    text = _QUOTED.sub(set_aside, expression)
    if "//" in text or ("&&" in text and "||" in text):
        return None
    mode: Literal["all", "any"] = "any" if "||" in text else "all"
    rows = [_row(part.strip(), quoted) for part in re.split(r"&&|\|\|", text)]
    whole = tuple(row for row in rows if row is not None)
    return Rows(whole, mode) if len(whole) == len(rows) else None


def _row(text: str, quoted: list[str]) -> Row | None:
    for comparison, pattern in _PATTERNS:
        match = pattern.fullmatch(text)
        if match is None:
            continue
        found = match.groupdict()
        left = found.get("a") or found.get("a2") or ""
        if left in _LITERALS:
            return None
        return Row(left, comparison, None if comparison in UNARY else _read(match["b"], quoted))
    return None


def _read(text: str, quoted: list[str]) -> Name | Constant:
    """Read the second value of a comparison."""
    placeholder = _PLACEHOLDER.fullmatch(text)
    if placeholder is not None:
        value = compile_expression(quoted[int(placeholder[1])]).evaluate({})
        assert isinstance(value, str), "a quoted text is a text"
        return value
    if text in _LITERALS:
        return _LITERALS[text]
    if text[0] == "-" or text[0].isdigit():
        return float(text) if "." in text or "e" in text else int(text)
    return Name(text)


def _written(value: Name | Constant) -> str:
    return value.path if isinstance(value, Name) else json.dumps(value, ensure_ascii=False)
