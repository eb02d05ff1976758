"""The history: every run kept while it goes, shown, resumed, forked, exported."""

from engine.store.base import EVERY_RUN, RunFilter, RunStatus, RunSummary, Store, StoreError, Totals
from engine.store.opening import open_store, store_path

__all__ = [
    "EVERY_RUN",
    "RunFilter",
    "RunStatus",
    "RunSummary",
    "Store",
    "StoreError",
    "Totals",
    "open_store",
    "store_path",
]
