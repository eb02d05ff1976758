"""Offering over a document what a crash left of the work on it: to use it, to look at it, or to throw it away."""

from __future__ import annotations

from collections.abc import Callable

from app.session import ReplaceDocument
from app.window.autosave import RecoveredDocument, discard
from app.window.document_page import DocumentPage


def offer(document: DocumentPage, remains: RecoveredDocument, open_beside: Callable[[], object]) -> None:
    """Offer it; it stays on the disk until the person has decided.

    Args:
        document: The document.
        remains: What was left.
        open_beside: Opens what was left as a document of its own.
    """
    document.remains = remains.file
    document.autosave.avoid(remains.file)
    document.autosave.kept.connect(lambda: forget_used(document))

    def use() -> None:
        document.uses_remains = True
        document.session.do(ReplaceDocument("Use the recovered changes", remains.workflow))
        document.fit_initial_view()

    def look() -> None:
        open_beside()
        offer(document, remains, open_beside)

    document.bars.say(
        "recovery",
        f"Changes of {remains.clock} were not saved when the program ended.",
        "warning",
        [("Use them", use), ("Look at them", look), ("Discard", lambda: _forget(document))],
    )


def forget_used(document: DocumentPage) -> None:
    """Remove it where it is in the document, and that is on the disk now."""
    if document.uses_remains:
        _forget(document)


def _forget(document: DocumentPage) -> None:
    if document.remains is not None:
        discard(document.remains)
    document.remains = None
    document.bars.drop("recovery")
