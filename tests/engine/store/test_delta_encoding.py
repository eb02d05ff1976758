"""Delta encoding finds shared parts and loses nothing."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from engine.store.sqlite.blobs import (
    MIN_COPY_BYTES,
    Copy,
    CopyRange,
    StoredText,
    find_copies,
    pack_delta,
    read_delta,
)

_TEXTS = st.lists(st.sampled_from([b"a", b"bc", b"x" * 50, b"0123456789" * 8, b"y" * 20_000]), max_size=8).map(b"".join)


def _read(text: bytes, copies: list[Copy], known: dict[int, bytes]) -> bytes:
    recipe, new = pack_delta(text, copies)
    out = bytearray()
    for start, length, quote in read_delta(recipe, new):
        out += new[start : start + length]
        if quote is not None:
            out += known[quote.blob][quote.start : quote.start + quote.length]
    return bytes(out)


@given(text=_TEXTS, base=_TEXTS, others=st.lists(_TEXTS, max_size=4))
def test_delta_makes_the_text(text: bytes, base: bytes, others: list[bytes]):
    known = dict(enumerate([base, *others], 1))
    copies = find_copies(text, StoredText(1, base), [StoredText(blob, data) for blob, data in known.items()])
    assert _read(text, copies, known) == text


def test_continued_text_is_a_copy_and_the_new_part():
    base = b"start " * 50
    assert find_copies(base + b"more", StoredText(7, base), []) == [(0, CopyRange(7, 0, len(base)))]
    assert pack_delta(base + b"more", [(0, CopyRange(7, 0, len(base)))])[1] == b"more"


def test_prompt_is_a_copy_with_another_text_in_it():
    before, after = (
        b"Improve this, and do not explain what you did:\n---\n",
        b"\n---\nAnswer with the improved text only.",
    )
    old, new = b"The first draft. " * 9, b"The second draft, which begins alike. " * 4
    copies = find_copies(
        before + new + after, StoredText(1, before + old + after), [StoredText(2, new), StoredText(3, b"z" * 99)]
    )
    expected = [(0, CopyRange(1, 0, len(before))), (len(before), CopyRange(2, 0, len(new)))]
    assert copies == expected
    long_after = after * 2
    copies = find_copies(before + new + long_after, StoredText(1, before + old + long_after), [StoredText(2, new)])
    at_end = (len(before + new), CopyRange(1, len(before + old), len(long_after)))
    assert copies == [*expected, at_end]


def test_no_delta_if_hardly_anything_is_shared():
    assert find_copies(b"a" * 40 + b"b" * 60, StoredText(1, b"a" * 40 + b"c" * 60), [StoredText(2, b"d" * 50)]) == []
    shared = b"a" * MIN_COPY_BYTES
    assert find_copies(shared + b"b", StoredText(1, shared), []) == [(0, CopyRange(1, 0, MIN_COPY_BYTES))]
