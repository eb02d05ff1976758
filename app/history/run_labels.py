"""What lists say of a run, in words. No Qt here."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from time import time as clock_time
from typing import Final

from engine.formatting import format_count, format_money
from engine.store.store_protocol import RunStatus, RunSummary, Totals

STATUS_WORDS: Final = {
    RunStatus.RUNNING: "Running",
    RunStatus.PAUSED: "Paused",
    RunStatus.WAITING: "Waiting for you",
    RunStatus.INTERRUPTED: "Interrupted",
    RunStatus.COMPLETED: "Done",
    RunStatus.FAILED: "Failed",
    RunStatus.CANCELLED: "Stopped",
}
STATUS_ICONS: Final = {
    RunStatus.RUNNING: ("mdi6.progress-clock", "accent"),
    RunStatus.PAUSED: ("mdi6.pause-circle-outline", "warning"),
    RunStatus.WAITING: ("mdi6.account-clock-outline", "warning"),
    RunStatus.INTERRUPTED: ("mdi6.flash-alert-outline", "warning"),
    RunStatus.COMPLETED: ("mdi6.check-circle-outline", "good"),
    RunStatus.FAILED: ("mdi6.alert-circle-outline", "bad"),
    RunStatus.CANCELLED: ("mdi6.stop-circle-outline", "dim"),
}
"""Icon and colour of each state, by the names of QtAwesome and of `Theme`."""

# One that is paused is held by the program that has paused it, and goes on there.
_MAY_GO_ON: Final = frozenset({RunStatus.INTERRUPTED, RunStatus.WAITING, RunStatus.FAILED, RunStatus.CANCELLED})

SHORT_ID: Final = 6
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_PLACE: Final = re.compile(r"(\w+)(?:\[(\d+)\])?")


def moment(time: float, now: float | None = None) -> str:
    """When something was, for people: `today, 14:03`, `yesterday, 14:03`, `27 Nov, 14:03`, `27 Nov 2025, 14:03`.

    A time that no calendar has is `unknown`.

    Args:
        time: In seconds since the epoch.
        now: The present moment; None for the clock's.
    """
    try:
        then = datetime.fromtimestamp(time).astimezone()
    except (ValueError, OverflowError, OSError):  # a run that was taken in from a file may say anything
        return "unknown"
    today = datetime.fromtimestamp(clock_time() if now is None else now).astimezone()
    clock = f"{then:%H:%M}"
    if then.date() == today.date():
        return f"today, {clock}"
    if then.date() == today.date() - timedelta(days=1):
        return f"yesterday, {clock}"
    year = "" if then.year == today.year else f" {then.year}"
    return f"{then.day} {_MONTHS[then.month - 1]}{year}, {clock}"


def capital(text: str) -> str:
    """A text with a capital letter at its head."""
    return text[:1].upper() + text[1:]


def short_id(run_id: str) -> str:
    """As much of a run's id as people are shown."""
    return run_id[:SHORT_ID]


def name_of(summary: RunSummary) -> str:
    """What to call a run's workflow."""
    source = re.split(r"[/\\]", summary.source)[-1].partition(".")[0]
    return summary.workflow or source or "Untitled"


def title_of(summary: RunSummary, now: float | None = None) -> str:
    """A run in a few words: `Self-Refine, today, 14:03`."""
    return f"{name_of(summary)}, {moment(summary.started, now)}"


def full_title_of(summary: RunSummary) -> str:
    """A run in a line that no other run has: `Self-Refine, today, 14:03 · 3fa2b1 · fork of 81c09d, iteration 3`."""
    return " · ".join(part for part in (title_of(summary), short_id(summary.run_id), fork_words(summary)) if part)


def place_words(place: str) -> str:
    """A place in a run for people: `loop[2].critique` is `iteration 3, critique`.

    Where loops stand inside each other, each is named: `outer[1].inner[0]` is `outer 2, inner 1`.
    """
    steps = [(name, int(index) if index else None) for name, index in _PLACE.findall(place)]
    loops = sum(index is not None for _, index in steps)
    words = [
        name if index is None else f"iteration {index + 1}" if loops == 1 else f"{name} {index + 1}"
        for name, index in steps
    ]
    return ", ".join(words)


def fork_words(summary: RunSummary) -> str:
    """Where a run was forked from: `fork of 3fa2b1, iteration 3`; empty for any other run."""
    if not summary.parent:
        return ""
    place = f", {place_words(summary.forked_at)}" if summary.forked_at else ""
    return f"fork of {short_id(summary.parent)}{place}"


def branch_words(summary: RunSummary) -> str:
    """A fork that stands under the run that it was forked from: `Fork from iteration 3`."""
    return f"Fork from {place_words(summary.forked_at)}" if summary.forked_at else "Fork"


def total_words(totals: Totals) -> str:
    """What runs come to, in a line."""
    count = "No runs" if not totals.count else format_count(totals.count, "run")
    if not totals.count:
        return count
    more = " and what has no known price" if totals.price_unknown else ""
    return f"{count} · {format_count(totals.tokens, 'token')} · {format_money(totals.cost_usd)}{more}"


def may_resume(summary: RunSummary) -> bool:
    """Whether a run did not come to its end and could go on."""
    return summary.status in _MAY_GO_ON
