"""The model of an open document: undo stack, structure, problems, file, selection and run.

Every change goes through `do`; canvas, inspector and panels follow the signals.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from PySide6.QtCore import QObject, QTimer, Signal

from app.document_file import DocumentSaver, FileFingerprint, SaveRequest
from app.engine_thread import EngineThread
from app.run_view_state import RunViewState
from app.worker import Worker
from engine.document.model import Node, Workflow, stem_of
from engine.document.operations import Batch, Operation
from engine.document.problems import Problem, Severity
from engine.document.undo_stack import UndoStack
from engine.errors import EngineError
from engine.exits import shown_cap
from engine.nodes.node_registry import Registry, builtin_registry
from engine.plan.structure import Structure, analyse
from engine.plan.validation import validate_structure
from engine.runner.options import RunOptions
from engine.values import Value


class PendingEdit(QObject):
    """An edit that is being typed and not yet in the document, but should survive a crash.

    Attributes:
        step: The operation that finishing the edit would do; None if there is none.

    Signals:
        changed: `step` has changed.
    """

    changed = Signal()

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self.step: Operation | None = None

    def put(self, step: Operation | None) -> None:
        """Set the operation; None ends the edit."""
        if step != self.step:
            self.step = step
            self.changed.emit()

    def added_to(self, workflow: Workflow) -> Workflow:
        """Return the workflow with the edit applied."""
        if self.step is None:
            return workflow
        try:
            return self.step.apply(workflow)[0]
        except EngineError:  # the document has changed, and the edit does not apply any more
            return workflow


ResultT = TypeVar("ResultT")

Analysis = tuple[Structure, list[Problem]]
"""The structure of a document, and its problems."""

ANALYZE_AFTER_MS: Final = 30
MAX_NODES_AT_ONCE: Final = 60
"""A document of at most this many nodes is analyzed in the window's thread, in less than a frame."""
SYNTAX_ERROR_CODES: Final = frozenset({"bad-template", "bad-expression"})
"""Codes of problems of texts that do not compile."""
_UNCONNECTED: Final = frozenset({"unconnected-port", "empty-body"})
"""Codes of problems that nearly every new node has."""
NEVER_SAVED: Final = -1
"""A state number that no document has."""


def analyze_document(workflow: Workflow, registry: Registry) -> Analysis:
    """Find structure and problems. For a large document, call it in a thread.

    That a document is empty is no problem here: it has just been created.
    """
    structure = analyse(workflow, registry)
    problems = validate_structure(structure, max_iterations_cap=shown_cap())
    return structure, [problem for problem in problems if problem.code != "no-nodes"]


class Session(QObject):
    """One open document.

    Args:
        engine: The engine's thread.
        workflow: The document; empty by default.
        path: Its file.
        registry: The node types; the built-in ones and plugins by default.
        analysis: The result of `analyze_document`, if known.
        fingerprint: The file when it was read.

    Signals:
        changed: The document is another one: old and new.
        saved_state_changed: Path, name, `is_modified` or `is_saving` has changed.
        saved: The document was saved in that file.
        save_failed: It could not be saved; the text says why and what to do.
        save_withheld: It was not saved, because another program has changed the file; the callbacks of the request.
        analyzed: `structure` and `problems` are up to date.
        selection_changed: The selection has changed.
        refused: Something could not be done; the text says what and why.

    Attributes:
        registry: The node types.
        path: The document's file; None for one that was never saved.
        fingerprint: The file when it was last read or written; None if unknown.
        is_trusted: Whether the workflow is the user's own or was approved by them.
        confirms_calls: Whether tool calls that are not in the document itself are confirmed during a run.
        structure: The structure; may be slightly out of date, see `analyzed`.
        problems: The problems, as of the same moment; see also `visible_problems`.
        pending_edit: The edit that is being typed over the canvas.
        saved_workflow: The document as it was last saved; it may have been edited while it was written.
        save_steps: Each returns the changes that the document needs to be saved in a file, such as new relative paths.
        selection: Ids of the selected nodes, in the order of selection.
        shown: The run that is shown, and the selected iterations.
    """

    is_past = False
    """Whether this is a stored run, which is read-only."""

    changed = Signal(object, object)
    saved_state_changed = Signal()
    saved = Signal(object)
    save_failed = Signal(str)
    save_withheld = Signal(object)
    analyzed = Signal()
    selection_changed = Signal()
    refused = Signal(str)

    def __init__(
        self,
        engine: EngineThread,
        workflow: Workflow | None = None,
        path: Path | None = None,
        registry: Registry | None = None,
        *,
        analysis: Analysis | None = None,
        fingerprint: FileFingerprint | None = None,
    ) -> None:
        super().__init__()
        self.registry = registry or builtin_registry()
        self.path = path
        self.fingerprint = fingerprint
        self.is_trusted = path is None
        self.confirms_calls = False
        self._undo_stack = UndoStack(workflow if workflow is not None else Workflow())
        # A document without a layout is laid out after its structure, which is needed at once.
        is_quick = len(self.workflow.nodes) <= MAX_NODES_AT_ONCE or not self.workflow.layout
        analysis = analysis or analyze_document(self.workflow if is_quick else Workflow(), self.registry)
        self.structure: Structure = analysis[0]
        self.problems: list[Problem] = analysis[1]
        self._setup_problems: list[Problem] = []
        self._new_nodes: dict[str, Node] = {}
        self._typed_nodes: frozenset[str] = frozenset()
        self.pending_edit = PendingEdit(self)
        self.saved_workflow = self.workflow
        self.save_steps: list[Callable[[Path], Iterable[Operation]]] = []
        self.selection: tuple[str, ...] = ()
        self.shown = RunViewState(engine, self)
        self.shown.refused.connect(self.refused)
        self._analysis_worker = Worker(self)
        self._saving = DocumentSaver(self)
        self._saving.written.connect(self._note_saved)
        self._saving.failed.connect(self.save_failed)
        self._saving.withheld.connect(lambda request: self.save_withheld.emit(request.then))
        self._saving.changed.connect(self.saved_state_changed)
        if path is not None and fingerprint is not None:
            self._saving.know(path, fingerprint)
        self._timer = QTimer(self, singleShot=True, interval=ANALYZE_AFTER_MS)
        self._timer.timeout.connect(self._analyze)
        if self.structure.workflow is not self.workflow:
            self._analyze()

    @property
    def workflow(self) -> Workflow:
        """The current workflow."""
        return self._undo_stack.workflow

    @property
    def problem_counts(self) -> tuple[int, int]:
        """The number of visible errors and warnings."""
        problems = self.visible_problems
        errors = sum(problem.severity is Severity.ERROR for problem in problems)
        return errors, len(problems) - errors

    @property
    def visible_problems(self) -> list[Problem]:
        """The problems, without those that nobody has had the chance to solve yet.

        These are problems of new nodes, which are not connected and filled in, and of a text that is being typed.
        """
        if not (self._new_nodes or self._typed_nodes):
            return self.problems
        return [problem for problem in self.problems if not self._is_too_early(problem)]

    def _is_too_early(self, problem: Problem) -> bool:
        if problem.node in self._typed_nodes and problem.code in {*SYNTAX_ERROR_CODES, "unknown-port"}:
            return True  # the ports of placeholders are missing while the text does not compile
        added = self._new_nodes.get(problem.node or "")
        if added is None:
            return bool(self._new_nodes) and problem.code == "no-output"
        return problem.code in _UNCONNECTED or self.node(added.id) is added

    def reveal_problems(self) -> None:
        """Show the problems of new nodes too: the user wants to run the workflow."""
        self._keep_new_nodes(())

    def hold_syntax_problems(self, node_ids: Iterable[str]) -> None:
        """Hide that a text of these nodes does not compile: it is being typed. Without nodes, show it again."""
        typed = frozenset(node_ids)
        if typed != self._typed_nodes:
            self._typed_nodes = typed
            self._emit_if_up_to_date()

    def _keep_new_nodes(self, node_ids: Collection[str]) -> None:
        """Treat only these nodes as new."""
        before = self._new_nodes
        self._new_nodes = {node_id: node for node_id, node in before.items() if node_id in node_ids}
        if len(before) > len(self._new_nodes):
            self._emit_if_up_to_date()

    def _emit_if_up_to_date(self) -> None:
        """Report other visible problems, unless an analysis that reports them is due."""
        if self.structure.workflow is self.workflow:
            self.analyzed.emit()

    @property
    def is_modified(self) -> bool:
        """Whether it has unsaved changes."""
        return self._undo_stack.is_modified

    @property
    def name(self) -> str:
        """The name of the document, else of its file, else 'Untitled'."""
        if self.workflow.name:
            return self.workflow.name
        return stem_of(self.path.name).removesuffix(".json") if self.path is not None else "Untitled"

    @property
    def undo_title(self) -> str | None:
        """The name of the step that `undo` would undo; None if there is none."""
        return self._undo_stack.undo_title

    @property
    def redo_title(self) -> str | None:
        """The name of the step that `redo` would redo; None if there is none."""
        return self._undo_stack.redo_title

    def node(self, node_id: str) -> Node | None:
        """Return a node by id; None if there is none."""
        return self.workflow.nodes_by_id.get(node_id)

    @property
    def structure_now(self) -> Structure:
        """The structure of the current workflow, even where `structure` is out of date."""
        is_behind = self.structure.workflow is not self.workflow
        return analyse(self.workflow, self.registry) if is_behind else self.structure

    def problems_of(self, node_id: str) -> list[Problem]:
        """Return the visible problems of a node."""
        return [problem for problem in self.visible_problems if problem.node == node_id]

    def attempt(self, make: Callable[[], ResultT]) -> ResultT | None:
        """Return the result of a function; None, and emits `refused`, if it raises an `EngineError`."""
        try:
            return make()
        except EngineError as error:
            self.refused.emit(str(error))
            return None

    def do(self, operation: Operation) -> bool:
        """Change the document; returns False, and emits `refused`, if that is not possible."""
        before = self.workflow.nodes_by_id
        is_done = self._move(lambda: self._undo_stack.do(operation))
        after = self.workflow.nodes_by_id
        if len(after) > len(before) and not isinstance(operation, ReplaceDocument):
            self._new_nodes |= {node_id: node for node_id, node in after.items() if node_id not in before}
        return is_done

    def undo(self) -> bool:
        """Undo the last step."""
        return self._undo_stack.undo_title is not None and self._move(self._undo_stack.undo)

    def redo(self) -> bool:
        """Redo the step that was undone last."""
        return self._undo_stack.redo_title is not None and self._move(self._undo_stack.redo)

    def seal(self) -> None:
        """End a step of typing: the next change of the same field becomes a new step."""
        self._undo_stack.seal()

    @property
    def is_saving(self) -> bool:
        """Whether a save is in progress."""
        return self._saving.is_saving

    @property
    def is_analyzing(self) -> bool:
        """Whether an analysis of the document is due or running."""
        return self._timer.isActive() or self._analysis_worker.is_busy

    @property
    def destination(self) -> Path | None:
        """The document's file once all saves are done; None if it has none."""
        return self._saving.destination or self.path

    def save(self, path: Path | None = None, then: Callable[[], object] = lambda: None) -> None:
        """Save in a thread, after earlier saves; `saved`, `save_failed` or `save_withheld` is emitted at the end.

        Args:
            path: The file, which becomes the document's file; by default the present one.
            then: Called on success.
        """
        target = path or self.destination
        assert target is not None, "the window asks for a path first"
        self.seal()
        step = self._save_step(target)
        workflow = step.apply(self.workflow)[0] if step is not None else self.workflow
        self._saving.ask(SaveRequest(workflow, self._undo_stack.state, target, [then]))

    def when_saved(self, act: Callable[[], object]) -> None:
        """Call a function once no save is in progress, whether they succeeded or not."""
        self._saving.when_over(act)

    def mark_saved(self) -> None:
        """Mark the current state as saved."""
        self._undo_stack.mark_saved()
        self.saved_state_changed.emit()

    def mark_unsaved(self) -> None:
        """Mark every state as unsaved: the file has other content, or is gone."""
        self._undo_stack.mark_saved(NEVER_SAVED)
        self.saved_state_changed.emit()

    def know_file(self, fingerprint: FileFingerprint | None = None) -> None:
        """Allow the next save to overwrite the file.

        Args:
            fingerprint: The file when it was read; None to overwrite whatever it contains now.
        """
        assert self.path is not None, "the document has a file"
        self.fingerprint = fingerprint
        self._saving.know(self.path, fingerprint)

    def select(self, node_ids: Iterable[str]) -> None:
        """Select exactly these nodes; unknown ids are ignored."""
        nodes = self.workflow.nodes_by_id
        selection = tuple(dict.fromkeys(node_id for node_id in node_ids if node_id in nodes))
        if selection != self.selection:
            self.selection = selection
            self.selection_changed.emit()
            if self._new_nodes:
                self._keep_new_nodes(set(selection))

    def start_run(self, inputs: Mapping[str, Value], options: RunOptions, *, paused: bool = False) -> None:
        """Run the current workflow, unless a run is in progress; see `RunViewState.start`."""
        self.shown.start(self.structure_now, inputs, options, paused=paused)

    def _move(self, step: Callable[[], object]) -> bool:
        before, was_modified = self.workflow, self.is_modified
        name = self.name
        if self.attempt(step) is None:
            return False
        self.changed.emit(before, self.workflow)
        self.select(_followed(self.selection, before, self.workflow))
        self._timer.start()
        if was_modified != self.is_modified or name != self.name:
            self.saved_state_changed.emit()
        return True

    def _save_step(self, path: Path) -> Operation | None:
        operations = [operation for step in self.save_steps for operation in step(path)]
        return Batch("Update file paths", tuple(operations)) if operations else None

    def _note_saved(self, request: SaveRequest, fingerprint: FileFingerprint) -> None:
        # Only now: after a failure the document still belongs to its old file.
        step = self._save_step(request.path)
        self.path, self.fingerprint, self.saved_workflow = request.path, fingerprint, request.workflow
        self._undo_stack.mark_saved(request.state)
        if step is not None:
            is_current = not self.is_modified
            if self.do(step) and is_current:
                self.mark_saved()
        self.saved.emit(request.path)

    def _analyze(self) -> None:
        """Analyze in a thread, and again if the document has changed meanwhile."""
        if self._analysis_worker.is_busy:
            return
        self._analysis_worker.ask(partial(analyze_document, self.workflow, self.registry), self._apply_analysis)

    def _apply_analysis(self, analysis: Analysis) -> None:
        if analysis[0].workflow is not self.workflow:
            self._timer.start()
            return
        self.structure, self.problems = analysis[0], [*analysis[1], *self._setup_problems]
        self.analyzed.emit()

    def show_setup_problems(self, problems: list[Problem]) -> None:
        """Show problems that the document has on this computer only, such as missing keys, among its own."""
        if problems != self._setup_problems:
            own = [problem for problem in self.problems if problem not in self._setup_problems]
            self._setup_problems = problems
            self.problems = [*own, *problems]
            self._emit_if_up_to_date()


def _followed(selection: tuple[str, ...], before: Workflow, after: Workflow) -> list[str]:
    """Return the selection after a step: a node that was renamed stays selected."""
    nodes = after.nodes_by_id
    if len(before.nodes) != len(after.nodes) or all(node_id in nodes for node_id in selection):
        return list(selection)
    renamed = {
        old.id: new.id
        for old, new in zip(before.nodes, after.nodes, strict=True)
        if old.id not in nodes and new.id not in before.nodes_by_id and old.type == new.type
    }
    return [renamed.get(node_id, node_id) for node_id in selection]


@dataclass(frozen=True, slots=True)
class ReplaceDocument:
    """Replace the whole workflow, as a reload, a revert and a recovery do. It can be undone.

    Attributes:
        title: Its name in the undo menu.
        workflow: The new workflow.
    """

    title: str
    workflow: Workflow

    def apply(self, workflow: Workflow) -> tuple[Workflow, Operation]:
        """Apply to any document."""
        return self.workflow, ReplaceDocument(self.title, workflow)
