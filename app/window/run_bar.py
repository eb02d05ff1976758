"""The run bar: document name, run buttons, progress, budget and model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QMetaObject, Qt, Signal
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QApplication, QMenu, QPushButton, QSizePolicy, QWidget

from app.runs.run_status import Budget, model_label, node_title, progress
from app.theme.style import ThemedIcon, icon_size, set_style_properties
from app.theme.tokens import UNIT
from app.theme.widgets import STRETCH, Badge, ElidedLabel, PlainLabel, ProgressBar, hbox, plain_tool_tip, push_button
from app.timers import call_later
from engine.formatting import format_count

if TYPE_CHECKING:
    from app.session import Session


class ActionButton(QPushButton):
    """A button for an action.

    Attributes:
        successor: Gets the focus when this button has it and becomes disabled.
    """

    def __init__(self, action: QAction, parent: QWidget, *, primary: bool = False) -> None:
        super().__init__(parent)
        self.action = action
        self.successor: QWidget | None = None
        self.setProperty("primary", primary)
        # A click does not move the focus; otherwise a disabled Run button would pass it on to the next widget.
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.clicked.connect(lambda _checked=False: action.trigger())
        action.changed.connect(self._follow)
        self._follow()

    def _follow(self) -> None:
        action = self.action
        self.setText(action.iconText())
        if not self.property("primary"):  # whose icon has another color on the button than in the menu
            self.setIcon(action.icon())
            self.setIconSize(icon_size())  # the action's icon is set again when the text size changes
        if self.hasFocus() and not action.isEnabled() and self.successor is not None:
            call_later(self.successor, self.successor.setFocus)  # once all actions are updated
        self.setEnabled(action.isEnabled())
        self.setAccessibleName(action.text())
        keys = action.shortcut().toString()
        self.setToolTip(f"{action.toolTip()} ({keys})" if keys else action.toolTip())


class RunBar(QWidget):
    """The bar.

    Args:
        actions: By name: `run`, `run_with`, `pause`, `step_node`, `step_iteration`, `stop`.

    Signals:
        model_clicked: The user wants to change the model.
        budget_clicked: The user wants to change the budget.
    """

    model_clicked = Signal()
    budget_clicked = Signal()

    def __init__(self, actions: dict[str, QAction]) -> None:
        super().__init__()
        self.setProperty("panel", True)
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._session: Session | None = None
        self._connections: list[QMetaObject.Connection] = []
        self.name = ElidedLabel("", self, look="title")
        self.name.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Preferred)
        self.saved = PlainLabel("", self, look="dim")
        self.run = ActionButton(actions["run"], self, primary=True)
        self.run.clicked.disconnect()
        self.run.clicked.connect(self._run)
        self._actions = actions
        ThemedIcon(self.run, "mdi6.play", "on_accent")
        self.pause = ActionButton(actions["pause"], self)
        self.stop = ActionButton(actions["stop"], self)
        self.run.successor, self.stop.successor, self.pause.successor = self.stop, self.run, self.run
        self.step = self._step_button(actions)
        self.progress = ProgressBar(self, textVisible=False)
        self.progress.setAccessibleName("Progress of the run")
        self.progress.setFixedWidth(30 * UNIT)
        self.waits = Badge("Waiting for you", "warning", self)
        self.waits.hide()
        self.pinned = Badge("", "accent", self)
        self.pinned.hide()
        self.meter = ProgressBar(self, maximum=1000, textVisible=False)
        self.meter.setAccessibleName("Budget spent")
        self.meter.setFixedWidth(20 * UNIT)
        self.budget = push_button("", self.budget_clicked.emit, self, look="quiet")
        self.budget.setToolTip("The budget of a run. Click to change it.")
        self.model = push_button("", self.model_clicked.emit, self)
        self.model.setToolTip("The model of this workflow. Click to change it.")
        self._arrange()
        self.show_session(None)

    def _step_button(self, actions: dict[str, QAction]) -> QPushButton:
        button = QPushButton("Step   ", self)  # room for the arrow of its menu
        button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        button.setAccessibleName("Step")
        button.setToolTip("Step one node or one iteration")
        ThemedIcon(button, "mdi6.debug-step-over")
        menu = QMenu(button)
        menu.addAction(actions["step_node"])
        menu.addAction(actions["step_iteration"])
        button.setMenu(menu)
        return button

    def _arrange(self) -> None:
        left = hbox(self.name, self.saved, STRETCH, spacing=2)
        middle = (self.run, self.pause, self.step, self.stop)
        right = hbox(2, self.progress, self.waits, self.pinned, STRETCH, self.meter, self.budget, self.model, spacing=2)
        hbox((left, 1), *middle, (right, 1), spacing=2, margins=(3, 2, 3, 2), parent=self)

    def show_session(self, session: Session | None) -> None:
        """Show another document; None for none."""
        for connection in self._connections:
            self.disconnect(connection)
        self._connections.clear()
        self._session = session
        if session is not None:
            signals = (session.shown.started, session.shown.updated, session.shown.ended)
            self._connections = [signal.connect(self._show_run) for signal in signals]
            self._connections.append(session.saved_state_changed.connect(self._show_name))
            self._connections.append(session.changed.connect(self._show_pinned))
        self._show_name()
        self._show_run()
        self._show_pinned()

    def show_budget(self, budget: Budget | None) -> None:
        """Show the budget; None hides it."""
        self.meter.setVisible(budget is not None)
        self.budget.setVisible(budget is not None)
        if budget is not None:
            self.meter.setValue(round(budget.share * 1000))
            tone = "bad" if budget.share >= 1 else "warning" if budget.share >= 0.8 else "good"
            if self.meter.property("tone") != tone:
                set_style_properties(self.meter, tone=tone)
            self.budget.setText(budget.text)
            self.budget.setAccessibleName(f"Budget: {budget.text}")
            self.meter.setAccessibleDescription(budget.text)

    def show_models(self, names: tuple[str, ...]) -> None:
        """Show the models in use."""
        shown = model_label(names[0]) if names else "No model"
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        self.model.setText(shown + more)
        self.model.setAccessibleName(f"Model: {', '.join(names) or 'none'}")

    def _run(self) -> None:
        is_shifted = bool(QApplication.keyboardModifiers() & Qt.KeyboardModifier.ShiftModifier)
        self._actions["run_with" if is_shifted else "run"].trigger()

    def _show_name(self) -> None:
        session = self._session
        self.name.set_full_text(session.name if session is not None else "Loopwright")
        state = ""
        if session is not None:
            state = "not saved" if session.is_modified or session.path is None else "saved"
            state = "saving…" if session.is_saving else state
            state = "stored run" if session.is_past else state
        self.saved.setText(state)

    def _show_pinned(self) -> None:
        """Say how many nodes are pinned, so that nobody takes their values for new results."""
        workflow = self._session.workflow if self._session is not None else None
        nodes = workflow.pinned_nodes if workflow is not None else ()
        self.pinned.setVisible(bool(nodes))
        if nodes and workflow is not None:
            names = ", ".join(node_title(node.id, workflow) for node in nodes)
            self.pinned.setText(f"{len(nodes)} pinned")
            self.pinned.setToolTip(plain_tool_tip(f"Pinned nodes do not run: {names}"))
            self.pinned.setAccessibleName(f"{format_count(len(nodes), 'node')} pinned: {names}")

    def _show_run(self) -> None:
        session = self._session
        running = session is not None and session.shown.live is not None
        view_model = session.shown.view_model if session is not None else None
        self.progress.setVisible(running)
        self.waits.setVisible(running and view_model is not None and bool(view_model.questions))
        self.model.setVisible(session is not None)
        self.step.setEnabled(session is not None and (running or not session.is_past))
        if running and session is not None and view_model is not None and session.shown.workflow is not None:
            done, total = progress(view_model, session.shown.workflow)
            self.progress.setRange(0, total)
            self.progress.setValue(done)
            self.progress.setAccessibleDescription(f"{done} of {total}")
