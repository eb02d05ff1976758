"""What one side of a comparison shows: which run, which iteration, and what of it."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QSignalBlocker, Signal
from PySide6.QtWidgets import QComboBox, QHBoxLayout, QSizePolicy, QVBoxLayout, QWidget

from app.history.compare_source import Source, What
from app.theme.tokens import UNIT


class CompareSide(QWidget):
    """Three lists to choose from.

    Args:
        name: `Left` or `Right`, for those who hear what they see.

    Signals:
        run_chosen: Another run was chosen; its id.
        place_chosen: Another iteration of the run was chosen.
        what_chosen: Something else of the iteration was chosen.
    """

    run_chosen = Signal(str)
    place_chosen = Signal()
    what_chosen = Signal()

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.source: Source | None = None
        self.run = _box(f"{name}: run")
        self.place = _box(f"{name}: iteration")
        self.what = _box(f"{name}: what of it")
        below = QHBoxLayout()
        below.setSpacing(2 * UNIT)
        below.addWidget(self.place, 2)
        below.addWidget(self.what, 3)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(2 * UNIT)
        column.addWidget(self.run)
        column.addLayout(below)
        self.run.activated.connect(lambda _at: self.run_chosen.emit(self.run.currentData()))
        self.place.activated.connect(lambda _at: self._choose_place())
        self.what.activated.connect(lambda _at: self.what_chosen.emit())

    @property
    def chosen_place(self) -> str:
        """The iteration that is shown (`loop[2]`); empty for the whole run."""
        return self.place.currentData() or ""

    @property
    def chosen_what(self) -> What | None:
        """What of it is shown."""
        return self.what.currentData()

    def offer_runs(self, runs: Sequence[tuple[str, str]]) -> None:
        """Offer runs: id and title of each; the one that is shown stays chosen."""
        with QSignalBlocker(self.run):
            chosen = self.run.currentData()
            self.run.clear()
            for run_id, title in runs:
                self.run.addItem(title, run_id)
            self.run.setCurrentIndex(max(self.run.findData(chosen), 0))

    def show_source(self, source: Source, place: str | None = None, what: tuple[str, str] | None = None) -> None:
        """Show another run.

        Args:
            source: The run.
            place: The iteration; None for the same as before, or the last.
            what: What of it; None for the same as before.
        """
        wanted = self.chosen_place if place is None and self.source is not None else place
        self.source = source
        with QSignalBlocker(self.run), QSignalBlocker(self.place):
            if self.run.findData(source.run_id) < 0:
                self.run.insertItem(0, source.title, source.run_id)
            self.run.setCurrentIndex(self.run.findData(source.run_id))
            self.place.clear()
            places = source.places()
            for name, words in places:
                self.place.addItem(words, name)
            at = self.place.findData(wanted)
            self.place.setCurrentIndex(at if at >= 0 else max(len(places) - 2, 0))
        self._offer_what(what)

    def keep_run(self) -> None:
        """Name the run that is shown: the one that was chosen cannot be."""
        if self.source is not None:
            self.run.setCurrentIndex(self.run.findData(self.source.run_id))

    def choose_place(self, place: str) -> bool:
        """Show another iteration; false where the run has none of that name."""
        at = self.place.findData(place)
        if at < 0:
            return False
        self.place.setCurrentIndex(at)
        self._offer_what(None)
        return True

    def choose_what(self, key: tuple[str, str]) -> bool:
        """Show something else of the iteration; false where it has no such thing."""
        for at in range(self.what.count()):
            if self.what.itemData(at).key == key:
                self.what.setCurrentIndex(at)
                return True
        return False

    def _choose_place(self) -> None:
        self._offer_what(None)
        self.place_chosen.emit()

    def _offer_what(self, key: tuple[str, str] | None) -> None:
        before = self.chosen_what
        wanted = key or (before.key if before is not None else None)
        with QSignalBlocker(self.what):
            self.what.clear()
            for what in self.source.offers(self.chosen_place) if self.source is not None else ():
                self.what.addItem(what.title, what)
            if wanted is not None:
                self.choose_what(wanted)


def _box(name: str) -> QComboBox:
    box = QComboBox()
    box.setAccessibleName(name)
    box.setToolTip(name.partition(": ")[2].capitalize())
    box.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
    box.setMinimumContentsLength(8)
    box.setMaxVisibleItems(20)
    return box
