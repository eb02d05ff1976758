from __future__ import annotations

import pytest

from engine.expr import ExpressionError, compile_expression
from engine.values import Value
from tests.wording import mentions

SCOPE: dict[str, Value] = {"text": " Hello, World ", "items": ["a", "b"], "half": "x\ud800y", "big": 10**5000}


def evaluate(text: str) -> Value:
    return compile_expression(text).evaluate(SCOPE)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("size('añ😀')", 3),
        ("items.size()", 2),
        ("size({'a': 1})", 1),
        ("text.contains('World')", True),
        ("text.contains('world')", False),
        ("'abc'.startsWith('ab')", True),
        ("'abc'.endsWith('ab')", False),
        ("'abc'.matches('^a.c$')", True),
        ("matches('abc', 'b')", True),
        ("'abc'.matches('^b')", False),
        ("half.matches('x.y')", True),
        ("text.lower()", " hello, world "),
        ("text.upper()", " HELLO, WORLD "),
        ("text.trim()", "Hello, World"),
        ("'a,b,,c'.split(',')", ["a", "b", "", "c"]),
        ("items.join('-')", "a-b"),
        ("items.join()", "ab"),
        ("[].join(',')", ""),
        ("'banana'.replace('an', 'AN')", "bANANa"),
        ("'banana'.substring(2)", "nana"),
        ("'banana'.substring(1, 3)", "an"),
        ("'banana'.substring(4, 100.0)", "na"),
        ("'banana'.substring(100)", ""),
        ("int('-12')", -12),
        ("int(2.9)", 2),
        ("int(-2.9)", -2),
        ("int(7)", 7),
        ("double('1.5e3')", 1500.0),
        ("double(2)", 2.0),
        ("bool('true')", True),
        ("bool(false)", False),
        ("string(1.5)", "1.5"),
        ("string(12)", "12"),
        ("string(true)", "true"),
        ("string('as it is')", "as it is"),
        ("string(null)", ""),
        ("string({'b': [1, null], 'a': 'x'})", '{"a":"x","b":[1,null]}'),
        ("dyn(1)", 1),
        (".size(items)", 2),
    ],
)
def test_a_function_returns_its_value(text: str, value: Value) -> None:
    outcome = evaluate(text)
    assert outcome == value
    assert type(outcome) is type(value)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("size(1)", "`size` … a text … a list … an object … a number"),
        ("size(null)", "`size` … a text … a list … an object … empty (null)"),
        ("items.contains('a')", "`contains` … a text … a list"),
        ("text.contains(1)", "`contains` … a text … a number"),
        ("text.matches('(')", "missing )"),
        (r"text.matches(r'(a)\1')", "The pattern cannot be used: invalid escape sequence"),
        ("text.split('')", "`split`"),
        ("text.join('')", "`join` … a list … a text"),
        ("[1].join('')", "`join` … a text … a number"),
        ("text.replace('', 'a')", "`replace` … a text"),
        ("text.substring('a')", "`substring` … a whole number … a text"),
        ("text.substring(0.5)", "`substring` … a whole number … a number"),
        ("text.substring(true)", "`substring` … a whole number … true"),
        ("text.substring(-1)", "`substring` … -1 … 14"),
        ("text.substring(3, 2)", "`substring` … 3 … 2"),
        ("text.substring(big)", "The number is too large"),
        ("int('1.5')", "`1.5` … a whole number"),
        ("int('9999999999999999999')", "The number is too large"),
        ("int(true)", "true … a whole number"),
        ("int(big)", "The number is too large"),
        ("int(1e300)", "The number is too large"),
        ("double('nan')", "`nan` … a number"),
        ("double('1e9999')", "The number is too large"),
        ("double([])", "a list … a number"),
        ("double(big)", "The number is too large"),
        ("bool('yes')", "`yes` … true or false"),
        ("bool(1)", "a number … true or false"),
        ("string(big)", "too long"),
    ],
)
def test_a_function_refuses_invalid_arguments(text: str, parts: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        evaluate(text)
    assert mentions(caught.value.message, parts)
    assert caught.value.position is not None


def test_a_pattern_of_more_than_a_thousand_characters_is_refused() -> None:
    with pytest.raises(ExpressionError, match=r"The pattern has 1,001 characters"):
        compile_expression("'a'.matches(p)").evaluate({"p": "a" * 1001})
