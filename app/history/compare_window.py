"""The Compare window: two texts of runs side by side, with changed words highlighted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from PySide6.QtCore import QSignalBlocker, QSize, Qt, Signal
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QComboBox, QDialog, QPushButton, QSizePolicy, QWidget

from app.history.compare_pane import ComparePane, Comparison, compare, not_compared, summary
from app.history.run_labels import capitalized, full_run_title, node_titles, path_label, stored_titles
from app.history.store_client import StoreClient
from app.history.stored_session import read_level, read_outline
from app.inspector.result_text import value_text
from app.runs.loop_status import unit_of
from app.runs.run_view_model import RunViewModel, node_of
from app.theme.style import ThemedIcon
from app.theme.widgets import ElidedComboBox, PlainLabel, hbox, push_button, resize_on_screen, vbox
from app.worker import Worker
from engine.errors import EngineError
from engine.events import LoopIterationCompleted, RunCancelled, RunCompleted, RunFailed
from engine.formatting import format_count
from engine.nodes.spec import PAIR_BY_END, PAIR_BY_START
from engine.plan.structure import Structure
from engine.run_state.state import NodeExecution, NodeState
from engine.store.store_protocol import Store
from engine.values import Value

RESULT: Final = "result"
FEEDBACK: Final = "feedback"
INPUT: Final = "input"
PROMPT: Final = "prompt"
OUTPUT: Final = "output"

NO_PLACE: Final = "-"
"""The place of nothing: what the first iteration is compared with."""

_OF_ITERATION: Final = ((RESULT, "Result"), (FEEDBACK, "Feedback"), (INPUT, "Input"))
_PAIRED: Final = frozenset({*PAIR_BY_START, *PAIR_BY_END})
_OF_ITEM: Final = ((RESULT, "Result"), (INPUT, "Item"))


@dataclass(frozen=True, slots=True)
class TextChoice:
    """A text of an iteration, node or run that can be compared.

    Attributes:
        node: Id of the node; empty for the iteration or run itself.
        part: `result`, `feedback`, `input`; of a node `output`, `prompt`, `input`.
        title: Display name: `Result`, `Draft · prompt`.
    """

    node: str
    part: str
    title: str

    @property
    def key(self) -> tuple[str, str]:
        """The identity of the choice in another iteration or run."""
        return self.node, self.part


class ComparedRun:
    """A run whose texts are compared.

    Args:
        run_id: The run; empty if it is not stored.
        title: Display name.
        structure: Structure of the document as it ran.
        view_model: The run's view model.
        fill: Loads a level of the run completely. May read the store, so call it in a worker.
    """

    def __init__(
        self, run_id: str, title: str, structure: Structure, view_model: RunViewModel, fill: Callable[[str], None]
    ) -> None:
        self.run_id = run_id
        self.title = title
        self._structure = structure
        self._picture = view_model
        self._fill = fill

    @property
    def is_final(self) -> bool:
        """Whether the run can no longer change. A failed or stopped run can be resumed."""
        return self._picture.status == "completed"

    def places(self) -> list[tuple[str, str]]:
        """Return the iterations with their labels, outer loops first; then the whole run (`""`), and nothing."""
        labels = [
            (f"{path}[{index}]", capitalized(self._label(path, index)))
            for path, loop in self._picture.loops.items()
            for index in range(loop.current + 1)
        ]
        return [*labels, ("", "Whole run"), (NO_PLACE, "Nothing")]

    def offers(self, place: str) -> list[TextChoice]:
        """Return the texts that an iteration has."""
        if place == NO_PLACE:
            return []
        loop = place.rpartition("[")[0].rpartition(".")[2]
        parts = (_OF_ITEM if self._unit(loop) == "item" else _OF_ITERATION) if place else ((RESULT, "Results"),)
        offers = [TextChoice("", part, title) for part, title in parts]
        for node in self._structure.workflow.nodes:
            if self._structure.parent.get(node.id, "") != loop or node.type in _PAIRED:
                continue
            name = self._structure.resolution.name(node.id)
            resolved = self._structure.resolution.nodes.get(node.id)
            calls_model = resolved is not None and resolved.spec.model(resolved.config) is not None
            parts = (OUTPUT, PROMPT, INPUT) if calls_model else (OUTPUT, INPUT)
            offers += [TextChoice(node.id, part, f"{name} · {part}") for part in parts]
        return offers

    def text(self, place: str, what: TextChoice) -> str:
        """Return the text; empty if there is none.

        Raises:
            EngineError: It cannot be read.
        """
        self._fill(place)
        if what.node:
            path = f"{place}.{what.node}" if place else what.node
            return _of_node(self._picture.nodes.get(path, NodeExecution()), what.part)
        if not place:
            return _by_name(dict(self._picture.outputs))
        iteration = self._iteration(place)
        if iteration is None:
            return ""
        return _written({RESULT: iteration.result, FEEDBACK: iteration.feedback, INPUT: iteration.input}[what.part])

    def _label(self, path: str, index: int) -> str:
        """Label an iteration, with the titles of the loops where its number alone does not identify it."""
        titles = self._structure.resolution.names
        if "[" in path:
            return path_label(f"{path}[{index}]", titles)
        words = f"{self._unit(node_of(path))} {index + 1}"
        is_only = sum("[" not in other for other in self._picture.loops) == 1
        return words if is_only else f"{path_label(path, titles)}: {words}"

    def _unit(self, loop_id: str) -> str:
        return unit_of(self._structure.workflow, loop_id)

    def _iteration(self, place: str) -> LoopIterationCompleted | None:
        loop, _, index = place.removesuffix("]").rpartition("[")
        there = self._picture.loops.get(loop)
        return there.iteration(int(index)) if there is not None else None


def read_compared_run(store: Store, run_id: str) -> ComparedRun:
    """Read a stored run for comparison.

    Raises:
        EngineError: It cannot be read.
    """
    run = read_outline(store, run_id)
    for event in store.events(run_id, kinds={RunCompleted, RunFailed, RunCancelled}):
        run.view_model.apply(event)  # the outline has only previews of the outputs

    def fill(level: str) -> None:
        if level not in run.levels:
            run.add_level(read_level(store, run, level))

    title = full_run_title(run.summary, node_titles(run.structure.workflow))
    return ComparedRun(run_id, title, run.structure, run.view_model, fill)


def live_compared_run(title: str, structure: Structure, view_model: RunViewModel) -> ComparedRun:
    """Return a displayed run that is not stored for comparison."""
    return ComparedRun("", title, structure, view_model, lambda _level: None)


def _of_node(execution: NodeExecution, part: str) -> str:
    if part == PROMPT:
        return "\n\n".join(
            f"{message.role}:\n{message.text}" for call in execution.calls for message in call.request.messages
        )
    if part == INPUT:
        return _by_name(dict(execution.inputs))
    outputs = {name: value for name, value in execution.outputs.items() if name != "usage"}
    return _by_name(outputs) or ("" if execution.state is NodeState.SKIPPED else execution.error)


def _by_name(values: dict[str, Value]) -> str:
    """Format values; a single one without its name."""
    if len(values) == 1:
        return _written(next(iter(values.values())))
    return "\n\n".join(f"{name}:\n{_written(value)}" for name, value in values.items())


def _written(value: Value) -> str:
    return "" if value is None else value_text(value)


class CompareSide(QWidget):
    """The three selection lists of one side.

    Args:
        name: `Left` or `Right`, for screen readers.

    Attributes:
        source: The displayed run; None before the first was read.
        reader: Reads it.

    Signals:
        run_chosen: The user selected another run; its id.
        place_chosen: The user selected another iteration.
        what_chosen: The user selected another text of the iteration.
    """

    run_chosen = Signal(str)
    place_chosen = Signal()
    what_chosen = Signal()

    def __init__(self, name: str) -> None:
        super().__init__()
        self.source: ComparedRun | None = None
        self.reader = Worker(self)
        self._key: tuple[str, str] | None = None
        self.run = _box(f"{name}: run")
        self.place = _box(f"{name}: iteration")
        self.what = _box(f"{name}: part")
        vbox(self.run, hbox((self.place, 1), (self.what, 1), spacing=2), spacing=2, parent=self)
        self.run.activated.connect(lambda _at: self.run_chosen.emit(self.run.currentData()))
        self.place.activated.connect(lambda _at: self._choose_place())
        self.what.activated.connect(lambda _at: self.what_chosen.emit())

    @property
    def chosen_place(self) -> str:
        """The selected iteration (`loop[2]`); empty for the whole run."""
        return self.place.currentData() or ""

    @property
    def chosen_what(self) -> TextChoice | None:
        """The selected text."""
        return self.what.currentData()

    def offer_runs(self, runs: Sequence[tuple[str, str]]) -> None:
        """List runs by id and title, and keep the selection."""
        with QSignalBlocker(self.run):
            chosen = self.run.currentData()
            self.run.clear()
            for run_id, title in runs:
                self.run.addItem(title, run_id)
            self.run.setCurrentIndex(max(self.run.findData(chosen), 0))

    def show_source(self, source: ComparedRun, place: str | None = None, what: tuple[str, str] | None = None) -> None:
        """Show another run.

        Args:
            source: The run.
            place: The iteration; None for the last.
            what: Key of the text; None for the same as before.
        """
        self.source = source
        with QSignalBlocker(self.run), QSignalBlocker(self.place):
            if self.run.findData(source.run_id) < 0:
                self.run.insertItem(0, source.title, source.run_id)
            self.run.setCurrentIndex(self.run.findData(source.run_id))
            self.place.clear()
            places = source.places()
            for name, words in places:
                self.place.addItem(words, name)
            at = self.place.findData(place) if place is not None else -1
            self.place.setCurrentIndex(at if at >= 0 else max(len(places) - 3, 0))
        self._offer_what(what)

    def keep_run(self) -> None:
        """Select the displayed run again, because another one could not be read."""
        if self.source is not None:
            self.run.setCurrentIndex(self.run.findData(self.source.run_id))

    def choose_what(self, key: tuple[str, str]) -> bool:
        """Select another text; return False if the iteration does not have it."""
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
        self._key = key or (before.key if before is not None else self._key)
        with QSignalBlocker(self.what):
            self.what.clear()
            for what in self.source.offers(self.chosen_place) if self.source is not None else ():
                self.what.addItem(what.title, what)
            if self._key is not None:
                self.choose_what(self._key)


def _box(name: str) -> QComboBox:
    box = ElidedComboBox()
    box.setAccessibleName(name)
    box.setToolTip(name.partition(": ")[2].capitalize())
    box.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
    box.setMinimumContentsLength(8)
    box.setMaxVisibleItems(20)
    return box


SIZE: Final = QSize(1120, 680)
MAX_RECENT: Final = 50
"""Number of recent runs in the lists."""


@dataclass(frozen=True, slots=True)
class SideContent:
    """What a side shows.

    Attributes:
        run: A stored run by id, or the run itself.
        place: The iteration; None for the last.
        what: The text, as `TextChoice.key`; None for the result.
    """

    run: str | ComparedRun
    place: str | None = None
    what: tuple[str, str] | None = None


class _SupersededError(EngineError):
    """Something else is compared instead."""


class CompareWindow(QDialog):
    """The non-modal Compare window.

    Args:
        access: Access to the history.

    Signals:
        compared: The comparison of the latest selection is displayed.
    """

    compared = Signal()

    def __init__(self, access: StoreClient, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("Compare")
        self.setWindowFlag(Qt.WindowType.WindowMaximizeButtonHint)
        resize_on_screen(self, SIZE)
        self._access = access
        self._lister, self._comparer = Worker(self), Worker(self)
        self._change = -1
        self._unkept: ComparedRun | None = None  # cannot be read from a store again
        self.comparison: Comparison | None = None
        self.left, self.right = CompareSide("Left"), CompareSide("Right")
        self.panes = (
            ComparePane("Left text", is_left=True),
            ComparePane("Right text", is_left=False),
        )
        self.line = PlainLabel("", look="dim", wrap=True)
        self.previous = self._step_button("Previous change", "mdi6.arrow-up", "Shift+F7", -1)
        self.next = self._step_button("Next change", "mdi6.arrow-down", "F7", 1)
        self.swap = push_button("Swap", self._swap)
        self.swap.setAccessibleName("Swap sides")
        ThemedIcon(self.swap, "mdi6.swap-horizontal")
        self._arrange()
        self._connect()

    def show_pair(self, left: SideContent, right: SideContent) -> None:
        """Compare two texts."""
        self.show()
        self.raise_()
        self.activateWindow()
        self._offer_runs()
        self.line.setText("Reading…")
        self._read(self.left, left)
        self._read(self.right, right)

    def step(self, distance: int) -> None:
        """Go to the next or previous change, wrapping around."""
        changes = self.comparison.changes if self.comparison is not None else ()
        if not changes or self.comparison is None:
            return
        self._change = (
            (self._change + distance) % len(changes) if self._change >= 0 or distance > 0 else len(changes) - 1
        )
        change = changes[self._change]
        for pane, place in zip(self.panes, (change.left, change.right), strict=True):
            pane.go_to(place)
        self.line.setText(
            f"Change {format_count(self._change + 1)} of {format_count(len(changes))}. {summary(self.comparison)}"
        )

    def _step_button(self, name: str, sign: str, keys: str, distance: int) -> QPushButton:
        button = push_button(name, lambda: self.step(distance))
        button.setAccessibleName(name)
        button.setToolTip(f"{name} ({keys})")
        ThemedIcon(button, sign)
        QShortcut(QKeySequence(keys), self, lambda: self.step(distance))
        return button

    def _arrange(self) -> None:
        sides = zip((self.left, self.right), self.panes, strict=True)
        columns = hbox(*((vbox(side, (pane, 1), spacing=2), 1) for side, pane in sides), spacing=4)
        bottom = hbox((self.line, 1), self.swap, self.previous, self.next, spacing=2)
        vbox((columns, 1), bottom, spacing=3, margins=(4, 4, 4, 3), parent=self)

    def _connect(self) -> None:
        for side, other in ((self.left, self.right), (self.right, self.left)):
            side.run_chosen.connect(lambda run_id, side=side: self._read(side, SideContent(run_id, side.chosen_place)))
            side.place_chosen.connect(self._compare)
            side.what_chosen.connect(lambda side=side, other=other: self._follow(side, other))
        left, right = self.panes
        left.moved.connect(lambda place: self._follow_scroll(right, place, is_left=True))
        right.moved.connect(lambda place: self._follow_scroll(left, place, is_left=False))

    def _follow(self, side: CompareSide, other: CompareSide) -> None:
        """Follow the selection of the left side, because users usually compare the same kind of text."""
        if side is self.left and side.chosen_what is not None:
            other.choose_what(side.chosen_what.key)
        self._compare()

    def _follow_scroll(self, pane: ComparePane, place: int, *, is_left: bool) -> None:
        if self.comparison is not None and pane.is_filled:
            pane.scroll_to_position(self.comparison.matching_position(place, is_left=is_left))

    def _offer_runs(self) -> None:
        def answered(runs: list[tuple[str, str]]) -> None:
            for side in (self.left, self.right):
                there = [] if side.source is None else [(side.source.run_id, side.source.title)]
                side.offer_runs([*(run for run in there if run not in runs), *runs])

        def work(store: Store) -> list[tuple[str, str]]:
            runs = store.runs(limit=MAX_RECENT)
            return [(run.run_id, full_run_title(run, stored_titles(store, run))) for run in runs]

        self._access.ask(work, answered, self._fail, worker=self._lister)

    def _read(self, side: CompareSide, wanted: SideContent) -> None:
        side.reader.supersede()

        def answered(source: ComparedRun) -> None:
            side.show_source(source, wanted.place, wanted.what)
            if self.left.source is not None and self.right.source is not None:
                self._compare()

        def failed(error: EngineError) -> None:
            side.keep_run()
            self._fail(error)

        if isinstance(wanted.run, ComparedRun):
            self._unkept = wanted.run
            answered(wanted.run)
            return
        run_id = wanted.run
        if self._unkept is not None and self._unkept.run_id == run_id:
            answered(self._unkept)
        elif side.source is not None and side.source.run_id == run_id and side.source.is_final:
            answered(side.source)
        else:
            self._comparer.supersede()
            self._access.ask(lambda store: read_compared_run(store, run_id), answered, failed, worker=side.reader)

    def _compare(self) -> None:
        sides = [(side.source, side.chosen_place, side.chosen_what) for side in (self.left, self.right)]
        is_superseded = self._comparer.supersede()
        self.line.setText("Comparing…")

        def check() -> None:
            if is_superseded():
                raise _SupersededError("Another selection was made.")

        def work() -> Comparison:
            check()
            first, second = (_text(*side) for side in sides)
            if NO_PLACE in {place for _, place, _ in sides}:
                return not_compared(first, second)
            return compare(first, second, check)

        self._comparer.ask(work, self._show, self._fail)

    def _show(self, comparison: Comparison) -> None:
        self.comparison, self._change = comparison, -1
        left, right = self.panes
        left.show_text(comparison.left, comparison.marks(is_left=True))
        right.show_text(comparison.right, comparison.marks(is_left=False))
        for button in (self.previous, self.next):
            button.setEnabled(bool(comparison.changes))
        self.line.setText(summary(comparison) if not self._is_alone else _alone(self.right.place.currentText()))
        self.compared.emit()

    @property
    def _is_alone(self) -> bool:
        """Whether one side is nothing."""
        return NO_PLACE in {self.left.chosen_place, self.right.chosen_place}

    def _swap(self) -> None:
        left, right = self.left, self.right
        if left.source is None or right.source is None or left.chosen_what is None or right.chosen_what is None:
            return
        one = (left.source, left.chosen_place, left.chosen_what.key)
        other = (right.source, right.chosen_place, right.chosen_what.key)
        left.show_source(*other)
        right.show_source(*one)
        self._compare()

    def _fail(self, error: EngineError) -> None:
        self.line.setText(str(error))


def _alone(place: str) -> str:
    first = f"{place} is the first, so there is nothing before it. " if place.endswith(" 1") else ""
    return f"{first}Nothing is compared. Choose an iteration or another run to compare with."


def _text(source: ComparedRun | None, place: str, what: TextChoice | None) -> str:
    return source.text(place, what) if source is not None and what is not None else ""
