"""The palette: node types and templates with a filter, for mouse and keyboard."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import Final

from PySide6.QtCore import (
    QEvent,
    QMimeData,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    QPoint,
    QRect,
    QRectF,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import (
    QColor,
    QDrag,
    QFont,
    QFontMetrics,
    QFontMetricsF,
    QKeyEvent,
    QPainter,
    QPainterPath,
    QPen,
    QPixmap,
    QResizeEvent,
)
from PySide6.QtWidgets import (
    QAbstractItemView,
    QAbstractScrollArea,
    QListView,
    QListWidget,
    QListWidgetItem,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QWidget,
)

from app.gallery.gallery import Template, bundled_templates
from app.search import match_score
from app.theme.style import elide_two_lines, icon, style
from app.theme.tokens import FONT_SIZE_SMALL, UNIT
from app.theme.widgets import PlainLabel, disabled_item, plain_tool_tip, search_field, vbox
from engine.nodes.node_registry import Registry
from engine.nodes.spec import PAIR_BY_END, AnySpec, Category
from engine.tools.registry import all_tools, builtin_tools

NODE_MIME: Final = "application/x-loopwright-node"
TEMPLATE_MIME: Final = "application/x-loopwright-template"
"""MIME types of dragged entries."""

CATEGORY_TITLES: Final = {
    Category.IO: "Input and output",
    Category.AI: "AI",
    Category.LOGIC: "Logic",
    Category.TOOLS: "Tools",
}
TITLES: Final = {"loop": "Loop and Exit"}
"""Titles of types that add a partner."""
TEMPLATE_ICON: Final = "mdi6.file-tree-outline"
TOOL_ICON: Final = "mdi6.toolbox-outline"
LONGEST_HELP: Final = 200
"""Maximum length of a tool's description: servers write them for models, at any length."""


class EntryKind(StrEnum):
    """Kind of a palette entry."""

    HEADER = "header"
    NODE = "node"
    TEMPLATE = "template"


@dataclass(frozen=True, slots=True)
class PaletteEntry:
    """Entry of the palette.

    Attributes:
        kind: Its kind.
        title: Its title.
        key: Name of the node type, `tool:NAME` of a tool, or path of a template; empty for a header.
        help: One-line description.
        icon: Name of its icon.
        category: Category that determines its color.
        synonyms: Other words that find it.
    """

    kind: EntryKind
    title: str
    key: str = ""
    help: str = ""
    icon: str = ""
    category: Category | None = None
    synonyms: tuple[str, ...] = ()


def palette_entries(registry: Registry, templates: Iterable[Template], query: str = "") -> list[PaletteEntry]:
    """Return all entries under headers, or the matches of a search text, best first."""
    nodes = [*(_node_row(spec) for spec in registry), *tool_entries()]
    template_entries = [_template_row(template) for template in templates]
    if query.strip():
        scored = [(match_score(query, (row.title, row.key), row.help, row.synonyms), row) for row in nodes]
        scored += [(match_score(query, (row.title,), row.help), row) for row in template_entries]
        return [row for score, row in sorted(scored, key=lambda found: -found[0]) if score]
    entries: list[PaletteEntry] = []
    for category in Category:  # the end of a pair is added with its start, so only a search lists it
        members = [row for row in nodes if row.category is category and row.key not in PAIR_BY_END]
        entries += _under(CATEGORY_TITLES[category], members)
    return entries + _under("Templates", template_entries)


def _under(title: str, members: list[PaletteEntry]) -> list[PaletteEntry]:
    return [PaletteEntry(EntryKind.HEADER, title), *members] if members else []


def _node_row(spec: AnySpec) -> PaletteEntry:
    title = TITLES.get(spec.type, spec.title)
    return PaletteEntry(EntryKind.NODE, title, spec.type, spec.help, spec.icon, spec.category, spec.synonyms)


def tool_entries() -> Iterator[PaletteEntry]:
    """Yield an entry for each tool of a server or plugin; built-in tools are set on the tool node."""
    built_in = builtin_tools()
    for tool in all_tools().values():
        if tool.name not in built_in:
            text = " ".join(tool.help.split())
            text = text if len(text) <= LONGEST_HELP else f"{text[: LONGEST_HELP - 1].rstrip()}…"
            yield PaletteEntry(EntryKind.NODE, tool.title, f"tool:{tool.name}", text, TOOL_ICON, Category.TOOLS)


def _template_row(template: Template) -> PaletteEntry:
    return PaletteEntry(EntryKind.TEMPLATE, template.title, str(template.path), template.about, TEMPLATE_ICON)


CARD = QSize(220, 48)
"""Size of a dragged card at a text size of 100 %."""


class EntryDelegate(QStyledItemDelegate):
    """Draws headers, and entries with icon, title and at most two lines of description."""

    def sizeHint(self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex) -> QSize:
        """Return the height of a header or entry."""
        row: PaletteEntry = index.data(_ENTRY)
        if row.kind is EntryKind.HEADER:
            return QSize(0, QFontMetrics(_small()).height() + 4 * UNIT)
        room = (
            option.widget.viewport().width() if isinstance(option.widget, QAbstractScrollArea) else option.rect.width()
        )
        return QSize(0, _height(row.help, room, style().scale))

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        """Draw one entry."""
        row: PaletteEntry = index.data(_ENTRY)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if row.kind is EntryKind.HEADER:
            _paint_header(painter, option.rect, row)
        else:
            _paint_row(painter, option, row)
        painter.restore()


def help_lines(row: PaletteEntry, width: int) -> list[str]:
    """Return the description of an entry on at most two lines of a width."""
    return list(_lines(row.help, width, style().scale))


# Cached: each letter typed into the filter lays out all entries, and servers may have hundreds.
@lru_cache(maxsize=8_192)
def _lines(text: str, width: int, _scale: float) -> tuple[str, ...]:
    return tuple(elide_two_lines(QFontMetricsF(_small()), text, width)) if text else ()


@lru_cache(maxsize=8_192)
def _height(text: str, room: int, scale: float) -> int:
    lines = len(_lines(text, _words_width(room), scale))
    return QFontMetrics(style().font()).height() + lines * QFontMetrics(_small()).height() + 2 * UNIT + UNIT


def drag_pixmap(row: PaletteEntry, ratio: float) -> QPixmap:
    """Draw a dragged entry as a card, for a screen with that device pixel ratio."""
    theme = style().theme
    size = QSize(round(CARD.width() * style().scale), round(CARD.height() * style().scale))
    pixmap = QPixmap(size * ratio)
    pixmap.setDevicePixelRatio(ratio)
    pixmap.fill(Qt.GlobalColor.transparent)
    painter = QPainter(pixmap)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    area = QRectF(0.5, 0.5, size.width() - 1, size.height() - 1)
    outline = QPainterPath()
    outline.addRoundedRect(area, 8, 8)
    painter.fillPath(outline, QColor(theme.card))
    painter.setClipPath(outline)
    painter.fillRect(QRectF(0, 0, UNIT, size.height()), QColor(_color(row)))
    painter.setClipping(False)
    painter.setPen(QPen(QColor(theme.edge), 1))
    painter.drawPath(outline)
    side = round(20 * style().scale)
    place = QRect(4 * UNIT, (size.height() - side) // 2, side, side)
    icon(row.icon, _color(row)).paint(painter, place)
    font = style().font(weight=QFont.Weight.DemiBold)
    painter.setFont(font)
    painter.setPen(QColor(theme.text))
    text_rect = QRect(place.right() + 3 * UNIT, 0, size.width() - place.right() - 5 * UNIT, size.height())
    title = QFontMetrics(font).elidedText(row.title, Qt.TextElideMode.ElideRight, text_rect.width())
    painter.drawText(text_rect, Qt.AlignmentFlag.AlignVCenter, title)
    painter.end()
    return pixmap


def _small(weight: QFont.Weight = QFont.Weight.Normal) -> QFont:
    return style().font(FONT_SIZE_SMALL, weight)


def _color(row: PaletteEntry) -> str:
    theme = style().theme
    return theme.category[row.category] if row.category is not None else theme.dim


def _icon_side() -> int:
    return round(20 * style().scale)


def _words_width(row_width: int) -> int:
    """Return the width for texts beside the icon."""
    return row_width - 2 * UNIT - _icon_side() - 3 * UNIT - UNIT


def _paint_header(painter: QPainter, area: QRect, row: PaletteEntry) -> None:
    painter.setFont(_small(QFont.Weight.DemiBold))
    painter.setPen(QColor(style().theme.dim))
    painter.drawText(area.adjusted(2 * UNIT, 0, 0, -UNIT), Qt.AlignmentFlag.AlignBottom, row.title)


def _paint_row(painter: QPainter, option: QStyleOptionViewItem, row: PaletteEntry) -> None:
    theme = style().theme
    area = QRect(option.rect)
    is_chosen = bool(option.state & QStyle.StateFlag.State_Selected)
    if is_chosen or option.state & QStyle.StateFlag.State_MouseOver:
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(theme.selection if is_chosen else theme.hover))
        painter.drawRoundedRect(area, 6, 6)
    if is_chosen and option.state & QStyle.StateFlag.State_HasFocus:
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(QColor(theme.accent), 2))
        painter.drawRoundedRect(QRectF(area).adjusted(1, 1, -1, -1), 6, 6)
    side = _icon_side()
    name, small = style().font(), _small()
    width = _words_width(area.width())
    left = area.right() - UNIT - width
    lines = [(row.title, name, theme.text), *((line, small, theme.dim) for line in help_lines(row, width))]
    top = area.top() + (area.height() - sum(QFontMetrics(font).height() for _text, font, _color in lines)) // 2
    place = QRect(area.left() + 2 * UNIT, top + (QFontMetrics(name).height() - side) // 2, side, side)
    icon(row.icon, _color(row)).paint(painter, place)
    for text, font, color in lines:
        metrics = QFontMetrics(font)
        painter.setFont(font)
        painter.setPen(QColor(color))
        shown = metrics.elidedText(text, Qt.TextElideMode.ElideRight, width)
        painter.drawText(QRect(left, top, width, metrics.height()), Qt.AlignmentFlag.AlignVCenter, shown)
        top += metrics.height()


MIME_TYPES: Final = {EntryKind.NODE: NODE_MIME, EntryKind.TEMPLATE: TEMPLATE_MIME}
_ENTRY: Final = Qt.ItemDataRole.UserRole
"""Role of an item's entry."""


def _item(row: PaletteEntry) -> QListWidgetItem:
    if row.kind is EntryKind.HEADER:
        item = disabled_item(row.title)
    else:
        item = QListWidgetItem(row.title)
        item.setToolTip(plain_tool_tip(row.help))
        item.setData(Qt.ItemDataRole.AccessibleTextRole, f"{row.title}: {row.help}" if row.help else row.title)
    item.setData(_ENTRY, row)
    return item


def run_drag(drag: QDrag) -> None:
    """Run a drag until the button is released."""
    drag.exec(Qt.DropAction.CopyAction)


class EntryList(QListWidget):
    """List of entries. Headers can be neither selected nor dragged.

    Signals:
        entry_chosen: An entry is to be added or opened.
        top_reached: Up was pressed on the first entry.

    Attributes:
        run_drag: Runs a drag until the button is released.
    """

    entry_chosen = Signal(object)
    top_reached = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.run_drag: Callable[[QDrag], None] = run_drag
        self.setItemDelegate(EntryDelegate(self))
        self.setProperty("bare", "rows")
        self.setAccessibleName("Nodes and templates")
        self.setDragEnabled(True)
        self.setDragDropMode(QAbstractItemView.DragDropMode.DragOnly)
        self.setMouseTracking(True)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setResizeMode(QListView.ResizeMode.Adjust)
        self.itemDoubleClicked.connect(self._choose)

    def show_entries(self, entries: Iterable[PaletteEntry]) -> None:
        """Replace the entries."""
        self.clear()
        for row in entries:
            self.addItem(_item(row))

    @property
    def first(self) -> QListWidgetItem | None:
        """The first entry that is no header."""
        items = map(self.item, range(self.count()))
        return next((item for item in items if item.flags() & Qt.ItemFlag.ItemIsSelectable), None)

    def startDrag(self, _actions: Qt.DropAction) -> None:
        """Drag the current entry as a card: the type's name or the template's path as UTF-8."""
        row: PaletteEntry = self.currentItem().data(_ENTRY)
        data = QMimeData()
        data.setData(MIME_TYPES[row.kind], row.key.encode())
        drag = QDrag(self)
        drag.setMimeData(data)
        drag.setPixmap(drag_pixmap(row, self.devicePixelRatioF()))
        drag.setHotSpot(QPoint(4 * UNIT, 4 * UNIT))
        self.run_drag(drag)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Choose with Enter; leave to the filter with Up on the first entry."""
        if event.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter}:
            event.accept()
            self._choose(self.currentItem())
        elif event.key() == Qt.Key.Key_Up and self.currentItem() is self.first:
            event.accept()
            self.top_reached.emit()
        else:
            super().keyPressEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Lay out again: another width may change the lines of a description."""
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self.scheduleDelayedItemsLayout()

    def _choose(self, item: QListWidgetItem | None) -> None:
        if item is not None and item.flags() & Qt.ItemFlag.ItemIsSelectable:
            self.entry_chosen.emit(item.data(_ENTRY))


class Palette(QWidget):
    """The palette.

    Signals:
        node_chosen: A node of this type is to be added.
        template_chosen: The template at this path is to be opened.
    """

    node_chosen = Signal(str)
    template_chosen = Signal(Path)

    def __init__(self, registry: Registry) -> None:
        super().__init__()
        self._registry = registry
        self._templates, _problems = bundled_templates()
        self.filter = search_field("Filter nodes", "Filter nodes and templates")
        self.filter.textChanged.connect(self._show)
        self.filter.returnPressed.connect(self._choose_first)
        self.filter.installEventFilter(self)
        self.list = EntryList()
        self.list.entry_chosen.connect(self._chosen)
        self.list.top_reached.connect(self.filter.setFocus)
        self._nothing = PlainLabel("No matches. Try a different filter.", look="dim", wrap=True)
        self._nothing.setAlignment(Qt.AlignmentFlag.AlignTop)
        self._nothing.hide()
        vbox(self.filter, (self._nothing, 1), (self.list, 1), spacing=2, margins=(2, 3, 2, 1), parent=self)
        self.setProperty("panel", True)
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        style().changed.connect(self._look_changed)
        self._show("")

    def sizeHint(self) -> QSize:
        """Return a width for titles and a few words of description."""
        return QSize(round(248 * style().scale), 560)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Move from the filter to the list with Down; clear the filter with Escape."""
        if watched is self.filter and isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            if event.key() == Qt.Key.Key_Down:
                self._go_to_list()
                return True
            if event.key() == Qt.Key.Key_Escape and self.filter.text():
                self.filter.clear()
                return True
        return super().eventFilter(watched, event)

    def _go_to_list(self) -> None:
        if self.list.first is not None:
            self.list.setCurrentItem(self.list.first)
            self.list.setFocus(Qt.FocusReason.TabFocusReason)

    def refresh(self) -> None:
        """Reload the entries after servers or plugins changed."""
        self._show(self.filter.text())

    def _show(self, query: str) -> None:
        self.list.show_entries(palette_entries(self._registry, self._templates, query))
        is_empty = not self.list.count()
        self._nothing.setVisible(is_empty)
        self.list.setVisible(not is_empty)
        self.list.scrollToTop()

    def _choose_first(self) -> None:
        if self.list.first is not None and self.filter.text().strip():
            self._chosen(self.list.first.data(_ENTRY))

    def _chosen(self, row: PaletteEntry) -> None:
        if row.kind is EntryKind.NODE:
            self.node_chosen.emit(row.key)
        else:
            self.template_chosen.emit(Path(row.key))

    def _look_changed(self) -> None:
        self.list.doItemsLayout()
        self.list.viewport().update()
