"""Run history in one SQLite file."""

from engine.store.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
