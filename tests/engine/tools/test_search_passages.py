from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from engine.tools.search_files import MAX_PASSAGE_CHARACTERS, Passage, split_into_passages


def cut(text: str, *, markdown: bool = True) -> list[Passage]:
    return split_into_passages(text, "the name", markdown=markdown)


def test_each_section_is_a_passage_with_its_headings() -> None:
    text = "# Page\n\nintro\n\n## One\nfirst\n\n### Deep\ndeep\n## Two\nsecond\n"
    assert cut(text) == [
        Passage("Page", 3, "intro"),
        Passage("Page > One", 6, "first"),
        Passage("Page > One > Deep", 9, "deep"),
        Passage("Page > Two", 11, "second"),
    ]


def test_text_without_a_heading_has_the_name_as_title() -> None:
    assert cut("just text\n# \nmore") == [Passage("the name", 1, "just text"), Passage("the name", 3, "more")]


def test_headings_follow_markdown() -> None:
    text = "  ## C# ##\nx\n####### seven\n#none\n    # indented\n#\tTab #\ny\n"
    assert cut(text) == [
        Passage("C#", 2, "x\n####### seven\n#none\n    # indented"),
        Passage("Tab", 7, "y"),
    ]


def test_hash_in_a_code_fence_is_not_a_heading() -> None:
    text = "# A\n````\n# comment\n```\n# still\n````\n# B\nb\n~~~\n# open to the end"
    assert cut(text) == [
        Passage("A", 2, "````\n# comment\n```\n# still\n````"),
        Passage("B", 8, "b\n~~~\n# open to the end"),
    ]


def test_plain_text_has_no_headings() -> None:
    assert cut("# not a heading\n\ntext", markdown=False) == [Passage("the name", 1, "# not a heading\n\ntext")]


def test_lines_are_counted_like_in_an_editor() -> None:
    assert cut("a\x0cb\r\n\r\n# H\rtext\u2028more\n") == [
        Passage("the name", 1, "a\x0cb"),
        Passage("H", 4, "text\u2028more"),
    ]


def test_long_section_is_split_between_paragraphs() -> None:
    paragraphs = [letter * 600 for letter in "abc"]
    assert cut("# T\n" + "\n\n".join(paragraphs)) == [
        Passage("T", 2, "\n\n".join(paragraphs[:2])),
        Passage("T", 6, paragraphs[2]),
    ]


def test_long_paragraph_is_split_between_lines_and_a_long_line_anywhere() -> None:
    first, second = "x" * 1000, "y" * 1000
    assert cut(f"{first}\n{second}") == [Passage("the name", 1, first), Passage("the name", 2, second)]
    assert [len(passage.text) for passage in cut("z" * 4000)] == [1500, 1500, 1000]
    assert [len(passage.text) for passage in cut("z" * 3000)] == [1500, 1500]


def test_heading_length_is_limited() -> None:
    assert len(cut("# " + "h " * 100_000 + "\ntext")[0].title) == 200


@given(st.text(alphabet="# \n`~ab\r", max_size=300), st.booleans())
def test_no_word_is_lost_and_line_numbers_are_right(text: str, markdown: bool) -> None:
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    passages = cut(text, markdown=markdown)
    for passage in passages:
        assert lines[passage.line - 1] == passage.text.split("\n")[0]
        assert passage.text.strip()
    words = "".join(passage.text for passage in passages)
    if not markdown:
        assert "".join(words.split()) == "".join(text.split())


@given(st.text(max_size=200), st.integers(1, 40))
def test_passages_stay_near_the_limit(piece: str, times: int) -> None:
    for passage in cut((piece + "\n\n") * times):
        assert len(passage.text.replace("\n\n", "")) <= MAX_PASSAGE_CHARACTERS + len(piece)
