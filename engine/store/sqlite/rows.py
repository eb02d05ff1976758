"""Columns of a run's row, to and from Python.

Texts with arbitrary content are stored as bytes, because SQLite refuses lone surrogates in text.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any, Final

from engine.models.base import Usage
from engine.run_state.state import Detail, RunState, RunStatus
from engine.store.base import RunSummary

STATE_COLUMNS: Final = "workflow, state, updated, duration_s, iterations, exit_reason, tokens, cost_usd, models, error"
"""Columns updated with each event; `started` is written once."""
SUMMARY_COLUMNS: Final = f"run_id, source, parent, forked_at, pinned, size, started, {STATE_COLUMNS}"

_STATUSES: Final = {status.value: status for status in RunStatus}


def state_row(state: RunState) -> tuple[Any, ...]:
    """Return the values of `STATE_COLUMNS`."""
    return (
        to_bytes(state.workflow),
        state.status.value,
        state.updated,
        state.duration_s,
        state.completed_iterations,
        to_bytes(state.exit_reason),
        state.usage.total_tokens,
        state.cost_usd,
        _write_models(state.models),
        to_bytes(state.error),
    )


def read_state(run_id: str, started: float, row: tuple[Any, ...]) -> RunState:
    """Restore a state (`Detail.SUMMARY`) from its columns, without its questions. Of tokens only the sum is stored."""
    workflow, status, updated, duration_s, iterations, exit_reason, tokens, cost_usd, models, error = row
    return RunState(
        run_id,
        Detail.SUMMARY,
        workflow=to_text(workflow),
        phase=RunStatus.RUNNING if status == RunStatus.WAITING else RunStatus(status),
        started=started,
        updated=updated,
        duration_s=duration_s,
        completed_iterations=iterations,
        exit_reason=to_text(exit_reason),
        usage=Usage(tokens),
        cost_usd=cost_usd,
        models=_read_models(models),
        error=to_text(error),
    )


def read_summary(row: tuple[Any, ...], status: str) -> RunSummary:
    """Build a summary from its columns.

    Args:
        row: Values of `SUMMARY_COLUMNS`.
        status: Status of the run; `interrupted` if its process is gone.
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


@lru_cache(maxsize=64)  # constant within a run
def _write_models(models: tuple[str, ...]) -> bytes:
    return to_bytes(json.dumps(models, ensure_ascii=False))


@lru_cache(maxsize=64)  # few distinct values
def _read_models(stored: bytes) -> tuple[str, ...]:
    return tuple(json.loads(to_text(stored)))


def to_bytes(text: str) -> bytes:
    """Encode a text that may contain lone surrogates."""
    return text.encode("utf-8", "surrogatepass")


def to_text(stored: bytes) -> str:
    """Decode a text that may contain lone surrogates."""
    return stored.decode("utf-8", "surrogatepass")


def plain(text: str) -> str:
    """Replace lone surrogates, which SQLite refuses in text, by question marks."""
    return text.encode("utf-8", "replace").decode()


@lru_cache(maxsize=64)  # constant within a run
def search_text(workflow: str, source: str) -> str:
    """Return the case-folded text that filters search: name and source."""
    return plain(f"{workflow}\n{source}".casefold())
