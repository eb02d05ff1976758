"""The Log panel: a line for each relevant event of the run, which can be filtered by node."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import (
    QBrush,
    QColor,
    QGuiApplication,
    QMouseEvent,
    QResizeEvent,
    QTextCharFormat,
    QTextCursor,
    QTextOption,
)
from PySide6.QtWidgets import QComboBox, QPlainTextEdit, QWidget

from app.inspector.text_widgets import from_utf16_units
from app.runs.loop_status import iterators_of, loop_status, place_label, titles_of, unit_of
from app.runs.run_view_model import RunViewModel, node_of
from app.session import Session
from app.theme.style import style
from app.theme.widgets import STRETCH, PlainLabel, hbox, push_button, vbox
from engine.document.model import Workflow
from engine.events import (
    AnyEvent,
    BudgetWarning,
    LoopCompleted,
    LoopIterationCompleted,
    LoopIterationStarted,
    NodeAnswered,
    NodeCompleted,
    NodeFailed,
    NodeNoted,
    NodeRetrying,
    NodeSkipped,
    NodeToolCalled,
    NodeWaiting,
    NotePosted,
    RunCancelled,
    RunCompleted,
    RunFailed,
    RunPaused,
    RunResumed,
    RunStarted,
)
from engine.formatting import (
    format_duration,
    format_money,
    format_percent,
    format_retry,
    format_score,
    format_spending,
    format_tokens,
)
from engine.store.exit_explanation import loop_config
from engine.text_sanitizing import one_line
from engine.values import to_text

MOST_LINES: Final = 10_000
"""Maximum number of lines; the oldest are dropped."""
PREVIEW: Final = 120
LONGEST_LINE: Final = 2_000
"""Maximum length of a line that is shown: Qt lays out a whole line at once."""


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line of the log.

    Attributes:
        time: Seconds since the epoch.
        node: The id of its node; empty for the run as a whole.
        level: `info`, `warning` or `error`.
        text: What happened, on one line.
    """

    time: float
    node: str
    level: str
    text: str

    @property
    def written(self) -> str:
        """The line with its time of day, and its level unless that is `info`: color alone would not tell it."""
        clock = datetime.fromtimestamp(self.time).astimezone().strftime("%H:%M:%S")
        return f"{clock}  {'' if self.level == 'info' else f'{self.level.capitalize()}: '}{self.text}"


class LogWriter:
    """Turns the events of one run into log lines.

    Args:
        workflow: The workflow that runs; None if it is unknown.
    """

    def __init__(self, workflow: Workflow | None = None) -> None:
        self._workflow = workflow or Workflow()
        self._titles, self._iterators = titles_of(workflow), iterators_of(workflow)
        self._loops = RunViewModel({})  # receives the events of loops only

    def lines(self, event: AnyEvent) -> Iterator[LogLine]:
        """The lines of one event; most events of mere progress have none."""
        node = node_of(event.path)
        if isinstance(event, LoopIterationStarted | LoopIterationCompleted | LoopCompleted):
            self._loops.apply(event)
        for level, text in self._texts(event):
            where = f"{place_label(event.path, self._titles, self._iterators)}: " if event.path else ""
            yield LogLine(event.time, node, level, where + " ".join(text.split()))

    def _texts(self, event: AnyEvent) -> Iterator[tuple[str, str]]:
        match event:
            case RunStarted():
                models = f" with {', '.join(event.models)}" if event.models else ""
                yield "info", f"Running {event.workflow or 'the workflow'}{models}."
            case NodeCompleted():
                yield from _completed(event)
            case NodeFailed():
                yield "error", f"failed: {event.error} {event.remedy}"
            case NodeSkipped():
                yield "info", f"skipped: {event.reason}"
            case NodeWaiting() | NodeAnswered() | NotePosted() | NodeNoted():
                yield from _message(event)
            case NodeToolCalled():
                yield from _tool_called(event)
            case NodeRetrying():
                yield "warning", format_retry(event.error, event.attempt, event.delay_s, event.fallback)
            case LoopIterationCompleted():
                unit = unit_of(self._workflow, event.path)
                yield "info", iteration_line(event, self._loops.loops[event.path].total, unit)
                yield from (("warning", warning) for warning in event.warnings)
            case LoopCompleted():
                loop = self._loops.loops[event.path]
                unit = unit_of(self._workflow, event.path)
                yield "info", loop_status(loop, loop_config(self._workflow, event.path), unit=unit)
                yield from (("warning", warning) for warning in event.warnings)
            case BudgetWarning():
                yield "warning", f"most of the budget is used: {format_spending(event.spent, event.limit, event.unit)}"
            case _:
                yield from _run_event(event, self._titles)


def log_of(workflow: Workflow, events: Iterable[AnyEvent]) -> list[LogLine]:
    """The log of a stored run, limited to the last `MOST_LINES` lines."""
    writer = LogWriter(workflow)
    return list(deque((line for event in events for line in writer.lines(event)), maxlen=MOST_LINES))


def _message(event: NodeWaiting | NodeAnswered | NotePosted | NodeNoted) -> Iterator[tuple[str, str]]:
    match event:
        case NodeWaiting():
            yield "warning", f"waiting for you: {one_line(event.message, PREVIEW)}"
        case NodeAnswered():
            yield "info", f"answered: {one_line(event.choice or to_text(event.value), PREVIEW)}"
            if event.comment:
                yield "info", f"comment: {one_line(event.comment, PREVIEW)}"
        case NotePosted():
            yield "info", f"note to {event.to}: {one_line(event.text, PREVIEW)}"
        case NodeNoted():
            yield "info", f"received the note: {one_line(event.text, PREVIEW)}"


def _tool_called(event: NodeToolCalled) -> Iterator[tuple[str, str]]:
    call = f"{one_line(event.tool, 60)}({one_line(to_text(event.used_arguments), PREVIEW)})"
    if event.error:
        yield "warning", f"called {call}: {one_line(event.error, PREVIEW)}"
    else:
        result = one_line(to_text(event.result), PREVIEW)
        yield "info", f"called {call} → {result}" if result else f"called {call}"


def _completed(event: NodeCompleted) -> Iterator[tuple[str, str]]:
    figures = [format_duration(event.duration_s)]
    if event.usage is not None:
        figures += [format_tokens(event.usage), format_money(event.cost_usd)]
    how = "cache hit" if event.cached else "done"
    yield "info", "pinned" if event.pinned else f"{how} ({', '.join(figures)})"
    yield from (("warning", warning) for warning in (event.error, *event.warnings) if warning)


def _run_event(event: AnyEvent, titles: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    match event:
        case RunPaused():
            yield "info", "Paused."
        case RunResumed():
            yield "info", "Resumed."
        case RunCompleted():
            figures = (format_duration(event.duration_s), format_tokens(event.usage), format_money(event.cost_usd))
            yield "info", f"Done in {', '.join(figures)}."
            yield from (("warning", warning) for warning in event.warnings)
        case RunCancelled():
            yield "warning", f"Stopped after {format_duration(event.duration_s)}, {format_money(event.cost_usd)}."
        case RunFailed():
            where = f"“{place_label(event.node, titles)}”: " if event.node else ""
            yield "error", f"The run failed. {where}{event.error} {event.remedy}"
        case _:
            pass


def iteration_line(event: LoopIterationCompleted, total: int | None, unit: str = "iteration") -> str:
    """Summarize an iteration: `iteration 2 of 3 · continue · similarity 81% · $0.0012 · 2 s · its first words`."""
    parts = [f"{unit} {event.index + 1}" + (f" of {total}" if total else "")]
    if event.branch is not None:
        parts.append(event.branch)
    if event.score is not None:
        parts.append(f"score {format_score(event.score)}")
    if event.similarity is not None:
        parts.append(f"similarity {format_percent(event.similarity)}")
    parts += [format_money(event.cost_usd), format_duration(event.duration_s)]
    return " · ".join([*parts, one_line(to_text(event.result), PREVIEW)])


class LogView(QPlainTextEdit):
    """The text of the log: a wrapped paragraph for each line; the oldest are removed above `MOST_LINES`.

    Signals:
        opened: A line was double-clicked.
    """

    opened = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setReadOnly(True)
        self.setUndoRedoEnabled(False)
        self.setTabChangesFocus(True)
        self.setMaximumBlockCount(MOST_LINES)
        self.setWordWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setAccessibleName("Log lines")
        self.shown: deque[LogLine] = deque(maxlen=MOST_LINES)

    def append(self, lines: Iterable[LogLine]) -> None:
        """Append lines; neighbors of one level are inserted at once, because each insertion lays out the text."""
        theme = style().theme
        colors = {"info": theme.text, "warning": theme.warning, "error": theme.bad}
        cursor = QTextCursor(self.document())
        cursor.movePosition(QTextCursor.MoveOperation.End)
        for level, group in groupby(lines, key=lambda line: line.level):
            added = list(group)
            look = QTextCharFormat()
            look.setForeground(QBrush(QColor(colors[level])))
            text = "\n".join(from_utf16_units(line.written[:LONGEST_LINE]) for line in added)
            cursor.insertText(f"\n{text}" if self.shown else text, look)
            self.shown.extend(added)

    def show_lines(self, lines: Iterable[LogLine]) -> None:
        """Show these lines only."""
        self.shown.clear()
        self.clear()
        self.append(lines)

    def scroll_to_end(self) -> None:
        """Show the last line, whole."""
        bar, document = self.verticalScrollBar(), self.document()
        counted = 0
        while counted != document.lineCount():  # Qt does not adjust the range to the lines that it wraps as it scrolls
            counted = document.lineCount()
            layout = document.documentLayout()
            layout.documentSizeChanged.emit(layout.documentSize())
            bar.setValue(bar.maximum())

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        """Report the line under the mouse."""
        super().mouseDoubleClickEvent(event)
        number = self.cursorForPosition(event.position().toPoint()).blockNumber()
        if number < len(self.shown):
            self.opened.emit(self.shown[number])


class LogPanel(QWidget):
    """The log of one document.

    Signals:
        node_chosen: The user wants to see that node.
    """

    node_chosen = Signal(str)

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self._writer = LogWriter()
        self.lines: deque[LogLine] = deque(maxlen=MOST_LINES)
        self.view = LogView(self)
        self._follows = True
        self.view.verticalScrollBar().valueChanged.connect(self._note_scroll)
        self.view.verticalScrollBar().rangeChanged.connect(self._keep_up)
        self.view.opened.connect(lambda line: self.node_chosen.emit(line.node))
        self.filter = QComboBox(self)
        self.filter.setAccessibleName("Show the lines of")
        self.filter.addItem("All nodes", "")
        self.filter.currentIndexChanged.connect(self._show)
        self._clear = push_button("Clear", self.clear, self)
        self._clear.setAccessibleName("Clear the log")
        self._copy = push_button("Copy", self.copy, self)
        self._copy.setAccessibleName("Copy the selected text, or all lines")
        style().changed.connect(self._show)
        caption = PlainLabel("Show", self, buddy=self.filter)
        row = hbox(caption, self.filter, STRETCH, self._copy, self._clear, spacing=2)
        vbox(row, (self.view, 1), spacing=2, margins=(3, 2, 3, 2), parent=self)

    def take(self, events: Iterable[AnyEvent]) -> None:
        """Append the lines of a batch of events."""
        lines: list[LogLine] = []
        for event in events:
            if self._session.is_past and isinstance(event, RunStarted):  # resumed: its past events are replayed
                self.clear()
            lines += self._writer.lines(event)
        self.show_lines(lines)

    def show_lines(self, lines: list[LogLine]) -> None:
        """Append lines."""
        if not lines:
            return
        self.lines.extend(lines)
        known = {self.filter.itemData(place) for place in range(self.filter.count())}
        titles = titles_of(self._session.shown.workflow)
        for node in dict.fromkeys(line.node for line in lines):
            if node not in known:
                self.filter.addItem(titles.get(node, node), node)
        self.view.append(self._wanted(lines))
        self._keep_up()

    def show_past(self, lines: list[LogLine]) -> None:
        """Show the lines of a stored run, replacing earlier ones."""
        self.clear()
        self.show_lines(lines)

    def clear(self) -> None:
        """Remove all lines."""
        self.lines.clear()
        self._show()

    def copy(self) -> None:
        """Copy the selected text, or all visible lines."""
        selected = self.view.textCursor().selection().toPlainText()
        QGuiApplication.clipboard().setText(selected or self.view.toPlainText())

    def _wanted(self, lines: Iterable[LogLine]) -> list[LogLine]:
        """The lines of the chosen node."""
        node = self.filter.currentData()
        return [line for line in lines if not node or line.node == node]

    def _show(self) -> None:
        self.view.show_lines(self._wanted(self.lines))
        self.view.scroll_to_end()

    def _note_scroll(self, value: int) -> None:
        self._follows = value >= self.view.verticalScrollBar().maximum()

    def _keep_up(self) -> None:
        if self._follows:
            self.view.scroll_to_end()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Stay at the end."""
        super().resizeEvent(event)
        self._keep_up()

    def follow_run(self) -> None:
        """Write the lines of the run that has just started."""
        self._writer = LogWriter(self._session.shown.workflow)
        if self._session.shown.live is not None:  # a run of the history is handed over by whoever read it
            self._session.shown.live.events.connect(self.take)

    def note_refusal(self, text: str) -> None:
        """Append a line that says what could not be done."""
        import time

        self.show_lines([LogLine(time.time(), "", "warning", " ".join(text.split()))])
