"""Placeholders of a text, closed or not."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from app.inspector.template_variables import (
    Placeholder,
    expression_paths,
    find_placeholders,
    name_prefix,
    path_spans,
)


def test_find_placeholders_returns_their_contents() -> None:
    assert find_placeholders("a {{ b }} {{c.d}}") == [Placeholder(2, 9, " b ", True), Placeholder(10, 17, "c.d", True)]


def test_unclosed_placeholder_extends_to_the_end() -> None:
    assert find_placeholders("a {{lo") == [Placeholder(2, 6, "lo", False)]
    assert find_placeholders("{{'quote }} b") == [Placeholder(0, 11, "'quote ", True)]
    assert find_placeholders("{{'quote") == [Placeholder(0, 8, "'quote", False)]


def test_escaped_braces_are_no_placeholder() -> None:
    assert find_placeholders(r"\{{a}} {{b}}") == [Placeholder(7, 12, "b", True)]


def test_braces_in_strings_and_objects_close_no_placeholder() -> None:
    assert [hole.content for hole in find_placeholders("{{ {'a': '}}'} }} x")] == [" {'a': '}}'} "]


def test_expression_paths_match_the_expression_language() -> None:
    assert expression_paths("loop.last.draft + 'a.b'") == frozenset({("loop", "last", "draft")})
    assert expression_paths("a +") is None


def test_path_spans_locate_paths() -> None:
    content = "size(draft) > loop.index"
    paths = expression_paths(content)
    assert paths is not None
    assert path_spans(content, paths) == [(5, 10, ("draft",)), (14, 24, ("loop", "index"))]


def test_name_prefix_may_be_unfinished() -> None:
    assert name_prefix("size(loop.la") == "loop.la"
    assert name_prefix("a + ") == ""
    assert name_prefix("loop.") == "loop."
    assert name_prefix("size(loop.history[0].no") == "loop.history[0].no"
    assert name_prefix("loop.history[") == "loop.history["
    assert name_prefix("[draft, cri") == "cri"


@given(st.text(alphabet="{}\\ 'ab.\n", max_size=40))
def test_placeholders_never_overlap(text: str) -> None:
    end = 0
    for hole in find_placeholders(text):
        assert end <= hole.start < hole.end <= len(text)
        assert text[hole.start : hole.start + 2] == "{{"
        end = hole.end
