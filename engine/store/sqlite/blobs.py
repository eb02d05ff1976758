"""The blob table: each text is stored once, compressed, as a delta against stored texts where that is shorter.

Texts of a run repeat each other. A prompt contains the previous result; in `append` mode the input of each iteration is
the previous input and a little more. A delta is a sequence of ranges copied from stored texts (`CopyRange`) and new
bytes between them, like the COPY and ADD instructions of VCDIFF (RFC 3284).

A blob can be a delta against another blob, which is itself a delta, thousands of levels deep. The reader copies only
the byte ranges that it needs, without recursion.
"""

from __future__ import annotations

import hashlib
import sqlite3
import sys
from collections import OrderedDict, deque
from collections.abc import Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Generic, NamedTuple, TypeVar

from engine.store.store_protocol import StoreError

if sys.version_info >= (3, 14):
    from compression.zstd import ZstdCompressor, ZstdError, decompress
else:
    from backports.zstd import ZstdCompressor, ZstdError, decompress


MIN_COPY_BYTES: Final = 48
"""Minimum length of a copied range in bytes; shorter ones cost more than they save."""

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


Copy = tuple[int, CopyRange]
"""A range that is copied into a new text, after the place where it begins there."""


def find_copies(text: bytes, base: StoredText | None, others: Sequence[StoredText]) -> list[Copy]:
    """Find the parts of a text that can be copied from stored texts.

    Args:
        text: The text to encode.
        base: Previous text at the same place, whose common prefix and suffix are copied.
        others: Texts that may be contained in it as a whole.

    Returns:
        The copies in order and without overlaps; none if the texts have hardly anything in common.
    """
    start, end = _shared_ends(text, base)
    middle = _contained_texts(text, start, end, others)
    if middle:
        # A copy of a whole text wins over an overlapping prefix or suffix.
        start = min(start, middle[0][0])
        end = max(end, middle[-1][0] + middle[-1][1].length)
    copies: list[Copy] = []
    if base is not None and start >= MIN_COPY_BYTES:
        copies.append((0, CopyRange(base.blob, 0, start)))
    copies.extend(middle)
    if base is not None and len(text) - end >= MIN_COPY_BYTES:
        length = len(text) - end
        copies.append((end, CopyRange(base.blob, len(base.data) - length, length)))
    return copies


def _shared_ends(text: bytes, base: StoredText | None) -> tuple[int, int]:
    """Return the start and end of the new part between a common prefix and suffix worth copying."""
    from rapidfuzz.distance import Postfix, Prefix  # a process that only reads needs neither

    if base is None:
        return 0, len(text)
    before = base.data
    start = Prefix.similarity(text, before) if text[:MIN_COPY_BYTES] == before[:MIN_COPY_BYTES] else 0
    has_end = text[-MIN_COPY_BYTES:] == before[-MIN_COPY_BYTES:]
    return start, len(text) - (Postfix.similarity(text[start:], before[start:]) if has_end else 0)


def _contained_texts(text: bytes, start: int, end: int, others: Sequence[StoredText]) -> list[Copy]:
    """Find other texts contained in the part from `start` to `end`, without overlaps and in order."""
    found: list[Copy] = []
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


def pack_delta(text: bytes, copies: Sequence[Copy]) -> tuple[bytes, bytes]:
    """Serialize a text as a delta: a recipe, and the concatenated new bytes between its copies.

    The recipe is a sequence of varints: for each copied range the number of new bytes before it, then its blob, start
    and length. New bytes after the last range need no number.
    """
    numbers: list[int] = []
    new: list[bytes] = []
    place = 0
    for at, copied in copies:
        numbers += (at - place, *copied)
        new.append(text[place:at])
        place = at + copied.length
    return _to_varints(numbers), b"".join((*new, text[place:]))


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


_MIN_COMPRESS_BYTES: Final = 192
"""Compressing shorter data gains nothing."""
_MIN_DELTA_BYTES: Final = 128
_MIN_SAVING: Final = 64
"""Bytes that a delta must save to be worth its overhead."""
_RECENT: Final = 12
"""Number of latest texts that are searched for in a new one."""
_CACHE_BYTES: Final = 32 * 2**20
"""Size of the texts that a run caches in memory as bases for deltas."""
_ROW_BYTES: Final = 110
"""Approximate overhead of a blob's row and its index entries."""


class _Latest(NamedTuple):
    """The latest text at a place, and the blobs that it references."""

    known: StoredText
    children: frozenset[int]


class BlobWriter:
    """Writes the blobs of one run, inside the transaction of the writer thread.

    Args:
        run: Row id of the run.
    """

    def __init__(self, run: int) -> None:
        self._run = run
        self._used: set[int] = set()
        self._new_uses: list[int] = []
        self._written = 0
        self._latest: _LruCache[_Latest] = _LruCache(_CACHE_BYTES)
        self._recent: deque[StoredText] = deque(maxlen=_RECENT)

    def forget(self) -> None:
        """Forget all blob ids after the transaction that created them was rolled back."""
        self._used.clear()
        self._new_uses.clear()
        self._written = 0
        self._latest.clear()
        self._recent.clear()

    def put(self, connection: sqlite3.Connection, data: bytes, place: Hashable, children: Collection[int] = ()) -> int:
        """Store bytes as a blob and return its id.

        Args:
            connection: Connection of the writer thread.
            data: Content of the blob.
            place: Key under which similar texts are expected, such as node and field.
            children: Ids of the blobs that the content references.
        """
        named = frozenset(children)
        # The output of a node is often the input of the next one, or part of its prompt.
        known = next((known for known in self._recent if known.data == data), None)
        if known is None:
            known = StoredText(self._stored(connection, data, place, named), data)
            # A growing list repeats its old texts; only texts that are new in this run are candidates for copies.
            if self.use(known.blob) and len(data) >= MIN_COPY_BYTES:
                self._recent.append(known)
        self._latest.put(place, _Latest(known, named), len(data))
        return known.blob

    def use(self, blob: int) -> bool:
        """Record that the run references a blob. Return whether the reference is new."""
        if blob in self._used:
            return False
        self._used.add(blob)
        self._new_uses.append(blob)
        return True

    def take_written(self) -> int:
        """Return the bytes written since the last call."""
        written, self._written = self._written, 0
        return written

    def write_uses(self, connection: sqlite3.Connection) -> None:
        """Store the new references of the run to blobs."""
        rows = [(self._run, blob) for blob in sorted(self._new_uses)]
        connection.executemany("INSERT OR IGNORE INTO uses (run, blob) VALUES (?, ?)", rows)
        self._new_uses.clear()

    def _stored(self, connection: sqlite3.Connection, data: bytes, place: Hashable, children: frozenset[int]) -> int:
        """Return the id of the blob with these bytes, writing it if it is new."""
        digest = hashlib.sha256(data).digest()
        row = connection.execute("SELECT id FROM blobs WHERE hash = ?", (digest,)).fetchone()
        return int(row[0]) if row else self._insert(connection, digest, data, place, children)

    def _insert(
        self, connection: sqlite3.Connection, digest: bytes, data: bytes, place: Hashable, children: frozenset[int]
    ) -> int:
        recipe, new = None, data
        links = set(children)
        if len(data) >= _MIN_DELTA_BYTES:
            latest = self._latest.get(place)
            copies = find_copies(data, latest.known if latest else None, self._recent)
            packed_recipe, literals = pack_delta(data, copies)
            if len(packed_recipe) + len(literals) + _MIN_SAVING <= len(data):
                recipe, new = packed_recipe, literals
                bases = {copied.blob for _, copied in copies}
                if latest is not None and latest.known.blob in bases:
                    # The base already references these. A growing list would otherwise reference all of them again.
                    links -= latest.children
                links |= bases
        stored, is_packed = self._pack(new)
        cursor = connection.execute(
            "INSERT INTO blobs (hash, size, is_packed, recipe, data) VALUES (?, ?, ?, ?, ?)",
            (digest, len(data), is_packed, recipe, stored),
        )
        blob = int(cursor.lastrowid or 0)
        if links:
            named = [(base, blob) for base in sorted(links)]
            connection.executemany("INSERT INTO links (base, blob) VALUES (?, ?)", named)
        self._written += len(stored) + len(recipe or b"") + _ROW_BYTES
        return blob

    def _pack(self, data: bytes) -> tuple[bytes, bool]:
        """Return the data, compressed if that is worth it, and whether it is compressed."""
        if len(data) < _MIN_COMPRESS_BYTES:
            return data, False
        # A frame that is written in one call states its size.
        packed = self._compressor.compress(data, ZstdCompressor.FLUSH_FRAME)
        return (packed, True) if len(packed) < len(data) * 0.95 else (data, False)

    @cached_property
    def _compressor(self) -> ZstdCompressor:
        """A shared compressor: creating one takes longer than compressing a page of text."""
        return ZstdCompressor(level=3)


_READ_CACHE_BYTES: Final = 16 * 2**20
_Item = TypeVar("_Item")


@dataclass(frozen=True, slots=True)
class _Row:
    size: int
    recipe: bytes | None
    data: bytes


class BlobReader:
    """Reads blobs over one connection, with a cache of the latest ones."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._rows: _LruCache[_Row] = _LruCache(_READ_CACHE_BYTES)
        self._starts: _LruCache[bytes] = _LruCache(_READ_CACHE_BYTES)

    def whole(self, blob: int) -> bytes:
        """Return the content of a blob.

        Raises:
            StoreError: The blob is missing or damaged.
        """
        return self.start(blob, None)[0]

    def start(self, blob: int, length: int | None) -> tuple[bytes, int]:
        """Return at least the first `length` bytes of a blob (None: all), and its full size."""
        row = self._row(blob)
        wanted = row.size if length is None else min(length, row.size)
        cached = self._starts.get(blob)
        if cached is not None and len(cached) >= wanted:
            return cached, row.size
        data = row.data if row.recipe is None else self._assemble(blob, wanted)
        data = data[:wanted]
        self._starts.put(blob, data, len(data))
        return data, row.size

    def _assemble(self, root: int, wanted: int) -> bytes:
        """Reconstruct the first bytes of a delta-encoded blob."""
        out = bytearray(wanted)
        jobs = [(root, 0, wanted, 0)]
        while jobs:
            blob, start, length, target = jobs.pop()
            cached = self._starts.get(blob)
            if cached is not None and len(cached) >= start + length:
                out[target : target + length] = memoryview(cached)[start : start + length]
                continue
            row = self._row(blob)
            if row.recipe is None:
                out[target : target + length] = memoryview(row.data)[start : start + length]
                continue
            end, place = start + length, 0
            for new_start, new_length, copied in read_delta(row.recipe, row.data):
                first, last = max(place, start), min(place + new_length, end)
                if first < last:
                    source = new_start + first - place
                    at = target + first - start
                    out[at : at + last - first] = memoryview(row.data)[source : source + last - first]
                place += new_length
                if copied is None or place >= end:
                    break
                first, last = max(place, start), min(place + copied.length, end)
                if first < last:
                    jobs.append((copied.blob, copied.start + first - place, last - first, target + first - start))
                place += copied.length
        return bytes(out)

    def _row(self, blob: int) -> _Row:
        row = self._rows.get(blob)
        if row is None:
            found = self._connection.execute(
                "SELECT size, is_packed, recipe, data FROM blobs WHERE id = ?", (blob,)
            ).fetchone()
            if found is None:
                raise _unreadable()
            size, is_packed, recipe, data = found
            row = _Row(size, recipe, _unpack(data) if is_packed else data)
            self._rows.put(blob, row, len(row.data))
        return row


def _unpack(data: bytes) -> bytes:
    try:
        return decompress(data)
    except ZstdError as error:
        raise _unreadable() from error


def _unreadable() -> StoreError:
    return StoreError("A part of the run can't be read.", "The run was deleted, or the history file is damaged.")


class _LruCache(Generic[_Item]):
    """Least-recently-used cache, limited by bytes."""

    def __init__(self, max_bytes: int) -> None:
        self._items: OrderedDict[Hashable, tuple[_Item, int]] = OrderedDict()
        self._max_bytes = max_bytes
        self._bytes = 0

    def clear(self) -> None:
        self._items.clear()
        self._bytes = 0

    def get(self, key: Hashable) -> _Item | None:
        found = self._items.get(key)
        if found is None:
            return None
        self._items.move_to_end(key)
        return found[0]

    def put(self, key: Hashable, item: _Item, size: int) -> None:
        before = self._items.pop(key, None)
        if before is not None:
            self._bytes -= before[1]
        self._items[key] = (item, size)
        self._bytes += size
        while self._bytes > self._max_bytes and len(self._items) > 1:
            _, (_, dropped) = self._items.popitem(last=False)
            self._bytes -= dropped
