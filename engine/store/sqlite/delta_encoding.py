"""Delta encoding of texts against stored texts.

Texts of a run repeat each other. A prompt contains the previous result; in `append` mode the input of each iteration is
the previous input and a little more. A delta is a sequence of ranges copied from stored texts (`CopyRange`) and new
bytes between them, like the COPY and ADD instructions of VCDIFF (RFC 3284).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

MIN_COPY_BYTES: Final = 48
"""Minimum length of a copied range in bytes; shorter ones cost more than they save."""

_BLOCK: Final = 16_384
_REACH: Final = 8


class StoredText(NamedTuple):
    """A stored text: its blob id and its bytes."""

    blob: int
    data: bytes


class CopyRange(NamedTuple):
    """A range of bytes of a stored text."""

    blob: int
    start: int
    length: int


Piece = bytes | CopyRange


def encode_delta(text: bytes, base: StoredText | None, others: Sequence[StoredText]) -> list[Piece] | None:
    """Encode a text as a delta.

    Args:
        text: The text to encode.
        base: Previous text at the same place, whose common prefix and suffix are copied.
        others: Texts that may be contained in it as a whole.

    Returns:
        The pieces in order, or None if the texts have hardly anything in common.
    """
    start, end = _shared_ends(text, base)
    middle = _contained_texts(text, start, end, others)
    if middle:
        # A copy of a whole text wins over an overlapping prefix or suffix.
        start = min(start, middle[0][0])
        end = max(end, middle[-1][0] + middle[-1][1].length)
    copies: list[tuple[int, CopyRange]] = []
    if base is not None and start >= MIN_COPY_BYTES:
        copies.append((0, CopyRange(base.blob, 0, start)))
    copies.extend(middle)
    if base is not None and len(text) - end >= MIN_COPY_BYTES:
        length = len(text) - end
        copies.append((end, CopyRange(base.blob, len(base.data) - length, length)))
    return _with_literals(text, copies) if copies else None


def _shared_ends(text: bytes, base: StoredText | None) -> tuple[int, int]:
    """Return the start and end of the new part between a common prefix and suffix worth copying."""
    if base is None:
        return 0, len(text)
    before = base.data
    start = common_start(text, before) if text[:MIN_COPY_BYTES] == before[:MIN_COPY_BYTES] else 0
    longest = min(len(text), len(before)) - start
    shared = common_end(text, before, longest) if text[-MIN_COPY_BYTES:] == before[-MIN_COPY_BYTES:] else 0
    return start, len(text) - shared


def _contained_texts(text: bytes, start: int, end: int, others: Sequence[StoredText]) -> list[tuple[int, CopyRange]]:
    """Find other texts contained in the part from `start` to `end`, without overlaps and in order."""
    found: list[tuple[int, CopyRange]] = []
    if end - start < MIN_COPY_BYTES:
        return found
    # A text much longer than the new part overlaps the ends almost completely and is slow to search for.
    longest = min(len(text), _REACH * (end - start))
    # Most texts are not contained; their first bytes rule them out quickly.
    fitting = [
        known
        for known in others
        if MIN_COPY_BYTES <= len(known.data) <= longest and known.data[:MIN_COPY_BYTES] in text
    ]
    for blob, data in sorted(fitting, key=lambda known: -len(known.data)):
        size = len(data)
        place = text.find(data, max(start - size + MIN_COPY_BYTES, 0), min(end + size - MIN_COPY_BYTES, len(text)))
        if place >= 0 and all(place + size <= at or at + copied.length <= place for at, copied in found):
            found.append((place, CopyRange(blob, 0, size)))
    return sorted(found)


def _with_literals(text: bytes, copies: list[tuple[int, CopyRange]]) -> list[Piece]:
    pieces: list[Piece] = []
    place = 0
    for at, copied in copies:
        if at > place:
            pieces.append(text[place:at])
        pieces.append(copied)
        place = at + copied.length
    if place < len(text):
        pieces.append(text[place:])
    return pieces


def common_start(one: bytes, other: bytes) -> int:
    """Return the length of the common prefix in bytes."""
    shorter, longer = sorted((one, other), key=len)
    if longer.startswith(shorter):
        return len(shorter)
    low = 0
    while one[low : low + _BLOCK] == other[low : low + _BLOCK]:
        low += _BLOCK
    high = min(low + _BLOCK, len(shorter))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def common_end(one: bytes, other: bytes, longest: int) -> int:
    """Return the length of the common suffix in bytes, at most `longest`."""
    low = 0
    while low < longest:
        step = min(_BLOCK, longest - low)
        if _before_end(one, low, step) != _before_end(other, low, step):
            break
        low += step
    high = min(low + _BLOCK, longest)
    while low < high:
        middle = (low + high + 1) // 2
        if _before_end(one, low, middle - low) == _before_end(other, low, middle - low):
            low = middle
        else:
            high = middle - 1
    return low


def _before_end(data: bytes, skipped: int, length: int) -> bytes:
    end = len(data) - skipped
    return data[end - length : end]


def pack_delta(pieces: Sequence[Piece]) -> tuple[bytes, bytes]:
    """Serialize a delta as a recipe and the concatenated new bytes.

    The recipe is a sequence of varints: for each copied range the number of new bytes before it, then its blob, start
    and length. New bytes after the last range need no number.
    """
    numbers: list[int] = []
    new: list[bytes] = []
    before = 0
    for piece in pieces:
        if isinstance(piece, CopyRange):
            numbers += (before, *piece)
            before = 0
        else:
            new.append(piece)
            before += len(piece)
    return _to_varints(numbers), b"".join(new)


def read_delta(recipe: bytes, new: bytes) -> Iterator[tuple[int, int, CopyRange | None]]:
    """Parse a delta: start and length of each run of new bytes, and the range after it (None at the end)."""
    numbers = _from_varints(recipe)
    place = 0
    for index in range(0, len(numbers), 4):
        before, blob, start, length = numbers[index : index + 4]
        yield place, before, CopyRange(blob, start, length)
        place += before
    yield place, len(new) - place, None


def _to_varints(numbers: Sequence[int]) -> bytes:
    out = bytearray()
    for number in numbers:
        rest = number
        while rest > 0x7F:
            out.append(0x80 | rest & 0x7F)
            rest >>= 7
        out.append(rest)
    return bytes(out)


def _from_varints(data: bytes) -> list[int]:
    numbers: list[int] = []
    number = shift = 0
    for byte in data:
        number |= (byte & 0x7F) << shift
        if byte & 0x80:
            shift += 7
        else:
            numbers.append(number)
            number = shift = 0
    return numbers
