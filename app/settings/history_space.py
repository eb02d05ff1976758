"""How much room the history takes on the disk, and giving back what it does not need."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.history.store_access import StoreAccess
from app.settings.parts import push_button
from app.settings.preferences import Preferences
from app.theme.tokens import UNIT
from app.theme.widgets import PlainLabel
from app.worker import Worker
from engine.errors import EngineError
from engine.store.base import EVERY_RUN, Store

_UNITS = ("bytes", "kB", "MB", "GB", "TB")


class HistorySpace(QWidget):
    """A line that says how large the history is, and a button.

    Args:
        access: The way to the history.
        preferences: Say how much of it is kept.
    """

    def __init__(self, access: StoreAccess, preferences: Preferences, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._access = access
        self._preferences = preferences
        self._worker = Worker(self)
        self.line = PlainLabel("", wrap=True)
        self.free = push_button("Free space now", self._free)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(2 * UNIT)
        column.addWidget(self.line)
        column.addWidget(self.free, 0, Qt.AlignmentFlag.AlignLeft)
        access.opened.connect(self.refresh)
        access.changed.connect(self.refresh)

    def showEvent(self, event: QShowEvent) -> None:
        """Look how large it is now."""
        super().showEvent(event)
        self.refresh()

    def refresh(self) -> None:
        """Say how large it is."""
        if not self.isVisible():
            return
        asked = self._access.ask(
            lambda store: (store.size(), store.totals(EVERY_RUN).count), self._say, self._fail, worker=self._worker
        )
        self.free.setEnabled(asked)
        if not asked:
            self.line.setText(self._access.failure or "The history is not open.")

    def _free(self) -> None:
        choices = self._preferences
        most_runs, megabytes = choices.keep_runs, choices.keep_megabytes
        most_bytes = None if megabytes is None else megabytes * 1_000_000
        self.free.setEnabled(False)
        self.line.setText("Freeing space…")

        def work(store: Store) -> tuple[int, int]:
            before = store.size()
            gone = store.retain(most_runs=most_runs, most_bytes=most_bytes)
            store.vacuum()
            return gone, before - store.size()

        def done(outcome: tuple[int, int]) -> None:
            gone, won = outcome
            if gone:
                self._access.changed.emit()
            self.free.setEnabled(True)
            runs = "" if not gone else f" {gone:,} run{'' if gone == 1 else 's'} went."
            self.line.setText(f"{size_words(max(won, 0))} were freed.{runs}")

        self._access.ask(work, done, self._fail, worker=self._worker)

    def _say(self, found: tuple[int, int]) -> None:
        size, count = found
        self.line.setText(f"{count:,} run{'' if count == 1 else 's'} take {size_words(size)}.")

    def _fail(self, error: EngineError) -> None:
        self.free.setEnabled(True)
        self.line.setText(str(error))


def size_words(size: float) -> str:
    """So many bytes, for people: `312 bytes`, `1.4 MB`."""
    unit = 0
    while size >= 1000 and unit < len(_UNITS) - 1:
        size, unit = size / 1000, unit + 1
    return f"{size:,.0f} {_UNITS[unit]}" if unit == 0 or size >= 100 else f"{size:.1f} {_UNITS[unit]}"
