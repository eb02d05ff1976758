from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from engine.expr import ExpressionError, compile_expression
from engine.values import Value
from tests.wording import mentions

SCOPE: dict[str, Value] = {
    "score": 8.5,
    "count": 3,
    "title": "A title",
    "empty": None,
    "done": True,
    "big": 10**30,
    "input": {"title": "T", "items": [1, 2, 3], "people": [{"name": "Ann", "age": 41}, {"name": "Bob", "age": 17}]},
}


def evaluate(text: str) -> Value:
    return compile_expression(text).evaluate(SCOPE)


def refusal(text: str) -> ExpressionError:
    with pytest.raises(ExpressionError) as caught:
        evaluate(text)
    return caught.value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("-0x1F", -31),
        ("7u", 7),
        ("1.5", 1.5),
        ("true", True),
        ("null", None),
        ("[1, 'a', null]", [1, "a", None]),
        ("[]", []),
        ('{"a": {"b": [true]}}', {"a": {"b": [True]}}),
        ("{}", {}),
        (r'"a\n\t\x41\u00e9\U0001F600\101\"\\"', 'a\n\tAé😀A"\\'),
        (r"r'a\n'", "a\\n"),
        ("'''two\nlines'''", "two\nlines"),
        ('"""say "yes" """', 'say "yes" '),
        ('R"""a\\"""', "a\\"),
        ("'http://host'  // a remark, it's ignored", "http://host"),
        (".score", 8.5),
    ],
)
def test_a_literal_is_its_json_value(text: str, value: Value) -> None:
    assert evaluate(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("score >= 8", True),
        ("8 >= score", False),
        ("count < 3.5", True),
        ("1 == 1.0", True),
        ("1 != 1.0", False),
        ("[1, {'a': 2}] == [1.0, {'a': 2.0}]", True),
        ("1 in [1.0, 2]", True),
        ("4 in [1.0, 2]", False),
        ("1 + 0.5", 1.5),
        ("5.5 % 2", 1.5),
        ("big > 5 && big == big", True),
        ("input.items[1.0]", 2),
    ],
)
def test_whole_numbers_and_fractions_mix(text: str, value: Value) -> None:
    assert evaluate(text) is value or (evaluate(text) == value and not isinstance(value, bool))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 + 2 * 3 - 4", 3),
        ("(1 + 2) * 3", 9),
        ("10 - 4 - 3", 3),
        ("10 - (4 - 3)", 9),
        ("5 / 2", 2),
        ("-5 / 2", -2),
        ("-5 % 3", -2),
        ("5 % -3", 2),
        ("5.0 / 2", 2.5),
        ("--count", 3),
        ("-score", -8.5),
        ("'a' + 'b'", "ab"),
        ("[1] + [2]", [1, 2]),
        ("'a' < 'b'", True),
        ("'b' <= 'a'", False),
        ("false < true", True),
        ("1 < 2 == true", True),
        ("'a' == 1", False),
        ("1 == '1'", False),
        ("null == 1", False),
        ("empty == null", True),
        ("true == 1", False),
        ("1.0 == true", False),
        ("[1] == [1, 2]", False),
        ("[1] == {'a': 1}", False),
        ("{'a': 1} == {'b': 1}", False),
        ("{'a': 1} != {'a': 2}", True),
        ("'title' in input", True),
        ("'nothing' in input", False),
        ("!done", False),
        ("!!done", True),
        ("done ? 'yes' : 'no'", "yes"),
        ("!done ? 1 : count > 5 ? 2 : 3", 3),
    ],
)
def test_operators_work_as_in_cel(text: str, value: Value) -> None:
    outcome = evaluate(text)
    assert outcome == value
    assert type(outcome) is type(value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("input.title", "T"),
        ("(input).title", "T"),
        ("input['title']", "T"),
        ("input.items[0]", 1),
        ("input.people[1].name", "Bob"),
        ("{'a': {'b': 1}}.a.b", 1),
        ("[[1, 2], [3]][0][1]", 2),
    ],
)
def test_members_and_elements_are_read(text: str, value: Value) -> None:
    assert evaluate(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("has(input.title)", True),
        ("has(input.subtitle)", False),
        ("has(input.meta.author)", False),
        ("has(empty.title)", False),
        ("has(input.people[0].name)", True),
        ("has(input.people[0].email)", False),
        ("has({'a': 1}.a)", True),
        ("input.people.filter(p, has(p.email))", []),
    ],
)
def test_has_checks_for_a_member_without_failing(text: str, value: Value) -> None:
    assert evaluate(text) == value


@pytest.mark.parametrize("text", ["has(score.x)", "has(unknown.x)", "has(input.title.x)"])
def test_has_fails_for_values_without_members(text: str) -> None:
    refusal(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("input.items.map(x, x * 2)", [2, 4, 6]),
        ("input.items.map(x, x > 1, x * 2)", [4, 6]),
        ("input.items.filter(x, x != 2)", [1, 3]),
        ("input.items.filter(x, x > 1).map(y, y + count)", [5, 6]),
        ("input.items.all(x, x > 0)", True),
        ("input.items.all(x, x > 1)", False),
        ("input.items.exists(x, x == 3)", True),
        ("input.items.exists(x, x == 4)", False),
        ("input.items.exists_one(x, x > 2)", True),
        ("input.items.exists_one(x, x > 1)", False),
        ("[].all(x, x)", True),
        ("[].exists(x, x)", False),
        ("{'a': 1, 'b': 2}.map(k, k)", ["a", "b"]),
        ("input.people.map(p, p.age >= 18 ? p.name : 'a child')", ["Ann", "a child"]),
        ("[1].map(count, count) + [count]", [1, 3]),
        ("[1].map(loop, loop)", [1]),
    ],
)
def test_comprehensions_iterate_over_lists_and_names(text: str, value: Value) -> None:
    assert evaluate(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("false && unknown", False),
        ("unknown && false", False),
        ("true || 1 / 0 > 1", True),
        ("1 / 0 > 1 || true", True),
        ("[1, 'a', 3].exists(x, x > 2)", True),
        ("['a', 0].all(x, x > 2)", False),
    ],
)
def test_a_failing_operand_does_not_matter_if_the_other_is_decisive(text: str, value: Value) -> None:
    assert evaluate(text) is value


@pytest.mark.parametrize(
    "text",
    [
        "unknown",
        "unknown || false",
        "unknown && true",
        "[1, 'a'].exists(x, x > 2)",
        "[1, 'a'].all(x, x > 0)",
        "[1, 'a'].filter(x, x > 0)",
        "[1, 2].exists(x, x)",
        "[1, 2].filter(x, x)",
        "count && true",
        "'false' || false",
        "!count",
        "empty ? 1 : 2",
    ],
)
def test_a_failure_never_counts_as_false(text: str) -> None:
    refusal(text)


@pytest.mark.parametrize(
    ("text", "position", "parts"),
    [
        ("unknown", 0, "`unknown` … big, count, done, empty, input, score, title"),
        ("1 + nothing", 4, "There is no `nothing` here"),
        ("input.subtitle", 0, "`input` … `subtitle` … items, people, title"),
        ("input.title.x", 0, "`input.title` … a text … `x`"),
        ("empty.x", 0, "`empty` … empty (null) … `x`"),
        ("[input][0].x", 11, "`x` … items, people, title"),
        ("{}.x", 3, "`x`"),
        ("done.x", 0, "`done` … true … `x`"),
        ("(1 > 2).x", 8, "false … `x`"),
        ("'a' + 1", 6, "add … a text … a number"),
        ("done + 1", 7, "add … true … a number"),
        ("'a' * 1000000000", 6, "multiply … a text … a number"),
        ("[1] - [1]", 6, "subtract … a list … a list"),
        ("{} / 1", 5, "divide … an object … a number"),
        ("-title", 0, "negative … a text"),
        ("1 < '2'", 4, "compare … < … a number … a text"),
        ("1 / 0", 4, "zero"),
        ("1.0 / 0", 6, "zero"),
        ("1 % 0", 4, "zero"),
        ("1.0 % 0.0", 6, "zero"),
        ("9223372036854775807 + 1", 22, "The number is too large"),
        ("-9223372036854775808 - 1", 23, "The number is too large"),
        ("99999999999999999999", 0, "The number is too large"),
        ("1e308 * 10", 8, "The number is too large"),
        ("1e999", 0, "The number is too large"),
        ("big + 1", 6, "The number is too large"),
        ("input.items[3]", 12, "3 … 3"),
        ("input.items[-1]", 12, "3 … -1"),
        ("input.items[0.5]", 12, "3 … 0.5"),
        ("input.items[true]", 12, "a list … true"),
        ("title[0]", 6, "a text … a number"),
        ("1 in 'abc'", 5, "a number … a text … `in`"),
        ("{1: 2}", 0, "name … a text … a number"),
        ("{'a': 1, 'a': 2}", 0, "`a`"),
        ("score.map(x, x)", 6, "`map` … a list … an object … a number"),
        ("title.all(x, x)", 6, "`all` … a list … an object … a text"),
    ],
)
def test_evaluation_errors_have_a_position_and_a_message(text: str, position: int | None, parts: str) -> None:
    error = refusal(text)
    assert error.position == position
    assert mentions(error.message, parts)
    assert position is None or error.message.startswith(f"Character {position + 1}: ")


@pytest.mark.parametrize(
    ("text", "position", "parts"),
    [
        ("", None, "empty"),
        (" \n", None, "empty"),
        ("1 +", 3, "ends before it is complete"),
        ("(1", 2, "ends before it is complete"),
        ("a b", 2, "`b` … not expected"),
        ("a 'b'", 2, "a quoted text … not expected"),
        ("a ; b", 2, "`;` … not expected"),
        ("a = b", 2, "Compare with ==."),
        ("a and b", 2, "Write && for 'and'."),
        ("not a", 4, "Write ! for 'not'."),
        ("a | b", 2, "Write || for 'or'."),
        ("2 ** 3", 3, "power operator"),
        ("'it's'", 5, "' … not closed"),
        ('a == "b', 5, '" … not closed'),
        ("'a\nb'", 0, "' … not closed"),
        ("'a''b'", 3, "quoted texts"),
        (r"'\q'", 1, "`\\q` … escape"),
        (r"'ab\ud800'", 3, "`\\ud800` … escape"),
        (r"'\UFFFFFFFF'", 1, "escape"),
        (r"'\x1'", 1, "`\\x` … escape"),
        ("b'bytes'", 0, "Bytes"),
        ("Type{a: 1}", 0, "no types"),
        ("loop", 0, "`loop` … group"),
        ("  nodes ", 2, "`nodes` … group"),
        ("size(state)", 5, "`state` … group"),
        ("loop['index']", 0, "`loop` … group"),
        ("fly(1)", 0, "no function `fly` … : all, bool, contains,"),
        ("title.fly()", 6, "There is no function `fly`"),
        ("upper(title)", 0, "Write VALUE.upper(…)."),
        ("map(title)", 0, "Write VALUE.map(…)."),
        ("title.int()", 6, "Write int(…)."),
        ("size()", 0, "`size` … 1 … 0"),
        ("title.split()", 6, "`split` … 1 … 0"),
        ("title.substring(1, 2, 3)", 6, "`substring` … 1 … 2 … 3"),
        ("has(title)", 0, "`has` … member"),
        ("has()", 0, "`has` … member"),
        ("[1].map(x)", 4, "`map` … name … expression"),
        ("[1].filter(x.y, true)", 4, "`filter` … name … expression"),
        ("[1].all(x, true, true)", 4, "`all` … name … expression"),
        ("[1].all()", 4, "`all` … name … expression"),
    ],
)
def test_syntax_errors_are_raised_before_evaluation(text: str, position: int | None, parts: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        compile_expression(text)
    assert caught.value.position == position
    assert mentions(str(caught.value), parts)


def test_the_same_text_is_compiled_once() -> None:
    assert compile_expression("score > 123") is compile_expression("score > 123")


def test_the_repr_of_an_expression_is_its_text() -> None:
    assert repr(compile_expression("score")) == "Expression(text='score', paths=frozenset({('score',)}))"


def test_evaluation_does_not_change_the_scope() -> None:
    items: Value = [3, 1]
    assert compile_expression("(items + [2]).map(x, x)").evaluate({"items": items}) == [3, 1, 2]
    assert items == [3, 1]


def test_threads_can_compile_and_evaluate_concurrently() -> None:
    outcomes: list[Value] = []
    start = threading.Barrier(8)

    def work(number: int) -> None:
        start.wait()
        for step in range(20):
            expression = compile_expression(f"[{number}, {step}].map(x, x + n).size() == 2 ? n + {step} : -1")
            outcomes.append(expression.evaluate({"n": number}))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(str, outcomes)) == sorted(str(number + step) for number in range(8) for step in range(20))


def test_nothing_changes_the_recursion_limit() -> None:
    script = """
import sys
limit = sys.getrecursionlimit()
from engine.expr import compile_expression, compile_template
assert compile_expression("score").evaluate({"score": 1}) == 1
assert compile_template("{{ a.b }}").render({"a": {"b": 2}}) == "2"
assert compile_expression("'a'.matches('a') && score > 0").evaluate({"score": 1}) is True
assert sys.getrecursionlimit() == limit
"""
    subprocess.run([sys.executable, "-W", "error", "-c", script], check=True)
