"""Long blobs are compressed, frames of any writer are read, and damaged ones are reported."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from engine.store.sqlite.blobs import BlobReader, BlobWriter
from engine.store.sqlite.schema import connect, prepare
from engine.store.store_protocol import StoreError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_TEXT = b"".join(b"Sentence %d says something. " % number for number in range(60))


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    path = tmp_path / "history.sqlite3"
    prepare(path)
    with closing(connect(path)) as opened:
        yield opened


def _frame(connection: sqlite3.Connection, blob: int) -> bytes:
    return connection.execute("SELECT data FROM blobs WHERE id = ? AND is_packed", (blob,)).fetchone()[0]


def _replace(connection: sqlite3.Connection, blob: int, data: bytes) -> None:
    connection.execute("UPDATE blobs SET data = ? WHERE id = ?", (data, blob))


def test_each_blob_is_a_frame_that_states_its_size(connection: sqlite3.Connection):
    writer = BlobWriter(1)
    texts = [_TEXT, bytes(reversed(_TEXT))]
    blobs = [writer.put(connection, text, index) for index, text in enumerate(texts)]
    for blob, text in zip(blobs, texts, strict=True):
        assert zstd.get_frame_info(_frame(connection, blob)).decompressed_size == len(text)
        assert BlobReader(connection).whole(blob) == text


def test_frame_without_its_size_is_read(connection: sqlite3.Connection):
    blob = BlobWriter(1).put(connection, _TEXT, "place")
    stream = zstd.ZstdCompressor()
    frame = stream.compress(_TEXT) + stream.flush()
    assert zstd.get_frame_info(frame).decompressed_size is None
    _replace(connection, blob, frame)
    assert BlobReader(connection).whole(blob) == _TEXT


@pytest.mark.parametrize("damage", [lambda frame: frame[:-3], lambda frame: b"", lambda frame: b"\0" + frame[1:]])
def test_damaged_frame_is_reported(connection: sqlite3.Connection, damage):
    blob = BlobWriter(1).put(connection, _TEXT, "place")
    _replace(connection, blob, damage(_frame(connection, blob)))
    with pytest.raises(StoreError, match="can't be read"):
        BlobReader(connection).whole(blob)
