"""A bar that tells how far something is."""

from __future__ import annotations

from PySide6.QtWidgets import QProgressBar


class ProgressBar(QProgressBar):
    """A bar that is painted together with everything else.

    Qt's own paints within `setValue`, and with itself all that waits to be painted in its window: of events that come
    together, each would paint the window anew.
    """

    def setValue(self, value: int) -> None:
        """Show how far it is, at the next painting."""
        if value != self.value():
            self.setUpdatesEnabled(False)
            super().setValue(value)
            self.setUpdatesEnabled(True)
