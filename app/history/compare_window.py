"""The window *Compare*: two texts of runs side by side, with the words that changed marked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from PySide6.QtCore import QSignalBlocker, QSize, Qt, Signal
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QComboBox, QDialog, QHBoxLayout, QPushButton, QSizePolicy, QVBoxLayout, QWidget

from app.history.compare_pane import ComparePane, Comparison, compare, summary
from app.history.compare_source import Source, What, stored_source
from app.history.run_labels import full_title_of
from app.history.store_client import StoreAccess
from app.theme.style import ThemedIcon, style
from app.theme.tokens import UNIT
from app.theme.widgets import PlainLabel
from app.worker import Worker
from engine.errors import EngineError
from engine.formatting import format_count
from engine.store.base import Store


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


SIZE: Final = QSize(1120, 680)
RECENT: Final = 50
"""How many runs are offered beside those that are shown."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a side is to show.

    Attributes:
        run: A run of the history, by id, or the run itself.
        place: The iteration; None for the last.
        what: What of it, as `What.key`; None for its result.
    """

    run: str | Source
    place: str | None = None
    what: tuple[str, str] | None = None


class _OvertakenError(EngineError):
    """A comparison is wanted no more."""


class CompareWindow(QDialog):
    """The window; it blocks no other.

    Args:
        access: The way to the history.

    Signals:
        compared: The comparison of what was chosen last stands there.
    """

    compared = Signal()

    def __init__(self, access: StoreAccess, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("Compare")
        self.setWindowFlag(Qt.WindowType.WindowMaximizeButtonHint)
        self.resize((SIZE * style().scale).boundedTo(self.screen().availableSize() * 0.9))
        self._access = access
        self._worker = Worker(self)
        self._round = 0
        self._change = -1
        self._unkept: Source | None = None  # no store can give it a second time
        self.comparison: Comparison | None = None
        self.left, self.right = CompareSide("Left"), CompareSide("Right")
        self.panes = (
            ComparePane("Left text", is_left=True),
            ComparePane("Right text", is_left=False),
        )
        self.line = PlainLabel("", look="dim", wrap=True)
        self.previous = self._step_button("Previous change", "mdi6.arrow-up", "Shift+F7", -1)
        self.next = self._step_button("Next change", "mdi6.arrow-down", "F7", 1)
        self.swap = QPushButton("Swap")
        self.swap.setAutoDefault(False)
        self.swap.setAccessibleName("Swap sides")
        ThemedIcon(self.swap, "mdi6.swap-horizontal")
        self.swap.clicked.connect(lambda _checked=False: self._swap())
        self._arrange()
        self._connect()

    def show_pair(self, left: Wanted, right: Wanted) -> None:
        """Compare these."""
        self.show()
        self.raise_()
        self.activateWindow()
        self._offer_runs()
        self._say("Reading…")
        self._read(self.left, left)
        self._read(self.right, right)

    def step(self, distance: int) -> None:
        """Go to a change after or before the present one; behind the last comes the first."""
        changes = self.comparison.changes if self.comparison is not None else ()
        if not changes or self.comparison is None:
            return
        self._change = (
            (self._change + distance) % len(changes) if self._change >= 0 or distance > 0 else len(changes) - 1
        )
        change = changes[self._change]
        for pane, place in zip(self.panes, (change.left, change.right), strict=True):
            pane.go_to(place)
        self._say(
            f"Change {format_count(self._change + 1)} of {format_count(len(changes))}. {summary(self.comparison)}"
        )

    def _step_button(self, name: str, sign: str, keys: str, distance: int) -> QPushButton:
        button = QPushButton(name)
        button.setAutoDefault(False)
        button.setAccessibleName(name)
        button.setToolTip(f"{name} ({keys})")
        ThemedIcon(button, sign)
        button.clicked.connect(lambda _checked=False: self.step(distance))
        QShortcut(QKeySequence(keys), self, lambda: self.step(distance))
        return button

    def _arrange(self) -> None:
        columns = QHBoxLayout()
        columns.setSpacing(4 * UNIT)
        for side, pane in zip((self.left, self.right), self.panes, strict=True):
            column = QVBoxLayout()
            column.setSpacing(2 * UNIT)
            column.addWidget(side)
            column.addWidget(pane, 1)
            columns.addLayout(column, 1)
        bottom = QHBoxLayout()
        bottom.setSpacing(2 * UNIT)
        bottom.addWidget(self.line, 1)
        for button in (self.swap, self.previous, self.next):
            bottom.addWidget(button)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(4 * UNIT, 4 * UNIT, 4 * UNIT, 3 * UNIT)
        layout.setSpacing(3 * UNIT)
        layout.addLayout(columns, 1)
        layout.addLayout(bottom)

    def _connect(self) -> None:
        for side, other in ((self.left, self.right), (self.right, self.left)):
            side.run_chosen.connect(lambda run_id, side=side: self._read(side, Wanted(run_id, side.chosen_place)))
            side.place_chosen.connect(self._compare)
            side.what_chosen.connect(lambda side=side, other=other: self._follow(side, other))
        left, right = self.panes
        left.moved.connect(lambda place: self._follow_scroll(right, place, is_left=True))
        right.moved.connect(lambda place: self._follow_scroll(left, place, is_left=False))

    def _follow(self, side: CompareSide, other: CompareSide) -> None:
        """Who looks at a prompt on one side most often wants the prompt on the other too."""
        if side is self.left and side.chosen_what is not None:
            other.choose_what(side.chosen_what.key)
        self._compare()

    def _follow_scroll(self, pane: ComparePane, place: int, *, is_left: bool) -> None:
        if self.comparison is not None and pane.is_filled:
            pane.follow(self.comparison.across(place, is_left=is_left))

    def _offer_runs(self) -> None:
        def answered(runs: list[tuple[str, str]]) -> None:
            for side in (self.left, self.right):
                there = [] if side.source is None else [(side.source.run_id, side.source.title)]
                side.offer_runs([*(run for run in there if run not in runs), *runs])

        def work(store: Store) -> list[tuple[str, str]]:
            return [(run.run_id, full_title_of(run)) for run in store.runs(limit=RECENT)]

        self._access.ask(work, answered, self._fail, worker=self._worker)

    def _read(self, side: CompareSide, wanted: Wanted) -> None:
        def answered(source: Source) -> None:
            side.show_source(source, wanted.place, wanted.what)
            if self.left.source is not None and self.right.source is not None:
                self._compare()

        def failed(error: EngineError) -> None:
            side.keep_run()
            self._fail(error)

        if isinstance(wanted.run, Source):
            self._unkept = wanted.run
            answered(wanted.run)
            return
        run_id = wanted.run
        if self._unkept is not None and self._unkept.run_id == run_id:
            answered(self._unkept)
        elif side.source is not None and side.source.run_id == run_id and side.source.is_final:
            answered(side.source)
        else:
            self._round += 1  # whatever is being compared is wanted no more
            self._access.ask(lambda store: stored_source(store, run_id), answered, failed, worker=self._worker)

    def _compare(self) -> None:
        """Work out the differences in the worker, and show them."""
        sides = [(side.source, side.chosen_place, side.chosen_what) for side in (self.left, self.right)]
        self._round += 1
        this = self._round
        self._say("Comparing…")

        def check() -> None:
            if this != self._round:
                raise _OvertakenError("Another selection was made.")

        def work() -> Comparison:
            check()
            first, second = (_text(*side) for side in sides)
            return compare(first, second, check)

        def answered(comparison: Comparison) -> None:
            if this == self._round:
                self._show(comparison)

        def failed(error: EngineError) -> None:
            if this == self._round:
                self._fail(error)

        self._worker.ask(work, answered, failed)

    def _show(self, comparison: Comparison) -> None:
        self.comparison, self._change = comparison, -1
        left, right = self.panes
        left.show_text(comparison.left, comparison.marks(is_left=True))
        right.show_text(comparison.right, comparison.marks(is_left=False))
        for button in (self.previous, self.next):
            button.setEnabled(bool(comparison.changes))
        self._say(summary(comparison))
        self.compared.emit()

    def _swap(self) -> None:
        left, right = self.left, self.right
        if left.source is None or right.source is None or left.chosen_what is None or right.chosen_what is None:
            return
        one = (left.source, left.chosen_place, left.chosen_what.key)
        other = (right.source, right.chosen_place, right.chosen_what.key)
        left.show_source(*other)
        right.show_source(*one)
        self._compare()

    def _say(self, text: str) -> None:
        self.line.setText(text)

    def _fail(self, error: EngineError) -> None:
        self._say(str(error))


def _text(source: Source | None, place: str, what: What | None) -> str:
    return source.text(place, what) if source is not None and what is not None else ""
