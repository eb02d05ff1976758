"""Asking before a run goes on whose last model calls may have been billed although nobody knows how they ended."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtWidgets import QMessageBox, QWidget

from app.history.runs_words import capital, place_words
from app.window.choosers import ask
from engine.store.resume import UnknownCall

_Role = QMessageBox.ButtonRole


def ask_about_calls(parent: QWidget, calls: Sequence[UnknownCall], go_on: Callable[[], object]) -> QMessageBox:
    """Ask whether calls of unknown outcome may be made again.

    Args:
        parent: The window.
        calls: The calls.
        go_on: What to do when they may.
    """
    listed = "\n".join(f"• {capital(place_words(call.path))}: {call.model}" for call in calls[:10])
    more = f"\n• and {len(calls) - 10} more" if len(calls) > 10 else ""
    one = len(calls) == 1
    return ask(
        parent,
        "A model call was under way when the run broke off. Make it again?"
        if one
        else f"{len(calls)} model calls were under way when the run broke off. Make them again?",
        f"{'Its outcome is unknown, and it' if one else 'Their outcomes are unknown, and they'} may have been billed. "
        f"All calls that had come to their end are kept, and are not made again.\n\n{listed}{more}",
        [
            ("Call again and go on", _Role.AcceptRole, go_on),
            ("Cancel", _Role.RejectRole, lambda: None),
        ],
    )
