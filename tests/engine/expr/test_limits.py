"""Hostile expressions: each ends at once, with an error of the engine or a small value."""

from __future__ import annotations

import contextlib
import random

import pytest

from engine.expr import ExpressionError, compile_expression
from engine.expr.scope import MAX_EXPRESSION_LENGTH, MAX_NESTING, MAX_WALK, MAX_WORK, Frame
from engine.values import Value

MEGABYTE = 1_000_000
SAFE_MEGABYTE = "a" * MEGABYTE


def nested_list(depth: int) -> Value:
    value: Value = []
    for _ in range(depth):
        value = [value]
    return value


SCOPE: dict[str, Value] = {
    "input": {"title": "T"},
    "text": SAFE_MEGABYTE,
    "almost": "a" * (MEGABYTE - 1) + "b",
    "mixed": "".join(random.Random(1).choices("ab", k=MEGABYTE)),
    "part": "a" * 50 + "b" + "a" * 50,
    "items": list(range(MAX_WALK)),
    "more": list(range(MAX_WALK + 1)),
    "object": {str(number): number for number in range(MAX_WALK)},
    "deep": nested_list(50_000),
    "huge": 10**100_000,
    "patterns": [rf"\pL{{{number}}}" for number in range(1, 1000)],
}


def refusal(text: str) -> ExpressionError:
    with pytest.raises(ExpressionError) as caught:
        compile_expression(text).evaluate(SCOPE)
    return caught.value


@pytest.mark.parametrize(
    "text",
    [
        "9**9**9",
        "'a' * 1000000000",
        "[0] * 1000000000",
        "'%1000000000d'.format(1)",
        "'a'.ljust(1000000000)",
        "'{:>1000000000}'.format(1)",
        "input.__class__",
        "''.__class__.__mro__",
        "input['__class__']",
        "input.title.__len__()",
        "[].__class__",
        "__import__('os')",
        "dyn.__globals__",
        "size.__code__",
        "int.__subclasses__()",
        "input.get('title')",
        "items.min()",
        "items.reduce(r, i, 0, r + i)",
        "google.protobuf.Int64Value{value: 1}",
        "bytes(1000000000)",
        "list(items)",
        "map(input)",
        "duration('1h')",
        "timestamp('2020-01-01T00:00:00Z')",
        "(" * 10_000,
        "(" * 10_000 + "1" + ")" * 10_000,
        "(" * 500,
        "[" * 499 + "]" * 499,
        "{'a':" * 160 + "1" + "}" * 160,
        "-" * 999,
        "true?1:" * 140 + "1",
        "dyn(" * 160 + "1" + ")" * 160,
        "a[" * 300 + "0" + "]" * 300,
        '"' + r"\n" * 400,
        'r"' + r"\n" * 400,
        '"""' + r"\n" * 400,
        "'''" + "''\\" * 300,
        "1" * 999,
        "0x" + "F" * 900,
        "1." + "0" * 900 + "e" + "9" * 90,
    ],
)
def test_hostile_texts_are_refused(text: str) -> None:
    refusal(text)


def test_many_parentheses_and_long_chains_are_allowed() -> None:
    assert compile_expression("(" * 499 + "1" + ")" * 499).evaluate({}) == 1
    assert compile_expression("+".join(["1"] * 500)).evaluate({}) == 500
    assert compile_expression("!" * 996 + "true").evaluate({}) is True
    assert compile_expression("||".join(["false"] * 142)).evaluate({}) is False
    assert compile_expression("a" + ".a" * 499).paths == {("a",) * 500}
    assert compile_expression("a" + "[0]" * 332).evaluate({"a": nested_list(400)}) == nested_list(68)


def test_an_expression_has_at_most_a_thousand_characters() -> None:
    text = "1" + " " * (MAX_EXPRESSION_LENGTH - 1)
    assert compile_expression(text).evaluate({}) == 1
    assert "has 1,001 characters" in refusal(text + " ").message
    assert "has 1,001 characters" in refusal("a" * 1001).message


def test_nesting_is_limited() -> None:
    inside = MAX_NESTING - 1
    assert compile_expression("[" * inside + "1" + "]" * inside).evaluate({}) != 1
    assert "nested more than 50 levels deep" in refusal("[" * (inside + 1) + "1" + "]" * (inside + 1)).message


@pytest.mark.parametrize(
    "inner", ["map(y, y)", "filter(y, true)", "all(y, true)", "exists(y, true)", "exists_one(y, true)"]
)
@pytest.mark.parametrize("outer", ["map(x, {})", "filter(x, size([{}]) > 0)", "all(x, [[{}]] == [])", "map(x, {}, x)"])
def test_comprehensions_cannot_be_nested(outer: str, inner: str) -> None:
    with pytest.raises(ExpressionError, match="is inside another comprehension"):
        compile_expression("[1]." + outer.replace("{}", f"[2].{inner}"))


def test_a_comprehension_is_limited_to_ten_thousand_elements() -> None:
    assert compile_expression("items.map(x, x + 1)").evaluate(SCOPE) == list(range(1, MAX_WALK + 1))
    assert compile_expression("object.filter(x, false)").evaluate(SCOPE) == []
    assert "is applied to 10,001 elements" in refusal("more.map(x, x)").message
    assert "is applied to 10,001 elements" in refusal("more.exists(x, true) || true").message


@pytest.mark.parametrize(
    "text",
    [
        "text + text",
        "+".join(["text.substring(0, 99000)"] * 20),
        "items.map(x, text + '')",
        "items.map(x, text.contains('zzz'))",
        "items.map(x, almost == text)",
        "items.map(x, almost < text)",
        "items.map(x, text.lower())",
        "items.map(x, text.upper())",
        "items.map(x, text.trim())",
        "items.map(x, text.substring(1))",
        "items.map(x, string(items))",
        "items.map(x, items + items)",
        "items.map(x, items == items)",
        "items.map(x, object == object)",
        "items.map(x, x in items)",
        "items.map(x, text)",
        "items.map(x, [items, items])",
        "items.map(x, text).join('')",
        "string(items.map(x, text))",
        "text.split('a')",
        "text.replace('a', 'aaaaaaaaaaa')",
        "items.map(x, 'b'.replace('b', text))",
        "items.map(x, " + "+".join(["x"] * 480) + ")",
        "items.exists(x, " + "||".join(["x/0>1"] * 130) + ")",
        "mixed.matches('[ab]*a[ab]{500}c')",
        "items.map(x, mixed.matches('a{5}b{9}c'))",
        "patterns.exists(p, text.matches(p))",
        "items.map(x, text.matches('(x+x+)+y'))",
        "text.matches('((a{100}){100}){100}')",
        "deep == deep",
        "string(deep)",
        "deep in [deep]",
        "huge * huge",
        "huge % 7",
        "string(huge)",
        "items[huge]",
        "-huge",
    ],
)
def test_work_and_memory_are_bounded(text: str) -> None:
    refusal(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("text.matches('(a+)+$b')", False),
        ("text.matches('(a|a)*b')", False),
        ("text.matches('(a|aa)+$')", True),
        ("text.contains(part)", False),
        ("mixed.matches('c')", False),
        ("items.map(x, text.size()).size()", MAX_WALK),
        ("items.all(x, text.startsWith(text))", True),
        ("size(deep)", 1),
        ("huge > 1.5", True),
    ],
)
def test_catastrophic_patterns_take_linear_time(text: str, value: Value) -> None:
    assert compile_expression(text).evaluate(SCOPE) == value


@pytest.mark.parametrize("text", ["items.map(x, items + items) == [] || true", "false && items.all(x, x in items)"])
def test_a_limit_error_is_never_swallowed_but_can_be_avoided(text: str) -> None:
    if text.startswith("false"):
        assert compile_expression(text).evaluate(SCOPE) is False
    else:
        assert "too much work" in refusal(text).message


def test_work_is_counted_exactly() -> None:
    frame = Frame({})
    frame.charge(MAX_WORK, None)
    with pytest.raises(ExpressionError):
        frame.charge(1, None)


def test_a_result_with_shared_parts_is_bounded() -> None:
    shared = {"item": ["a" * 100_000] * 10}
    assert compile_expression("[item, item]").evaluate(shared) == [shared["item"]] * 2
    with pytest.raises(ExpressionError, match="larger than 10,000,000 characters"):
        compile_expression("[item, item, item, item, item, item, item, item, item, item, item]").evaluate(shared)


def test_a_deep_stack_of_the_caller_is_an_engine_error() -> None:
    def descend() -> None:
        try:
            descend()
        except RecursionError:
            outcomes.append(attempt())

    def attempt() -> str:
        compile_expression.cache_clear()
        try:
            return str(compile_expression("[[[[1]]]].map(x, x[0][0][0] + one)[0] == 2").evaluate({"one": 1}))
        except ExpressionError as error:
            return error.message

    assert attempt() == "True"
    outcomes: list[str] = []
    with contextlib.suppress(RecursionError):
        descend()
    refused = set(outcomes) - {"True"}
    assert refused
    assert all("nested too deeply" in message for message in refused)


def test_a_lack_of_memory_is_an_engine_error() -> None:
    class Exhausted:
        def member(self, name: str) -> Value:
            raise MemoryError(name)

    with pytest.raises(ExpressionError, match="not enough memory"):
        compile_expression("state.a + 1").evaluate({"state": Exhausted()})
