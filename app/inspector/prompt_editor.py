"""Editors for prompts and expressions: highlighting, completion, a preview and a larger window."""

from __future__ import annotations

from typing import Any, Final

from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QDialog, QHBoxLayout, QPushButton, QToolButton, QVBoxLayout, QWidget

from app.inspector.available_variables import named_text, variables_at
from app.inspector.config_binding import ConfigBinding
from app.inspector.editors.editor import Editor, describe_widget
from app.inspector.field_spec import FieldSpec
from app.inspector.prompt_preview import PreviewRun, render_preview
from app.inspector.template_edit import TemplateEdit
from app.inspector.text_widgets import LongTextView
from app.theme.style import ThemedIcon, style
from app.theme.tokens import UNIT
from engine.nodes.spec import NamedText, TextKind
from engine.plan.structure import Structure
from engine.values import to_text

SYNTAX_ERROR_CODES: Final = frozenset({"bad-template", "bad-expression"})
"""Problem codes of texts that do not compile."""

NO_RUN: Final = "No run yet. Run the workflow to preview the prompt with real values."


class TemplateEditor(Editor):
    """Base class of the editors for templates and expressions.

    Attributes:
        edit: The text field.
    """

    kind = TextKind.TEMPLATE
    lines = (3, 14)

    def __init__(self, field: FieldSpec, binding: ConfigBinding, parent: QWidget | None = None) -> None:
        super().__init__(field, binding, parent)
        self.edit = TemplateEdit(self.kind, *self.lines, self)
        self.register(self.edit)
        self.box.addWidget(self.edit)
        self.main_widget = self.edit
        self.edit.typed.connect(self._typed)
        self._shown_node: str | None = None
        self._variables_of: tuple[Structure, str, NamedText] | None = None

    def refresh(self) -> None:
        """Update the available variables."""
        session, node_id = self.binding.session, self.binding.node_id
        node = session.node(node_id) if node_id is not None else None
        spec = session.registry.find(node.type) if node is not None else None
        if node is None or spec is None:
            return
        if node_id == self._shown_node and any(
            problem.code in SYNTAX_ERROR_CODES for problem in session.problems_of(node.id)
        ):
            return  # an unfinished text has lost its ports and edges, so the previous variables remain the best guess
        self._shown_node = node_id
        text = named_text(spec, node.config, self.path, self.kind)
        before, now = self._variables_of, (session.structure, node.id, text)
        if before is None or before[0] is not now[0] or before[1:] != now[1:]:
            self._variables_of = now
            self.edit.set_variables(variables_at(session.structure, node, text))

    def _display(self, value: Any) -> None:
        self.edit.set_text(to_text(value))

    def _typed(self, text: str) -> None:
        self._commit(text)


class ExpressionEditor(TemplateEditor):
    """A CEL expression."""

    kind = TextKind.EXPRESSION
    lines = (1, 6)


class PromptEditor(TemplateEditor):
    """Editor for a prompt, with buttons to insert a variable, preview the text and edit it in a larger window."""

    def __init__(self, field: FieldSpec, binding: ConfigBinding, parent: QWidget | None = None) -> None:
        super().__init__(field, binding, parent)
        self._window: PromptWindow | None = None
        self.insert = self._button("mdi6.code-braces", "Insert variable", "Insert a value from the workflow.")
        self.preview = self._button("mdi6.eye-outline", "Preview", "Show the prompt with the values of the last run.")
        self.preview.setCheckable(True)
        self.expand = self._button("mdi6.arrow-expand", "Expand", "Edit in a larger window.")
        line = QHBoxLayout()
        line.setSpacing(UNIT)
        for button in (self.insert, self.preview):
            line.addWidget(button)
        line.addStretch(1)
        line.addWidget(self.expand)
        self.box.addLayout(line)
        self.filled = LongTextView(f"Preview of {field.title}", self)
        self.filled.setVisible(False)
        self.box.addWidget(self.filled)
        self.insert.clicked.connect(lambda: self.edit.complete(insert_braces=True))
        self.preview.toggled.connect(self._show_preview)
        self.expand.clicked.connect(self.open_window)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Hide the texts of the buttons if they do not fit."""
        super().resizeEvent(event)
        buttons, sides = (self.insert, self.preview, self.expand), 6 * UNIT
        texts = sum(button.fontMetrics().horizontalAdvance(button.text()) for button in buttons)
        needed = texts + sum(button.iconSize().width() + sides for button in buttons)
        styles = Qt.ToolButtonStyle
        button_style = styles.ToolButtonTextBesideIcon if needed <= self.width() else styles.ToolButtonIconOnly
        for button in buttons:
            button.setToolButtonStyle(button_style)

    @property
    def window_open(self) -> PromptWindow | None:
        """The larger window, if it is open."""
        return self._window

    def refresh(self) -> None:
        """Update the available variables and the preview."""
        super().refresh()
        if self._window is not None:
            self._window.edit.set_variables(self.edit.variables)
        self.refresh_run()

    def refresh_run(self) -> None:
        """Update the preview, if it is open."""
        session, node_id = self.binding.session, self.binding.node_id
        if not self.preview.isChecked() or node_id is None:
            return
        if session.shown.picture is None or session.shown.workflow is None:
            self.filled.set_text(NO_RUN)
            return
        run = PreviewRun(session.shown.picture, session.shown.workflow, session.shown.chosen, session.registry)
        self.filled.set_text(render_preview(self.edit.text(), node_id, run))

    def open_window(self) -> None:
        """Open a larger window that edits the same text."""
        window = PromptWindow(self.field.title, self.kind, self.window())
        self.binding.events.watch(window.edit)
        window.edit.set_variables(self.edit.variables)
        window.edit.set_text(self.edit.text())
        window.edit.typed.connect(self._typed_in_window)
        window.finished.connect(self._window_closed)
        self._window = window
        window.open()

    def _button(self, picture: str, label: str, text: str) -> QToolButton:
        button = QToolButton(self)
        button.setProperty("link", True)
        ThemedIcon(button, picture, "accent")
        button.setText(label)
        button.setToolButtonStyle(button.toolButtonStyle().ToolButtonTextBesideIcon)
        describe_widget(button, f"{label}: {self.field.title}", text)
        return button

    def _display(self, value: Any) -> None:
        super()._display(value)
        if self._window is not None:
            self._window.edit.set_text(self.edit.text())
        self.refresh_run()

    def _typed(self, text: str) -> None:
        super()._typed(text)
        self.refresh_run()

    def _typed_in_window(self, text: str) -> None:
        self.edit.set_text(text)
        self._typed(text)

    def _window_closed(self) -> None:
        assert self._window is not None
        self._window.deleteLater()
        self._window = None
        self.binding.session.seal()

    def _show_preview(self, on: bool) -> None:  # Qt's signal
        self.filled.setVisible(on)
        self.refresh_run()


class PromptWindow(QDialog):
    """Larger window for a prompt. Changes apply immediately.

    Attributes:
        edit: The text field.
        insert: Opens the list of variables.
    """

    def __init__(self, title: str, kind: TextKind, parent: QWidget) -> None:
        super().__init__(parent)
        self.setWindowTitle(title)
        self.resize(round(720 * style().scale), round(520 * style().scale))
        self.edit = TemplateEdit(kind, min_lines=20, max_lines=10_000)
        self.edit.setSizePolicy(self.edit.sizePolicy().Policy.Expanding, self.edit.sizePolicy().Policy.Ignored)
        describe_widget(self.edit, title)
        self.insert = QPushButton("Insert variable", self)
        ThemedIcon(self.insert, "mdi6.code-braces")
        describe_widget(self.insert, f"Insert variable: {title}", "Insert a value from the workflow.")
        self.insert.clicked.connect(lambda _checked=False: self.edit.complete(insert_braces=True))
        close = QPushButton("Close", self)
        close.clicked.connect(self.accept)
        for button in (self.insert, close):
            button.setAutoDefault(False)  # Enter starts a new line
        line = QHBoxLayout()
        line.addWidget(self.insert)
        line.addStretch(1)
        line.addWidget(close)
        box = QVBoxLayout(self)
        box.setContentsMargins(4 * UNIT, 4 * UNIT, 4 * UNIT, 4 * UNIT)
        box.setSpacing(3 * UNIT)
        box.addWidget(self.edit)
        box.addLayout(line)
        self.edit.setFocus()
