"""The "Fork from here" dialog: changes of the fork, what it reuses, and its estimated cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Final, cast

from PySide6.QtCore import QEvent, QObject, QSize, Qt, QTimer, Signal
from PySide6.QtWidgets import (
    QApplication,
    QDialog,
    QFrame,
    QLineEdit,
    QPlainTextEdit,
    QWidget,
)

from app.engine_thread import EngineThread
from app.history.run_labels import capitalized, node_titles, path_label
from app.history.store_client import StoreClient
from app.history.stored_session import StoredRun, StoredRunLoader, read_level, read_outline
from app.inspector.editor import ConfigBinding
from app.inspector.field_spec import FieldSpec, field_specs
from app.inspector.form import Form, problems_by_field
from app.inspector.form_fields import FormField
from app.inspector.model_list import ModelComboBox, ModelSource
from app.inspector.result_text import value_text
from app.inspector.text_widgets import exact_text
from app.runs.loop_status import unit_of
from app.runs.run_view_model import node_of
from app.session import Session
from app.theme.tokens import UNIT
from app.theme.widgets import (
    STRETCH,
    CollapsibleSection,
    MessageBar,
    PlainLabel,
    hbox,
    plain_tool_tip,
    push_button,
    resize_on_screen,
    scroll_area,
    set_tab_order,
    vbox,
)
from app.worker import Worker
from engine.document.model import Node
from engine.events import parse_place
from engine.exits import shown_cap
from engine.formatting import format_count, format_money
from engine.nodes.json_values import parse_json
from engine.nodes.loop import LoopConfig
from engine.nodes.node_registry import builtin_registry
from engine.plan.structure import Structure
from engine.store.resume import Changes, ForkPlan, plan_fork
from engine.store.store_protocol import Store, level_of
from engine.values import Value

UNCHANGED: Final = "Unchanged"
_PROMPTS: Final = ("system", "prompt", "criteria")
"""Fields with prompts."""
_OPEN_PROMPTS: Final = 4
"""How many nodes show their prompts at first; the window waits while forms are created."""


@dataclass(frozen=True, slots=True)
class ForkPlace:
    """Where a fork starts.

    Attributes:
        path: The path (`loop[2]`, `loop[2].critique`, `critique`).
        structure: Structure of the document as it ran.
        value: Input of the iteration, or output of the node; None if unknown.
        run: The run, for previews of prompts; None for no previews.
    """

    path: str
    structure: Structure
    value: Value
    run: StoredRun | None = None

    @property
    def is_iteration(self) -> bool:
        """Whether it is an iteration rather than a node."""
        return self.path.endswith("]")

    @property
    def loop(self) -> Node | None:
        """The innermost loop or iterator around it in the document itself, not in a subflow; None if there is none."""
        around = [step.node for step in takewhile(lambda step: step.index is not None, parse_place(self.path).steps)]
        return self.structure.workflow.nodes_by_id.get(around[-1]) if around else None

    @property
    def unit(self) -> str:
        """`item` in an iterator, `iteration` otherwise."""
        return unit_of(self.structure.workflow, self.path.rpartition("[")[0])

    @property
    def prompted(self) -> list[Node]:
        """The nodes with prompts that run again: those of the loop body, or of the whole document."""
        loop = self.loop
        body = self.structure.bodies.get(loop.id) if loop is not None else None
        nodes = self.structure.workflow.nodes
        inside = nodes if body is None else [node for node in nodes if node.id in body.nodes]
        return [node for node in inside if node.enabled and _prompts(node)]


class ForkForm(QWidget):
    """Form with the changes of the fork.

    Args:
        engine: The engine thread.
        place: Where the fork starts.
        models: The models to choose from.

    Signals:
        edited: The user changed something.

    Attributes:
        session: The workflow as it ran, with the changes of its nodes.
        sections: The sections of nodes by id: prompts, and the settings of the loop.
        forms: Their forms, as in the inspector; a form is created when its section is first expanded.
    """

    edited = Signal()

    def __init__(self, engine: EngineThread, place: ForkPlace, models: ModelSource) -> None:
        super().__init__()
        self._place = place
        self._models = models
        self.session = Session(engine, place.structure.workflow)
        self.session.setParent(self)
        self._column = vbox(spacing=2, margins=(0, 0, 4, 0), parent=self)
        self.value = self._value_edit()
        self._value_at_first = exact_text(self.value)
        self.sections: dict[str, CollapsibleSection] = {}
        self.forms: dict[str, Form] = {}
        for number, node in enumerate(place.prompted):
            self._add_section("Prompts", node, _prompts(node), is_open=number < _OPEN_PROMPTS)
        self.model = self._model_box()
        if place.loop is not None and place.loop.type == "loop":
            is_nested = place.loop.id in place.structure.parent
            self._add_section("Loop", place.loop, _loop_fields(is_nested=is_nested), is_open=True)
        self._column.addStretch(1)
        self.session.changed.connect(self.edited)

    def changes(self) -> Changes:
        """Return what was changed.

        Raises:
            ValueError: The value must be JSON and is invalid; the message is for the user.
        """
        settings: dict[str, dict[str, Value]] = {}
        for node_id in self.forms:
            before, now = (
                self._place.structure.workflow.nodes_by_id[node_id],
                self.session.workflow.nodes_by_id[node_id],
            )
            old = _settings(before)
            changed = {name: value for name, value in _settings(now).items() if value != old[name]}
            if changed:
                settings[node_id] = changed
        has_value, value = self._changed_value()
        model = self.model.currentText().strip()
        return Changes(settings, value, has_value, model or None)

    def _changed_value(self) -> tuple[bool, Value]:
        text, old = exact_text(self.value), self._place.value
        if text == self._value_at_first:  # not the original value, because a field replaces some characters
            return False, None
        if old is None or isinstance(old, str):
            return True, text
        try:
            return True, parse_json(text)
        except ValueError:
            raise ValueError(
                "The input was JSON but is no longer valid JSON. Correct it, or undo your changes."
            ) from None

    def _value_edit(self) -> QPlainTextEdit:
        title = "Iteration input" if self._place.unit == "iteration" else "Item"
        title = title if self._place.is_iteration else "Node output"
        edit = QPlainTextEdit()
        edit.setTabChangesFocus(True)
        edit.setMinimumHeight(30 * UNIT)
        edit.setPlainText("" if self._place.value is None else value_text(self._place.value))
        edit.textChanged.connect(self.edited)
        self._add(title, edit)
        return edit

    def _model_box(self) -> ModelComboBox:
        box = ModelComboBox(self._models, UNCHANGED)
        box.line.setAccessibleName("Model")
        box.currentTextChanged.connect(lambda _text: self.edited.emit())
        self._add("Model", box)
        return box

    def _add_section(self, title: str, node: Node, fields: dict[str, FieldSpec], *, is_open: bool) -> None:
        name = self._place.structure.resolution.name(node.id)
        section = self.sections[node.id] = CollapsibleSection(f"{title}: {name}", QWidget(), is_open=is_open)
        self._column.addWidget(section)

        def fill() -> None:
            if node.id not in self.forms:
                self._add_form(node, name, fields, section.body)

        section.toggled.connect(fill)
        if is_open:
            fill()

    def _add_form(self, node: Node, name: str, fields: dict[str, FieldSpec], holder: QWidget) -> None:
        binding = ConfigBinding(self.session, self._models, self)
        binding.node_id = node.id
        # From the outside in: Qt restyles a whole widget tree whenever its parent changes.
        form = self.forms[node.id] = Form(fields, binding, holder)
        vbox(form, parent=holder)
        for row in form.findChildren(FormField) if node is not self._place.loop else ():
            row.editor.main_widget.setAccessibleName(f"{name}: {row.field.title}")

        def show_analysis() -> None:
            form.refresh()
            form.show_problems(problems_by_field(self.session.problems_of(node.id)))

        self.session.changed.connect(lambda _old, _new: form.show_values())
        self.session.analyzed.connect(show_analysis)
        form.show_values()
        show_analysis()

    def _add(self, title: str, widget: QWidget) -> None:
        widget.setAccessibleName(title)
        self._column.addWidget(PlainLabel(title, buddy=widget))
        self._column.addWidget(widget)
        self._column.addSpacing(UNIT)


def _settings(node: Node) -> dict[str, Value]:
    """Return all settings of a node, defaults included."""
    spec = builtin_registry().find(node.type)
    assert spec is not None, "it has a form"
    defaults = {name: field.get_default(call_default_factory=True) for name, field in spec.config.model_fields.items()}
    return {name: node.config.get(name, default) for name, default in defaults.items()}


def _prompts(node: Node) -> dict[str, FieldSpec]:
    """Return the prompt fields of a node."""
    spec = builtin_registry().find(node.type)
    fields = field_specs(spec.config) if spec is not None else {}
    return {name: replace(fields[name], shown_when=(), help="") for name in _PROMPTS if name in fields}


def _loop_fields(*, is_nested: bool) -> dict[str, FieldSpec]:
    """Return the settings of a loop that make a difference once it has started."""
    fields = dict(field_specs(LoopConfig))
    if not is_nested:  # otherwise it starts again in the next iteration of the loop around it
        del fields["condition"]
    count, budget = fields["max_iterations"], fields["budget_usd"]
    fields["max_iterations"] = replace(count, title="Max iterations (including reused ones)")
    told = f"{budget.help} Reused iterations cost nothing."
    fields["budget_usd"] = replace(budget, title="Loop budget (USD)", help=told, is_advanced=False)
    return fields


SIZE: Final = QSize(920, 640)
PLAN_DELAY_MS: Final = 300


class ForkDialog(QDialog):
    """The fork dialog.

    Args:
        engine: The engine thread.
        access: Access to the history.
        run_id: The run to fork.
        place: Where the fork starts; see `read_fork_place`.
        models: The models to choose from.
        permissions: Widget with the permissions of the fork.

    Signals:
        wanted: The user wants to run the fork; its plan.
        planned: The plan for the current form was computed.
    """

    wanted = Signal(object)
    planned = Signal()

    def __init__(
        self,
        engine: EngineThread,
        access: StoreClient,
        run_id: str,
        place: ForkPlace,
        models: ModelSource,
        permissions: QWidget,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle("Fork from here")
        resize_on_screen(self, SIZE)
        self._access = access
        self._run_id = run_id
        self._place = place
        self._worker = Worker(self)
        self.plan: ForkPlan | None = None
        self._permissions = permissions
        self.form = ForkForm(engine, place, models)
        if place.run is not None:
            self._show_run(place.run)
        self.problem = MessageBar("", "bad")
        self.problem.hide()
        self._refusal = ""
        self._is_changed = False
        cast("QApplication", QApplication.instance()).focusChanged.connect(self._show_refusal)
        self.reused, self.rerun, self.price = (PlainLabel(wrap=True) for _ in range(3))
        self.warnings = PlainLabel(wrap=True)
        self.warnings.setProperty("tone", "warning")
        self.run = push_button("Run fork", self._run, look="primary", auto_default=True)
        self.run.setDefault(True)
        self.run.installEventFilter(self)
        self.cancel = push_button("Cancel", self.reject)
        self._arrange()
        self._timer = QTimer(self, singleShot=True, interval=PLAN_DELAY_MS)
        self._timer.timeout.connect(self._update_plan)
        self.form.edited.connect(self._plan_later)
        self._update_plan()

    def focusNextPrevChild(self, next: bool) -> bool:  # noqa: A002 - Qt's own
        """Move the focus in the order in which the widgets are laid out: forms and their fields are created late."""
        set_tab_order((self,))
        return super().focusNextPrevChild(next)

    def _show_run(self, run: StoredRun) -> None:
        """Fill the previews of prompts with the values of the run."""
        shown = self.form.session.shown
        StoredRunLoader(shown, self._access, self).show(run)
        for loop, index in parse_place(self._place.path).iterations():
            shown.look_at(node_of(loop), index)

    def _arrange(self) -> None:
        titles = node_titles(self._place.structure.workflow)
        where = path_label(self._place.path, titles, self._place.unit)
        title = PlainLabel(f"Fork from {where}", look="title")
        told = PlainLabel(
            "A new run reuses everything before this point and runs the rest again. The original run is not changed.",
            look="dim",
            wrap=True,
        )
        area = scroll_area(self.form)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        columns = hbox((area, 3), (self._plan_card(), 2), spacing=4)
        bottom = hbox(STRETCH, self.cancel, self.run, spacing=2)
        # The problem is below the form, which would jump while the user types.
        rows = (title, told, 1, (columns, 1), self.problem, self._permissions, bottom)
        vbox(*rows, spacing=3, margins=(5, 4, 5, 4), parent=self)

    def _plan_card(self) -> QWidget:
        card = QFrame()
        card.setProperty("card", True)
        column = vbox(spacing=2, margins=4, parent=card)
        for title, label in (("Reused", self.reused), ("Runs again", self.rerun), ("Cost", self.price)):
            column.addWidget(PlainLabel(title, look="section"))
            column.addWidget(label)
            column.addSpacing(2 * UNIT)
        column.addWidget(self.warnings)
        column.addStretch(1)
        return scroll_area(card)

    def _plan_later(self) -> None:
        self.plan, self._is_changed = None, True
        self.run.setEnabled(False)
        self._timer.start()

    def _update_plan(self) -> None:
        self._worker.supersede()
        self.run.setEnabled(False)
        try:
            changes = self.form.changes()
        except ValueError as error:
            self._refuse(str(error))
            return
        run_id, at, cap = self._run_id, self._place.path, shown_cap()
        self._access.ask(
            lambda store: plan_fork(store, run_id, at, changes, max_iterations_cap=cap),
            self._show,
            lambda error: self._refuse(str(error)),
            worker=self._worker,
        )

    def _show(self, plan: ForkPlan) -> None:
        self.plan = plan
        self._note_refusal("")
        self.reused.setText(_listed(plan.reused) or "Nothing is reused; everything runs again.")
        self.rerun.setText(_listed(plan.rerun) or "Nothing.")
        self.price.setText(_price(plan))
        self.warnings.setText("\n".join(plan.warnings))
        self.warnings.setVisible(bool(plan.warnings))
        self.run.setEnabled(not self._timer.isActive())
        self.planned.emit()

    def _refuse(self, text: str) -> None:
        self.plan = None
        self._note_refusal(text)
        self.planned.emit()

    def _note_refusal(self, text: str) -> None:
        self._refusal = text
        self.run.setToolTip(plain_tool_tip(text))
        self._show_refusal()

    def _show_refusal(self) -> None:
        """Say why there is no plan, but not while a text that may be the reason is being typed."""
        focused = QApplication.focusWidget()
        is_field = isinstance(focused, QLineEdit | QPlainTextEdit) and self.form.isAncestorOf(focused)
        is_typing = is_field and self._is_changed and not self.problem.isVisible()
        self._say_refusal("" if is_typing else self._refusal)

    def _say_refusal(self, text: str) -> None:
        if text:
            self.problem.say(text, "bad")
        self.problem.setVisible(bool(text))

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Say why there is no plan if the user clicks the disabled button, which takes no focus from a field."""
        if event.type() == QEvent.Type.MouseButtonPress:
            self._say_refusal(self._refusal)
        return super().eventFilter(watched, event)

    def _run(self) -> None:
        if self.plan is not None:
            self.wanted.emit(self.plan)
            self.accept()


def read_fork_place(store: Store, run_id: str, at: str) -> ForkPlace:
    """Read what the dialog needs to know about a fork point.

    Raises:
        EngineError: The run cannot be read, or did not reach it.
    """
    run = read_outline(store, run_id)
    if at.endswith("]"):
        level = read_level(store, run, at)
        return ForkPlace(at, run.structure, level.iteration.input if level.iteration is not None else None, run)
    level = read_level(store, run, level_of(at))
    execution = level.nodes.get(at)
    return ForkPlace(at, run.structure, execution.outputs.get("output") if execution is not None else None, run)


def _listed(lines: Sequence[str]) -> str:
    return "\n".join(f"• {capitalized(line)}" for line in lines)


def _price(plan: ForkPlan) -> str:
    count = plan.max_reruns
    most = "" if not count else f"Up to {format_count(count, 'iteration')}. "
    if plan.estimate_usd is None:
        return f"{most}The cost is unknown."
    if plan.estimate_usd == 0:
        return f"{most}Free of charge."
    return f"{most}About {format_money(plan.estimate_usd)}, based on the previous iterations."
