"""Whether values are shown formatted or as plain text: one choice for all views, changed in any of them."""

from __future__ import annotations

from functools import cache

from PySide6.QtCore import QObject, Signal


class ReadingMode(QObject):
    """The choice.

    Attributes:
        is_formatted: Whether Markdown is rendered and JSON is shown as a tree.

    Signals:
        changed: Another choice was made.
    """

    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.is_formatted = True

    def choose(self, *, is_formatted: bool) -> None:
        """Choose."""
        if is_formatted != self.is_formatted:
            self.is_formatted = is_formatted
            self.changed.emit()


@cache
def reading_mode() -> ReadingMode:
    """Return the choice of this process."""
    return ReadingMode()
