"""Putting texts into the blob table: each once, told by what is stored already where that is shorter."""

from __future__ import annotations

import hashlib
import sqlite3
from collections import OrderedDict, deque
from collections.abc import Collection, Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar

from engine.store.base import StoreError
from engine.store.sqlite.delta_encoding import SHORTEST, Known, Quote, pack_recipe, read_recipe, split

if TYPE_CHECKING:
    from zstandard import ZstdCompressor, ZstdDecompressor

_WORTH_PACKING: Final = 192
"""Bytes below which compression gains nothing."""
_WORTH_SPLITTING: Final = 128
_SAVING: Final = 64
"""Bytes that a recipe must save: about what its own row costs more."""
_RECENT: Final = 12
"""How many of the latest texts are looked for inside a new one."""
_REMEMBERED_BYTES: Final = 32 * 2**20
"""How much text a run holds in memory so that the next one can be told by it."""
_ROW_BYTES: Final = 110
"""What a blob's row costs beside its data, about: its hash twice, its numbers, its place in the tables of uses."""


class _Latest(NamedTuple):
    """What was written last in a place, and the blobs that it names."""

    known: Known
    children: frozenset[int]


_NOTHING: Final[frozenset[int]] = frozenset()


class BlobWriter:
    """Writes the blobs of one run, in the writer's transaction.

    Args:
        run: The run's number in the file.
    """

    def __init__(self, run: int) -> None:
        self._run = run
        self._used: set[int] = set()
        self._not_noted: list[int] = []
        self._written = 0
        self._latest: OrderedDict[Hashable, _Latest] = OrderedDict()
        self._latest_bytes = 0
        self._recent: deque[Known] = deque(maxlen=_RECENT)

    def forget(self) -> None:
        """Forget all numbers of blobs: the transaction that gave them was taken back."""
        self._used.clear()
        self._not_noted.clear()
        self._written = 0
        self._latest.clear()
        self._latest_bytes = 0
        self._recent.clear()

    def put(self, connection: sqlite3.Connection, data: bytes, place: Hashable, children: Collection[int] = ()) -> int:
        """The number of the blob with these bytes.

        Args:
            connection: The writer's.
            data: The bytes.
            place: Where in the run it stands, as far as texts there resemble each other.
            children: Blobs that the bytes name.
        """
        named = frozenset(children) if children else _NOTHING
        # What a node gave is often just what the next one gets, or asks a model.
        known = next((known for known in self._recent if known.data == data), None)
        if known is None:
            known = Known(self._stored(connection, data, place, named), data)
            # A list that grows brings its old texts along each time: only what is new here is looked for in others.
            if self.use(known.blob) and len(data) >= SHORTEST:
                self._recent.append(known)
        self._remember(place, _Latest(known, named))
        return known.blob

    def use(self, blob: int) -> bool:
        """Note that the run names a blob; whether it did not before."""
        if blob in self._used:
            return False
        self._used.add(blob)
        self._not_noted.append(blob)
        return True

    def take_written(self) -> int:
        """Bytes that blobs have taken since this was last asked."""
        written, self._written = self._written, 0
        return written

    def write_uses(self, connection: sqlite3.Connection) -> None:
        """Write down which blobs the run names."""
        rows = [(self._run, blob) for blob in sorted(self._not_noted)]
        connection.executemany("INSERT OR IGNORE INTO uses (run, blob) VALUES (?, ?)", rows)
        self._not_noted.clear()

    def _stored(self, connection: sqlite3.Connection, data: bytes, place: Hashable, children: frozenset[int]) -> int:
        """The number of the blob with these bytes, which is written if the file has none."""
        digest = hashlib.sha256(data).digest()
        row = connection.execute("SELECT id FROM blobs WHERE hash = ?", (digest,)).fetchone()
        return int(row[0]) if row else self._insert(connection, digest, data, place, children)

    def _insert(
        self, connection: sqlite3.Connection, digest: bytes, data: bytes, place: Hashable, children: frozenset[int]
    ) -> int:
        recipe, new = None, data
        links = set(children)
        if len(data) >= _WORTH_SPLITTING:
            latest = self._latest.get(place)
            pieces = split(data, latest.known if latest else None, self._recent)
            if pieces is not None:
                packed_recipe, literals = pack_recipe(pieces)
                if len(packed_recipe) + len(literals) + _SAVING <= len(data):
                    recipe, new = packed_recipe, literals
                    quoted = {piece.blob for piece in pieces if isinstance(piece, Quote)}
                    if latest is not None and latest.known.blob in quoted:
                        # That one keeps what it names. A list that grows would otherwise name all of it again.
                        links -= latest.children
                    links |= quoted
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
        """The data compressed, where that is worth it, and whether it is."""
        if len(data) < _WORTH_PACKING:
            return data, False
        packed = self._compressor.compress(data)
        return (packed, True) if len(packed) < len(data) * 0.95 else (data, False)

    @cached_property
    def _compressor(self) -> ZstdCompressor:
        """One for all texts: making it takes longer than compressing a page of text."""
        import zstandard

        return zstandard.ZstdCompressor(level=3)

    def _remember(self, place: Hashable, latest: _Latest) -> None:
        known = latest.known
        before = self._latest.pop(place, None)
        if before is not None:
            self._latest_bytes -= len(before.known.data)
        self._latest[place] = latest
        self._latest_bytes += len(known.data)
        while self._latest_bytes > _REMEMBERED_BYTES and len(self._latest) > 1:
            _, oldest = self._latest.popitem(last=False)
            self._latest_bytes -= len(oldest.known.data)


_HELD_BYTES: Final = 16 * 2**20
_Item = TypeVar("_Item")


@dataclass(frozen=True, slots=True)
class _Row:
    size: int
    recipe: bytes | None
    data: bytes


class BlobReader:
    """Reads blobs over one connection; what was read last is held for a while."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._decompressor: ZstdDecompressor | None = None
        self._rows: _Held[_Row] = _Held()
        self._starts: _Held[bytes] = _Held()

    def whole(self, blob: int) -> bytes:
        """A blob's bytes.

        Raises:
            StoreError: It is not there.
        """
        return self.start(blob, None)[0]

    def start(self, blob: int, length: int | None) -> tuple[bytes, int]:
        """At least the first `length` bytes of a blob if it has as many (None: all), and its size."""
        row = self._row(blob)
        wanted = row.size if length is None else min(length, row.size)
        held = self._starts.get(blob)
        if held is not None and len(held) >= wanted:
            return held, row.size
        data = row.data if row.recipe is None else self._assemble(blob, wanted)
        data = data[:wanted]
        self._starts.put(blob, data, len(data))
        return data, row.size

    def _assemble(self, root: int, wanted: int) -> bytes:
        """The first bytes of a blob that is told by others."""
        out = bytearray(wanted)
        jobs = [(root, 0, wanted, 0)]
        while jobs:
            blob, start, length, target = jobs.pop()
            held = self._starts.get(blob)
            if held is not None and len(held) >= start + length:
                out[target : target + length] = memoryview(held)[start : start + length]
                continue
            row = self._row(blob)
            if row.recipe is None:
                out[target : target + length] = memoryview(row.data)[start : start + length]
                continue
            end, place = start + length, 0
            for new_start, new_length, quote in read_recipe(row.recipe, row.data):
                first, last = max(place, start), min(place + new_length, end)
                if first < last:
                    source = new_start + first - place
                    at = target + first - start
                    out[at : at + last - first] = memoryview(row.data)[source : source + last - first]
                place += new_length
                if quote is None or place >= end:
                    break
                first, last = max(place, start), min(place + quote.length, end)
                if first < last:
                    jobs.append((quote.blob, quote.start + first - place, last - first, target + first - start))
                place += quote.length
        return bytes(out)

    def _row(self, blob: int) -> _Row:
        row = self._rows.get(blob)
        if row is None:
            found = self._connection.execute(
                "SELECT size, is_packed, recipe, data FROM blobs WHERE id = ?", (blob,)
            ).fetchone()
            if found is None:
                raise _lost()
            size, is_packed, recipe, data = found
            row = _Row(size, recipe, self._unpack(data) if is_packed else data)
            self._rows.put(blob, row, len(row.data))
        return row

    def _unpack(self, data: bytes) -> bytes:
        import zstandard

        if self._decompressor is None:
            self._decompressor = zstandard.ZstdDecompressor()
        try:
            return self._decompressor.decompress(data)
        except zstandard.ZstdError as error:
            raise _lost() from error


def _lost() -> StoreError:
    return StoreError("A part of the run cannot be read.", "The run was deleted, or the history's file is damaged.")


class _Held(Generic[_Item]):
    """What was used last, up to a number of bytes."""

    def __init__(self) -> None:
        self._items: OrderedDict[int, tuple[_Item, int]] = OrderedDict()
        self._bytes = 0

    def get(self, key: int) -> _Item | None:
        found = self._items.get(key)
        if found is None:
            return None
        self._items.move_to_end(key)
        return found[0]

    def put(self, key: int, item: _Item, size: int) -> None:
        before = self._items.pop(key, None)
        if before is not None:
            self._bytes -= before[1]
        self._items[key] = (item, size)
        self._bytes += size
        while self._bytes > _HELD_BYTES and len(self._items) > 1:
            _, (_, dropped) = self._items.popitem(last=False)
            self._bytes -= dropped
