"""A text that names values: coloured, with names offered while one is typed."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QEvent, QModelIndex, QPersistentModelIndex, QPoint, QRect, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFocusEvent,
    QFont,
    QGuiApplication,
    QHelpEvent,
    QKeyEvent,
    QPainter,
    QStandardItem,
    QStandardItemModel,
    QSyntaxHighlighter,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
)
from PySide6.QtWidgets import QListView, QStyledItemDelegate, QStyleOptionViewItem, QToolTip, QWidget

from app.inspector.available_variables import Variable, variable_for
from app.inspector.template_placeholders import (
    Placeholder,
    expression_paths,
    find_placeholders,
    name_prefix,
    path_spans,
)
from app.inspector.text_widgets import GrowingEdit, to_utf16_units
from app.theme.style import style
from app.theme.tokens import FONT_SIZE_SMALL, UNIT
from app.theme.widgets import plain_tool_tip
from engine.nodes.spec import TextKind


@dataclass(frozen=True, slots=True)
class Span:
    """A part of the text: `known`, `unknown`, `loose` (a port that nothing leads to), `brace` or `broken`."""

    start: int
    end: int
    look: str
    tip: str = ""


def highlight_spans(text: str, kind: TextKind, names: list[Variable]) -> list[Span]:
    """What to colour in a text, in order."""
    if kind is TextKind.EXPRESSION:
        return _names(text, 0, names)
    spans: list[Span] = []
    for hole in find_placeholders(text):
        spans.extend(_hole(hole, names))
    return spans


def _hole(hole: Placeholder, names: list[Variable]) -> list[Span]:
    if not hole.closed:
        return [Span(hole.start, hole.end, "brace")]
    inside, end = hole.start + 2, hole.end - 2
    if expression_paths(hole.content) is None:
        return [Span(hole.start, hole.end, "broken", "This cannot be read; see below the text.")]
    return [Span(hole.start, inside, "brace"), *_names(hole.content, inside, names), Span(end, hole.end, "brace")]


def _names(content: str, offset: int, names: list[Variable]) -> list[Span]:
    spans: list[Span] = []
    for start, end, path in path_spans(content, expression_paths(content) or frozenset()):
        name = variable_for(path, names)
        if name is None:
            look, tip = "unknown", f"There is no {'.'.join(path)} here."
        else:
            look, tip = ("known" if name.connected else "loose"), name.help
        spans.append(Span(offset + start, offset + end, look, tip))
    return spans


class TemplateHighlighter(QSyntaxHighlighter):
    """Colours a text by its spans, which are worked out once for the whole text at each change."""

    def __init__(self, document: QTextDocument, kind: TextKind) -> None:
        super().__init__(document)
        self._kind = kind
        self._names: list[Variable] = []
        self._revision = -1
        self._spans: list[Span] = []
        self._formats: dict[str, QTextCharFormat] = {}
        self._make_formats()
        style().changed.connect(self._dress)

    def set_names(self, names: list[Variable]) -> None:
        """Say which names there are."""
        if names != self._names:
            self._names = names
            self._revision = -1
            self.rehighlight()

    def span_at(self, position: int) -> Span | None:
        """The span at a place of the text."""
        return next((span for span in self.spans() if span.start <= position < span.end), None)

    def spans(self) -> list[Span]:
        """The spans of the text as it is now."""
        document = self.document()
        if document.revision() != self._revision:
            text = document.toRawText().replace("\u2029", "\n")
            self._spans = highlight_spans(to_utf16_units(text), self._kind, self._names)
            self._revision = document.revision()
        return self._spans

    def highlightBlock(self, text: str) -> None:  # Qt's name
        """Colour one line."""
        start = self.currentBlock().position()
        end = start + self.currentBlock().length()
        runs_on = 0
        for span in self.spans():
            if span.end > start and span.start < end:
                first = max(span.start - start, 0)
                self.setFormat(first, min(span.end, end) - start - first, self._formats[span.look])
                runs_on = int(span.end > end)
        # A line that ends inside a hole makes Qt look at the next one again.
        self.setCurrentBlockState(runs_on)

    def _dress(self) -> None:
        self._make_formats()
        self.rehighlight()

    def _make_formats(self) -> None:
        theme = style().theme
        underlines = {"unknown": theme.bad, "broken": theme.bad, "loose": theme.warning}
        for look in ("known", "unknown", "loose", "brace", "broken"):
            made = QTextCharFormat()
            made.setForeground(QColor(theme.dim if look == "brace" else theme.accent))
            if look == "known":
                made.setFontWeight(QFont.Weight.Medium)
            if look in underlines:
                made.setForeground(QColor(theme.text))
                made.setUnderlineStyle(QTextCharFormat.UnderlineStyle.WaveUnderline)
                made.setUnderlineColor(QColor(underlines[look]))
            self._formats[look] = made


_NAME_ROLE = Qt.ItemDataRole.UserRole
_MOST_ROWS = 7


def matching_variables(names: list[Variable], typed: str) -> list[Variable]:
    """The names that a typed beginning may become: those that start with it, then those that have it inside."""
    wanted = typed.lower()
    starts = [name for name in names if name.text.lower().startswith(wanted)]
    inside = [name for name in names if wanted in name.text.lower() and name not in starts]
    return [name for name in [*starts, *inside] if name.text != typed]


class CompletionPopup(QListView):
    """Names with a line of help each.

    Signals:
        picked: A name was chosen with the mouse.
    """

    picked = Signal(object)

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setWindowFlags(Qt.WindowType.ToolTip | Qt.WindowType.FramelessWindowHint)
        self.setAttribute(Qt.WidgetAttribute.WA_ShowWithoutActivating)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setAccessibleName("Names that may stand here")
        self.setItemDelegate(_CompletionDelegate(self))
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setUniformItemSizes(True)
        self._model = QStandardItemModel(self)
        self.setModel(self._model)
        self.clicked.connect(lambda index: self.picked.emit(index.data(_NAME_ROLE)))

    @property
    def texts(self) -> list[str]:
        """The names that are offered."""
        return [self._model.index(row, 0).data() for row in range(self._model.rowCount())]

    @property
    def chosen(self) -> Variable | None:
        """The name that Enter would take."""
        return self.currentIndex().data(_NAME_ROLE)

    def offer(self, names: list[Variable], place: QPoint, line_height: int, width: int) -> None:
        """Open beside a place of the screen."""
        self._model.clear()
        for name in names:
            item = QStandardItem(name.text)
            item.setData(name, _NAME_ROLE)
            item.setData(name.help, Qt.ItemDataRole.AccessibleDescriptionRole)
            item.setToolTip(plain_tool_tip(name.help))
            self._model.appendRow(item)
        self.setCurrentIndex(self._model.index(0, 0))
        self.ensurePolished()  # before, a row is as high as letters of another font
        frame = self.height() - self.viewport().height() if self.isVisible() else 2 * self.frameWidth()
        height = min(len(names), _MOST_ROWS) * self.sizeHintForRow(0) + frame
        wanted = QRect(place + QPoint(0, line_height), QSize(width, height))
        screen = QGuiApplication.screenAt(place) or QGuiApplication.primaryScreen()
        room = screen.availableGeometry()
        if wanted.bottom() > room.bottom():
            wanted.moveBottom(place.y())
        wanted.moveLeft(max(room.left(), min(wanted.left(), room.right() - width)))
        self.setGeometry(wanted)
        self.show()

    def move_choice(self, steps: int) -> None:
        """Go up or down, round and round."""
        row = (self.currentIndex().row() + steps) % self._model.rowCount()
        self.setCurrentIndex(self._model.index(row, 0))


class _CompletionDelegate(QStyledItemDelegate):
    """A name, and its help in the colour of lesser texts."""

    def sizeHint(self, option: QStyleOptionViewItem, _index: QModelIndex | QPersistentModelIndex) -> QSize:
        """Two lines."""
        return QSize(120, round(2.7 * option.fontMetrics.height()) + UNIT)

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        """The name over its help."""
        theme = style().theme
        name: Variable = index.data(_NAME_ROLE)
        is_chosen = index == self.parent().currentIndex()
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if is_chosen:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(theme.accent))
            painter.drawRoundedRect(option.rect, UNIT, UNIT)
        room = option.rect.adjusted(2 * UNIT, UNIT, -2 * UNIT, -UNIT)
        top, bottom = QRect(room), QRect(room)
        top.setHeight(room.height() // 2)
        bottom.setTop(top.bottom())
        painter.setFont(style().font())
        painter.setPen(QColor(theme.on_accent if is_chosen else theme.text))
        painter.drawText(top, Qt.AlignmentFlag.AlignVCenter, name.text)
        painter.setFont(style().font(FONT_SIZE_SMALL))
        painter.setPen(QColor(theme.on_accent if is_chosen else theme.dim))
        words = painter.fontMetrics().elidedText(name.help, Qt.TextElideMode.ElideRight, bottom.width())
        painter.drawText(bottom, Qt.AlignmentFlag.AlignVCenter, words)
        painter.restore()


_PICK = {Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Tab}
_STEPS = {Qt.Key.Key_Down: 1, Qt.Key.Key_Up: -1, Qt.Key.Key_PageDown: 5, Qt.Key.Key_PageUp: -5}


class TemplateEdit(GrowingEdit):
    """A template or an expression.

    Attributes:
        names: The names that may stand here.
        highlighter: Colours it.
        completions: The names on offer; hidden while there are none.
    """

    def __init__(self, kind: TextKind, min_lines: int, max_lines: int, parent: QWidget | None = None) -> None:
        super().__init__(min_lines, max_lines, parent)
        self._kind = kind
        self.names: list[Variable] = []
        self.highlighter = TemplateHighlighter(self.document(), kind)
        self.completions = CompletionPopup(self)
        self.completions.picked.connect(self._pick)
        self.cursorPositionChanged.connect(self._follow_cursor)

    def set_names(self, names: list[Variable]) -> None:
        """Say which names may stand here."""
        self.names = names
        self.highlighter.set_names(names)

    def offer_names(self, *, open_hole: bool = False) -> None:
        """Open the list at the text cursor; with `open_hole` braces are typed first where there are none."""
        self.setFocus()
        if open_hole and self._kind is TextKind.TEMPLATE and self._typed_name() is None:
            self.insertPlainText("{{")
        self._offer(always=True)

    def keyPressEvent(self, event: QKeyEvent) -> None:  # Qt's name
        """While names are on offer, arrows choose, Enter and Tab take, Esc closes."""
        if event.key() == Qt.Key.Key_Space and event.modifiers() == Qt.KeyboardModifier.ControlModifier:
            self._offer(always=True)
            return
        if self.completions.isVisible() and event.modifiers() == Qt.KeyboardModifier.NoModifier:
            if event.key() in _PICK:
                self._pick(self.completions.chosen)
                return
            if event.key() in _STEPS:
                self.completions.move_choice(_STEPS[Qt.Key(event.key())])
                return
            if event.key() == Qt.Key.Key_Escape:
                self.completions.hide()
                return
        before = self.text()
        super().keyPressEvent(event)
        if event.text() and self.text() != before:
            self._offer(always=False)

    def event(self, event: QEvent) -> bool:
        """Say what the name under the pointer stands for; keep Tab and Esc while names are on offer."""
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            self._tell_name(event)
            return True
        if event.type() == QEvent.Type.ShortcutOverride and self.completions.isVisible():
            event.accept()
        if event.type() == QEvent.Type.KeyPress and self.completions.isVisible() and isinstance(event, QKeyEvent):
            self.keyPressEvent(event)  # before Tab leaves the field
            return True
        return super().event(event)

    def focusOutEvent(self, event: QFocusEvent) -> None:  # Qt's name
        """Offer nothing to someone who is elsewhere."""
        self.completions.hide()
        super().focusOutEvent(event)

    def _typed_name(self) -> str | None:
        """The unfinished name before the text cursor; None where no name may stand."""
        position = self.textCursor().position()
        before = to_utf16_units(self.text())[:position]
        if self._kind is TextKind.EXPRESSION:
            return name_prefix(before)
        holes = find_placeholders(before)
        if not holes or holes[-1].closed:
            return None
        return name_prefix(holes[-1].content)

    def _offer(self, *, always: bool) -> None:
        typed = self._typed_name()
        is_wanted = typed is not None and (always or typed or self._kind is TextKind.TEMPLATE)
        names = matching_variables(self.names, typed or "") if is_wanted else []
        if not names:
            self.completions.hide()
            return
        place = self.cursorRect()
        width = max(260, self.width() - 24)
        corner = self.viewport().mapToGlobal(place.topLeft() - QPoint(8, 0))
        self.completions.offer(names, corner, place.height() + 4, width)

    def _follow_cursor(self) -> None:
        if self.completions.isVisible() and self._typed_name() is None:
            self.completions.hide()

    def _pick(self, name: Variable | None) -> None:
        self.completions.hide()
        typed = self._typed_name()
        if name is None or typed is None:
            return
        cursor = self.textCursor()
        cursor.beginEditBlock()
        cursor.movePosition(QTextCursor.MoveOperation.Left, QTextCursor.MoveMode.KeepAnchor, len(typed))
        cursor.insertText(name.text)
        if self._kind is TextKind.TEMPLATE:
            rest = to_utf16_units(self.text())[cursor.position() :]
            if rest.lstrip(" ").startswith("}}"):
                cursor.setPosition(cursor.position() + rest.index("}}") + 2)
            else:
                cursor.insertText("}}")
        cursor.endEditBlock()
        self.setTextCursor(cursor)
        self.completions.hide()

    def _tell_name(self, event: QHelpEvent) -> None:
        place = self.viewport().mapFrom(self, event.pos())
        span = self.highlighter.span_at(self.cursorForPosition(place).position())
        if span is not None and span.tip:
            QToolTip.showText(event.globalPos(), plain_tool_tip(span.tip), self)
        else:
            QToolTip.hideText()
