"""The chosen iteration: its result, its feedback, what it started from, and what each node of the body did in it."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QPushButton,
    QScrollArea,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from app.history.detail_parts import ITEM_TITLES, RESULT, TITLES, Tab, body_tabs, iteration_parts
from app.history.looked_at import LookedAt
from app.history.part_list import PartList
from app.history.stopping import findings
from app.history.words import facts
from app.inspector.result_page import ResultPage
from app.inspector.result_section import PartView
from app.inspector.result_text import Part
from app.runs.executions import NOTHING
from app.runs.judged import judge_in, score_lines
from app.session import Session
from app.theme.style import ThemedIcon
from app.theme.tokens import UNIT
from app.theme.widgets import Badge, ElidedLabel, PlainLabel


class IterationDetail(QWidget):
    """Shows one iteration.

    Args:
        session: The document with its run.
        there: Which iteration is looked at.
        parent: Its parent.

    Signals:
        compare_wanted: Compare this iteration with another; the place, such as `loop[2]` or `loop[2].critique`.
        fork_wanted: Go on from that place as a new run.

    Attributes:
        parts: Which part of it is shown.
        text: The part, where it is about the iteration itself.
        node: The part, where it is about a node of the body.
    """

    compare_wanted = Signal(str)
    fork_wanted = Signal(str)

    def __init__(self, session: Session, there: LookedAt, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self._there = there
        self._tabs: list[Tab] = []
        self._wanted = RESULT
        self._parts: dict[str, Part] = {}
        self._known: tuple[object, ...] = ()
        self.title = PlainLabel(look="title")
        self.returned = Badge("✓ returned", "good")
        self.facts = ElidedLabel(look="dim small")
        self.parts = PartList()
        self.parts.chosen.connect(self._choose_part)
        self.text = PartView(fills=True)
        self.node = ResultPage(session)
        self._area = QScrollArea()
        self.pages = QStackedWidget()
        self.compare = QPushButton("Compare…")
        self.compare.clicked.connect(lambda: self.compare_wanted.emit(self.place))
        self.fork = QPushButton("Fork from here…")
        self.fork.clicked.connect(lambda: self.fork_wanted.emit(self.place))
        self._arrange()

    def _arrange(self) -> None:
        ThemedIcon(self.compare, "mdi6.compare-horizontal", "dim")
        ThemedIcon(self.fork, "mdi6.source-branch", "dim")
        self._area.setWidgetResizable(True)
        self._area.setFrameShape(QFrame.Shape.NoFrame)
        self._area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._area.setWidget(self.node)
        self._area.setMinimumHeight(10 * UNIT)
        self.pages.addWidget(self.text)
        self.pages.addWidget(self._area)
        head = QHBoxLayout()
        head.setSpacing(2 * UNIT)
        head.addWidget(self.title)
        head.addWidget(self.returned)
        head.addWidget(self.facts, 1)
        buttons = QHBoxLayout()
        buttons.setSpacing(2 * UNIT)
        buttons.addWidget(self.compare)
        buttons.addWidget(self.fork)
        buttons.addStretch(1)
        middle = QHBoxLayout()
        middle.setSpacing(3 * UNIT)
        middle.addWidget(self.parts)
        middle.addWidget(self.pages, 1)
        column = QVBoxLayout(self)
        column.setContentsMargins(3 * UNIT, 0, 0, 0)
        column.setSpacing(2 * UNIT)
        column.addLayout(head)
        column.addLayout(middle, 1)
        column.addLayout(buttons)

    @property
    def key(self) -> str:
        """The part that is shown: the one that a person wants, the result where the iteration has none such."""
        return self._wanted if any(tab.key == self._wanted for tab in self._tabs) else RESULT

    @property
    def place(self) -> str:
        """What is looked at, as a place in a run: the iteration, or a node in it; empty where none has begun."""
        node_id = next((tab.node_id for tab in self._tabs if tab.key == self.key), "")
        around = self._there.place
        return f"{around}.{node_id}" if around and node_id else around

    def show_iteration(self, similarity: float | None) -> None:
        """Show the iteration that is looked at, which has begun, with the part that was shown of the one before.

        Args:
            similarity: Of its result to the one before; None where it is not known.
        """
        picture, workflow = self._session.shown.picture, self._session.shown.workflow
        assert picture is not None
        assert workflow is not None
        there = self._there
        loop, index, place = there.loop, there.index, there.place
        self.title.setText(f"{there.unit.capitalize()} {index + 1}")
        self.returned.setVisible(index == loop.returned)
        iteration, is_item = loop.ended(index), there.unit == "item"
        known = (place, iteration, similarity, there.is_over)
        if iteration is None or known != self._known:  # an iteration that has ended is written out once
            self._known, was_tested = known, ""
            if iteration is not None and not is_item:
                given = there.given(index)
                was_tested = findings(loop, index, there.config, similarity=similarity, given=given)
                scores = score_lines(workflow, there.loop_id, judge_in(picture, there.loop_id, place))
                was_tested = "\n\n".join([was_tested, *(["\n".join(["Scores:", *scores])] if scores else [])])
            self.facts.set_full_text(facts(iteration, similarity) if iteration is not None else "")
            self._parts = iteration_parts(loop, index, was_tested, is_over=there.is_over, unit=there.unit)
        own = [Tab(key, (ITEM_TITLES if is_item else TITLES)[key]) for key in self._parts]
        self._tabs = own + body_tabs(workflow, picture.parents, there.loop_id)
        self.parts.show_parts(self._tabs, self.key, lambda node_id: picture.nodes.get(f"{place}.{node_id}", NOTHING))
        self._show_part()

    def _choose_part(self, key: str) -> None:
        self._wanted = key
        self._show_part()

    def _show_part(self) -> None:
        part = self._parts.get(self.key)
        if part is not None:
            self.text.show_part(part)
            self.pages.setCurrentWidget(self.text)
            return
        node_id = self.key.removeprefix("node:")
        if self.node.node_id != node_id:
            self.node.node_id = node_id
            self._area.verticalScrollBar().setValue(0)
        self.node.update_result()
        self.pages.setCurrentWidget(self._area)
