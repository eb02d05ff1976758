"""Helpers of the commands on the history: open it, parse times, format runs."""

from __future__ import annotations

import re
import sys
from collections.abc import Generator
from contextlib import closing, contextmanager, nullcontext
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from engine.errors import EngineError

if TYPE_CHECKING:
    from engine.models.catalog import Models
    from engine.store.store_protocol import RunSummary, Store

StorePath = Annotated[
    Path | None,
    typer.Option(
        "--store", metavar="PATH", help="History file. Default: LOOPWRIGHT_STORE, else in the user's data folder."
    ),
]
RunName = Annotated[str, typer.Argument(metavar="RUN", help="Id of the run, or the beginning of it.")]

_AGO: Final = re.compile(r"(\d{1,6})([mhdw])")
_UNITS: Final = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


@contextmanager
def history(context: typer.Context, path: Path | None) -> Generator[Store]:
    """Open the history, and close it afterwards.

    Args:
        context: The command; holds the path of `runs --store PATH`.
        path: The command's own `--store`, which takes precedence.

    Raises:
        StoreError: The history cannot be opened.
    """
    from engine.store import open_store

    store = open_store(path or context.obj)
    try:
        yield store
    finally:
        store.close()


def models_with(path: Path | None, opened: Store | None = None) -> Models:
    """The models for a run, including `recorded:RUN`.

    Args:
        path: The history file, opened when a recorded model needs it; None for the default.
        opened: The history, if it is already open.
    """
    from engine.models.catalog import Models
    from engine.store import open_store
    from engine.store.recorded_model import recorded_models

    return Models(
        recorded=recorded_models(lambda: closing(open_store(path)) if opened is None else nullcontext(opened))
    )


def moment(text: str | None, option: str) -> float | None:
    """Parse the time in `--since` or `--until` as seconds since the epoch.

    Args:
        text: A date (`2026-11-28`), a date with a time, or how long ago (`30m`, `12h`, `7d`, `2w`).
        option: The name of the option.

    Raises:
        EngineError: The time is malformed.
    """
    if text is None:
        return None
    ago = _AGO.fullmatch(text.strip())
    try:
        if ago is not None:
            return (datetime.now().astimezone() - timedelta(**{_UNITS[ago[2]]: int(ago[1])})).timestamp()
        return datetime.fromisoformat(text.strip()).astimezone().timestamp()
    except (ValueError, OverflowError, OSError):
        from engine.text_sanitizing import shown

        raise EngineError(
            f'"{shown(text, 60)}" is not a valid time for {option}.',
            "Use 2026-11-28, 2026-11-28T14:30, or 7d for seven days ago.",
        ) from None


def when(time: float) -> str:
    """Format a time in the local time zone, to the minute."""
    return datetime.fromtimestamp(time).astimezone().strftime("%Y-%m-%d %H:%M")


def summary_json(run: RunSummary) -> dict[str, Any]:
    """A stored run as a JSON object."""
    return {
        "run_id": run.run_id,
        "workflow": run.workflow,
        "source": run.source,
        "status": str(run.status),
        "started": run.started,
        "updated": run.updated,
        "duration_s": run.duration_s,
        "iterations": run.iterations,
        "exit_reason": run.exit_reason,
        "tokens": run.tokens,
        "cost_usd": run.cost_usd,
        "models": list(run.models),
        "error": run.error,
        "parent": run.parent,
        "forked_at": run.forked_at,
        "pinned": run.pinned,
        "size": run.size,
    }


def can_ask() -> bool:
    """Whether a person can answer at a terminal."""
    return sys.stdin.isatty() and sys.stderr.isatty()
