"""Delta encoding finds shared parts and loses nothing."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from engine.store.sqlite.blobs import (
    MIN_COPY_BYTES,
    CopyRange,
    Piece,
    StoredText,
    encode_delta,
    pack_delta,
    read_delta,
)

_TEXTS = st.lists(st.sampled_from([b"a", b"bc", b"x" * 50, b"0123456789" * 8, b"y" * 20_000]), max_size=8).map(b"".join)


def _read(pieces: list[Piece], known: dict[int, bytes]) -> bytes:
    recipe, new = pack_delta(pieces)
    out = bytearray()
    for start, length, quote in read_delta(recipe, new):
        out += new[start : start + length]
        if quote is not None:
            out += known[quote.blob][quote.start : quote.start + quote.length]
    return bytes(out)


@given(text=_TEXTS, base=_TEXTS, others=st.lists(_TEXTS, max_size=4))
def test_delta_pieces_make_the_text(text: bytes, base: bytes, others: list[bytes]):
    known = dict(enumerate([base, *others], 1))
    pieces = encode_delta(text, StoredText(1, base), [StoredText(blob, data) for blob, data in known.items()])
    if pieces is not None:
        assert _read(pieces, known) == text
        assert any(isinstance(piece, CopyRange) for piece in pieces)


def test_continued_text_is_a_copy_and_the_new_part():
    base = b"start " * 50
    assert encode_delta(base + b"more", StoredText(7, base), []) == [CopyRange(7, 0, len(base)), b"more"]


def test_prompt_is_a_copy_with_another_text_in_it():
    before, after = (
        b"Improve this, and do not explain what you did:\n---\n",
        b"\n---\nAnswer with the improved text only.",
    )
    old, new = b"The first draft. " * 9, b"The second draft, which begins alike. " * 4
    pieces = encode_delta(
        before + new + after, StoredText(1, before + old + after), [StoredText(2, new), StoredText(3, b"z" * 99)]
    )
    assert pieces == [CopyRange(1, 0, len(before)), CopyRange(2, 0, len(new)), after]
    long_after = after * 2
    pieces = encode_delta(before + new + long_after, StoredText(1, before + old + long_after), [StoredText(2, new)])
    length = len(long_after)
    assert pieces == [CopyRange(1, 0, len(before)), CopyRange(2, 0, len(new)), CopyRange(1, len(before + old), length)]


def test_no_delta_if_hardly_anything_is_shared():
    assert encode_delta(b"a" * 40 + b"b" * 60, StoredText(1, b"a" * 40 + b"c" * 60), [StoredText(2, b"d" * 50)]) is None
    assert encode_delta(b"a" * MIN_COPY_BYTES + b"b", StoredText(1, b"a" * MIN_COPY_BYTES), []) == [
        CopyRange(1, 0, MIN_COPY_BYTES),
        b"b",
    ]
