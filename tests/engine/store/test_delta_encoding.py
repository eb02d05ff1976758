"""Texts told by other texts come back, and what is shared is found."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from engine.store.sqlite.delta_encoding import (
    SHORTEST,
    Known,
    Piece,
    Quote,
    common_end,
    common_start,
    pack_recipe,
    read_recipe,
    split,
)

_TEXTS = st.lists(st.sampled_from([b"a", b"bc", b"x" * 50, b"0123456789" * 8, b"y" * 20_000]), max_size=8).map(b"".join)


def _read(pieces: list[Piece], known: dict[int, bytes]) -> bytes:
    recipe, new = pack_recipe(pieces)
    out = bytearray()
    for start, length, quote in read_recipe(recipe, new):
        out += new[start : start + length]
        if quote is not None:
            out += known[quote.blob][quote.start : quote.start + quote.length]
    return bytes(out)


@given(text=_TEXTS, base=_TEXTS, others=st.lists(_TEXTS, max_size=4))
def test_pieces_make_the_text(text: bytes, base: bytes, others: list[bytes]):
    known = dict(enumerate([base, *others], 1))
    pieces = split(text, Known(1, base), [Known(blob, data) for blob, data in known.items()])
    if pieces is not None:
        assert _read(pieces, known) == text
        assert any(isinstance(piece, Quote) for piece in pieces)


@given(one=_TEXTS, other=_TEXTS)
def test_what_two_texts_share_at_their_ends(one: bytes, other: bytes):
    start = common_start(one, other)
    assert one[:start] == other[:start]
    assert one[start : start + 1] != other[start : start + 1] or start == min(len(one), len(other))
    longest = min(len(one), len(other))
    end = common_end(one, other, longest)
    assert one[len(one) - end :] == other[len(other) - end :]
    assert end == longest or one[len(one) - end - 1] != other[len(other) - end - 1]


def test_a_text_that_goes_on_is_the_one_before_and_what_is_new():
    base = b"start " * 50
    assert split(base + b"more", Known(7, base), []) == [Quote(7, 0, len(base)), b"more"]


def test_a_prompt_is_the_one_before_with_another_text_in_it():
    before, after = (
        b"Improve this, and do not explain what you did:\n---\n",
        b"\n---\nAnswer with the improved text only.",
    )
    old, new = b"The first draft. " * 9, b"The second draft, which begins alike. " * 4
    pieces = split(before + new + after, Known(1, before + old + after), [Known(2, new), Known(3, b"z" * 99)])
    assert pieces == [Quote(1, 0, len(before)), Quote(2, 0, len(new)), after]
    long_after = after * 2
    pieces = split(before + new + long_after, Known(1, before + old + long_after), [Known(2, new)])
    length = len(long_after)
    assert pieces == [Quote(1, 0, len(before)), Quote(2, 0, len(new)), Quote(1, len(before + old), length)]


def test_hardly_anything_shared_is_nothing():
    assert split(b"a" * 40 + b"b" * 60, Known(1, b"a" * 40 + b"c" * 60), [Known(2, b"d" * 50)]) is None
    assert split(b"a" * SHORTEST + b"b", Known(1, b"a" * SHORTEST), []) == [Quote(1, 0, SHORTEST), b"b"]
