"""The editors of prompts and expressions: names coloured and offered, a preview, and room to write."""

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
"""Codes of the problems of texts that do not compile."""

NO_RUN: Final = "Nothing has run yet. Press Run, and the prompt stands here with everything filled in."


class TemplateEditor(Editor):
    """A text that names values; the base of both editors.

    Attributes:
        edit: Where it is written.
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
        self._named: str | None = None
        self._names_of: tuple[Structure, str, NamedText] | None = None

    def refresh(self) -> None:
        """Find the names anew."""
        session, node_id = self.binding.session, self.binding.node_id
        node = session.node(node_id) if node_id is not None else None
        spec = session.registry.find(node.type) if node is not None else None
        if node is None or spec is None:
            return
        if node_id == self._named and any(
            problem.code in SYNTAX_ERROR_CODES for problem in session.problems_of(node.id)
        ):
            return  # a text in the making takes ports, edges and so the loop with it: what was known goes on being so
        self._named = node_id
        text = named_text(spec, node.config, (self.field.name,), self.kind)
        before, now = self._names_of, (session.structure, node.id, text)
        if before is None or before[0] is not now[0] or before[1:] != now[1:]:  # else typing would find them each time
            self._names_of = now
            self.edit.set_names(variables_at(session.structure, node, text))

    def _display(self, value: Any) -> None:
        self.edit.set_text(to_text(value))

    def _typed(self, text: str) -> None:
        self._commit(text)


class ExpressionEditor(TemplateEditor):
    """A CEL expression."""

    kind = TextKind.EXPRESSION
    lines = (1, 6)


class PromptEditor(TemplateEditor):
    """A prompt, with buttons to name a value, to see it filled in, and to write in a larger window."""

    def __init__(self, field: FieldSpec, binding: ConfigBinding, parent: QWidget | None = None) -> None:
        super().__init__(field, binding, parent)
        self._window: PromptWindow | None = None
        self.insert = self._button("mdi6.code-braces", "Insert name", "Choose a value to put in here.")
        self.preview = self._button("mdi6.eye-outline", "Preview", "The text as the last run filled it in.")
        self.preview.setCheckable(True)
        self.expand = self._button("mdi6.arrow-expand", "Expand", "Write in a larger window.")
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
        self.insert.clicked.connect(lambda: self.edit.offer_names(open_hole=True))
        self.preview.toggled.connect(self._show_preview)
        self.expand.clicked.connect(self.open_window)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Where their words do not fit, the buttons are icons alone; what each does stands in its tooltip."""
        super().resizeEvent(event)
        buttons, sides = (self.insert, self.preview, self.expand), 6 * UNIT
        words = sum(button.fontMetrics().horizontalAdvance(button.text()) for button in buttons)
        needed = words + sum(button.iconSize().width() + sides for button in buttons)
        styles = Qt.ToolButtonStyle
        wanted = styles.ToolButtonTextBesideIcon if needed <= self.width() else styles.ToolButtonIconOnly
        for button in buttons:
            button.setToolButtonStyle(wanted)

    @property
    def window_open(self) -> PromptWindow | None:
        """The larger window, while it is open."""
        return self._window

    def refresh(self) -> None:
        """Find the names anew, and the preview with them."""
        super().refresh()
        if self._window is not None:
            self._window.edit.set_names(self.edit.names)
        self.refresh_run()

    def refresh_run(self) -> None:
        """Fill the preview in anew, if it is open."""
        session, node_id = self.binding.session, self.binding.node_id
        if not self.preview.isChecked() or node_id is None:
            return
        if session.shown.picture is None or session.shown.workflow is None:
            self.filled.set_text(NO_RUN)
            return
        run = PreviewRun(session.shown.picture, session.shown.workflow, session.shown.chosen, session.registry)
        self.filled.set_text(render_preview(self.edit.text(), node_id, run))

    def open_window(self) -> None:
        """Open the larger window; both show the same text."""
        window = PromptWindow(self.field.title, self.kind, self.window())
        self.binding.events.watch(window.edit)
        window.edit.set_names(self.edit.names)
        window.edit.set_text(self.edit.text())
        window.edit.typed.connect(self._typed_in_window)
        window.finished.connect(self._window_closed)
        self._window = window
        window.open()

    def _button(self, picture: str, words: str, text: str) -> QToolButton:
        button = QToolButton(self)
        button.setProperty("link", True)
        ThemedIcon(button, picture, "accent")
        button.setText(words)
        button.setToolButtonStyle(button.toolButtonStyle().ToolButtonTextBesideIcon)
        describe_widget(button, f"{words}: {self.field.title}", text)
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
    """A larger place to write a prompt; closing it keeps what was written.

    Attributes:
        edit: Where it is written.
        insert: Offers the names.
    """

    def __init__(self, title: str, kind: TextKind, parent: QWidget) -> None:
        super().__init__(parent)
        self.setWindowTitle(title)
        self.resize(round(720 * style().scale), round(520 * style().scale))
        self.edit = TemplateEdit(kind, min_lines=20, max_lines=10_000)
        self.edit.setSizePolicy(self.edit.sizePolicy().Policy.Expanding, self.edit.sizePolicy().Policy.Ignored)
        describe_widget(self.edit, title)
        self.insert = QPushButton("Insert name", self)
        ThemedIcon(self.insert, "mdi6.code-braces")
        describe_widget(self.insert, f"Insert name: {title}", "Choose a value to put in here.")
        self.insert.clicked.connect(lambda _checked=False: self.edit.offer_names(open_hole=True))
        close = QPushButton("Close", self)
        close.clicked.connect(self.accept)
        for button in (self.insert, close):
            button.setAutoDefault(False)  # Enter is a new line
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
