"""Corrections of expressions that are valid in other languages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.expr import compile_expression
from engine.expr.correction import correct

NAMES = ("output", "similarity", "loop", "nodes", "input", "score")


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ('output contains "good"', 'output.contains("good")'),
        ("output contains good", 'output.contains("good")'),
        ('output CONTAINS "not good"', 'output.contains("not good")'),
        ('output does not contain "TODO"', '!output.contains("TODO")'),
        ("output starts with 'OK'", "output.startsWith('OK')"),
        ("nodes.judge.branch ends with done", 'nodes.judge.branch.endsWith("done")'),
        ('output matches "^A"', 'output.matches("^A")'),
        ("output contains 42", 'output.contains("42")'),
        ("output is empty", "size(output) == 0"),
        ("output is not empty", "size(output) > 0"),
        ("output is longer than 200", "size(output) > 200"),
        ("output longer than 200 and score at least 8", "size(output) > 200 && score >= 8"),
        ("score is at least 0.9", "score >= 0.9"),
        ("score is greater than 3 or loop.index is 4", "score > 3 || loop.index == 4"),
        ("score = 1", "score == 1"),
        ("score === 1", "score == 1"),
        ("score=1", "score == 1"),
        ("score <> 1", "score != 1"),
        ("output equals done", 'output == "done"'),
        ("output == done", 'output == "done"'),
        ("output is not done", 'output != "done"'),
        ("output is null", "output == null"),
        ("output = None", "output == null"),
        ("nodes.judge.done = True", "nodes.judge.done == true"),
        ("len(output) > 5", "size(output) > 5"),
        ("output.length > 5", "output.size() > 5"),
        ("output.length() > 5", "output.size() > 5"),
        ('output.lower().includes("x")', 'output.lower().contains("x")'),
        ('output.toLowerCase().startswith("x")', 'output.lower().startsWith("x")'),
        ("output == “done”", 'output == "done"'),
        ("score ≥ 8", "score >= 8"),
        ("{{output}} contains 'x'", None),
        ("{{score >= 8 and similarity > 0.9}}", "score >= 8 && similarity > 0.9"),
        ("not nodes.judge.done", "!nodes.judge.done"),
        ('loop.history[0].result contains "x"', 'loop.history[0].result.contains("x")'),
    ],
)
def test_a_correction_is_what_was_meant(written: str, meant: str | None):
    assert correct(written, NAMES) == meant


@pytest.mark.parametrize("text", ["", "output contains", "((", 'output "x"', "score >", "x" * 100_000])
def test_no_correction_without_a_guess(text: str):
    assert correct(text, NAMES) is None


@pytest.mark.parametrize("text", ['output.contains("is = and")', "score >= 8 && similarity > 0.9", "!nodes.judge.done"])
def test_correct_expressions_need_no_correction(text: str):
    assert correct(text, NAMES) is None


@given(
    st.lists(
        st.sampled_from(["output", "contains", '"a"', "is", "not", "and", "or", "=", "(", ")", "8", "“", "&", "x"])
    )
)
def test_a_correction_compiles(words: list[str]):
    offered = correct(" ".join(words), NAMES)
    if offered is not None:
        compile_expression(offered)
