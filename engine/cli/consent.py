"""Ask for consent before the first run of a workflow from elsewhere."""

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
        help="Trust this workflow: run it without asking for consent, now and later.",
    ),
]


class NotApprovedError(EngineError):
    """A workflow uses resources of this machine without consent."""


def ask_consent(workflow: Workflow, *, allow: bool, is_imported: bool = False) -> bool:
    """Get consent for the resources that a workflow uses. Workflows that only call models need none.

    Args:
        workflow: The document, as it would run.
        allow: Whether the user has consented by an option.
        is_imported: Whether this resumes an imported run, whose stored results may be forged.

    Returns:
        Whether calls that the document does not contain must be confirmed during the run.

    Raises:
        NotApprovedError: There is no consent, and no terminal to ask at.
    """
    from engine.cli.history import can_ask
    from engine.cli.output import err
    from engine.runner.capabilities import reach_of
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
    screen.line("This workflow has not run here before. It uses:", style="bold")
    for line in reach.lines():
        screen.line(f"  {line}")
    if not can_ask():
        raise NotApprovedError("The workflow needs consent, so nothing was run.", "If you trust it, add --allow.")
    typer.confirm("Do you trust this workflow and want to run it?", abort=True, err=True)
    approve(workflow)
    return True
