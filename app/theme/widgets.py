"""Small widgets and widget helpers that all parts of the window share.

All texts are plain: what a model or a document says is never parsed as markup.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cmp_to_key
from html import escape
from itertools import pairwise
from typing import Final, TypeVar, cast

from PySide6.QtCore import (
    QEvent,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    QPoint,
    QRect,
    QRectF,
    QSize,
    QSizeF,
    Qt,
    Signal,
)
from PySide6.QtGui import QColor, QFontMetrics, QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QAbstractSpinBox,
    QBoxLayout,
    QCheckBox,
    QComboBox,
    QFrame,
    QHBoxLayout,
    QLabel,
    QLayout,
    QLineEdit,
    QListWidgetItem,
    QProgressBar,
    QPushButton,
    QScrollArea,
    QSizePolicy,
    QSlider,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionButton,
    QStyleOptionComboBox,
    QStyleOptionViewItem,
    QTableView,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from app.theme.style import ICON_SIZE, ThemedIcon, icon, set_style_properties, style
from app.theme.tokens import UNIT


class Switch(QCheckBox):
    """Check box that looks like a switch, for settings that apply at once."""

    def sizeHint(self) -> QSize:
        """Return the size of the track and the text."""
        track = self._track()
        metrics: QFontMetrics = self.fontMetrics()
        text = 2 * UNIT + metrics.horizontalAdvance(self.text()) if self.text() else 0
        return QSize(track.width() + text + UNIT, max(track.height(), metrics.height()) + UNIT)

    def minimumSizeHint(self) -> QSize:
        """Return the size hint: a clipped switch is unreadable."""
        return self.sizeHint()

    def hitButton(self, position: QPoint) -> bool:
        """Accept clicks anywhere on the widget."""
        return self.rect().contains(position)

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Draw the track, the knob, the focus ring and the text."""
        theme = style().theme
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        size = self._track()
        track = QRectF(2, (self.height() - size.height()) / 2, size.width(), size.height())
        on = self.isChecked()
        ground, border = (theme.accent, theme.accent) if on else (theme.field, theme.outline)
        if not self.isEnabled():
            ground, border = (theme.hover, theme.faint)
        painter.setPen(QPen(QColor(border), 1.5))
        painter.setBrush(QColor(ground))
        painter.drawRoundedRect(track, track.height() / 2, track.height() / 2)
        inset = track.height() * 0.2
        knob = QRectF(0, 0, track.height() - 2 * inset, track.height() - 2 * inset)
        knob.moveTop(track.top() + inset)
        knob.moveLeft(track.right() - inset - knob.width() if on else track.left() + inset)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor((theme.on_accent if on else theme.outline) if self.isEnabled() else theme.faint))
        painter.drawEllipse(knob)
        option = QStyleOptionButton()
        self.initStyleOption(option)
        if option.state & QStyle.StateFlag.State_HasFocus:
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(QColor(theme.text), 2))
            painter.drawRoundedRect(track.adjusted(-1, -1, 1, 1), track.height() / 2, track.height() / 2)
        if self.text():
            painter.setPen(QColor(theme.text if self.isEnabled() else theme.faint))
            place = self.rect().adjusted(size.width() + 2 * UNIT + 2, 0, 0, 0)
            painter.drawText(place, Qt.AlignmentFlag.AlignVCenter | Qt.TextFlag.TextShowMnemonic, self.text())
        painter.end()

    def _track(self) -> QSize:
        height = round(18 * style().scale)
        return QSize(round(height * 1.8), height)


HINT_ICONS: Final = {
    "info": ("mdi6.information-outline", "accent"),
    "warning": ("mdi6.alert-outline", "warning"),
    "bad": ("mdi6.alert-circle-outline", "bad"),
}

LONGEST_TIP: Final = 2_000
"""Maximum length of a tooltip in characters; Qt takes seconds for a hundred thousand."""
LONGEST_LINE: Final = 2_000
"""Maximum length of a label's line in characters that is measured."""


def inset_number(box: QAbstractSpinBox) -> None:
    """Indent the number in a spin box, which style sheets cannot do."""
    box.lineEdit().setTextMargins(2 * UNIT - 2, 0, 0, 0)


def plain_tool_tip(text: str) -> str:
    """Format a text as a tooltip without parsing it as markup; long texts are truncated."""
    text = text if len(text) <= LONGEST_TIP else f"{text[:LONGEST_TIP].rstrip()}…"
    return f'<p style="white-space: pre-wrap">{escape(text)}</p>' if text else ""


QWIDGETSIZE_MAX: Final = 16_777_215
"""Qt's value for no maximum, which PySide6 does not have."""

SHARE_OF_SCREEN: Final = 0.9
"""Largest part of the screen that a dialog covers when it opens."""


def resize_on_screen(window: QWidget, size: QSize) -> None:
    """Resize a window to a size in pixels at a text size of 100 %, or to what fits on its screen.

    When the text size changes, the window follows in proportion.
    """
    _WindowScaler(window, size)


class _WindowScaler(QObject):
    """Keeps the size of a window in proportion to the text size."""

    def __init__(self, window: QWidget, size: QSize) -> None:
        super().__init__(window)
        self._window = window
        self._wanted = QSizeF(size)
        self._resize()
        style().changed.connect(self._rescale)

    def _resize(self) -> None:
        self._scale = style().scale
        available = self._window.screen().availableSize() * SHARE_OF_SCREEN
        self._window.resize((self._wanted * self._scale).toSize().boundedTo(available))
        self._given = self._window.size()

    def _rescale(self) -> None:
        if style().scale == self._scale or self._window.isMaximized() or self._window.isFullScreen():
            return
        if self._window.size() != self._given:  # the user's choice; else the screen may have had no room
            self._wanted = QSizeF(self._window.size()) / self._scale
        self._resize()


def push_button(
    text: str,
    pressed: Callable[[], object],
    parent: QWidget | None = None,
    *,
    look: str = "",
    auto_default: bool = False,
) -> QPushButton:
    """Create a push button.

    Args:
        text: The text.
        pressed: Called without arguments when it is clicked.
        parent: The parent widget.
        look: Properties of the style sheet, such as `quiet small`.
        auto_default: Whether Enter presses it while it has the focus, for the buttons of a dialog.
    """
    button = QPushButton(text, parent)
    button.setAutoDefault(auto_default)
    for name in look.split():
        button.setProperty(name, True)
    button.clicked.connect(lambda _checked=False: pressed())
    return button


def icon_button(
    picture: str,
    name: str,
    pressed: Callable[[], object],
    parent: QWidget | None = None,
    *,
    tip: str = "",
    color: str = "text",
) -> QToolButton:
    """Create a button with only an icon.

    Args:
        picture: Name of the icon, such as `mdi6.close`.
        name: Accessible name.
        pressed: Called without arguments when it is clicked.
        parent: The parent widget.
        tip: Tooltip; `name` by default.
        color: Name of a color of `Theme`.
    """
    button = QToolButton(parent)
    button.setAccessibleName(name)
    button.setToolTip(plain_tool_tip(tip or name))
    ThemedIcon(button, picture, color)
    button.clicked.connect(lambda _checked=False: pressed())
    return button


def search_field(prompt: str, name: str = "", parent: QWidget | None = None) -> QLineEdit:
    """Create a field for a search text, with a button that clears it.

    Args:
        prompt: Shown while it is empty.
        name: Accessible name; `prompt` by default.
        parent: The parent widget.
    """
    field = QLineEdit(parent)
    field.setPlaceholderText(prompt)
    field.setAccessibleName(name or prompt)
    field.setClearButtonEnabled(True)
    return field


def disabled_item(text: str) -> QListWidgetItem:
    """Return an item of a list that only informs."""
    item = QListWidgetItem(text)
    item.setFlags(Qt.ItemFlag.NoItemFlags)
    return item


def discard(widget: QWidget) -> None:
    """Take a widget out of its parent, and delete it."""
    widget.hide()  # or Qt, which shows new widgets of a layout later, would show it as a window
    widget.setParent(None)
    widget.deleteLater()


class PlainLabel(QLabel):
    """Label that shows its text without parsing it as markup."""

    def __init__(
        self,
        text: str = "",
        parent: QWidget | None = None,
        *,
        look: str = "",
        wrap: bool = False,
        selectable: bool = False,
        buddy: QWidget | None = None,
    ) -> None:
        """Create the label.

        Args:
            text: The text.
            parent: The parent widget.
            look: Properties of the style sheet, such as `dim small`.
            wrap: Whether to wrap long texts.
            selectable: Whether the text can be selected and copied.
            buddy: The field that it labels.
        """
        super().__init__(parent)
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setText(text)
        self.setWordWrap(wrap)
        for name in look.split():
            self.setProperty(name, True)
        if buddy is not None:
            self.setBuddy(buddy)
        if selectable:
            self.setTextInteractionFlags(
                Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
            )


class ElidedComboBox(QComboBox):
    """Combo box whose text ends in `…` if there is no room."""

    def initStyleOption(self, option: QStyleOptionComboBox) -> None:
        """Elide the text."""
        super().initStyleOption(option)
        field = QStyle.SubControl.SC_ComboBoxEditField
        room = self.style().subControlRect(QStyle.ComplexControl.CC_ComboBox, option, field, self).width()
        option.currentText = option.fontMetrics.elidedText(option.currentText, Qt.TextElideMode.ElideRight, room)


class StatusLabel(PlainLabel):
    """Label for a status or error; hidden while it is empty."""

    def __init__(self, parent: QWidget | None = None, *, look: str = "") -> None:
        super().__init__("", parent, look=look, wrap=True)
        self.hide()

    def say(self, text: str, tone: str = "") -> None:
        """Set the text; tones are `good`, `warning` and `bad`, or empty for neutral."""
        self.setText(text)
        self.setVisible(bool(text))
        set_style_properties(self, tone=tone or False, dim=not tone)


class ElidedLabel(PlainLabel):
    """Single-line label that ends in `…` if there is no room; its tooltip has the whole text.

    Attributes:
        full_text: The whole text.
    """

    def __init__(self, text: str = "", parent: QWidget | None = None, *, look: str = "") -> None:
        self.full_text = ""
        super().__init__("", parent, look=look)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.set_full_text(text)

    def set_full_text(self, text: str) -> None:
        """Set the text."""
        self.full_text = text
        self.setAccessibleName(text)
        self._elide()

    def minimumSizeHint(self) -> QSize:
        """Return the width of three letters and the ellipsis."""
        return QSize(self.fontMetrics().horizontalAdvance("abc…"), super().minimumSizeHint().height())

    def sizeHint(self) -> QSize:
        """Return the width of the whole text."""
        return QSize(
            self.fontMetrics().horizontalAdvance(self.full_text[:LONGEST_LINE]) + UNIT, super().sizeHint().height()
        )

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Elide the text again."""
        super().resizeEvent(event)
        self._elide()

    def changeEvent(self, event: QEvent) -> None:
        """Elide the text again when the font changes."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange:
            self._elide()

    def _elide(self) -> None:
        line = self.full_text[:LONGEST_LINE].replace("\n", " ")
        width = max(self.contentsRect().width(), 0)
        shown = self.fontMetrics().elidedText(line, Qt.TextElideMode.ElideRight, width)
        if shown != self.text():
            self.setText(shown)
        self.setToolTip(plain_tool_tip(self.full_text) if shown != self.full_text else "")


class IconLabel(QLabel):
    """Label with an icon that follows the theme and the text size."""

    def __init__(self, parent: QWidget | None = None, size: int = ICON_SIZE) -> None:
        """Create the label without an icon; `size` is in pixels at a text size of 100 %."""
        super().__init__(parent)
        self._size = size
        self._name = ""
        self._color: Callable[[], str] = str
        style().changed.connect(self._draw)

    def show_icon(self, name: str, color: Callable[[], str]) -> None:
        """Show an icon in a color of the present theme."""
        self._name, self._color = name, color
        self._draw()

    def _draw(self) -> None:
        if self._name:
            side = round(self._size * style().scale)
            self.setPixmap(icon(self._name, self._color()).pixmap(QSize(side, side), self.devicePixelRatio()))


class Badge(PlainLabel):
    """A few words in a pill, such as a state or a count; the color is never the only sign."""

    def __init__(self, text: str = "", kind: str = "plain", parent: QWidget | None = None) -> None:
        """Create the badge; kinds are `plain`, `accent`, `good`, `warning` and `bad`."""
        super().__init__(text, parent)
        self.setProperty("badge", kind)
        self.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Maximum)


class CollapsibleSection(QWidget):
    """Section with a title that expands and collapses.

    Signals:
        toggled: The section was expanded or collapsed.
    """

    toggled = Signal(bool)

    def __init__(self, title: str, body: QWidget, parent: QWidget | None = None, *, is_open: bool = False) -> None:
        super().__init__(parent)
        self.body = body
        self.button = QToolButton()
        self.button.setText(title)
        self.button.setAccessibleName(title)
        self.button.setCheckable(True)
        self.button.setChecked(is_open)
        self.button.setAutoRaise(True)
        self.button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.button.setProperty("fold", True)
        self._icon = ThemedIcon(self.button, "mdi6.chevron-right", "dim")
        self.button.toggled.connect(self._toggle)
        vbox((self.button, Qt.AlignmentFlag.AlignLeft), body, spacing=2, parent=self)
        self._show_body(is_open)

    @property
    def is_open(self) -> bool:
        """Whether the body is visible."""
        return self.button.isChecked()

    def _toggle(self, is_open: bool) -> None:
        self._show_body(is_open)
        self.toggled.emit(is_open)

    def _show_body(self, is_open: bool) -> None:
        self.body.setVisible(is_open)
        self._icon.show("mdi6.chevron-down" if is_open else "mdi6.chevron-right")
        self.button.setAccessibleDescription("Expanded" if is_open else "Collapsed")


LEAST_MESSAGE: Final = 80 * UNIT
"""Room for the text of a message beside its buttons, in pixels at the default text size."""


def stack_buttons(body: QBoxLayout, buttons: QLayout, width: int) -> None:
    """Put the buttons of a bar of a width below its text, if there is too little room for the text beside them."""
    is_narrow = buttons.count() > 0 and width - buttons.sizeHint().width() < round(LEAST_MESSAGE * style().scale)
    body.setDirection(QBoxLayout.Direction.TopToBottom if is_narrow else QBoxLayout.Direction.LeftToRight)


class MessageBar(QFrame):
    """Message above a page, with buttons for actions.

    Signals:
        closed: The user closed the message.
    """

    closed = Signal()

    def __init__(self, text: str = "", kind: str = "info", parent: QWidget | None = None) -> None:
        """Create the bar; kinds are `info`, `warning` and `bad`."""
        super().__init__(parent)
        self._label = PlainLabel(text, wrap=True)
        self._sign = IconLabel()
        self._sign.setMargin(2 * UNIT)
        self._buttons = hbox(spacing=2)
        close = icon_button("mdi6.close", "Close message", self._close, tip="Close")
        self._body = hbox((self._label, 1), self._buttons, spacing=2)
        self._body.setAlignment(self._buttons, Qt.AlignmentFlag.AlignLeft)
        hbox(self._sign, (self._body, 1), close, spacing=2, margins=(2, 1, 2, 1), parent=self)
        self.say(text, kind)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Put the buttons below the text where there is too little room beside them."""
        super().resizeEvent(event)
        stack_buttons(self._body, self._buttons, self.width())

    @property
    def text(self) -> str:
        """The message."""
        return self._label.text()

    def say(self, text: str, kind: str = "info") -> None:
        """Set message and kind."""
        self._label.setText(text)
        self.setAccessibleName(text)
        self._sign.setAccessibleName({"info": "Note", "warning": "Warning", "bad": "Error"}[kind])
        sign, color = HINT_ICONS[kind]
        self._sign.show_icon(sign, lambda: getattr(style().theme, color))
        set_style_properties(self, hint=kind)

    def add_button(self, text: str, pressed: Callable[[], object]) -> QPushButton:
        """Add a button."""
        button = QPushButton(text)
        button.clicked.connect(lambda _checked=False: pressed())
        self._buttons.addWidget(button)
        return button

    def _close(self) -> None:
        self.hide()
        self.closed.emit()


class ProgressBar(QProgressBar):
    """Progress bar that is painted together with the rest of the window.

    Qt's own repaints its window within `setValue`, so a batch of events would repaint it once per event.
    """

    def setValue(self, value: int) -> None:
        """Set the value; it is painted with the next paint event."""
        if value != self.value():
            self.setUpdatesEnabled(False)
            super().setValue(value)
            self.setUpdatesEnabled(True)


class ResponsiveRow(QWidget):
    """Two groups of controls in a row, stacked if there is not enough width.

    Args:
        first: Controls on the left, from left to right.
        second: Controls on the right, or below.
    """

    def __init__(self, first: Sequence[QWidget], second: Sequence[QWidget], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._controls = (*first, *second)
        self._groups = [hbox(*first, spacing=2), hbox(*second, spacing=2)]
        self._both = hbox(self._groups[0], STRETCH, self._groups[1], spacing=2, parent=self)

    @property
    def is_stacked(self) -> bool:
        """Whether the groups are stacked."""
        return self._both.direction() == QBoxLayout.Direction.TopToBottom

    def minimumSizeHint(self) -> QSize:
        """Return the width of the wider group."""
        widest = max(group.minimumSize().width() for group in self._groups)
        return QSize(widest, super().minimumSizeHint().height())

    def event(self, event: QEvent) -> bool:
        """Stack the groups if they do not fit side by side, also when their texts or the text size have changed."""
        if event.type() in {QEvent.Type.Resize, QEvent.Type.LayoutRequest}:
            self._arrange()
        return super().event(event)

    def _arrange(self) -> None:
        shown = [widget for widget in self._controls if not widget.isHidden()]
        widths = (max(widget.minimumSizeHint().width(), widget.minimumWidth()) for widget in shown)  # of whole texts
        needed = sum(widths) + 2 * UNIT * (len(shown) + 1)
        direction = QBoxLayout.Direction.LeftToRight if self.width() >= needed else QBoxLayout.Direction.TopToBottom
        if direction != self._both.direction():
            self._both.setDirection(direction)
            # When stacked, do not stretch a group to the width of the other.
            side = Qt.AlignmentFlag.AlignLeft if self.is_stacked else Qt.AlignmentFlag(0)
            for group in self._groups:
                self._both.setAlignment(group, side)
            self.updateGeometry()


_FIELD_TYPES = (QAbstractSpinBox, QComboBox, QSlider)


def scroll_area(page: QWidget, parent: QWidget | None = None) -> QScrollArea:
    """Create a scroll area for a page. The mouse wheel scrolls it, also over the fields that it contains now."""
    area = QScrollArea(parent)
    area.setWidgetResizable(True)
    area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
    area.setWidget(page)
    for kind in _FIELD_TYPES:
        for field in page.findChildren(kind):
            ignore_wheel_unless_focused(field)
    return area


def ignore_wheel_unless_focused(widget: QWidget) -> None:
    """Let the mouse wheel scroll the page instead of changing an unfocused field."""
    if isinstance(widget, _FIELD_TYPES):
        widget.setFocusPolicy(Qt.FocusPolicy.StrongFocus)  # no focus by wheel
        widget.installEventFilter(_WheelFilter(widget))


class _WheelFilter(QObject):
    """Event filter of one field."""

    def __init__(self, field: QWidget) -> None:
        super().__init__(field)
        self._field = field

    def eventFilter(self, _watched: QObject, event: QEvent) -> bool:
        """Pass wheel events to the page unless the field has the focus."""
        if event.type() == QEvent.Type.Wheel and not self._field.hasFocus():
            event.ignore()
            return True
        return False


class HintDelegate(QStyledItemDelegate):
    """Draws the rows of a list with the accessible description of each at the right, dim."""

    def initStyleOption(self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex) -> None:
        """Shorten the text so that it leaves room for the hint."""
        super().initStyleOption(option, index)
        hint = _hint(index)
        if hint:
            metrics = QFontMetrics(option.font)
            room = option.rect.width() - metrics.horizontalAdvance(hint) - 9 * UNIT
            option.text = metrics.elidedText(option.text, Qt.TextElideMode.ElideMiddle, room)

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        """Draw the row and its hint."""
        super().paint(painter, option, index)
        painter.save()
        painter.setPen(QColor(style().theme.dim))
        place = option.rect.adjusted(0, 0, -3 * UNIT, 0)
        painter.drawText(place, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight, _hint(index))
        painter.restore()


def _hint(index: QModelIndex | QPersistentModelIndex) -> str:
    return index.data(Qt.ItemDataRole.AccessibleDescriptionRole) or ""


def make_read_only(table: QTableView) -> None:
    """Make a table read-only: whole rows, single selection, no grid, no row numbers."""
    table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
    table.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
    table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
    table.setTabKeyNavigation(False)
    table.setShowGrid(False)
    table.setWordWrap(False)
    table.verticalHeader().hide()
    table.horizontalHeader().setHighlightSections(False)


STRETCH: Final = None
"""An item of `hbox` and `vbox` that takes the remaining space."""

LayoutItem = QWidget | QLayout | int | None | tuple[QWidget | QLayout, int] | tuple[QWidget, Qt.AlignmentFlag]
LayoutT = TypeVar("LayoutT", bound=QBoxLayout)


def hbox(
    *items: LayoutItem,
    spacing: int | None = None,
    margins: int | tuple[int, int, int, int] = 0,
    parent: QWidget | None = None,
) -> QHBoxLayout:
    """Create a horizontal layout.

    Args:
        *items: Widgets and layouts, also in a tuple with a stretch factor or an alignment; `STRETCH`; or a number for
            an additional space.
        spacing: The space between two items; the style's default if None. All spaces are multiples of `UNIT`.
        margins: The margins: left, top, right and bottom, or one number for all.
        parent: The widget to lay out.
    """
    return _fill(QHBoxLayout(), items, spacing, margins, parent)


def vbox(
    *items: LayoutItem,
    spacing: int | None = None,
    margins: int | tuple[int, int, int, int] = 0,
    parent: QWidget | None = None,
) -> QVBoxLayout:
    """Create a vertical layout; see `hbox`."""
    return _fill(QVBoxLayout(), items, spacing, margins, parent)


def _fill(
    layout: LayoutT,
    items: Sequence[LayoutItem],
    spacing: int | None,
    margins: int | tuple[int, int, int, int],
    parent: QWidget | None,
) -> LayoutT:
    if parent is not None:
        parent.setLayout(layout)
    left, top, right, bottom = (margins,) * 4 if isinstance(margins, int) else margins
    layout.setContentsMargins(left * UNIT, top * UNIT, right * UNIT, bottom * UNIT)
    if spacing is not None:
        layout.setSpacing(spacing * UNIT)
    for item in items:
        if item is None:
            layout.addStretch(1)
        elif isinstance(item, int):
            layout.addSpacing(item * UNIT)
        else:
            part, extra = item if isinstance(item, tuple) else (item, 0)
            if isinstance(extra, Qt.AlignmentFlag):
                layout.addWidget(cast("QWidget", part), 0, extra)
            elif isinstance(part, QWidget):
                layout.addWidget(part, extra)
            else:
                layout.addLayout(part, extra)
    return layout


class MessageBars(QWidget):
    """Messages, the newest last; a message replaces an earlier one on the same topic."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._bars: dict[str, MessageBar] = {}
        self._column = vbox(spacing=0, parent=self)

    def say(
        self, topic: str, text: str, kind: str = "info", buttons: Sequence[tuple[str, Callable[[], object]]] = ()
    ) -> MessageBar:
        """Show a message.

        Args:
            topic: Its topic.
            text: Its text.
            kind: `info`, `warning` or `bad`.
            buttons: Titles and functions, the primary one first. A button closes the message, unless its function
                shows another one on the same topic.
        """
        self.drop(topic)
        bar = MessageBar(text, kind, self)
        for title, action in buttons:
            bar.add_button(title, lambda action=action: self._act(topic, bar, action))
        bar.closed.connect(lambda: self.drop(topic))
        self._bars[topic] = bar
        self._column.addWidget(bar)
        bar.show()
        return bar

    def drop(self, topic: str) -> None:
        """Remove the message on a topic."""
        bar = self._bars.pop(topic, None)
        if bar is not None:
            bar.hide()
            self._column.removeWidget(bar)
            bar.deleteLater()

    def text(self, topic: str) -> str:
        """Return the message on a topic; empty if there is none."""
        bar = self._bars.get(topic)
        return bar.text if bar is not None else ""

    def _act(self, topic: str, bar: MessageBar, action: Callable[[], object]) -> None:
        action()
        if self._bars.get(topic) is bar:
            self.drop(topic)


def set_tab_order(parts: Sequence[QWidget]) -> None:
    """Set the tab order to the reading order: part by part, top to bottom, left to right.

    Qt's default is the order of creation, which would jump between documents and forms that come and go. Qt's own focus
    chain is not read: in Python, that ties each widget's wrapper to the one before it.

    Args:
        parts: Parts of one window, visible or not.
    """
    reached = [widget for part in parts if part.isVisible() for widget in _focusable(part)]
    for widget, following in pairwise(reached):
        QWidget.setTabOrder(widget, following)


def _focusable(root: QWidget) -> Iterator[QWidget]:
    """Widgets in a part, and the part itself, that take the focus with Tab."""
    if bool(root.focusPolicy() & Qt.FocusPolicy.TabFocus) and root.focusProxy() is None and root.isEnabled():
        yield root
    children = [child for child in root.children() if isinstance(child, QWidget)]
    visible = (child for child in children if child.isVisible() and not child.isWindow())
    for child in sorted(visible, key=cmp_to_key(_compare)):
        yield from _focusable(child)


def _compare(first: QWidget, second: QWidget) -> int:
    """Compare by reading order; negative where the first comes first."""
    one, other = first.geometry(), second.geometry()
    if _is_above(one, other) or _is_above(other, one):
        return -1 if one.top() < other.top() else 1
    return one.left() - other.left()


def _is_above(one: QRect, other: QRect) -> bool:
    return one.bottom() < other.top()
