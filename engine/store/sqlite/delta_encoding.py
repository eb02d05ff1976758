"""A text told by other texts: what it shares with ones that are stored already is named, not stored again.

Texts of a run repeat each other. A prompt is the one before with another result in it, and that result has been stored;
in `append` mode every iteration starts from all that was before and a little more. So a text is written as pieces:
ranges of stored texts (`Quote`) and what is new between them (bytes). This module knows bytes and numbers only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

SHORTEST: Final = 48
"""Bytes that a quote has at least; a shorter one takes more than it saves."""

_BLOCK: Final = 16_384
_REACH: Final = 8


class Known(NamedTuple):
    """A text that is stored: its number and its bytes."""

    blob: int
    data: bytes


class Quote(NamedTuple):
    """A range of a stored text."""

    blob: int
    start: int
    length: int


Piece = bytes | Quote


def split(text: bytes, base: Known | None, others: Sequence[Known]) -> list[Piece] | None:
    """Write a text as pieces.

    Args:
        text: The text.
        base: What stood in the same place before: its start and its end are looked for.
        others: Texts that may stand in it as a whole.

    Returns:
        The pieces in order; None where hardly anything is shared.
    """
    start, end = _shared_ends(text, base)
    middle = _whole_quotes(text, start, end, others)
    if middle:
        # A whole quote wins over the last letters that the ends happen to share with it.
        start = min(start, middle[0][0])
        end = max(end, middle[-1][0] + middle[-1][1].length)
    quotes: list[tuple[int, Quote]] = []
    if base is not None and start >= SHORTEST:
        quotes.append((0, Quote(base.blob, 0, start)))
    quotes.extend(middle)
    if base is not None and len(text) - end >= SHORTEST:
        length = len(text) - end
        quotes.append((end, Quote(base.blob, len(base.data) - length, length)))
    return _with_literals(text, quotes) if quotes else None


def _shared_ends(text: bytes, base: Known | None) -> tuple[int, int]:
    """Where what is new begins and ends, as far as an end that is shared is worth a quote."""
    if base is None:
        return 0, len(text)
    before = base.data
    start = common_start(text, before) if text[:SHORTEST] == before[:SHORTEST] else 0
    longest = min(len(text), len(before)) - start
    shared = common_end(text, before, longest) if text[-SHORTEST:] == before[-SHORTEST:] else 0
    return start, len(text) - shared


def _whole_quotes(text: bytes, start: int, end: int, others: Sequence[Known]) -> list[tuple[int, Quote]]:
    """Which other texts stand between `start` and `end`, or reach into that, none over another; in order."""
    found: list[tuple[int, Quote]] = []
    if end - start < SHORTEST:
        return found
    # One that is much longer than what is new shares nearly all of it with the ends, and takes long to look for.
    longest = min(len(text), _REACH * (end - start))
    # Most are not in there, and the first bytes of each tell so without a look at all of it.
    fitting = [known for known in others if SHORTEST <= len(known.data) <= longest and known.data[:SHORTEST] in text]
    for blob, data in sorted(fitting, key=lambda known: -len(known.data)):
        size = len(data)
        place = text.find(data, max(start - size + SHORTEST, 0), min(end + size - SHORTEST, len(text)))
        if place >= 0 and all(place + size <= at or at + quote.length <= place for at, quote in found):
            found.append((place, Quote(blob, 0, size)))
    return sorted(found)


def _with_literals(text: bytes, quotes: list[tuple[int, Quote]]) -> list[Piece]:
    pieces: list[Piece] = []
    place = 0
    for at, quote in quotes:
        if at > place:
            pieces.append(text[place:at])
        pieces.append(quote)
        place = at + quote.length
    if place < len(text):
        pieces.append(text[place:])
    return pieces


def common_start(one: bytes, other: bytes) -> int:
    """How many bytes both begin with."""
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
    """How many bytes both end with, at most `longest`."""
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


def pack_recipe(pieces: Sequence[Piece]) -> tuple[bytes, bytes]:
    """Pieces as they are stored: the recipe, and all that is new in one piece.

    The recipe is a row of numbers: the length of what is new before a quote, then blob, start and length of the quote.
    What is new after the last quote needs no number.
    """
    numbers: list[int] = []
    new: list[bytes] = []
    before = 0
    for piece in pieces:
        if isinstance(piece, Quote):
            numbers += (before, *piece)
            before = 0
        else:
            new.append(piece)
            before += len(piece)
    return _to_varints(numbers), b"".join(new)


def read_recipe(recipe: bytes, new: bytes) -> Iterator[tuple[int, int, Quote | None]]:
    """What `pack_recipe` made, in order: start and length of what is new, and the quote after it; None at the end."""
    numbers = _from_varints(recipe)
    place = 0
    for index in range(0, len(numbers), 4):
        before, blob, start, length = numbers[index : index + 4]
        yield place, before, Quote(blob, start, length)
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
