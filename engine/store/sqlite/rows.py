"""How a run stands in its row: the columns, written and read.

Texts that may hold anything are stored as bytes, because SQLite takes no lone surrogates as text.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any, Final

from engine.store.base import RunStatus, RunSummary
from engine.store.fold import RunFold

FOLD_COLUMNS: Final = "workflow, state, updated, duration_s, iterations, exit_reason, tokens, cost_usd, models, error"
"""What is written anew with each event; `started` is written once."""
SUMMARY_COLUMNS: Final = f"run_id, source, parent, forked_at, pinned, size, started, {FOLD_COLUMNS}"

_STATUSES: Final = {status.value: status for status in RunStatus}


def fold_row(fold: RunFold) -> tuple[Any, ...]:
    """The values of `FOLD_COLUMNS`."""
    return (
        to_bytes(fold.workflow),
        fold.state.value,
        fold.updated,
        fold.duration_s,
        fold.iterations,
        to_bytes(fold.exit_reason),
        fold.tokens,
        fold.cost_usd,
        _write_models(fold.models),
        to_bytes(fold.error),
    )


def read_fold(started: float, row: tuple[Any, ...]) -> RunFold:
    """The fold whose columns these are."""
    workflow, state, updated, duration_s, iterations, exit_reason, tokens, cost_usd, models, error = row
    return RunFold(
        to_text(workflow),
        RunStatus(state),
        started,
        updated,
        duration_s,
        iterations,
        to_text(exit_reason),
        tokens,
        cost_usd,
        _read_models(models),
        to_text(error),
    )


def read_summary(row: tuple[Any, ...], status: str) -> RunSummary:
    """The summary whose columns (`SUMMARY_COLUMNS`) these are.

    Args:
        row: The columns.
        status: How the run stands, seen from outside.
    """
    run_id, source, parent, forked_at, pinned, size, started = row[:7]
    workflow, _state, updated, duration_s, iterations, exit_reason, tokens, cost_usd, models, error = row[7:]
    return RunSummary(
        run_id,
        to_text(workflow),
        to_text(source),
        _STATUSES[status],
        started,
        updated,
        duration_s,
        iterations,
        to_text(exit_reason),
        tokens,
        cost_usd,
        _read_models(models),
        to_text(error),
        parent,
        forked_at,
        bool(pinned),
        size,
    )


@lru_cache(maxsize=64)  # a run's do not change
def _write_models(models: tuple[str, ...]) -> bytes:
    return to_bytes(json.dumps(models, ensure_ascii=False))


@lru_cache(maxsize=64)  # most runs of a list call the same few
def _read_models(stored: bytes) -> tuple[str, ...]:
    return tuple(json.loads(to_text(stored)))


def to_bytes(text: str) -> bytes:
    """A text as it is stored where it may hold anything."""
    return text.encode("utf-8", "surrogatepass")


def to_text(stored: bytes) -> str:
    """The text that was stored as these bytes."""
    return stored.decode("utf-8", "surrogatepass")


def plain(text: str) -> str:
    """A text that SQLite takes: what no encoding can hold becomes a question mark."""
    return text.encode("utf-8", "replace").decode()


@lru_cache(maxsize=64)  # a run's does not change
def search_text(workflow: str, source: str) -> str:
    """What a filter looks for its text in: name and source, in no case."""
    return plain(f"{workflow}\n{source}".casefold())
