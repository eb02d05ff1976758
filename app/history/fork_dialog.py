"""The dialog *Fork from here*: what a fork does differently, and before it runs, what it reuses and may cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from PySide6.QtCore import QSize, Qt, QTimer, Signal
from PySide6.QtWidgets import QDialog, QFrame, QHBoxLayout, QPushButton, QScrollArea, QVBoxLayout, QWidget

from app.history.fork_form import ForkForm, ForkPlace
from app.history.run_labels import capital, place_words
from app.history.store_client import StoreAccess
from app.history.stored_run import read_level, read_outline
from app.theme.style import style
from app.theme.tokens import UNIT
from app.theme.widgets import MessageBar, PlainLabel, ignore_wheel_in_fields
from app.worker import Worker
from engine.errors import EngineError
from engine.formatting import format_count, format_money
from engine.nodes.iteration_cap import shown_cap
from engine.nodes.spec import primary_output
from engine.store.base import Store, level_of
from engine.store.resume import ForkPlan, plan_fork

SIZE: Final = QSize(920, 640)
PLAN_AFTER_MS: Final = 300


class ForkDialog(QDialog):
    """The dialog.

    Args:
        access: The way to the history.
        run_id: The run to fork.
        at: The place (`loop[2]`, `loop[2].critique`).
        place: What is known of it; see `read_place`.
        model_names: Lists names of models.
        permissions: What the fork may touch on this machine, to be ticked.

    Signals:
        wanted: A person wants the fork to run; its plan.
        planned: What the form says has been thought through.
    """

    wanted = Signal(object)
    planned = Signal()

    def __init__(
        self,
        access: StoreAccess,
        run_id: str,
        place: ForkPlace,
        model_names: Callable[[], Sequence[str]],
        permissions: QWidget,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle("Fork from here")
        self.resize((SIZE * style().scale).boundedTo(self.screen().availableSize() * 0.9))
        self._access = access
        self._run_id = run_id
        self._place = place
        self._worker = Worker(self)
        self._round = 0
        self.plan: ForkPlan | None = None
        self._permissions = permissions
        self.form = ForkForm(place, model_names)
        self.problem = MessageBar("", "bad")
        self.problem.hide()
        self.reused, self.anew, self.price = (PlainLabel(wrap=True) for _ in range(3))
        self.warnings = PlainLabel(wrap=True)
        self.warnings.setProperty("tone", "warning")
        self.run = QPushButton("Run fork")
        self.run.setProperty("primary", True)
        self.run.setDefault(True)
        self.run.clicked.connect(lambda _checked=False: self._run())
        self.cancel = QPushButton("Cancel")
        self.cancel.setAutoDefault(False)
        self.cancel.clicked.connect(lambda _checked=False: self.reject())
        self._arrange()
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(PLAN_AFTER_MS)
        self._timer.timeout.connect(self._think)
        self.form.edited.connect(self._wait)
        self._think()

    def _arrange(self) -> None:
        where = place_words(self._place.path).replace("iteration", self._place.unit)
        title = PlainLabel(f"Fork from {where}", look="title")
        told = PlainLabel(
            "A new run reuses everything before this point and runs the rest again. The original run is not changed.",
            look="dim",
            wrap=True,
        )
        area = QScrollArea()
        area.setWidgetResizable(True)
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setWidget(self.form)
        ignore_wheel_in_fields(area)
        columns = QHBoxLayout()
        columns.setSpacing(4 * UNIT)
        columns.addWidget(area, 3)
        columns.addWidget(self._plan_card(), 2)
        bottom = QHBoxLayout()
        bottom.setSpacing(2 * UNIT)
        bottom.addStretch(1)
        bottom.addWidget(self.cancel)
        bottom.addWidget(self.run)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(5 * UNIT, 4 * UNIT, 5 * UNIT, 4 * UNIT)
        layout.setSpacing(3 * UNIT)
        for widget in (title, told, self.problem):
            layout.addWidget(widget)
        layout.addSpacing(UNIT)
        layout.addLayout(columns, 1)
        layout.addWidget(self._permissions)
        layout.addLayout(bottom)

    def _plan_card(self) -> QWidget:
        card = QFrame()
        card.setProperty("card", True)
        column = QVBoxLayout(card)
        column.setContentsMargins(4 * UNIT, 4 * UNIT, 4 * UNIT, 4 * UNIT)
        column.setSpacing(2 * UNIT)
        for title, label in (("Reused", self.reused), ("Runs again", self.anew), ("Cost", self.price)):
            column.addWidget(PlainLabel(title, look="section"))
            column.addWidget(label)
            column.addSpacing(2 * UNIT)
        column.addWidget(self.warnings)
        column.addStretch(1)
        scroll = QScrollArea()
        scroll.setWidgetResizable(True)
        scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        scroll.setWidget(card)
        return scroll

    def _wait(self) -> None:
        self.plan = None
        self.run.setEnabled(False)
        self._timer.start()

    def _think(self) -> None:
        """Find out in the worker what the fork would be."""
        self._round += 1
        this, at = self._round, self._place.path
        self.run.setEnabled(False)
        try:
            changes = self.form.changes()
        except ValueError as error:
            self._refuse(str(error))
            return

        def answered(plan: ForkPlan) -> None:
            if this == self._round:
                self._show(plan)

        def failed(error: EngineError) -> None:
            if this == self._round:
                self._refuse(str(error))

        self._access.ask(
            lambda store: plan_fork(store, self._run_id, at, changes, max_iterations_cap=shown_cap()),
            answered,
            failed,
            worker=self._worker,
        )

    def _show(self, plan: ForkPlan) -> None:
        self.plan = plan
        self.problem.hide()
        self.reused.setText(_listed(plan.reused) or "Nothing is reused; everything runs again.")
        self.anew.setText(_listed(plan.anew) or "Nothing.")
        self.price.setText(_price(plan))
        self.warnings.setText("\n".join(plan.warnings))
        self.warnings.setVisible(bool(plan.warnings))
        self.run.setEnabled(not self._timer.isActive())
        self.planned.emit()

    def _refuse(self, text: str) -> None:
        self.plan = None
        self.problem.say(text, "bad")
        self.problem.show()
        self.planned.emit()

    def _run(self) -> None:
        if self.plan is not None:
            self.wanted.emit(self.plan)
            self.accept()


def read_place(store: Store, run_id: str, at: str) -> ForkPlace:
    """What there is to know of a place before a fork is made from it.

    Raises:
        EngineError: The run cannot be read, or never came to that place.
    """
    run = read_outline(store, run_id)
    if at.endswith("]"):
        level = read_level(store, run, at)
        return ForkPlace(at, run.structure, level.iteration.input if level.iteration is not None else None)
    level = read_level(store, run, level_of(at))
    execution = level.nodes.get(at)
    return ForkPlace(at, run.structure, primary_output(dict(execution.outputs)) if execution is not None else None)


def _listed(lines: Sequence[str]) -> str:
    return "\n".join(f"• {capital(line)}" for line in lines)


def _price(plan: ForkPlan) -> str:
    count = plan.iterations_anew
    most = "" if not count else f"Up to {format_count(count, 'iteration')}. "
    if plan.estimate_usd is None:
        return f"{most}The cost is unknown."
    if plan.estimate_usd == 0:
        return f"{most}Free of charge."
    return f"{most}About {format_money(plan.estimate_usd)}, based on the previous iterations."
