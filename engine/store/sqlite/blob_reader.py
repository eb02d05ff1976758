"""Getting texts back from the blob table, whole or only their start.

A text may be told by another one, that by a third, and so on for thousands: what is wanted of each is copied by ranges,
without recursion, and nothing is built that was not asked for.
"""

from __future__ import annotations

import sqlite3
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from engine.store.base import StoreError
from engine.store.sqlite.pieces import read_recipe

if TYPE_CHECKING:
    from zstandard import ZstdDecompressor

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
