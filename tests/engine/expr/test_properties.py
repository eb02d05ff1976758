"""Any text raises only the two errors; where cel-python's interpreter has a value, it agrees."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from engine.expr import ExpressionError, TemplateError, compile_expression, compile_template
from engine.expr.functions import FUNCTIONS
from engine.values import Value
from tests.examples import examples

JSON_VALUES: st.SearchStrategy[Value] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=10,
)
NAMES = ["a", "b", "input", "loop", "x", "true", "null", "in", "has", "map", "all", "exists", "filter", *FUNCTIONS]
PIECES = st.sampled_from(
    [*NAMES, *"+-*/%!<>=&|?:.,()[]{}'\"\\ 0159eurb#@\n_", "==", "&&", "||", "1.5", "'t'", "{{", "}}", "//", '"""', "é"]
)
SOUP = st.lists(PIECES, max_size=25).map("".join)


def check_result(value: Value) -> None:
    json.dumps(value, allow_nan=False)


def check_error(error: ExpressionError | TemplateError, text: str) -> None:
    assert str(error).endswith(".") or error.remedy
    assert error.position is None or 0 <= error.position <= len(text)


@given(st.text() | SOUP, JSON_VALUES)
@example("true.x", None)
@example("x.true", None)
@example("[true][true]", None)
def test_any_expression_is_a_json_value_or_an_expression_error(text: str, value: Value) -> None:
    try:
        check_result(compile_expression(text).evaluate({"a": value, "b": [value], "input": {"a": value}}))
    except ExpressionError as error:
        check_error(error, text)


@given(st.text() | SOUP | SOUP.map("{{{{{}}}}}".format), JSON_VALUES)
def test_any_template_is_a_text_or_a_template_error(text: str, value: Value) -> None:
    try:
        outcome = compile_template(text).render({"a": value, "b": [value], "input": {"a": value}})
        assert isinstance(outcome, str)
    except TemplateError as error:
        check_error(error, text)


@given(st.sampled_from(sorted(FUNCTIONS)), st.lists(JSON_VALUES, min_size=1, max_size=3))
def test_every_function_accepts_any_values_or_fails(name: str, values: list[Value]) -> None:
    scope = {f"v{index}": value for index, value in enumerate(values)}
    first, *others = scope
    form = f"{name}({', '.join(scope)})" if FUNCTIONS[name].plain else f"{first}.{name}({', '.join(others)})"
    with contextlib.suppress(ExpressionError):
        check_result(compile_expression(form).evaluate(scope))


@given(
    st.sampled_from(["+", "-", "*", "/", "%", "<", "<=", ">", ">=", "==", "!=", "in", "&&", "||"]),
    JSON_VALUES,
    JSON_VALUES,
)
def test_every_operator_accepts_any_values_or_fails(symbol: str, left: Value, right: Value) -> None:
    with contextlib.suppress(ExpressionError):
        check_result(compile_expression(f"a {symbol} b").evaluate({"a": left, "b": right}))


@given(JSON_VALUES)
def test_any_value_is_equal_to_itself_and_to_its_copy(value: Value) -> None:
    scope: dict[str, Value] = {"a": value, "b": json.loads(json.dumps(value))}
    assert compile_expression("a == b && !(a != b) && a in [b]").evaluate(scope) is True


def known_to_both() -> st.SearchStrategy[str]:
    """Expressions with one type of number, for which cel-python's interpreter follows the language.

    Only leaves of one kind are compared for equality: to that interpreter, true equals 1.
    """
    numbers = st.integers(-50, 50).map(str) | st.sampled_from(["n", "list[1]", "object.k"])
    texts = st.sampled_from(["'a'", "'b'", "t", "''", r"'\n\x41'", "object.t"])
    conditions = st.sampled_from(["true", "false", "yes", "has(object.k)", "has(object.q)"])

    def grow(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        return st.one_of(
            st.tuples(inner, st.sampled_from(["+", "-", "*", "/", "%", "<", ">=", "&&", "||"]), inner).map(
                "({0[0]} {0[1]} {0[2]})".format
            ),
            st.tuples(inner, inner, inner).map("({0[0]} ? {0[1]} : {0[2]})".format),
            st.tuples(inner, st.sampled_from(["all", "exists", "exists_one", "filter", "map"])).map(
                "[1, 2, n].{0[1]}(x, {0[0]})".format
            ),
            inner.map("[{}]".format),
            inner.map("size([{0}, {0}])".format),
            inner.map("(-{})".format),
            inner.map("(!{})".format),
            numbers.map("(n in [{}])".format),
        )

    equalities = st.one_of(
        st.tuples(kind, st.sampled_from(["==", "!="]), kind).map("({0[0]} {0[1]} {0[2]})".format)
        for kind in (numbers, texts)
    )
    return st.recursive(numbers | texts | conditions | equalities | st.just("x"), grow, max_leaves=6)


REFERENCE_SCOPE: dict[str, Value] = {"n": 7, "t": "b", "yes": True, "list": [1, 2], "object": {"k": 5, "t": "a"}}


def is_plain_number_or_text(value: object) -> bool:
    return isinstance(value, (int, str)) or (isinstance(value, list) and all(map(is_plain_number_or_text, value)))


@examples(200)
@given(known_to_both())
def test_the_interpreter_of_cel_python_agrees_where_both_have_a_value(text: str) -> None:
    from celpy.adapter import CELJSONEncoder, json_to_cel
    from celpy.celparser import CELParser
    from celpy.evaluation import Activation, CELEvalError, Evaluator

    try:
        ours = compile_expression(text).evaluate(REFERENCE_SCOPE)
    except ExpressionError:
        return
    variables = {name: json_to_cel(value) for name, value in REFERENCE_SCOPE.items()}
    try:
        theirs = Evaluator(CELParser().parse(text), Activation()).evaluate(variables)
    except (CELEvalError, RecursionError):
        return
    assert json.dumps(ours) == json.dumps(CELJSONEncoder.to_python(theirs))


@pytest.mark.parametrize("text", ["8 >= 8.5", "1 == null", "1 == 1.0"])
def test_the_differences_to_the_interpreter_of_cel_python_are_still_needed(text: str) -> None:
    from celpy.celparser import CELParser
    from celpy.evaluation import Activation, CELEvalError, Evaluator

    with pytest.raises(CELEvalError):
        Evaluator(CELParser().parse(text), Activation()).evaluate()
    assert compile_expression(text).evaluate({}) in {True, False}
