"""An open document with its undo stack, its problems and its file: the one place where the parts of the window meet.

Everything that changes the document goes through `do`; canvas, inspector and panels follow the signals. What is
selected is kept here too, so that all parts show the same; so is its run, which `app.run_view_state` has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from PySide6.QtCore import QObject, QTimer, Signal

from app.document_saver import DocumentSaver, SaveRequest
from app.engine_thread import EngineThread
from app.file_watcher import FileFingerprint
from app.run_view_state import RunViewState
from app.worker import Worker
from engine.document.model import Node, Workflow
from engine.document.operation import Operation
from engine.document.problems import Problem
from engine.document.undo_stack import History
from engine.errors import EngineError
from engine.nodes.iteration_cap import shown_cap
from engine.nodes.registry import Registry, builtin_registry
from engine.plan.check import check_structure
from engine.plan.structure import Structure, analyse
from engine.runner.options import RunOptions
from engine.values import Value


class PendingEdit(QObject):
    """The step that would be done if the typing ended now.

    Attributes:
        step: That step; None where nothing is typed, or what is typed changes nothing.

    Signals:
        changed: `step` is another one.
    """

    changed = Signal()

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self.step: Operation | None = None

    def put(self, step: Operation | None) -> None:
        """Take up what is typed now; None where it is over."""
        if step != self.step:
            self.step = step
            self.changed.emit()

    def added_to(self, workflow: Workflow) -> Workflow:
        """The document as it would be then; itself where nothing is typed."""
        if self.step is None:
            return workflow
        try:
            return self.step.apply(workflow)[0]
        except EngineError:  # the document has changed meanwhile, and it does not fit any more
            return workflow


Analysis = tuple[Structure, list[Problem]]
"""How a document hangs together, and what is wrong with it."""

ANALYSE_AFTER_MS: Final = 30
AT_ONCE: Final = 60
"""Up to so many nodes, a document that is opened is analysed at once: that takes less than a frame."""
NOWHERE: Final = -1
"""A state that no document ever is in."""


def analyse_document(workflow: Workflow, registry: Registry) -> Analysis:
    """Find structure and problems; for a thread, where the document is large."""
    structure = analyse(workflow, registry)
    return structure, check_structure(structure, max_iterations_cap=shown_cap())


class Session(QObject):
    """One open document.

    Args:
        engine: The engine's thread.
        workflow: The document; an empty one unless given.
        path: Its file.
        registry: The node types; those of the program unless given.
        found: What `analyse_document` finds in it, where that is known already.
        fingerprint: The file when it was read, where it was.

    Signals:
        changed: The document is another one: old and new.
        saved_state_changed: Path, name, 'modified' or 'is being saved' changed.
        saved: A document that `save` was asked to write is in that file.
        save_failed: It could not be written; the text says why and what to do.
        save_withheld: It was not written, because another program has changed the file; what was to be done once it
            was saved.
        analysed: `structure` and `problems` fit the document as it is now.
        selection_changed: Other nodes are selected.
        refused: Something could not be done; the text says what and why.

    Attributes:
        registry: The node types.
        path: Where the document is saved; None for one that never was.
        is_trusted: Whether what it says is the person's own work, or was approved by them.
        confirms_calls: Whether calls that a foreign document does not contain are confirmed during a run.
        structure: How the document hangs together; may be a moment behind it, see `analysed`.
        problems: What is wrong with it, as of the same moment.
        draft: What is being typed into a field over the canvas.
        selection: Ids of the selected nodes, in the order in which they were.
        shown: Its run, and what is looked at of it.
    """

    is_past = False
    """Whether this is a run of the history, which is looked at and not changed."""

    changed = Signal(object, object)
    saved_state_changed = Signal()
    saved = Signal(object)
    save_failed = Signal(str)
    save_withheld = Signal(object)
    analysed = Signal()
    selection_changed = Signal()
    refused = Signal(str)

    def __init__(
        self,
        engine: EngineThread,
        workflow: Workflow | None = None,
        path: Path | None = None,
        registry: Registry | None = None,
        parent: QObject | None = None,
        *,
        analysis: Analysis | None = None,
        fingerprint: FileFingerprint | None = None,
    ) -> None:
        super().__init__(parent)
        self.registry = registry or builtin_registry()
        self.path = path
        self.is_trusted = path is None
        self.confirms_calls = False
        self._history = History(workflow if workflow is not None else Workflow())
        # A document without a layout is laid out by its structure, and cannot be shown before.
        is_quick = len(self.workflow.nodes) <= AT_ONCE or not self.workflow.layout
        analysis = analysis or analyse_document(self.workflow if is_quick else Workflow(), self.registry)
        self.structure: Structure = analysis[0]
        self.problems: list[Problem] = analysis[1]
        self.draft = PendingEdit(self)
        self.selection: tuple[str, ...] = ()
        self.shown = RunViewState(engine, self)
        self.shown.refused.connect(self.refused)
        self._analyst = Worker(self)
        self._saving = DocumentSaver(self)
        self._saving.written.connect(self._take_up_saved)
        self._saving.failed.connect(self.save_failed)
        self._saving.withheld.connect(lambda wish: self.save_withheld.emit(wish.then))
        self._saving.changed.connect(self.saved_state_changed)
        if path is not None and fingerprint is not None:
            self._saving.know(path, fingerprint)
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(ANALYSE_AFTER_MS)
        self._timer.timeout.connect(self._analyse)
        if self.structure.workflow is not self.workflow:
            self._analyse()

    @property
    def workflow(self) -> Workflow:
        """The document as it is now."""
        return self._history.workflow

    @property
    def is_modified(self) -> bool:
        """Whether it differs from what is saved."""
        return self._history.is_modified

    @property
    def name(self) -> str:
        """What to call the document: its name, else its file's, else 'Untitled'."""
        if self.workflow.name:
            return self.workflow.name
        return self.path.name.partition(".")[0] if self.path is not None else "Untitled"

    @property
    def undo_title(self) -> str | None:
        """What `undo` would take back; None where there is nothing."""
        return self._history.undo_title

    @property
    def redo_title(self) -> str | None:
        """What `redo` would do again; None where there is nothing."""
        return self._history.redo_title

    def node(self, node_id: str) -> Node | None:
        """The node of that id; None where there is none."""
        return self.workflow.nodes_by_id.get(node_id)

    @property
    def structure_now(self) -> Structure:
        """How the document hangs together as it is now, where `structure` may be a moment behind."""
        is_behind = self.structure.workflow is not self.workflow
        return analyse(self.workflow, self.registry) if is_behind else self.structure

    def problems_of(self, node_id: str) -> list[Problem]:
        """What is wrong with a node."""
        return [problem for problem in self.problems if problem.node == node_id]

    def do(self, operation: Operation) -> bool:
        """Change the document; says through `refused` why where it cannot, and then returns False."""
        return self._move(lambda: self._history.do(operation))

    def undo(self) -> bool:
        """Take the last step back."""
        return self._history.undo_title is not None and self._move(self._history.undo)

    def redo(self) -> bool:
        """Do again what was taken back last."""
        return self._history.redo_title is not None and self._move(self._history.redo)

    def seal(self) -> None:
        """End a step of typing: the next change of the same field is one of its own."""
        self._history.seal()

    @property
    def is_saving(self) -> bool:
        """Whether something is still to be written to a file."""
        return self._saving.is_under_way

    @property
    def destination(self) -> Path | None:
        """The document's file, as it will be once all is saved that is to be; None where it has none."""
        return self._saving.destination or self.path

    def save(self, path: Path | None = None, then: Callable[[], object] = lambda: None) -> None:
        """Begin to save to the document's file, or to another that then is the document's.

        It is written in a thread, after what was to be saved before. `saved` or `save_failed` tells the end.

        Args:
            path: The file; None for the document's own.
            then: What to do once it is saved.
        """
        target = path or self.destination
        assert target is not None, "the window asks for a path first"
        self.seal()
        self._saving.ask(SaveRequest(self.workflow, self._history.state, target, [then]))

    def when_saved(self, act: Callable[[], object]) -> None:
        """Do something once nothing is being saved any more, whether that has succeeded or not."""
        self._saving.when_over(act)

    def mark_saved(self) -> None:
        """Remember that the document as it is now is the one on the disk."""
        self._history.mark_saved()
        self.saved_state_changed.emit()

    def mark_unsaved(self) -> None:
        """Remember that no file has the document as it is now, nor as it ever was."""
        self._history.mark_saved(NOWHERE)
        self.saved_state_changed.emit()

    def know_file(self, fingerprint: FileFingerprint | None = None) -> None:
        """What is in the document's file may be replaced by what is saved.

        Args:
            fingerprint: The file as it was just read; None where a person gives up whatever is in it now.
        """
        assert self.path is not None, "there is a file to know"
        self._saving.know(self.path, fingerprint)

    def select(self, node_ids: Iterable[str]) -> None:
        """Select these nodes and no others; ids that are not there are left out."""
        selection = tuple(dict.fromkeys(node_id for node_id in node_ids if self.node(node_id) is not None))
        if selection != self.selection:
            self.selection = selection
            self.selection_changed.emit()

    def start_run(self, inputs: Mapping[str, Value], options: RunOptions, *, paused: bool = False) -> None:
        """Run the document as it is now, or get ready to, step by step. One run a document at a time."""
        self.shown.start(self.structure_now, inputs, options, paused=paused)

    def _move(self, step: Callable[[], object]) -> bool:
        before, was_modified = self.workflow, self.is_modified
        name = self.name
        try:
            step()
        except EngineError as error:
            self.refused.emit(str(error))
            return False
        self.changed.emit(before, self.workflow)
        self.select(_followed(self.selection, before, self.workflow))
        self._timer.start()
        if was_modified != self.is_modified or name != self.name:
            self.saved_state_changed.emit()
        return True

    def _take_up_saved(self, wish: SaveRequest) -> None:
        self.path = wish.path
        self._history.mark_saved(wish.state)
        self.saved.emit(wish.path)

    def _analyse(self) -> None:
        """Find structure and problems in a thread; a document that changed meanwhile is looked at again."""
        if self._analyst.is_busy:
            return
        self._analyst.ask(partial(analyse_document, self.workflow, self.registry), self._take_up_structure)

    def _take_up_structure(self, analysis: Analysis) -> None:
        if analysis[0].workflow is not self.workflow:
            self._timer.start()
            return
        self.structure, self.problems = analysis
        self.analysed.emit()


def _followed(selection: tuple[str, ...], before: Workflow, after: Workflow) -> list[str]:
    """The selected nodes after a step; one to which a rename or its undo gave another id stays selected."""
    there = after.nodes_by_id
    if len(before.nodes) != len(after.nodes) or all(node_id in there for node_id in selection):
        return list(selection)
    renamed = {
        old.id: new.id
        for old, new in zip(before.nodes, after.nodes, strict=True)
        if old.id not in there and new.id not in before.nodes_by_id and old.type == new.type
    }
    return [renamed.get(node_id, node_id) for node_id in selection]


@dataclass(frozen=True, slots=True)
class ReplaceDocument:
    """Puts a document in the present one's place.

    Attributes:
        title: What that is called in the undo menu.
        workflow: The other document.
    """

    title: str
    workflow: Workflow

    def apply(self, workflow: Workflow) -> tuple[Workflow, Operation]:
        """Fits every document."""
        return self.workflow, ReplaceDocument(self.title, workflow)
