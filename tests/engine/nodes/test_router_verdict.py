"""A router's verdict is read if it is clear, and never counts as done if it is not."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.nodes.router import fallback_branch
from engine.nodes.structured_replies import UnreadableReplyError, read_branch

BRANCHES = ["done", "continue"]


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ('{"reason": "all there", "branch": "done"}', ("done", "all there")),
        ('{"branch": "continue"}', ("continue", "")),
        ('{"branch": "DONE.", "reason": "x"}', ("done", "x")),
        ('{"branch": " continue ", "reason": null}', ("continue", "")),
        ('{"branch": "done", "reason": ["a", 1]}', ("done", '["a",1]')),
        ('{"branch": "done", "reason": "x", "score": 5}', ("done", "x")),
        ('```json\n{"branch": "continue", "reason": "r"}\n```', ("continue", "r")),
        ('I think it is done: {"branch": "continue", "reason": "{x}"} ok', ("continue", "{x}")),
        ('[{"branch": "done"}]', ("done", "")),
        ("done", ("done", "")),
        ("Done.", ("done", "")),
        ("**DONE!**", ("done", "")),
        ('"continue"', ("continue", "")),
        ("\n continue \n", ("continue", "")),
    ],
)
def test_a_clear_verdict_is_read(text: str, verdict: tuple[str, str]) -> None:
    assert read_branch(text, BRANCHES) == verdict


def test_a_long_verdict_is_quoted_in_one_line() -> None:
    with pytest.raises(UnreadableReplyError) as caught:
        read_branch(json.dumps({"branch": "done and " * 100_000}), BRANCHES)

    assert str(caught.value).startswith('"done and done')
    assert str(caught.value).endswith(" is none of done, continue.")
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    "text",
    [
        "",
        "not done",
        "Not done yet.",
        "It is done",
        "done, continue",
        "done or continue?",
        "not_done",
        "undone",
        "d o n e",
        "true",
        "{}",
        '{"branch": "finished"}',
        '{"branch": "not done"}',
        '{"branch": ["done"]}',
        '{"branch": true}',
        '{"branch": null}',
        '{"branch": {"branch": "done"}}',
        '[{"branch": "done"}, {"branch": "continue"}]',
        '{"branch": "done"',
        '{"branch": "do',
        '{"branch": "continue"} {"branch": "done"}',
        "The branch is {done}.",
        "\ud800done",
        "x" * 1_000_000,
    ],
    ids=lambda text: text[:40].encode("ascii", "replace").decode(),
)
def test_an_unclear_verdict_is_unreadable(text: str) -> None:
    with pytest.raises(UnreadableReplyError) as caught:
        read_branch(text, BRANCHES)

    assert str(caught.value).endswith(".")
    assert len(str(caught.value)) < 500


def test_an_unknown_branch_is_reported_with_the_known_ones() -> None:
    with pytest.raises(UnreadableReplyError, match=r'^"maybe" is none of done, continue\.$'):
        read_branch('{"branch": "maybe"}', BRANCHES)


@given(
    st.lists(st.sampled_from(["not", "done", "Done.", "yet", "continue", "is", "{", "}", "[", '"', ":"]), max_size=6)
)
def test_only_the_word_done_alone_counts_as_done(words: list[str]) -> None:
    text = " ".join(words)
    bare = [word for word in (part.strip('.[]{}":').casefold() for part in words) if word]
    try:
        branch, _ = read_branch(text, BRANCHES)
    except UnreadableReplyError:
        return

    assert bare == [branch]


@given(st.sampled_from(BRANCHES), st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=50))
def test_a_verdict_that_follows_the_schema_is_always_read(branch: str, reason: str) -> None:
    assert read_branch(json.dumps({"reason": reason, "branch": branch}), BRANCHES) == (branch, reason)


@pytest.mark.parametrize(
    ("names", "fallback"),
    [
        (["done", "continue"], "continue"),
        (["continue", "done", "stop"], "continue"),
        (["done", "again"], "again"),
        (["again", "done"], "again"),
        (["done"], None),
        (["done", "a", "b"], None),
        (["a", "b"], None),
        (["a"], None),
    ],
)
def test_an_unreadable_verdict_never_counts_as_done(names: list[str], fallback: str | None) -> None:
    assert fallback_branch(names) == fallback
