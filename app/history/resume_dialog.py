"""Questions before a run is resumed: with which document, and whether calls in flight may be made again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import ValidationError
from PySide6.QtWidgets import QMessageBox, QWidget

from app.dialogs import ask_question
from app.history.past_run_bar import differences
from app.history.run_labels import capital, place_words
from engine.document.files import load, loads
from engine.document.model import Settings, Workflow
from engine.errors import EngineError
from engine.runner.options import RunOptions, options_with_stored
from engine.store.resume import UnknownCall, unknown_calls
from engine.store.store_protocol import RunSummary, Store

AS_IT_RAN: Final = "Use the original workflow"
AS_IT_IS: Final = "Use the current workflow"
LISTED: Final = 10

_Role = QMessageBox.ButtonRole


@dataclass(frozen=True, slots=True)
class Budget:
    """The most that a run may spend, in US dollars and in tokens; None for no limit."""

    usd: float | None = None
    tokens: int | None = None

    def __bool__(self) -> bool:
        return self.usd is not None or self.tokens is not None


@dataclass(frozen=True, slots=True)
class Standing:
    """What there is to know before a run goes on.

    Attributes:
        ran: The document as it ran.
        budget: What it could spend.
        calls: Its model and tool calls that were in flight when it stopped.
        today: The document of the same file as it is now; None where there is none any more.
        differences: How that differs from the document as it ran, in words.
    """

    ran: Workflow
    budget: Budget
    calls: tuple[UnknownCall, ...]
    today: Workflow | None
    differences: list[str]


def look_before(store: Store, summary: RunSummary, opened: Workflow | None) -> Standing:
    """Look how a run stands. It reads files and belongs into a worker.

    Args:
        store: Where it is kept.
        summary: The run.
        opened: The document of the same file, where it is open in the window.

    Raises:
        EngineError: The run cannot be read.
    """
    today = opened if opened is not None else document_today(summary.source)
    ran = loads(store.document(summary.run_id), source="The document of that run")
    changed = differences(ran, today) if today is not None else []
    return Standing(ran, budget_of(store, summary.run_id, ran), unknown_calls(store, summary.run_id), today, changed)


def budget_of(store: Store, run_id: str, ran: Workflow) -> Budget:
    """What a run could spend: by what was said when it was started, else by its document."""
    given = options_with_stored(RunOptions(), store.options(run_id))
    try:
        settings = Settings.model_validate(ran.settings)
    except ValidationError:  # then it does not go on either, and says so itself
        settings = Settings()
    usd, tokens = given.budget_usd, given.budget_tokens
    return Budget(settings.budget_usd if usd is None else usd, settings.budget_tokens if tokens is None else tokens)


def document_today(source: str) -> Workflow | None:
    """The document in a file as it is now; None where there is none that can be read."""
    if not source:
        return None
    try:
        return load(Path(source))
    except EngineError:  # it was moved, or is something else by now: the run itself needs it not
        return None


def ask_before(parent: QWidget, standing: Standing, go_on: Callable[[Workflow | None], object]) -> None:
    """Ask what is to be asked, if anything, and go on.

    Args:
        parent: The window.
        standing: How the run stands.
        go_on: Goes on with another document; None for the one that ran.
    """

    def with_document(document: Workflow | None) -> None:
        if standing.calls:
            _ask_about_calls(parent, standing.calls, lambda: go_on(document))
        else:
            go_on(document)

    if standing.differences:
        _ask_for_document(parent, standing, with_document)
    else:
        with_document(None)


def _ask_for_document(parent: QWidget, standing: Standing, chosen: Callable[[Workflow | None], object]) -> QMessageBox:
    return ask_question(
        parent,
        "The workflow has changed since this run. Which version do you want to use?",
        "With the original workflow, this run is resumed. With the current workflow, a new run starts that reuses all "
        f"completed steps, even those that have changed.\n\n{_listed(standing.differences)}",
        [
            (AS_IT_RAN, _Role.AcceptRole, lambda: chosen(None)),
            (AS_IT_IS, _Role.ActionRole, lambda: chosen(standing.today)),
            ("Cancel", _Role.RejectRole, lambda: None),
        ],
    )


def _ask_about_calls(parent: QWidget, calls: Sequence[UnknownCall], go_on: Callable[[], object]) -> QMessageBox:
    one = len(calls) == 1
    risks = [
        "A model call may have been billed." if any(call.model for call in calls) else "",
        "A tool may already have taken effect: check this first." if any(call.tool for call in calls) else "",
    ]
    return ask_question(
        parent,
        "A call was in progress when the run stopped. Make it again?"
        if one
        else f"{len(calls)} calls were in progress when the run stopped. Make them again?",
        f"{'Its outcome is' if one else 'Their outcomes are'} unknown. {' '.join(filter(None, risks))} "
        f"Finished calls are not made again.\n\n{_listed([_call_line(call) for call in calls])}",
        [
            ("Call again and resume", _Role.AcceptRole, go_on),
            ("Cancel", _Role.RejectRole, lambda: None),
        ],
    )


def _call_line(call: UnknownCall) -> str:
    place = capital(place_words(call.path))
    return f"{place}: {call.tool} {call.arguments}" if call.tool else f"{place}: {call.model}"


def _listed(lines: Sequence[str]) -> str:
    more = [f"and {len(lines) - LISTED} more"] if len(lines) > LISTED else []
    return "\n".join(f"• {line}" for line in [*lines[:LISTED], *more])
