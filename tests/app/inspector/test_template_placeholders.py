"""Where the holes of a text are, closed or not."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from app.inspector.template_placeholders import Hole, find_holes, name_before, path_spans, paths_in


def test_holes_are_found_with_what_is_in_them() -> None:
    assert find_holes("a {{ b }} {{c.d}}") == [Hole(2, 9, " b ", True), Hole(10, 17, "c.d", True)]


def test_a_hole_that_is_not_closed_goes_on_to_the_end() -> None:
    assert find_holes("a {{lo") == [Hole(2, 6, "lo", False)]
    assert find_holes("{{'quote }} b") == [Hole(0, 11, "'quote ", True)]
    assert find_holes("{{'quote") == [Hole(0, 8, "'quote", False)]


def test_escaped_braces_are_no_hole() -> None:
    assert find_holes(r"\{{a}} {{b}}") == [Hole(7, 12, "b", True)]


def test_braces_in_quoted_texts_and_objects_close_nothing() -> None:
    assert [hole.content for hole in find_holes("{{ {'a': '}}'} }} x")] == [" {'a': '}}'} "]


def test_paths_are_those_that_the_expression_language_reads() -> None:
    assert paths_in("loop.last.draft + 'a.b'") == frozenset({("loop", "last", "draft")})
    assert paths_in("a +") is None


def test_a_path_is_found_where_it_stands() -> None:
    content = "size(draft) > loop.index"
    paths = paths_in(content)
    assert paths is not None
    assert path_spans(content, paths) == [(5, 10, ("draft",)), (14, 24, ("loop", "index"))]


def test_the_name_before_the_cursor_may_be_unfinished() -> None:
    assert name_before("size(loop.la") == "loop.la"
    assert name_before("a + ") == ""
    assert name_before("loop.") == "loop."
    assert name_before("size(loop.history[0].no") == "loop.history[0].no"
    assert name_before("loop.history[") == "loop.history["
    assert name_before("[draft, cri") == "cri"


@given(st.text(alphabet="{}\\ 'ab.\n", max_size=40))
def test_holes_never_overlap_and_lie_in_the_text(text: str) -> None:
    end = 0
    for hole in find_holes(text):
        assert end <= hole.start < hole.end <= len(text)
        assert text[hole.start : hole.start + 2] == "{{"
        end = hole.end
