"""Labels of runs in lists and titles. Independent of Qt."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from functools import lru_cache
from time import time as clock_time
from typing import Final

from engine.document.model import Workflow, stem_of
from engine.formatting import format_count, format_money
from engine.store.store_protocol import RunStatus, RunSummary, Store, StoreError, Totals

STATUS_LABELS: Final = {
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
"""Icon and color of each status, by the names of QtAwesome and of `Theme`."""

# A paused run is owned by the program that has paused it.
_RESUMABLE: Final = frozenset({RunStatus.INTERRUPTED, RunStatus.WAITING, RunStatus.FAILED, RunStatus.CANCELLED})

SHORT_ID: Final = 6
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_PLACE: Final = re.compile(r"(\w+)(?:\[(\d+)\])?")


def time_label(time: float, now: float | None = None) -> str:
    """Format a time for people: `today, 14:03`, `yesterday, 14:03`, `27 Nov, 14:03`, `27 Nov 2025, 14:03`.

    Args:
        time: Seconds since the epoch; `unknown` for an invalid time.
        now: The current time; None for the clock's.
    """
    try:
        then = datetime.fromtimestamp(time).astimezone()
    except (ValueError, OverflowError, OSError):  # an imported run may have an invalid time
        return "unknown"
    today = datetime.fromtimestamp(clock_time() if now is None else now).astimezone()
    clock = f"{then:%H:%M}"
    if then.date() == today.date():
        return f"today, {clock}"
    if then.date() == today.date() - timedelta(days=1):
        return f"yesterday, {clock}"
    year = "" if then.year == today.year else f" {then.year}"
    return f"{then.day} {_MONTHS[then.month - 1]}{year}, {clock}"


def capitalized(text: str) -> str:
    """Capitalize the first letter."""
    return text[:1].upper() + text[1:]


def short_id(run_id: str) -> str:
    """Shorten a run id for display."""
    return run_id[:SHORT_ID]


def workflow_name(summary: RunSummary) -> str:
    """Return the display name of a run's workflow."""
    source = stem_of(re.split(r"[/\\]", summary.source)[-1]).removesuffix(".json")
    return summary.workflow or source or "Untitled"


def run_title(summary: RunSummary) -> str:
    """Return a short title of a run: `Self-Refine, today, 14:03`."""
    return f"{workflow_name(summary)}, {time_label(summary.started)}"


NodeTitles = Mapping[str, str]
"""Names of nodes by id."""
NO_TITLES: Final[NodeTitles] = {}


def node_titles(workflow: Workflow) -> NodeTitles:
    """Return the names of the nodes of a workflow."""
    from engine.nodes.node_names import node_names  # the window shows its bars before it loads the node types

    return node_names(workflow)


def stored_titles(store: Store, summary: RunSummary) -> NodeTitles:
    """Return the titles of the nodes that the label of a run may name. Reads the store, so call it in a thread."""
    if summary.part is None and not summary.forked_at:
        return NO_TITLES
    try:
        return _titles_in(store.document(summary.run_id))
    except StoreError:  # deleted meanwhile
        return NO_TITLES


@lru_cache(maxsize=32)  # few documents have many runs
def _titles_in(document: str) -> NodeTitles:
    from engine.store.run_sections import workflow_or_empty  # the window shows its bars before it loads the node types

    return node_titles(workflow_or_empty(document))


def full_run_title(summary: RunSummary, titles: NodeTitles = NO_TITLES) -> str:
    """Return a unique title of a run: `Self-Refine, today, 14:03 · 3fa2b1 · fork of 81c09d, iteration 3`."""
    parts = (run_title(summary), short_id(summary.run_id), fork_label(summary, titles))
    return " · ".join(part for part in parts if part)


def path_label(place: str, titles: NodeTitles = NO_TITLES, unit: str = "iteration") -> str:
    """Format a path for people: `loop[2].critique` is `iteration 3, Critique`, with its id if it is not in the titles.

    Nested loops are named: `outer[1].inner[0]` is `outer 2, inner 1`.

    Args:
        place: The path.
        titles: Titles of the nodes.
        unit: The word for one pass through the body of the only loop.
    """
    steps = [(titles.get(name, name), int(index) if index else None) for name, index in _PLACE.findall(place)]
    loops = sum(index is not None for _, index in steps)
    words = [
        name if index is None else f"{unit} {index + 1}" if loops == 1 else f"{name} {index + 1}"
        for name, index in steps
    ]
    return ", ".join(words)


def fork_label(summary: RunSummary, titles: NodeTitles = NO_TITLES) -> str:
    """Describe a fork or a partial run: `fork of 3fa2b1, iteration 3`, `up to Draft, with outputs of 3fa2b1`."""
    if not summary.is_fork:
        reused = f", with outputs of {short_id(summary.parent)}" if summary.parent else ""
        return f"{_part_label(summary, titles)}{reused}" if summary.part is not None else ""
    place = f", {path_label(summary.forked_at, titles)}" if summary.forked_at else ""
    return f"fork of {short_id(summary.parent)}{place}"


def branch_label(summary: RunSummary, above: str, titles: NodeTitles = NO_TITLES) -> str:
    """Return the label of a run below another: `Fork from iteration 3`, `Up to Draft`, `Fork of 3fa2b1, iteration 3`.

    Args:
        summary: The run.
        above: Id of the run above it, which a fork of a fork does not come from.
        titles: Titles of its nodes.
    """
    if not summary.is_fork and summary.part is not None:
        return capitalized(_part_label(summary, titles))
    if summary.parent != above:
        return capitalized(fork_label(summary, titles))
    return f"Fork from {path_label(summary.forked_at, titles)}" if summary.forked_at else "Fork"


def _part_label(summary: RunSummary, titles: NodeTitles) -> str:
    assert summary.part is not None
    return str(replace(summary.part, node=titles.get(summary.part.node, summary.part.node)))


def totals_label(totals: Totals) -> str:
    """Format the totals of runs in one line."""
    if not totals.count:
        return "No runs"
    more = " plus runs with unknown prices" if totals.price_unknown else ""
    figures = (format_count(totals.count, "run"), format_count(totals.tokens, "token"), format_money(totals.cost_usd))
    return " · ".join(figures) + more


def can_resume(summary: RunSummary) -> bool:
    """Return whether a run can be resumed."""
    return summary.status in _RESUMABLE
