"""Asking before a workflow from elsewhere is run for the first time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from engine.errors import EngineError

if TYPE_CHECKING:
    from engine.document.model import Workflow

Allow = Annotated[
    bool,
    typer.Option(
        "--allow",
        help="Run a workflow from elsewhere without being asked, not even during the run, and trust it from now on.",
    ),
]


class NotApprovedError(EngineError):
    """A workflow that uses something of this machine, and that nobody has approved."""


def ask_consent(workflow: Workflow, *, allow: bool, is_imported: bool = False) -> bool:
    """Make sure that a person has approved whatever the workflow uses; nothing is asked of one that only calls models.

    Args:
        workflow: The document, as it would run.
        allow: Whether the person has said so beforehand.
        is_imported: Whether a run goes on that came from a file: what it did so far may be made up, whoever's the
            workflow is.

    Returns:
        Whether calls that the document does not hold are to be confirmed during the run.

    Raises:
        NotApprovedError: Nobody has approved it, and nobody can be asked.
    """
    from engine.cli.history import can_ask
    from engine.cli.output import err
    from engine.runner.reach import reach_of
    from engine.store.consent import approve, is_approved, is_fully_trusted

    reach = reach_of(workflow)
    if not reach:
        return False
    if allow:
        approve(workflow, fully=True)
        return False
    if is_approved(workflow):
        return is_imported or not is_fully_trusted(workflow)
    screen = err()
    screen.line("This workflow has not been run here before. It would use:", style="bold")
    for line in reach.lines():
        screen.line(f"  {line}")
    if not can_ask():
        raise NotApprovedError("Nobody has approved it, and nothing was run.", "If you trust it, add --allow.")
    typer.confirm("Do you trust it, and is it to run?", abort=True, err=True)
    approve(workflow)
    return True
