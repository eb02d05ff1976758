"""The Iterations panel: the iterations of a loop as a table, a chart and in detail.

Selecting an iteration shows it in the whole window. The run may be live or from the history.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QColor, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen, QResizeEvent, QShowEvent
from PySide6.QtWidgets import (
    QFrame,
    QMenu,
    QPushButton,
    QScrollArea,
    QSlider,
    QSplitter,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from app.history.iteration_chart import BaseSeries, Chart, ChartData, Legend, thresholds
from app.history.iteration_detail import IterationDetail, LoopSelection, loops_of
from app.history.iteration_table import IterationModel, IterationTable
from app.history.similarity_worker import Similarities
from app.runs.loop_status import unit_of
from app.runs.run_view_model import RunViewModel
from app.session import Session
from app.theme.style import ThemedIcon, style
from app.theme.tokens import UNIT
from app.theme.widgets import ElidedLabel, PlainLabel, hbox, plain_tool_tip, vbox
from engine.document.model import Workflow
from engine.run_state.state import LoopExecution


@dataclass(frozen=True, slots=True)
class Crumb:
    """A step of the breadcrumb.

    Attributes:
        text: Its text.
        loop_id: The loop to show on a click.
        index: The iteration to select on a click; None for a step that names a loop.
        others: The sibling loops by id and title, itself included; empty if there are none.
        is_here: Whether it is the displayed loop.
        is_deeper: Whether it is a loop in the body of the displayed one.
    """

    text: str
    loop_id: str
    index: int | None = None
    others: tuple[tuple[str, str], ...] = ()
    is_here: bool = False
    is_deeper: bool = False


def crumbs(workflow: Workflow, view_model: RunViewModel, chosen: Mapping[str, int], loop_id: str) -> list[Crumb]:
    """Return the path to a loop with the selected iterations, and the loops in its body."""
    way: list[Crumb] = []
    there: str | None = loop_id
    while there is not None:
        around = view_model.parents.get(there)
        beside = loops_of(workflow, view_model.parents, around)
        title = dict(beside).get(there, there)
        others = tuple(beside) if len(beside) > 1 else ()
        way.insert(0, Crumb(title, there, others=others, is_here=there == loop_id))
        if around is not None:
            index = view_model.index_of(around, chosen)
            way.insert(0, Crumb(f"{unit_of(workflow, around)} {index + 1}", around, index))
        there = around
    if view_model.loop(loop_id, chosen).current >= 0:
        inside = loops_of(workflow, view_model.parents, loop_id)
        way += [Crumb(title, inner, is_deeper=True) for inner, title in inside]
    return way


_WIDEST: Final = 160
"""Maximum width of a step in pixels at the default text size; longer titles are elided."""


class Breadcrumb(QWidget):
    """Path to the displayed loop, such as `outer › iteration 2 › inner`.

    Signals:
        loop_wanted: The user wants to see a loop.
        iteration_wanted: The user wants to see an iteration of a loop.
    """

    loop_wanted = Signal(str)
    iteration_wanted = Signal(str, int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._crumbs: list[Crumb] = []
        self._row = hbox(spacing=1, parent=self)
        self.buttons: list[QToolButton] = []
        style().changed.connect(self._build)

    def show_crumbs(self, crumbs: list[Crumb]) -> None:
        """Show a path."""
        if crumbs != self._crumbs:
            self._crumbs = crumbs
            self._build()

    def _build(self) -> None:
        had_focus = next((place for place, button in enumerate(self.buttons) if button.hasFocus()), None)
        while (item := self._row.takeAt(0)) is not None:
            if (widget := item.widget()) is not None:
                widget.hide()
                widget.deleteLater()
        self.buttons = []
        for place, crumb in enumerate(self._crumbs):
            if place:
                sign = "·" if crumb.is_deeper and self._crumbs[place - 1].is_deeper else "›"
                self._row.addWidget(PlainLabel(sign, look="dim"))
            self._row.addWidget(self._step_widget(crumb))
        if had_focus is not None and had_focus < len(self.buttons):
            self.buttons[had_focus].setFocus()

    def _step_widget(self, crumb: Crumb) -> QWidget:
        is_only = crumb.is_here and not crumb.others
        widest = round(_WIDEST * style().scale)
        if is_only:
            label = PlainLabel(look="title")
            label.setText(label.fontMetrics().elidedText(crumb.text, Qt.TextElideMode.ElideRight, widest))
            label.setAccessibleName(f"Loop: {crumb.text}")
            return label
        button = QToolButton()
        self.buttons.append(button)
        button.setText(button.fontMetrics().elidedText(crumb.text, Qt.TextElideMode.ElideRight, widest))
        button.setToolTip(plain_tool_tip(crumb.text) if button.text() != crumb.text else "")
        button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        if crumb.is_deeper:
            button.setAccessibleName(f"Go to loop {crumb.text}")
            button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
            ThemedIcon(button, "mdi6.subdirectory-arrow-right", "dim")
        else:
            button.setAccessibleName(f"Loop: {crumb.text}" if crumb.index is None else f"Go to {crumb.text}")
        if crumb.others:
            self._add_menu(button, crumb)
        elif crumb.index is not None:
            loop, index = crumb.loop_id, crumb.index
            button.clicked.connect(lambda _checked=False: self.iteration_wanted.emit(loop, index))
        else:
            button.clicked.connect(lambda _checked=False: self.loop_wanted.emit(crumb.loop_id))
        return button

    def _add_menu(self, button: QToolButton, crumb: Crumb) -> None:
        menu = QMenu(button)
        for loop_id, title in crumb.others:
            action = menu.addAction(title.replace("&", "&&"))
            action.setCheckable(True)
            action.setChecked(loop_id == crumb.loop_id)
            action.triggered.connect(lambda _checked=False, loop_id=loop_id: self.loop_wanted.emit(loop_id))
        button.setMenu(menu)
        button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        button.setLayoutDirection(Qt.LayoutDirection.RightToLeft)  # puts the arrow behind the name
        ThemedIcon(button, "mdi6.chevron-down", "dim")


_RADIUS: Final = 5.0
_DOTS_FROM: Final = 4.0
"""Minimum distance of the dots in pixels; if the iterations are closer, only the line is drawn."""


class IterationSlider(QSlider):
    """Slider with a dot for each iteration.

    Signals:
        chosen: The user selected an iteration; its index.
        latest_wanted: The user wants to follow the run again.
    """

    chosen = Signal(int)
    latest_wanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(Qt.Orientation.Horizontal, parent)
        self.setAccessibleName("Iteration")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._loop = LoopExecution()
        self._total = 0
        self.actionTriggered.connect(lambda _action: self.chosen.emit(self.sliderPosition()))

    def show_loop(self, loop: LoopExecution, index: int, unit: str = "iteration") -> None:
        """Show a loop with its selected iteration or item."""
        self._loop = loop
        self._total = max(loop.total, loop.current + 1)
        was_blocked = self.blockSignals(True)
        self.setRange(0, max(loop.current, 0))
        self.setValue(max(index, 0))
        self.blockSignals(was_blocked)
        self.setAccessibleName(unit.capitalize())
        self.setAccessibleDescription(f"{unit.capitalize()} {index + 1} of {self._total}")
        self.update()

    def sizeHint(self) -> QSize:
        """Return a width for a few dots."""
        return QSize(240, round(28 * style().scale))

    def minimumSizeHint(self) -> QSize:
        """Return the minimum size."""
        return QSize(120, round(28 * style().scale))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Select the nearest iteration that has started."""
        if event.button() is Qt.MouseButton.LeftButton:
            self._choose_at(event.position().x())

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Select while dragging."""
        if event.buttons() & Qt.MouseButton.LeftButton:
            self._choose_at(event.position().x())

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Do nothing."""
        event.accept()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Handle the slider keys, and Esc for the latest iteration."""
        if event.key() == Qt.Key.Key_Escape:
            self.latest_wanted.emit()
        else:
            super().keyPressEvent(event)

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Draw the line, the dots and the ring."""
        theme = style().theme
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        middle = self.height() / 2
        begun = self._loop.current + 1
        painter.setPen(QPen(QColor(theme.edge), 2))
        painter.drawLine(QPointF(self._x(0), middle), QPointF(self._x(max(self._total - 1, 0)), middle))
        painter.setPen(QPen(QColor(theme.accent), 2))
        if begun > 1:
            painter.drawLine(QPointF(self._x(0), middle), QPointF(self._x(begun - 1), middle))
        radius = min(_RADIUS * style().scale, max(self._step() / 2 - 1, 1.5))
        for index in range(self._total) if self._step() >= _DOTS_FROM else _only(self._loop.returned):
            done = self._loop.iteration(index) is not None
            color = theme.accent if index < begun else theme.edge
            painter.setPen(QPen(QColor(color), 1.5))
            painter.setBrush(QColor(color if done else theme.panel))
            painter.drawEllipse(QPointF(self._x(index), middle), radius, radius)
            if index == self._loop.returned:
                painter.setPen(QPen(QColor(theme.good), 2))
                painter.drawLine(
                    QPointF(self._x(index) - 4, self.height() - 2), QPointF(self._x(index) + 4, self.height() - 2)
                )
        if begun:
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(QColor(theme.text if self.hasFocus() else theme.accent), 2))
            ring = _RADIUS * style().scale + 3
            painter.drawEllipse(QRectF(self._x(self.value()) - ring, middle - ring, 2 * ring, 2 * ring))
        painter.end()

    def _margin(self) -> float:
        return _RADIUS * style().scale + UNIT

    def _step(self) -> float:
        return (self.width() - 2 * self._margin()) / max(self._total - 1, 1)

    def _x(self, index: int) -> float:
        if self._total <= 1:
            return self._margin()
        # Few dots are close together; many share the whole width.
        step = min(self._step(), 48 * style().scale)
        return self._margin() + index * step

    def _choose_at(self, x: float) -> None:
        if self._loop.current < 0:
            return
        step = max(self._x(1) - self._x(0), 0.1)
        nearest = round((x - self._x(0)) / step)
        self.chosen.emit(min(max(nearest, 0), self._loop.current))


def _only(index: int | None) -> tuple[int, ...]:
    return () if index is None else (index,)


_SHARES: Final = (52, 48)
"""Initial widths of table and details in percent."""
_UPDATE_DELAY_MS: Final = 60
"""Delay after an event before the panel updates, so that a burst of events causes a single update."""
_EXPLANATION_LENGTH: Final = 200
"""Maximum length of the exit explanation; its tooltip shows all of it."""
_READOUT_FROM: Final = 168
_CHART_FROM: Final = 208
"""Below this height, in pixels at the default text size, the chart is hidden."""
_NARROW: Final = 520
"""Below this width at the default text size the panel scrolls sideways, and its explanation needs more lines. The chart
then needs `_NARROW_EXTRA` pixels more."""
_NARROW_EXTRA: Final = 40


class IterationsPanel(QWidget):
    """The iterations of the selected loop of a document, or of its first loop.

    Signals:
        compare_wanted: The user wants to compare a path (`loop[2]`, `loop[2].critique`).
        fork_wanted: The user wants to fork from a path.
        export_wanted: The user wants to export the run.
        layout_changed: The user resized the parts or selected other series.
    """

    compare_wanted = Signal(str)
    fork_wanted = Signal(str)
    export_wanted = Signal()
    layout_changed = Signal()

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self._picture: RunViewModel | None = None
        self._selection = LoopSelection(session)
        self._is_behind = True
        self._ended = 0
        self.similarities = Similarities(self)
        self.figures = ChartData(self.similarities)
        self.model = IterationModel(self.similarities, self)
        self.breadcrumb = Breadcrumb(self)
        self.slider = IterationSlider(self)
        self.latest = QPushButton("Latest", self)
        self.export = QPushButton("Export…", self)
        self.legend = Legend(self)
        self.readout = ElidedLabel("", self, look="dim small")
        self.chart = Chart(self.figures, self)
        self.table = IterationTable(self.model, self)
        self.why = PlainLabel("", self, look="small", wrap=True)
        self.detail = IterationDetail(session, self._selection, self)
        self.empty = PlainLabel("", self, look="dim", wrap=True)
        self.split = QSplitter(Qt.Orientation.Horizontal, self)
        self._header = QWidget(self)
        self.scroll_area = QScrollArea(self)
        self._update_timer = QTimer(self, singleShot=True, interval=_UPDATE_DELAY_MS)
        self._update_timer.timeout.connect(self.refresh)
        self._readout_timer = QTimer(self, singleShot=True)  # waits for the new width of its label
        self._readout_timer.timeout.connect(self._show_readout)
        self._arrange()
        self._connect()
        self.refresh()

    def _arrange(self) -> None:
        self.setProperty("panel", True)
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.latest.setAccessibleName("Follow the run")
        self.latest.setToolTip("Follow the run (Esc)")
        self.export.setToolTip("Export the run to a file")
        ThemedIcon(self.export, "mdi6.export-variant", "dim")
        self.empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        # From the outside in: Qt restyles a whole widget tree whenever its parent changes.
        page = vbox((self._scroll_area(), 1), (self.empty, 1), spacing=2, margins=(3, 1, 3, 2), parent=self)
        page.setSizeConstraint(QVBoxLayout.SizeConstraint.SetNoConstraint)
        hbox(self.breadcrumb, (self.slider, 1), self.latest, self.export, spacing=3, parent=self._header)
        above = hbox(self.legend, (self.readout, 1), spacing=2)
        left = QWidget()
        self.split.addWidget(left)
        vbox(above, (self.chart, 2), (self.table, 3), self.why, spacing=1, margins=(0, 0, 3, 0), parent=left)
        self.table.setMinimumSize(28 * UNIT, 14 * UNIT)
        self.split.addWidget(self.detail)
        self.split.setChildrenCollapsible(False)
        self.split.setHandleWidth(1)
        for place, share in enumerate(_SHARES):
            self.split.setStretchFactor(place, share)
        self.split.setSizes([10 * share for share in _SHARES])

    def _scroll_area(self) -> QScrollArea:
        """Return the loop view in an area that scrolls sideways if the panel is narrow."""
        inside = QWidget()
        inside.setMinimumHeight(1)  # in a low panel its table and texts scroll instead
        self.scroll_area.setFrameShape(QFrame.Shape.NoFrame)
        self.scroll_area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.scroll_area.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.scroll_area.setWidgetResizable(True)
        self.scroll_area.setWidget(inside)
        vbox(self._header, (self.split, 1), spacing=2, parent=inside)
        return self.scroll_area

    def _connect(self) -> None:
        session = self._session
        for widget in (self.slider, self.chart, self.table):
            widget.chosen.connect(self._select)
            widget.latest_wanted.connect(session.shown.look_at_latest)
        for widget in (self.chart, self.table):
            widget.stepped.connect(self.step)
        self.latest.clicked.connect(session.shown.look_at_latest)
        self.export.clicked.connect(self.export_wanted)
        self.detail.compare_wanted.connect(self.compare_wanted)
        self.detail.fork_wanted.connect(self.fork_wanted)
        self.breadcrumb.loop_wanted.connect(self.show_loop)
        self.breadcrumb.iteration_wanted.connect(self._show_outer_iteration)
        self.chart.hovered.connect(lambda _index: self._show_readout())
        self.legend.changed.connect(lambda: self.chart.show_kinds(self.legend.chosen))
        for signal in (self.legend.changed, self.split.splitterMoved):
            signal.connect(self._note_layout)
        self.similarities.found.connect(self._update_similarities)
        session.shown.updated.connect(self._note_update)
        session.selection_changed.connect(self._follow_selection)
        for signal in (session.shown.started, session.shown.ended, session.shown.view_changed):
            signal.connect(self.refresh)

    @property
    def loop_id(self) -> str:
        """The displayed loop; empty if the run has none."""
        return self._selection.loop_id

    def show_loop(self, loop_id: str) -> None:
        """Show the iterations of a loop."""
        self._selection.choose(loop_id)
        self.refresh()

    def step(self, distance: int) -> bool:
        """Select the previous or next iteration; return False if no loop has run."""
        latest = self._selection.loop.current
        if latest < 0:
            return False
        wanted = self._selection.index + distance
        self._session.shown.look_at(self.loop_id, max(wanted, 0) if wanted <= latest else None)
        return True

    def layout_state(self) -> dict[str, Any]:
        """The layout of the panel as JSON."""
        return {"split": self.split.sizes(), "series": [str(kind) for kind in self.legend.chosen]}

    def restore_layout(self, state: dict[str, Any]) -> None:
        """Restore a layout; invalid parts are ignored."""
        sizes, series = state.get("split"), state.get("series")
        if isinstance(sizes, list) and len(sizes) == len(_SHARES) and all(type(size) is int for size in sizes):
            self.split.setSizes(sizes)
        if isinstance(series, list):
            self.legend.choose([name for name in self.legend.buttons if name in series])
            self.chart.show_kinds(self.legend.chosen)

    def refresh(self) -> None:
        """Show the selected loop and iteration; a hidden panel waits until it is shown."""
        self._update_timer.stop()
        self._is_behind = not self.isVisible()
        if self._session.shown.view_model is not self._picture:
            self._picture = self._session.shown.view_model
            self.similarities.forget(self._session.shown.read_results)
        has_run = self._selection.loop.current >= 0
        self.scroll_area.setVisible(has_run)
        self.empty.setVisible(not has_run)
        if not has_run:
            self.empty.setText(self._selection.nothing())
        elif not self._is_behind:
            self._show()

    def _show(self) -> None:
        selection, session = self._selection, self._session
        assert session.shown.view_model is not None
        assert session.shown.workflow is not None
        loop, index, is_over = selection.loop, selection.index, selection.is_over
        self.breadcrumb.show_crumbs(
            crumbs(session.shown.workflow, session.shown.view_model, session.shown.chosen, selection.loop_id)
        )
        self.latest.setEnabled(bool(session.shown.chosen))
        unit, ended = selection.unit, len(loop.iterations) + len(loop.ahead)
        self.slider.show_loop(loop, index, unit)
        if unit != "item":
            self.similarities.look_at(selection.path, loop)
        has_more = loop is not self.model.loop or self._ended != ended
        self._ended = ended
        self.model.workflow = session.shown.workflow
        self.model.show_loop(loop, is_over=is_over, unit=unit)
        if has_more:
            self.table.fit()
        self.table.show_chosen(index)
        self.figures.take(loop, unit)
        self.legend.offer(self.figures)
        # Items are independent of each other, so show their time instead of similarity.
        self.chart.show_kinds(self.legend.chosen or ([BaseSeries.TIME] if unit == "item" else []))
        self.chart.show_loop(index, 0 if is_over else loop.total, thresholds(selection.config))
        self._show_explanations()

    def _show_explanations(self) -> None:
        """Show what depends on similarities, which may have to be calculated."""
        selection = self._selection
        loop, index, last = selection.loop, selection.index, len(selection.loop.iterations) - 1
        self._show_readout()
        why = selection.loop_explanation(self.similarities.of(loop, last) if last >= 0 else None)
        self.why.setText(why if len(why) <= _EXPLANATION_LENGTH else f"{why[:_EXPLANATION_LENGTH]}…")
        self.why.setToolTip(plain_tool_tip(why) if len(why) > _EXPLANATION_LENGTH else "")
        self.detail.show_iteration(self.similarities.of(loop, index) if index <= last else None)

    def minimumSizeHint(self) -> QSize:
        """Return the minimum size without the chart, which hides in a low panel. A longer header scrolls."""
        height = self._header.minimumSizeHint().height() + self.detail.minimumSizeHint().height()
        return QSize(self.split.minimumSizeHint().width() + 6 * UNIT, height + 5 * UNIT)

    def showEvent(self, event: QShowEvent) -> None:
        """Update what changed while hidden."""
        super().showEvent(event)
        if self._is_behind:
            self.refresh()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Hide the chart if the panel is low."""
        super().resizeEvent(event)
        least = _CHART_FROM + (_NARROW_EXTRA if event.size().width() < _NARROW * style().scale else 0)
        is_roomy = event.size().height() >= least * style().scale
        for widget in (self.chart, self.legend, self.readout):
            widget.setVisible(is_roomy)
        self._readout_timer.start()

    def _note_update(self, touched: set[str]) -> None:
        if self._selection.is_touched(touched) and not self._update_timer.isActive():
            self._update_timer.start()

    def _follow_selection(self) -> None:
        self._selection.follow_selection()
        self.refresh()

    def _note_layout(self, *_: int) -> None:
        self._show_readout()
        self.layout_changed.emit()

    def _update_similarities(self, first: int, last: int) -> None:
        self.figures.take_similarities(first, last)
        if self._update_timer.isActive():  # everything is updated in a moment
            return
        self.chart.update()
        if self._selection.loop is self.figures.loop:  # the selected loop may not have started
            self._show_explanations()

    def _show_readout(self) -> None:
        # A short part would be useless; the chart's tooltip shows all of it.
        is_roomy = self.readout.width() >= _READOUT_FROM * style().scale
        self.readout.set_full_text(self.chart.readout(self.chart.focus_index) if is_roomy else "")

    def _show_outer_iteration(self, loop_id: str, index: int) -> None:
        self._selection.choose(loop_id)
        self._session.shown.look_at(loop_id, index)
        self.refresh()

    def _select(self, index: int) -> None:
        self._session.shown.look_at(self.loop_id, index)
