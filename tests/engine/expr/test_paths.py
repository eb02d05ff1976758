from __future__ import annotations

import contextlib
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.expr import ExpressionError, Namespace, compile_expression, compile_template
from engine.values import Value
from tests.wording import mentions


class Recorder:
    """A namespace that records what is fetched from it."""

    def __init__(self, name: str, members: dict[str, Value | Namespace], seen: list[tuple[str, ...]]) -> None:
        self._name = name
        self._members = members
        self._seen = seen

    def member(self, name: str) -> Value | Namespace:
        self._seen.append((self._name, name))
        return self._members[name]


def recording_scope() -> tuple[dict[str, Value | Namespace], list[tuple[str, ...]]]:
    seen: list[tuple[str, ...]] = []
    last = Recorder("last", {"draft": {"title": "D"}, "critique": None}, seen)
    members: dict[str, Value | Namespace] = {
        "iteration": 2,
        "index": 1,
        "previous": None,
        "history": [{"score": 3}, {"score": 9}],
        "last": last,
    }
    return {"loop": Recorder("loop", members, seen), "input": {"title": "T"}, "score": 7}, seen


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("score", {("score",)}),
        ("loop.last.draft.title == input.title", {("loop", "last", "draft", "title"), ("input", "title")}),
        ("loop.history[0].score", {("loop", "history")}),
        ("loop.history[loop.index].score > score", {("loop", "history"), ("loop", "index"), ("score",)}),
        ("input['title']", {("input",)}),
        ("input.items.map(x, x.name + y)", {("input", "items"), ("y",)}),
        ("x.map(x, x.name) + x.tail", {("x",), ("x", "tail")}),
        ("input.title.size()", {("input", "title")}),
        ("has(input.title) ? input.title : other", {("input", "title"), ("other",)}),
        ("has(loop.history[0].score)", {("loop", "history")}),
        ("'input.title' + r'{score}'", set[tuple[str, ...]]()),
        ("(input).title", {("input", "title")}),
        (".score + size(.list)", {("score",), ("list",)}),
        ("{'a': b}.a", {("b",)}),
    ],
)
def test_the_paths_of_an_expression_are_known_without_evaluation(text: str, paths: set[tuple[str, ...]]) -> None:
    expression = compile_expression(text)
    assert expression.paths == paths


def test_the_paths_of_a_template_are_those_of_its_placeholders() -> None:
    template = compile_template("{{a.b}} {{ loop.iteration }} {{ c + d.e }} \\{{ f }}")
    assert template.paths == {("a", "b"), ("loop", "iteration"), ("c",), ("d", "e")}


def test_only_needed_members_are_fetched_and_each_once() -> None:
    scope, seen = recording_scope()
    expression = compile_expression(
        "loop.iteration > 1 ? loop.last.draft.title + loop.last.draft.title : loop.history[0]"
    )
    assert expression.evaluate(scope) == "DD"
    assert seen == [("loop", "iteration"), ("loop", "last"), ("last", "draft")]


def test_an_expensive_member_is_fetched_once_for_a_whole_comprehension() -> None:
    scope, seen = recording_scope()
    expression = compile_expression("[1, 2, 3].all(x, loop.history.size() == 2)")
    assert expression.evaluate(scope) is True
    assert seen == [("loop", "history")]


def test_each_evaluation_fetches_members_again() -> None:
    scope, seen = recording_scope()
    expression = compile_expression("loop.index + 0")
    expression.evaluate(scope)
    expression.evaluate(scope)
    assert seen == [("loop", "index")] * 2


def test_members_of_a_null_in_a_namespace_are_null() -> None:
    scope, _ = recording_scope()
    assert compile_expression("loop.previous.title").evaluate(scope) is None
    assert compile_expression("loop.last.critique.score == null").evaluate(scope) is True
    assert compile_expression("has(loop.last.critique.score)").evaluate(scope) is False
    assert compile_template("[{{loop.last.critique.reason}}]").render(scope) == "[]"


def test_has_checks_members_of_a_namespace() -> None:
    scope, _ = recording_scope()
    assert compile_expression("has(loop.iteration)").evaluate(scope) is True
    assert compile_expression("has(loop.last.draft)").evaluate(scope) is True
    assert compile_expression("has(loop.last.nobody)").evaluate(scope) is False
    assert compile_expression("has(loop.nothing)").evaluate(scope) is False


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("loop.nothing", "`loop` … `nothing`"),
        ("loop.last.nobody", "`loop.last` … `nobody`"),
        ("loop.last", "`loop.last` … group"),
        ("size(loop.last)", "`loop.last` … group"),
        ("loop.iteration.x", "`loop.iteration` … a number … `x`"),
    ],
)
def test_a_namespace_cannot_be_used_as_a_value(text: str, parts: str) -> None:
    scope, _ = recording_scope()
    with pytest.raises(ExpressionError) as caught:
        compile_expression(text).evaluate(scope)
    assert mentions(caught.value.message, parts)


def test_a_namespace_under_any_name_cannot_be_used_as_a_value() -> None:
    with pytest.raises(ExpressionError, match="`own` is a group of values"):
        compile_expression("own").evaluate({"own": Recorder("own", {}, [])})


LEAVES = st.sampled_from(
    ["score", "input.title", "loop.iteration", "loop.last.draft.title", "loop.history[0].score", "1", "'a'", "null"]
)
EXPRESSIONS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "==", "<", "&&", "||", "in"]), inner).map(
            "({0[0]} {0[1]} {0[2]})".format
        ),
        st.tuples(inner, inner, inner).map("({0[0]} ? {0[1]} : {0[2]})".format),
        st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]"),
        st.tuples(inner, inner).map('{{"a": {0[0]}, "b": {0[1]}}}'.format),
        inner.map("size({})".format),
    ),
    max_leaves=8,
)


class RecordingScope(dict[str, "Value | Namespace"]):
    """A scope that records which names are read."""

    def __init__(self, content: dict[str, Value | Namespace], seen: list[tuple[str, ...]]) -> None:
        super().__init__(content)
        self._seen = seen

    def __getitem__(self, name: str) -> Value | Namespace:
        self._seen.append((name,))
        return super().__getitem__(name)


@given(EXPRESSIONS)
def test_evaluation_reads_only_its_paths(text: str) -> None:
    content, seen = recording_scope()
    expression = compile_expression(text)
    with contextlib.suppress(ExpressionError):
        expression.evaluate(RecordingScope(content, seen))
    named = {pair for path in expression.paths for pair in [*itertools.pairwise(path), path[:1]]}
    assert set(seen) <= named


@given(st.lists(LEAVES, min_size=1, max_size=8))
def test_all_paths_are_read_if_all_parts_are_evaluated(leaves: list[str]) -> None:
    content, seen = recording_scope()
    expression = compile_expression(f"[{', '.join(leaves)}]")
    expression.evaluate(RecordingScope(content, seen))
    assert {name for (name,) in (path[:1] for path in expression.paths)} == {
        entry[0] for entry in seen if len(entry) == 1
    }
    fetched = {entry[1] for entry in seen if entry[0] == "loop" and len(entry) == 2}
    assert fetched == {path[1] for path in expression.paths if path[0] == "loop"}
