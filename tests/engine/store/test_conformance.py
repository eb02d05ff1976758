"""Both stores pass the conformance suite."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from engine.store import open_store
from engine.store.store_protocol import Store
from tests.engine.store.conformance import StoreConformance
from tests.engine.store.memory_store import MemoryStore


class TestMemoryStore(StoreConformance):
    @pytest.fixture
    def store(self) -> Iterator[Store]:
        with closing(MemoryStore()) as store:
            yield store


class TestSqliteStore(StoreConformance):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[Store]:
        with closing(open_store(tmp_path / "history.sqlite3")) as store:
            yield store
