"""Questions before a run is resumed: which workflow to use, and whether to repeat calls in flight."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import ValidationError
from PySide6.QtWidgets import QMessageBox, QWidget

from app.dialogs import ask_question
from app.history.past_run_bar import workflow_differences
from app.history.run_labels import NodeTitles, capitalized, node_titles, path_label
from engine.document.files import load, loads
from engine.document.model import Settings, Workflow
from engine.errors import EngineError
from engine.models.providers import runs_on_own_machine
from engine.runner.options import RunOptions, options_with_stored
from engine.store.resume import UnknownCall, unknown_calls
from engine.store.store_protocol import RunSummary, Store

USE_ORIGINAL: Final = "Use the original workflow"
USE_CURRENT: Final = "Use the current workflow"
MAX_LISTED: Final = 10

_Role = QMessageBox.ButtonRole


@dataclass(frozen=True, slots=True)
class Budget:
    """Budget of a run in US dollars and tokens; None for no limit."""

    usd: float | None = None
    tokens: int | None = None

    def __bool__(self) -> bool:
        return self.usd is not None or self.tokens is not None


@dataclass(frozen=True, slots=True)
class ResumeInfo:
    """What is shown before a run is resumed.

    Attributes:
        ran: The document as it ran.
        budget: Its budget.
        calls: Model and tool calls that were in flight when it stopped.
        today: The current document of the same file; None if there is none.
        differences: Its differences from the document as it ran.
    """

    ran: Workflow
    budget: Budget
    calls: tuple[UnknownCall, ...]
    today: Workflow | None
    differences: list[str]


def read_resume_info(store: Store, summary: RunSummary, opened: Workflow | None) -> ResumeInfo:
    """Read what is shown before a run is resumed. Call it in a worker.

    Args:
        store: The history.
        summary: The run.
        opened: The document of the same file, if it is open.

    Raises:
        EngineError: The run cannot be read.
    """
    today = opened if opened is not None else current_document(summary.source)
    ran = loads(store.document(summary.run_id), source="The workflow of this run")
    changed = workflow_differences(ran, today) if today is not None else []
    return ResumeInfo(ran, budget_of(store, summary.run_id, ran), unknown_calls(store, summary.run_id), today, changed)


def budget_of(store: Store, run_id: str, ran: Workflow) -> Budget:
    """Return the budget of a run: from its options, or from its document."""
    given = options_with_stored(RunOptions(), store.options(run_id))
    try:
        settings = Settings.model_validate(ran.settings)
    except ValidationError:  # then it cannot be resumed either, with an error of its own
        settings = Settings()
    usd, tokens = given.budget_usd, given.budget_tokens
    return Budget(settings.budget_usd if usd is None else usd, settings.budget_tokens if tokens is None else tokens)


def current_document(source: str) -> Workflow | None:
    """Load the document of a file; None if it cannot be read."""
    if not source:
        return None
    try:
        return load(Path(source))
    except EngineError:  # it was moved or replaced; the run does not need it
        return None


def ask_before_resume(parent: QWidget, info: ResumeInfo, resume: Callable[[Workflow | None], object]) -> None:
    """Ask what is necessary, then continue.

    Args:
        parent: The window.
        info: What is known about the run.
        resume: Resumes with another document; None for the original one.
    """

    def with_document(document: Workflow | None) -> None:
        if info.calls:
            _ask_about_calls(parent, info, lambda: resume(document))
        else:
            resume(document)

    if info.differences:
        _ask_for_document(parent, info, with_document)
    else:
        with_document(None)


def _ask_for_document(parent: QWidget, info: ResumeInfo, chosen: Callable[[Workflow | None], object]) -> QMessageBox:
    return ask_question(
        parent,
        "The workflow has changed since this run. Which version do you want to use?",
        "With the original workflow, this run is resumed. With the current workflow, a new run starts that reuses all "
        f"completed steps, even those that have changed.\n\n{_listed(info.differences)}",
        [
            (USE_ORIGINAL, _Role.AcceptRole, lambda: chosen(None)),
            (USE_CURRENT, _Role.ActionRole, lambda: chosen(info.today)),
        ],
    )


def _ask_about_calls(parent: QWidget, info: ResumeInfo, resume: Callable[[], object]) -> QMessageBox:
    calls, titles = info.calls, node_titles(info.ran)
    one = len(calls) == 1
    is_billed = any(call.model and not runs_on_own_machine(call.model) for call in calls)
    risks = [
        "A model call may have been billed." if is_billed else "",
        "A tool may already have taken effect: check this first." if any(call.tool for call in calls) else "",
    ]
    return ask_question(
        parent,
        "A call was in progress when the run stopped. Make it again?"
        if one
        else f"{len(calls)} calls were in progress when the run stopped. Make them again?",
        f"{'Its outcome is' if one else 'Their outcomes are'} unknown. {' '.join(filter(None, risks))} "
        f"Finished calls are not made again.\n\n{_listed([_call_line(call, titles) for call in calls])}",
        [("Call again and resume", _Role.AcceptRole, resume)],
    )


def _call_line(call: UnknownCall, titles: NodeTitles) -> str:
    place = capitalized(path_label(call.path, titles))
    return f"{place}: {call.tool} {call.arguments}" if call.tool else f"{place}: {call.model}"


def _listed(lines: Sequence[str]) -> str:
    more = [f"and {len(lines) - MAX_LISTED} more"] if len(lines) > MAX_LISTED else []
    return "\n".join(f"• {line}" for line in [*lines[:MAX_LISTED], *more])
