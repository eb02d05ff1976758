"""Which parts of two sequences are the same, in order: the longest common subsequence where that is cheap.

What the sequences share at both ends is set aside. What is left is aligned exactly (bit-parallel, by rapidfuzz) up to a
size; beyond it, elements that stand once in both are taken as anchors, and what lies between two of them is aligned by
itself. Where there is no anchor either, the sequences are cut into as many pieces as it takes. So the work grows with
the length of the texts, whatever is in them.
"""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Final

EXACT_CELLS: Final = 25_000_000
"""The most pairs of elements that are compared exactly at once: some 5 ms and 3 MB."""

Block = tuple[int, int, int]
"""So many elements are equal: their start in the first sequence, in the second, and their number."""


Check = Callable[[], None]
"""Called now and then while there is work; what it raises ends that."""


def equal_blocks(first: Sequence[Hashable], second: Sequence[Hashable], check: Check = lambda: None) -> list[Block]:
    """The equal parts of two sequences, in order, none of them empty, neighbours joined."""
    numbers: dict[Hashable, int] = {}
    one = [numbers.setdefault(element, len(numbers)) for element in first]
    other = [numbers.setdefault(element, len(numbers)) for element in second]
    return _joined(_blocks(one, other, check))


def _blocks(one: list[int], other: list[int], check: Check) -> Iterator[Block]:
    """The equal parts, those of the pieces that are still to be aligned taken from a stack."""
    pending = [(0, len(one), 0, len(other))]
    while pending:
        check()
        start, end, other_start, other_end = pending.pop()
        head = _shared(one, start, end, other, other_start, other_end)
        if head:
            yield start, other_start, head
            start, other_start = start + head, other_start + head
        tail = _shared_at_end(one, start, end, other, other_start, other_end)
        if tail:
            end, other_end = end - tail, other_end - tail
            pending.append((end, end + tail, other_end, other_end + tail))
        if start == end or other_start == other_end:
            continue
        if (end - start) * (other_end - other_start) <= EXACT_CELLS:
            for begin, other_begin, length in _exact(one[start:end], other[other_start:other_end]):
                yield start + begin, other_start + other_begin, length
        else:
            pending += reversed(_pieces(one, start, end, other, other_start, other_end))


def _shared(one: list[int], start: int, end: int, other: list[int], other_start: int, other_end: int) -> int:
    most = min(end - start, other_end - other_start)
    pairs = zip(one[start : start + most], other[other_start : other_start + most], strict=True)
    return next((number for number, (left, right) in enumerate(pairs) if left != right), most)


def _shared_at_end(one: list[int], start: int, end: int, other: list[int], other_start: int, other_end: int) -> int:
    most = min(end - start, other_end - other_start)
    pairs = zip(reversed(one[end - most : end]), reversed(other[other_end - most : other_end]), strict=True)
    return next((number for number, (left, right) in enumerate(pairs) if left != right), most)


def _exact(one: list[int], other: list[int]) -> Iterator[Block]:
    from rapidfuzz.distance import Indel

    for step in Indel.opcodes(one, other):
        if step.tag == "equal":
            yield step.src_start, step.dest_start, step.src_end - step.src_start


def _pieces(
    one: list[int], start: int, end: int, other: list[int], other_start: int, other_end: int
) -> list[tuple[int, int, int, int]]:
    """Cut two long sequences at their anchors; at proportional places where there are none."""
    cuts = _anchors(one, start, end, other, other_start, other_end)
    if not cuts:
        count = 1 + int(((end - start) * (other_end - other_start) / EXACT_CELLS) ** 0.5)
        length, other_length = end - start, other_end - other_start
        cuts = [
            (start + length * number // count, other_start + other_length * number // count)
            for number in range(1, count)
        ]
    starts, ends = [(start, other_start), *cuts], [*cuts, (end, other_end)]
    return [(left[0], right[0], left[1], right[1]) for left, right in zip(starts, ends, strict=True)]


def _anchors(
    one: list[int], start: int, end: int, other: list[int], other_start: int, other_end: int
) -> list[tuple[int, int]]:
    """Places of elements that stand once in both, as many as keep the same order in both (patience sorting)."""
    once, other_once = Counter(one[start:end]), Counter(other[other_start:other_end])
    places = {other[place]: place for place in range(other_start, other_end)}
    pairs = [
        (place, places[one[place]])
        for place in range(start, end)
        if once[one[place]] == 1 and other_once[one[place]] == 1
    ]
    tops: list[int] = []
    piles: list[int] = []
    before: list[int] = []
    for number, (_, place) in enumerate(pairs):
        pile = bisect.bisect_left(tops, place)
        before.append(piles[pile - 1] if pile else -1)
        tops[pile : pile + 1] = [place]
        piles[pile : pile + 1] = [number]
    chain: list[tuple[int, int]] = []
    number = piles[-1] if piles else -1
    while number >= 0:
        chain.append(pairs[number])
        number = before[number]
    return chain[::-1]


def _joined(blocks: Iterator[Block]) -> list[Block]:
    joined: list[Block] = []
    for start, other_start, length in blocks:
        if joined:
            before = joined[-1]
            if before[0] + before[2] == start and before[1] + before[2] == other_start:
                joined[-1] = (before[0], before[1], before[2] + length)
                continue
        joined.append((start, other_start, length))
    return joined
