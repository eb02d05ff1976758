"""What the list of runs asks of the history, in a worker: pages, news, totals. No Qt here."""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import Final

from app.history.runs_model import Page
from engine.store.base import RunFilter, RunStatus, RunSummary, Store, StoreError, Totals

PAGE: Final = 200


class Since(Enum):
    """How far back runs are shown: any, or from so many days before today on."""

    ANY = None
    TODAY = 0
    WEEK = 6
    MONTH = 29


@dataclass(frozen=True, slots=True)
class Wish:
    """Which runs are to be seen.

    Attributes:
        text: Part of the workflow's name or file.
        statuses: Their states; empty for any.
        since: How far back.
        pinned: Only pinned ones.
    """

    text: str = ""
    statuses: frozenset[RunStatus] = frozenset()
    since: Since = Since.ANY
    pinned: bool = False

    @property
    def is_all(self) -> bool:
        """Whether all runs are meant."""
        return self == Wish()

    def filter(self, now: float | None = None) -> RunFilter:
        """The filter of the store."""
        since = None
        if self.since.value is not None:
            today = datetime.fromtimestamp(time.time() if now is None else now).astimezone()
            midnight = today.replace(hour=0, minute=0, second=0, microsecond=0)
            since = (midnight - timedelta(days=self.since.value)).timestamp()
        return RunFilter(workflow=self.text, statuses=self.statuses, since=since, pinned=self.pinned)


@dataclass(frozen=True, slots=True)
class News:
    """How the list stands now: its first runs, and what all come to."""

    runs: list[RunSummary]
    totals: Totals


def read_page(store: Store, wish: Wish, offset: int, known: Collection[str], size: int = PAGE) -> Page:
    """Read some runs.

    Args:
        store: The history.
        wish: Which ones.
        offset: How many to leave out, the newest first.
        known: Ids of runs that are in the list already.
        size: How many.

    Raises:
        StoreError: They cannot be read.
    """
    runs = store.runs(wish.filter(), limit=size, offset=offset)
    # Where only some runs are shown, those that do not fit stay away: a fork then stands by itself.
    ancestors = _ancestors(store, runs, known) if wish.is_all else {}
    return Page(runs, ancestors, len(runs) < size)


def read_news(store: Store, wish: Wish, size: int = PAGE) -> News:
    """Read what may have changed.

    Raises:
        StoreError: It cannot be read.
    """
    which = wish.filter()
    return News(store.runs(which, limit=size), store.totals(which))


def _ancestors(store: Store, runs: list[RunSummary], known: Collection[str]) -> dict[str, RunSummary]:
    there = {run.run_id: run for run in runs}
    found: dict[str, RunSummary] = {}
    for run in runs:
        parent = run.parent
        while parent and parent not in known and parent not in found:
            try:
                above = there.get(parent) or store.find(parent)
            except StoreError:  # it was deleted: its forks stand by themselves
                break
            found[parent] = above
            parent = above.parent
    return found
