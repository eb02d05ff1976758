"""Conditions as rows: both directions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.expr import compile_expression
from engine.expr.comparisons import UNARY, Comparison, Name, Row, Rows, comparisons_of, expression_of

PATHS = st.sampled_from(["output", "similarity", "loop.index", "nodes.judge.score", "loop.history[0].result"])
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
NUMBERS = st.integers(-(10**9), 10**9) | st.floats(-1e6, 1e6).map(lambda number: round(number, 3) + 0.0)
VALUES = TEXTS | NUMBERS | st.booleans() | st.none() | PATHS.map(Name)


@st.composite
def rows(draw: st.DrawFn) -> Row:
    comparison = draw(st.sampled_from(list(Comparison)))
    right = None if comparison in UNARY else draw(VALUES)
    if comparison is Comparison.LONGER and right == 0 and not isinstance(right, bool):
        right = 1  # longer than 0 is not empty
    return Row(draw(PATHS), comparison, right)


@given(st.lists(rows(), max_size=4), st.sampled_from(["all", "any"]))
def test_rows_survive_the_way_there_and_back(some: list[Row], mode: str):
    written = Rows(tuple(some), mode if len(some) > 1 else "all")  # pyright: ignore[reportArgumentType]
    assert comparisons_of(expression_of(written)) == written


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("", Rows(())),
        ('output.contains("good")', Rows((Row("output", Comparison.CONTAINS, "good"),))),
        ("!output.contains('a && b')", Rows((Row("output", Comparison.NOT_CONTAINS, "a && b"),))),
        ("output.size()>200", Rows((Row("output", Comparison.LONGER, 200),))),
        ("size( output ) == 0", Rows((Row("output", Comparison.EMPTY),))),
        ("size(output) > 0", Rows((Row("output", Comparison.NOT_EMPTY),))),
        ("similarity >= 0.9", Rows((Row("similarity", Comparison.AT_LEAST, 0.9),))),
        (
            'nodes.judge.done || output == "done"',
            Rows((Row("nodes.judge.done", Comparison.TRUE), Row("output", Comparison.EQUALS, "done")), "any"),
        ),
        ("output != loop.previous", Rows((Row("output", Comparison.NOT_EQUALS, Name("loop.previous")),))),
        ("x == true", Rows((Row("x", Comparison.EQUALS, True),))),
    ],
)
def test_reads_expressions_as_rows(expression: str, expected: Rows):
    assert comparisons_of(expression) == expected


@pytest.mark.parametrize(
    "expression",
    [
        "a && b || c",
        "(a || b) && c",
        "score * 2 > 3",
        "loop.history.exists(x, x.score > 3)",
        "output contains x",
        "true",
        "output.contains('a') // comment",
        "has(nodes.judge)",
        "a ? b : c",
    ],
)
def test_leaves_other_expressions_as_they_are(expression: str):
    assert comparisons_of(expression) is None


@pytest.mark.parametrize(
    ("row", "scope", "holds"),
    [
        (Row("output", Comparison.LONGER, 3), {"output": "abcd"}, True),
        (Row("output", Comparison.NOT_CONTAINS, 'say "x"\n'), {"output": 'he: say "x"\n.'}, False),
        (Row("output", Comparison.EMPTY), {"output": ""}, True),
        (Row("output", Comparison.MATCHES, r"^\d+$"), {"output": "123"}, True),
        (Row("score", Comparison.AT_MOST, 3), {"score": 3}, True),
        (Row("done", Comparison.FALSE), {"done": False}, True),
    ],
)
def test_rows_mean_what_they_say(row: Row, scope: dict[str, object], holds: bool):
    assert compile_expression(expression_of(Rows((row,)))).evaluate(scope) is holds  # pyright: ignore[reportArgumentType]
