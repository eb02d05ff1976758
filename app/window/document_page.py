"""One open document in the window: its session, its canvas with the messages over it, and its panels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PySide6.QtCore import QEvent, QObject, Qt, QTimer, Signal
from PySide6.QtGui import QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QApplication, QVBoxLayout, QWidget

from app.file_watcher import FileWatcher
from app.history.iterations_panel import IterationsPanel
from app.runs.executions import node_of
from app.session import Session
from app.window.autosave import Autosave
from app.window.log_panel import LogPanel
from app.window.message_bars import MessageBars
from app.window.problems_panel import ProblemsPanel
from engine.document.model import Workflow
from engine.document.problems import Problem


@dataclass(frozen=True, slots=True)
class PageFactories:
    """How the parts of a document's page are made.

    Attributes:
        canvas: The canvas of a document.
        inspector: The inspector of a document; is given a function that lists names of models.
    """

    canvas: Callable[[Session], QWidget]
    inspector: Callable[[Session, Callable[[], list[str]]], QWidget]


def default_factories() -> PageFactories:
    """The parts as they are."""

    def canvas(session: Session) -> QWidget:
        from app.canvas.canvas import Canvas

        return Canvas(session)

    def inspector(session: Session, model_names: Callable[[], list[str]]) -> QWidget:
        from app.inspector.inspector import Inspector

        return Inspector(session, model_names)

    return PageFactories(canvas, inspector)


class DocumentPage(QWidget):
    """The page of a document.

    Args:
        session: The document; it belongs to the page from now on.
        parts: Makes canvas and inspector.
        model_names: Lists names of models for the inspector.
        data_folder: Where unsaved work is kept that cannot be kept beside its file.

    Signals:
        fresh_run_wanted: Run the document as it is now.
        save_wanted: Save it again.
        save_as_wanted: Ask where to save it.

    Attributes:
        remains: The file in which a crash left work on this document; None for most.
        uses_remains: Whether a person took that work up.
        may_use_folder: Whether its runs may use its folder, as answered last.
        may_run_code: Whether its runs may run code, as answered last.
        is_closed: Whether it is taken apart; nothing of it may be used any more.
    """

    fresh_run_wanted = Signal()
    save_wanted = Signal()
    save_as_wanted = Signal()

    def __init__(
        self,
        session: Session,
        parts: PageFactories,
        model_names: Callable[[], list[str]],
        data_folder: Path,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.session = session
        session.setParent(self)
        self.remains: Path | None = None
        self.uses_remains = False
        self.may_use_folder = False
        self.may_run_code = False
        self.is_closed = False
        self.bars = MessageBars(self)
        # The canvas is a part of its own with its own methods; see its module.
        self.canvas: Any = parts.canvas(session)
        self.inspector: Any = parts.inspector(session, model_names)
        self.inspector.installEventFilter(self)
        self.iterations = IterationsPanel(session)
        self.log = LogPanel(session)
        self.problems = ProblemsPanel(session)
        self.autosave = Autosave(session, data_folder, self)
        self.watch = FileWatcher(session.path, self)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.bars)
        column.addWidget(self.canvas, 1)
        self.problems.problem_chosen.connect(self.go_to)
        self.log.node_chosen.connect(self.show_node)
        self.autosave.failed.connect(lambda text: self.bars.say("autosave", text, "warning"))
        self.autosave.kept.connect(lambda: self.bars.drop("autosave"))
        session.saved.connect(self._note_saved)
        session.save_failed.connect(self._say_unsaved)
        session.saved_state_changed.connect(lambda: self.watch.hold(session.is_saving))
        session.changed.connect(self._compare_with_run)
        session.shown.started.connect(self._compare_with_run)
        session.shown.ended.connect(self._compare_again)
        self._needs_fit = True
        # Once everything around it has found its place.
        self._fitting = QTimer(self)
        self._fitting.setSingleShot(True)
        self._fitting.timeout.connect(self.fit_initial_view)
        # Once all else has taken up the end of the run: the page of the output may have to be made first.
        self._showing = QTimer(self)
        self._showing.setSingleShot(True)
        self._showing.timeout.connect(self._show_result)

    @property
    def panels(self) -> dict[str, QWidget]:
        """The panels of the drawer."""
        return {"iterations": self.iterations, "log": self.log, "problems": self.problems}

    def put_on_top(self, widget: QWidget) -> None:
        """Show something over the canvas, above the messages."""
        layout = self.layout()
        assert isinstance(layout, QVBoxLayout)
        layout.insertWidget(0, widget)

    def go_to(self, problem: Problem) -> None:
        """Show where a problem is: its node on the canvas, its field in the inspector."""
        node = problem.node
        if node is None and problem.edge is not None:
            ends = (end.partition(".")[0] for end in reversed(problem.edge.split(" -> ")))
            node = next((end for end in ends if self.session.node(end) is not None), None)
        if node is None or self.session.node(node) is None:
            self.session.select(())
            if node is None and problem.field is not None:
                self.inspector.focus_field(None, problem.field)
            return
        self.show_node(node)
        if problem.field is not None:
            self.inspector.focus_field(node, problem.field)

    def show_node(self, node_id: str) -> None:
        """Select a node and move the canvas to it."""
        if self.session.node(node_id) is not None:
            self.session.select([node_id])
            self.canvas.center_on(node_id)

    def focus_setup(self) -> None:
        """Give the keyboard to the first field of the selected node; Esc there gives it back to the canvas."""
        if len(self.session.selection) != 1:
            return
        form = self.inspector.page.form
        rows = {name: form.row(name) for name in form.fields} if form is not None else {}
        first = next((name for name, row in rows.items() if row is not None and not row.isHidden()), "")
        self.inspector.focus_field(self.session.selection[0], first)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Take Esc from the inspector, where no field of it has use for it."""
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress and event.key() == Qt.Key.Key_Escape:
            self.canvas.setFocus()
            return True
        return super().eventFilter(watched, event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Fit the workflow into the view when it gets its size."""
        super().resizeEvent(event)
        if self._needs_fit:
            self._fitting.start()

    def fit_initial_view(self) -> None:
        """Fit the workflow into the view."""
        if self.session.workflow.nodes:
            self.canvas.fit_initial_view()
        self._needs_fit = False

    def tell_end(self) -> None:
        """Say why a run failed, with a way to the node; of one that is done, show what it gave."""
        picture = self.session.shown.picture
        if picture is None or not picture.is_over or picture.status != "failed":
            self.bars.drop("run")
        if self.session.shown.live is not None or picture is None:
            return
        if picture.status == "completed":
            self._showing.start()
        elif picture.status == "failed":
            node = node_of(picture.failed_path)
            way = [("Show it", lambda: self.show_node(node))] if self.session.node(node) is not None else []
            self.bars.say("run", f"{picture.error} {picture.remedy}".strip(), "bad", way)

    def _note_saved(self, path: Path) -> None:
        self.watch.know(path)
        for matter in ("disk", "autosave", "save"):
            self.bars.drop(matter)

    def _say_unsaved(self, text: str) -> None:
        ways = [("Save again", self.save_wanted.emit), ("Save as…", self.save_as_wanted.emit)]
        self.bars.say("save", text, "bad", ways)

    def _show_result(self) -> None:
        """Show the first output, unless the person looks at something, or writes in the workflow's own fields."""
        focus = QApplication.focusWidget()
        is_writing = focus is not None and self.inspector.isAncestorOf(focus)
        if self.session.shown.live is not None or self.session.selection or is_writing:
            return
        outputs = [node.id for node in self.session.workflow.nodes if node.type == "output"]
        if outputs:
            self.session.select(outputs[:1])
            QTimer.singleShot(0, self.inspector, self.inspector.show_result)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Left and right step through the iterations while one is looked at; Esc goes back to the latest."""
        step = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}.get(Qt.Key(event.key()))
        if self.session.shown.chosen and step is not None:
            self.iterations.step(step)
        elif self.session.shown.chosen and event.key() == Qt.Key.Key_Escape:
            self.session.shown.look_at_latest()
        else:
            super().keyPressEvent(event)

    def dispose(self) -> None:
        """Let go of everything that is not a child of the page."""
        self.is_closed = True
        for widget in (self.inspector, *self.panels.values()):
            widget.setParent(None)
            widget.deleteLater()
        self.setParent(None)
        self.deleteLater()

    def _compare_again(self) -> None:
        self.bars.drop("changed")  # now there is something to be done about it
        self._compare_with_run()

    def _compare_with_run(self, *_: object) -> None:
        ran = self.session.shown.workflow
        if ran is None or _same_meaning(ran, self.session.workflow):
            self.bars.drop("changed")
        elif not self.bars.text("changed"):
            buttons = [("Run again", self.fresh_run_wanted.emit)]
            text = "The document has changed since this run. Results are of the document as it ran."
            self.bars.say("changed", text, "info", buttons if self.session.shown.live is None else ())


def _same_meaning(first: Workflow, second: Workflow) -> bool:
    """Whether two documents do the same; places and titles of the layout do not count."""
    return first is second or (
        first.nodes == second.nodes and first.edges == second.edges and first.settings == second.settings
    )
