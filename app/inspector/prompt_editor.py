"""Editors for prompts and expressions, with highlighting, completion, a preview and a larger window."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from PySide6.QtCore import QEvent, QModelIndex, QPersistentModelIndex, QPoint, QRect, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFocusEvent,
    QFont,
    QGuiApplication,
    QHelpEvent,
    QKeyEvent,
    QPainter,
    QResizeEvent,
    QStandardItem,
    QStandardItemModel,
    QSyntaxHighlighter,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
)
from PySide6.QtWidgets import (
    QDialog,
    QListView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QToolTip,
    QWidget,
)

from app.inspector.editor import ConfigBinding, Editor, describe_widget
from app.inspector.field_spec import FieldSpec
from app.inspector.template_variables import (
    Placeholder,
    PreviewRun,
    Variable,
    expression_paths,
    find_placeholders,
    name_prefix,
    named_text,
    path_spans,
    render_preview,
    variable_for,
    variables_at,
)
from app.inspector.text_widgets import GrowingEdit, LongTextView, to_utf16_units
from app.session import SYNTAX_ERROR_CODES
from app.theme.style import ThemedIcon, style
from app.theme.tokens import FONT_SIZE_SMALL, UNIT
from app.theme.widgets import STRETCH, hbox, plain_tool_tip, push_button, resize_on_screen, vbox
from engine.nodes.spec import NamedText, TextKind
from engine.plan.structure import Structure
from engine.values import to_text


@dataclass(frozen=True, slots=True)
class Span:
    """A highlighted range. Styles: `known`, `unknown`, `unconnected` (a port without edge), `brace`, `broken`."""

    start: int
    end: int
    style: str
    tip: str = ""


def highlight_spans(text: str, kind: TextKind, variables: list[Variable]) -> list[Span]:
    """Return the ranges to highlight, in order."""
    if kind is TextKind.EXPRESSION:
        return _variable_spans(text, 0, variables)
    spans: list[Span] = []
    for placeholder in find_placeholders(text):
        spans.extend(_placeholder_spans(placeholder, variables))
    return spans


def _placeholder_spans(found: Placeholder, variables: list[Variable]) -> list[Span]:
    if not found.closed:
        return [Span(found.start, found.end, "brace")]
    inside, end = found.start + 2, found.end - 2
    if expression_paths(found.content) is None:
        return [Span(found.start, found.end, "broken", "Syntax error. See the message below the field.")]
    return [
        Span(found.start, inside, "brace"),
        *_variable_spans(found.content, inside, variables),
        Span(end, found.end, "brace"),
    ]


def _variable_spans(content: str, offset: int, variables: list[Variable]) -> list[Span]:
    spans: list[Span] = []
    for start, end, path in path_spans(content, expression_paths(content) or frozenset()):
        variable = variable_for(path, variables)
        if variable is None:
            style_, tip = "unknown", f"Unknown variable “{'.'.join(path)}”."
        else:
            style_, tip = ("known" if variable.connected else "unconnected"), variable.help
        spans.append(Span(offset + start, offset + end, style_, tip))
    return spans


class TemplateHighlighter(QSyntaxHighlighter):
    """Highlights variables and braces. The ranges are computed once for the whole text after each change."""

    def __init__(self, document: QTextDocument, kind: TextKind) -> None:
        super().__init__(document)
        self._kind = kind
        self._variables: list[Variable] = []
        self._revision = -1
        self._spans: list[Span] = []
        self._formats: dict[str, QTextCharFormat] = {}
        self._make_formats()
        style().changed.connect(self._dress)

    def set_variables(self, variables: list[Variable]) -> None:
        """Set the known variables."""
        if variables != self._variables:
            self._variables = variables
            self._revision = -1
            self.rehighlight()

    def span_at(self, position: int) -> Span | None:
        """Return the range at a position, or None."""
        return next((span for span in self.spans() if span.start <= position < span.end), None)

    def spans(self) -> list[Span]:
        """Return the ranges of the current text."""
        document = self.document()
        if document.revision() != self._revision:
            text = document.toRawText().replace("\u2029", "\n")
            self._spans = highlight_spans(to_utf16_units(text), self._kind, self._variables)
            self._revision = document.revision()
        return self._spans

    def highlightBlock(self, text: str) -> None:  # Qt's name
        """Highlight one line."""
        start = self.currentBlock().position()
        end = start + self.currentBlock().length()
        continues = 0
        for span in self.spans():
            if span.end > start and span.start < end:
                first = max(span.start - start, 0)
                self.setFormat(first, min(span.end, end) - start - first, self._formats[span.style])
                continues = int(span.end > end)
        # The block state makes Qt update the next line if this one ends inside a placeholder.
        self.setCurrentBlockState(continues)

    def _dress(self) -> None:
        self._make_formats()
        self.rehighlight()

    def _make_formats(self) -> None:
        theme = style().theme
        underlines = {"unknown": theme.bad, "broken": theme.bad, "unconnected": theme.warning}
        for name in ("known", "unknown", "unconnected", "brace", "broken"):
            text_format = QTextCharFormat()
            text_format.setForeground(QColor(theme.dim if name == "brace" else theme.accent))
            if name == "known":
                text_format.setFontWeight(QFont.Weight.Medium)
            if name in underlines:
                text_format.setForeground(QColor(theme.text))
                text_format.setUnderlineStyle(QTextCharFormat.UnderlineStyle.WaveUnderline)
                text_format.setUnderlineColor(QColor(underlines[name]))
            self._formats[name] = text_format


_VARIABLE_ROLE = Qt.ItemDataRole.UserRole
_MAX_ROWS = 7


def matching_variables(variables: list[Variable], typed: str) -> list[Variable]:
    """Return the variables that match typed text: those that start with it, then those that contain it."""
    wanted = typed.lower()
    prefixed = [variable for variable in variables if variable.text.lower().startswith(wanted)]
    containing = [variable for variable in variables if wanted in variable.text.lower() and variable not in prefixed]
    return [variable for variable in [*prefixed, *containing] if variable.text != typed]


class CompletionPopup(QListView):
    """Popup list of variables with a line of help each. The editor keeps the focus and moves the selection.

    Signals:
        picked: A variable was clicked.
    """

    picked = Signal(object)

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setWindowFlags(Qt.WindowType.ToolTip | Qt.WindowType.FramelessWindowHint)
        self.setAttribute(Qt.WidgetAttribute.WA_ShowWithoutActivating)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setAccessibleName("Available variables")
        self.setItemDelegate(_CompletionDelegate(self))
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setUniformItemSizes(True)
        self._model = QStandardItemModel(self)
        self.setModel(self._model)
        self.clicked.connect(lambda index: self.picked.emit(index.data(_VARIABLE_ROLE)))

    @property
    def texts(self) -> list[str]:
        """The listed variables as texts."""
        return [self._model.index(row, 0).data() for row in range(self._model.rowCount())]

    @property
    def chosen(self) -> Variable | None:
        """The current variable."""
        return self.currentIndex().data(_VARIABLE_ROLE)

    def open_at(self, variables: list[Variable], corner: QPoint, line_height: int, width: int) -> None:
        """Open below a line of text at a screen position, or above it if there is no space."""
        self._model.clear()
        for variable in variables:
            item = QStandardItem(variable.text)
            item.setData(variable, _VARIABLE_ROLE)
            item.setData(variable.help, Qt.ItemDataRole.AccessibleDescriptionRole)
            item.setToolTip(plain_tool_tip(variable.help))
            self._model.appendRow(item)
        self.setCurrentIndex(self._model.index(0, 0))
        self.ensurePolished()  # sets the font, on which the height of a row depends
        frame = self.height() - self.viewport().height() if self.isVisible() else 2 * self.frameWidth()
        height = min(len(variables), _MAX_ROWS) * self.sizeHintForRow(0) + frame
        wanted = QRect(corner + QPoint(0, line_height), QSize(width, height))
        screen = QGuiApplication.screenAt(corner) or QGuiApplication.primaryScreen()
        available = screen.availableGeometry()
        if wanted.bottom() > available.bottom():
            wanted.moveBottom(corner.y())
        wanted.moveLeft(max(available.left(), min(wanted.left(), available.right() - width)))
        self.setGeometry(wanted)
        self.show()

    def move_selection(self, steps: int) -> None:
        """Move the selection, wrapping around at the ends."""
        row = (self.currentIndex().row() + steps) % self._model.rowCount()
        self.setCurrentIndex(self._model.index(row, 0))


class _CompletionDelegate(QStyledItemDelegate):
    """Draws a variable with its help below."""

    def sizeHint(self, option: QStyleOptionViewItem, _index: QModelIndex | QPersistentModelIndex) -> QSize:
        """Return the height of two lines."""
        return QSize(120, round(2.7 * option.fontMetrics.height()) + UNIT)

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        """Draw the variable and its help."""
        theme = style().theme
        variable: Variable = index.data(_VARIABLE_ROLE)
        is_selected = bool(option.state & QStyle.StateFlag.State_Selected)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if is_selected:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(theme.accent))
            painter.drawRoundedRect(option.rect, UNIT, UNIT)
        inner = option.rect.adjusted(2 * UNIT, UNIT, -2 * UNIT, -UNIT)
        top, bottom = QRect(inner), QRect(inner)
        top.setHeight(inner.height() // 2)
        bottom.setTop(top.bottom())
        painter.setFont(style().font())
        painter.setPen(QColor(theme.on_accent if is_selected else theme.text))
        painter.drawText(top, Qt.AlignmentFlag.AlignVCenter, variable.text)
        painter.setFont(style().font(FONT_SIZE_SMALL))
        painter.setPen(QColor(theme.on_accent if is_selected else theme.dim))
        text = painter.fontMetrics().elidedText(variable.help, Qt.TextElideMode.ElideRight, bottom.width())
        painter.drawText(bottom, Qt.AlignmentFlag.AlignVCenter, text)
        painter.restore()


_ACCEPT = {Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Tab}
_STEPS = {Qt.Key.Key_Down: 1, Qt.Key.Key_Up: -1, Qt.Key.Key_PageDown: 5, Qt.Key.Key_PageUp: -5}


class TemplateEdit(GrowingEdit):
    """Editor for a template or an expression.

    Attributes:
        variables: The variables that the text may use.
        highlighter: Highlights the text.
        completions: The completion popup.
    """

    def __init__(self, kind: TextKind, min_lines: int, max_lines: int, parent: QWidget | None = None) -> None:
        super().__init__(min_lines, max_lines, parent)
        self._kind = kind
        self.variables: list[Variable] = []
        self.highlighter = TemplateHighlighter(self.document(), kind)
        self.completions = CompletionPopup(self)
        self.completions.picked.connect(self._insert)
        self.cursorPositionChanged.connect(self._follow_cursor)

    def set_variables(self, variables: list[Variable]) -> None:
        """Set the variables that the text may use."""
        self.variables = variables
        self.highlighter.set_variables(variables)

    def complete(self, *, insert_braces: bool = False) -> None:
        """Open the completion popup at the cursor, optionally inserting `{{` first if needed."""
        self.setFocus()
        if insert_braces and self._kind is TextKind.TEMPLATE and self._typed_prefix() is None:
            self.insertPlainText("{{")
        self._update_completions(always=True)

    def keyPressEvent(self, event: QKeyEvent) -> None:  # Qt's name
        """Handle the keys of the completion popup: arrows, Enter, Tab and Esc."""
        if event.key() == Qt.Key.Key_Space and event.modifiers() == Qt.KeyboardModifier.ControlModifier:
            self._update_completions(always=True)
            return
        if self.completions.isVisible() and event.modifiers() == Qt.KeyboardModifier.NoModifier:
            if event.key() in _ACCEPT:
                self._insert(self.completions.chosen)
                return
            if event.key() in _STEPS:
                self.completions.move_selection(_STEPS[Qt.Key(event.key())])
                return
            if event.key() == Qt.Key.Key_Escape:
                self.completions.hide()
                return
        before = self.text()
        super().keyPressEvent(event)
        if event.text() and self.text() != before:
            self._update_completions(always=False)

    def event(self, event: QEvent) -> bool:
        """Show the help of the variable under the mouse; handle Tab and Esc while the popup is open."""
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            self._show_variable_help(event)
            return True
        if event.type() == QEvent.Type.ShortcutOverride and self.completions.isVisible():
            event.accept()
        if event.type() == QEvent.Type.KeyPress and self.completions.isVisible() and isinstance(event, QKeyEvent):
            self.keyPressEvent(event)  # before Qt moves the focus on Tab
            return True
        return super().event(event)

    def focusOutEvent(self, event: QFocusEvent) -> None:  # Qt's name
        """Close the completion popup."""
        self.completions.hide()
        super().focusOutEvent(event)

    def _typed_prefix(self) -> str | None:
        """Return the unfinished variable before the cursor, or None where no variable is allowed."""
        position = self.textCursor().position()
        before = to_utf16_units(self.text())[:position]
        if self._kind is TextKind.EXPRESSION:
            return name_prefix(before)
        found = find_placeholders(before)
        if not found or found[-1].closed:
            return None
        return name_prefix(found[-1].content)

    def _update_completions(self, *, always: bool) -> None:
        typed = self._typed_prefix()
        is_wanted = typed is not None and (always or typed or self._kind is TextKind.TEMPLATE)
        variables = matching_variables(self.variables, typed or "") if is_wanted else []
        if not variables:
            self.completions.hide()
            return
        cursor = self.cursorRect()
        width = max(260, self.width() - 24)
        corner = self.viewport().mapToGlobal(cursor.topLeft() - QPoint(8, 0))
        self.completions.open_at(variables, corner, cursor.height() + 4, width)

    def _follow_cursor(self) -> None:
        if self.completions.isVisible() and self._typed_prefix() is None:
            self.completions.hide()

    def _insert(self, variable: Variable | None) -> None:
        self.completions.hide()
        typed = self._typed_prefix()
        if variable is None or typed is None:
            return
        cursor = self.textCursor()
        cursor.beginEditBlock()
        cursor.movePosition(QTextCursor.MoveOperation.Left, QTextCursor.MoveMode.KeepAnchor, len(typed))
        cursor.insertText(variable.text)
        if self._kind is TextKind.TEMPLATE:
            rest = to_utf16_units(self.text())[cursor.position() :]
            if rest.lstrip(" ").startswith("}}"):
                cursor.setPosition(cursor.position() + rest.index("}}") + 2)
            else:
                cursor.insertText("}}")
        cursor.endEditBlock()
        self.setTextCursor(cursor)
        self.completions.hide()

    def _show_variable_help(self, event: QHelpEvent) -> None:
        position = self.viewport().mapFrom(self, event.pos())
        span = self.highlighter.span_at(self.cursorForPosition(position).position())
        if span is not None and span.tip:
            QToolTip.showText(event.globalPos(), plain_tool_tip(span.tip), self)
        else:
            QToolTip.hideText()


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
        self.main_widget = self.text_widget = self.edit
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
            problem.code in SYNTAX_ERROR_CODES for problem in session.problems if problem.node == node_id
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
        if self._is_being_typed:
            self.binding.session.hold_syntax_problems(self.binding.edited_nodes)
        self._commit(text)

    @property
    def _is_being_typed(self) -> bool:
        """Whether the text may be unfinished, because its field has the focus."""
        return self.edit.hasFocus()


class ExpressionEditor(TemplateEditor):
    """A CEL expression."""

    kind = TextKind.EXPRESSION
    lines = (1, 6)


class PromptEditor(TemplateEditor):
    """Editor for a prompt, with buttons to insert a variable, preview the text and edit it in a larger window.

    Attributes:
        larger_window: That window; None while it is closed.
    """

    def __init__(self, field: FieldSpec, binding: ConfigBinding, parent: QWidget | None = None) -> None:
        super().__init__(field, binding, parent)
        self.larger_window: PromptWindow | None = None
        self.insert = self.link_button("mdi6.code-braces", "Insert variable", "Insert a value from the workflow.")
        self.preview = self.link_button(
            "mdi6.eye-outline", "Preview", "Show the prompt with the values of the last run."
        )
        self.preview.setCheckable(True)
        self.expand = self.link_button("mdi6.arrow-expand", "Expand", "Edit in a larger window.")
        line = hbox(self.insert, self.preview, STRETCH, self.expand, spacing=1)
        self.box.addLayout(line)
        self.filled = LongTextView(f"Preview of {field.title}", self)
        self.filled.setVisible(False)
        self.box.addWidget(self.filled)
        self.insert.clicked.connect(lambda: self.edit.complete(insert_braces=True))
        self.preview.toggled.connect(self._show_preview)
        self.expand.clicked.connect(self.open_window)
        shown = binding.session.shown
        for signal in (shown.started, shown.updated, shown.ended, shown.view_changed):
            signal.connect(self._update_preview)

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

    def refresh(self) -> None:
        """Update the available variables and the preview."""
        super().refresh()
        if self.larger_window is not None:
            self.larger_window.edit.set_variables(self.edit.variables)
        self._update_preview()

    def _update_preview(self) -> None:
        """Update the preview, if it is open."""
        session, node_id = self.binding.session, self.binding.node_id
        if not self.preview.isChecked() or node_id is None:
            return
        view_model, workflow = session.shown.view_model, session.shown.workflow
        if view_model is None or workflow is None:
            self.filled.set_text(NO_RUN)
            return
        run = PreviewRun(view_model, workflow, session.shown.chosen, session.registry, session.structure.parent)
        self.filled.set_text(render_preview(self.edit.text(), node_id, run))

    def open_window(self) -> None:
        """Open a larger window that edits the same text."""
        window = PromptWindow(self.field.title, self.kind, self.window())
        self.binding.events.watch(window.edit)
        window.edit.set_variables(self.edit.variables)
        window.edit.set_text(self.edit.text())
        window.edit.typed.connect(self._typed_in_window)
        window.finished.connect(self._window_closed)
        self.larger_window = window
        window.open()

    def _display(self, value: Any) -> None:
        super()._display(value)
        if self.larger_window is not None:
            self.larger_window.edit.set_text(self.edit.text())
        self._update_preview()

    def _typed(self, text: str) -> None:
        super()._typed(text)
        self._update_preview()

    @property
    def _is_being_typed(self) -> bool:
        """Whether the text may be unfinished, in the form or in the larger window."""
        return super()._is_being_typed or (self.larger_window is not None and self.larger_window.edit.hasFocus())

    def _typed_in_window(self, text: str) -> None:
        self.edit.set_text(text)
        self._typed(text)

    def _window_closed(self) -> None:
        assert self.larger_window is not None
        self.larger_window.deleteLater()
        self.larger_window = None
        self.binding.session.seal()

    def _show_preview(self, on: bool) -> None:  # Qt's signal
        self.filled.setVisible(on)
        self._update_preview()


class PromptWindow(QDialog):
    """Larger window for a prompt. Changes apply immediately.

    Attributes:
        edit: The text field.
        insert: Opens the list of variables.
    """

    def __init__(self, title: str, kind: TextKind, parent: QWidget) -> None:
        super().__init__(parent)
        self.setWindowTitle(title)
        resize_on_screen(self, QSize(720, 520))
        self.edit = TemplateEdit(kind, min_lines=20, max_lines=10_000)
        self.edit.setSizePolicy(self.edit.sizePolicy().Policy.Expanding, self.edit.sizePolicy().Policy.Ignored)
        describe_widget(self.edit, title)
        complete = partial(self.edit.complete, insert_braces=True)
        # No default button: Enter starts a new line.
        self.insert = push_button("Insert variable", complete, self)
        ThemedIcon(self.insert, "mdi6.code-braces")
        describe_widget(self.insert, f"Insert variable: {title}", "Insert a value from the workflow.")
        close = push_button("Close", self.accept, self)
        vbox(self.edit, hbox(self.insert, STRETCH, close), spacing=3, margins=4, parent=self)
        self.edit.setFocus()
