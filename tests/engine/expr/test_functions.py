from __future__ import annotations

import pytest

from engine.expr import ExpressionError, compile_expression
from engine.values import Value

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
    ("text", "sentence"),
    [
        ("size(1)", "`size` needs a text, a list or an object, but this is a number."),
        ("size(null)", "`size` needs a text, a list or an object, but this is empty (null)."),
        ("items.contains('a')", "`contains` needs a text, but this is a list."),
        ("text.contains(1)", "`contains` needs a text, but this is a number."),
        ("text.matches('(')", "The pattern cannot be used: missing ): (."),
        (r"text.matches(r'(a)\1')", "The pattern cannot be used: invalid escape sequence"),
        ("text.split('')", "`split` needs a separator that is not empty."),
        ("text.join('')", "`join` needs a list, but this is a text."),
        ("[1].join('')", "`join` needs a text, but this is a number."),
        ("text.replace('', 'a')", "`replace` needs a text to look for."),
        ("text.substring('a')", "`substring` needs a whole number, but this is a text."),
        ("text.substring(0.5)", "`substring` needs a whole number, but this is a number."),
        ("text.substring(true)", "`substring` needs a whole number, but this is true."),
        ("text.substring(-1)", "`substring` cannot take the characters from -1 to 14."),
        ("text.substring(3, 2)", "`substring` cannot take the characters from 3 to 2."),
        ("text.substring(big)", "The number is too large"),
        ("int('1.5')", "Cannot turn the text `1.5` into a whole number."),
        ("int('9999999999999999999')", "The number is too large"),
        ("int(true)", "Cannot turn true into a whole number."),
        ("int(big)", "The number is too large"),
        ("int(1e300)", "The number is too large"),
        ("double('nan')", "Cannot turn the text `nan` into a number."),
        ("double('1e9999')", "The number is too large"),
        ("double([])", "Cannot turn a list into a number."),
        ("double(big)", "The number is too large"),
        ("bool('yes')", "Cannot turn the text `yes` into true or false."),
        ("bool(1)", "Cannot turn a number into true or false."),
        ("string(big)", "The number is too long to be written."),
    ],
)
def test_a_function_refuses_invalid_arguments(text: str, sentence: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        evaluate(text)
    assert sentence in caught.value.message
    assert caught.value.position is not None


def test_a_pattern_of_more_than_a_thousand_characters_is_refused() -> None:
    with pytest.raises(ExpressionError, match=r"The pattern has 1,001 characters"):
        compile_expression("'a'.matches(p)").evaluate({"p": "a" * 1001})
