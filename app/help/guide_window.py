"""The window of the user guide: contents, full-text search, and pages with pictures. It works without a network.

Packages for pip have no pictures, which are most of their size; the page describes them in their places.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from PySide6.QtCore import QEvent, QModelIndex, QPoint, QSize, Qt, QTimer, QUrl, Signal
from PySide6.QtGui import (
    QColor,
    QFont,
    QImage,
    QImageReader,
    QKeySequence,
    QResizeEvent,
    QShortcut,
    QShowEvent,
    QTextBlock,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
    QTextFormat,
    QTextImageFormat,
)
from PySide6.QtWidgets import (
    QDialog,
    QListWidget,
    QListWidgetItem,
    QSplitter,
    QStackedWidget,
    QTextBrowser,
    QToolButton,
    QTreeWidget,
    QTreeWidgetItem,
    QWidget,
)

from app.help.guide import START, Contents, Guide, Hit, anchor_of, is_external, pictures_in, template_of, words_of
from app.inspector.markdown_view import confirm_link, style_markdown
from app.inspector.text_widgets import mark_matches
from app.theme.style import ThemedIcon, style
from app.theme.tokens import UNIT
from app.theme.widgets import ElidedLabel, PlainLabel, hbox, resize_on_screen, search_field, vbox
from app.timers import call_between_frames
from app.worker import Worker
from engine.bundled import docs_folder
from engine.formatting import format_count

SIZE: Final = QSize(1080, 720)
CONTENTS_WIDTH: Final = 264
MAX_MARKED: Final = 500
"""Maximum number of hits to highlight on a page."""
MAX_HITS: Final = 60
"""Maximum number of search results to list."""
SEARCH_DELAY_MS: Final = 80
RESIZE_DELAY_MS: Final = 120
MARGIN: Final = 6 * UNIT
"""Margin around a page, in pixels."""
FIRST_PAGE: Final = "window.md"


class PageView(QTextBrowser):
    """Shows a page of the guide.

    Args:
        guide: The guide.

    Attributes:
        name: The name of the page; empty before the first.
        marked: Start and end of each highlighted hit, in order.

    Signals:
        followed: The user clicked a link; its target as written on the page.
    """

    followed = Signal(str)

    def __init__(self, guide: Guide) -> None:
        super().__init__()
        self._guide = guide
        self.name = ""
        self._query = ""
        self.marked: list[tuple[int, int]] = []
        self._drawn: QTextDocument | None = None
        self._drawn_for = ("", 0.0)
        self._sizes: dict[str, QSize] = {}
        self._indents: dict[str, int] = {}
        self._painted: set[str] = set()
        self._kept = 0, 0  # the place on the page: the number of a block, and how far it is scrolled
        self._has_scrolled = False  # the user, since that place was noted
        self._worker = Worker(self, is_awaited=False)
        self._resized = QTimer(self, singleShot=True, interval=RESIZE_DELAY_MS)
        self._resized.timeout.connect(self._fit_pictures)
        self.setOpenLinks(False)
        self.setAccessibleName("Page")
        self.setProperty("bare", True)
        self.anchorClicked.connect(lambda url: self.followed.emit(url.toString()))
        self.verticalScrollBar().actionTriggered.connect(self._note_scrolling)
        self.horizontalScrollBar().rangeChanged.connect(lambda _least, most: self._show_horizontal_bar(most))
        self._show_horizontal_bar(0)
        style().changed.connect(self._draw_again)

    def show_page(self, name: str, query: str = "") -> None:
        """Show a page from its beginning, with the words of a search highlighted."""
        self._query = query
        if name != self.name:
            self.name = name
            self._draw()
        self._mark()
        self.verticalScrollBar().setValue(0)

    def go_to(self, anchor: str, *, hit: bool = False) -> None:
        """Scroll to the heading of a fragment.

        Args:
            anchor: The fragment; empty for the beginning of the page.
            hit: Whether to scroll on to the first highlighted hit if it is far below the heading.
        """
        heading = next(
            (block for block in _blocks(self.document()) if _is_heading(block, anchor)), self.document().begin()
        )
        top = self._top(heading) if anchor else 0
        after = next((start for start, _end in self.marked if start >= heading.position()), None) if hit else None
        if after is not None:
            line = self._top(self.document().findBlock(after))
            if line > top + 0.8 * self.viewport().height():
                top = line - self.viewport().height() // 3
        self._kept = heading.blockNumber(), top - self._top(heading)
        self._has_scrolled = False
        self._scroll_to(top)

    def loadResource(self, kind: int, name: QUrl | str) -> Any:
        """Load a picture of the guide in a thread when it is first painted, and nothing else; return an empty one."""
        path = name.toString() if isinstance(name, QUrl) else name
        if kind == QTextDocument.ResourceType.ImageResource.value and path in self._sizes:
            self._painted.add(path)
            self._load_picture(path)
        blank = QImage(1, 1, QImage.Format.Format_ARGB32)
        blank.fill(Qt.GlobalColor.transparent)
        return blank

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Fit the pictures to the new width, and keep the place on the page."""
        self._keep_place()
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self._resized.start()

    def changeEvent(self, event: QEvent) -> None:
        """Keep the place on the page when the text size changes."""
        if event.type() == QEvent.Type.FontChange and self.name:
            self._keep_place()
            self._resized.start()
        super().changeEvent(event)

    @property
    def is_loading(self) -> bool:
        """Whether pictures are being loaded."""
        return self._worker.is_busy or self._resized.isActive()

    def focusNextPrevChild(self, forward: bool) -> bool:
        """Move the focus to another link, which may scroll to it."""
        self._note_scrolling()
        return super().focusNextPrevChild(forward)

    def _show_horizontal_bar(self, hidden: int) -> None:
        """Show the bar if the page is too wide; a table that reaches into the margin by a rounded pixel is not."""
        policy = Qt.ScrollBarPolicy
        is_needed = hidden > MARGIN
        self.setHorizontalScrollBarPolicy(policy.ScrollBarAsNeeded if is_needed else policy.ScrollBarAlwaysOff)

    def _note_scrolling(self) -> None:
        self._has_scrolled = True

    def _keep_place(self) -> None:
        """Note the place on the page before its layout changes, if the user has scrolled there.

        While a page is laid out, Qt estimates its length, and may scroll to the end of an estimate that is too short.
        """
        if self._has_scrolled:
            top = self.cursorForPosition(QPoint(0, 0)).block()
            self._kept = top.blockNumber(), self.verticalScrollBar().value() - self._top(top)
            self._has_scrolled = False

    def showEvent(self, event: QShowEvent) -> None:
        """Apply a theme that was chosen while the page was hidden."""
        super().showEvent(event)
        if self._drawn_for != (style().theme.name, style().scale):
            self._draw_again()

    def _draw_again(self) -> None:
        """Draw the page in another theme or text size; a hidden page waits until it is shown."""
        if self.name and self.isVisible():
            self._keep_place()
            self._resized.start()
            self._draw()

    def _draw(self) -> None:
        self._drawn_for = (style().theme.name, style().scale)
        document = QTextDocument(self)
        document.setDocumentMargin(MARGIN)
        document.setDefaultFont(style().font())
        markdown = self._guide.shown_markdown(self.name, style().theme.name)
        document.setMarkdown(markdown)
        style_markdown(document)
        self._painted.clear()
        self._sizes = {path: QImageReader(self._file(path)).size() for path in pictures_in(markdown)}
        self._describe_missing_pictures(document)
        self._set_picture_sizes(document)
        self.setDocument(document)
        if self._drawn is not None:
            self._drawn.deleteLater()
        self._drawn = document
        self._mark()

    def _file(self, picture: str) -> str:
        return str((self._guide.folder / self.name).parent / picture)

    def _fit_pictures(self) -> None:
        """Fit the pictures to the width, and load those again that were painted before."""
        self._keep_place()
        self._lay_out()  # Qt skips what is not laid out yet when a picture below it changes, and loses its height
        self._set_picture_sizes(self.document())
        number, below = self._kept
        self._scroll_to(self._top(self.document().findBlockByNumber(number)) + below)
        for path in self._painted:
            self._load_picture(path)

    def _fitted(self, path: str) -> QSize:
        size = self._sizes[path]
        width = min(self.viewport().width() - 2 * MARGIN - self._indents.get(path, 0), size.width())
        return QSize(width, round(size.height() * width / max(size.width(), 1)))

    def _load_picture(self, path: str) -> None:
        size = self._fitted(path) * self.devicePixelRatioF()
        self._worker.ask(partial(_load, self._file(path), size), partial(self._put, self.document(), path))

    def _put(self, document: QTextDocument, path: str, image: QImage) -> None:
        if document is self.document():
            document.addResource(QTextDocument.ResourceType.ImageResource, QUrl(path), image)
            self.viewport().update()

    def _describe_missing_pictures(self, document: QTextDocument) -> None:
        look = QTextCharFormat()
        look.setForeground(QColor(style().theme.dim))
        for cursor, image in _images(document):
            if not self._sizes[image.name()].isValid():
                cursor.insertText(f"Picture: {image.property(QTextFormat.Property.ImageAltText)}", look)

    def _set_picture_sizes(self, document: QTextDocument) -> None:
        for cursor, image in _images(document):
            self._indents[image.name()] = _indent(cursor.block())
            size = self._fitted(image.name())
            image.setWidth(size.width())
            image.setHeight(size.height())
            cursor.setCharFormat(image)

    def return_to(self, scrolled: int) -> None:
        """Scroll to where the user left the page, in pixels from its beginning."""
        self._scroll_to(scrolled)
        self._note_scrolling()

    def _scroll_to(self, top: int) -> None:
        if top:
            self._lay_out()  # or the scroll bar would end too early
        self.verticalScrollBar().setValue(top)

    def _lay_out(self) -> None:
        """Lay out the whole page now, which Qt does in steps when it is idle."""
        self.document().pageCount()

    def _top(self, block: QTextBlock) -> int:
        return round(self.document().documentLayout().blockBoundingRect(block).top())

    def _mark(self) -> None:
        """Highlight the words of the search."""
        text = self.document().toRawText()
        places = sorted(found.span() for word in words_of(self._query) for found in word.finditer(text))
        self.marked = places[:MAX_MARKED]
        mark_matches(self, self.marked, -1)


def _blocks(document: QTextDocument) -> Iterator[QTextBlock]:
    block = document.begin()
    while block.isValid():
        yield block
        block = block.next()


def _images(document: QTextDocument) -> Iterator[tuple[QTextCursor, QTextImageFormat]]:
    """Yield each picture as a selection, which may be changed, and its format."""
    for block in _blocks(document):
        for piece in reversed(block.textFormats()):
            if piece.format.isImageFormat():
                cursor = QTextCursor(block)
                cursor.setPosition(block.position() + piece.start)
                cursor.setPosition(block.position() + piece.start + piece.length, QTextCursor.MoveMode.KeepAnchor)
                yield cursor, piece.format.toImageFormat()


def _indent(block: QTextBlock) -> int:
    """Return how far the text of a block, such as an item of a list, is indented, in pixels."""
    items = block.textList()
    steps = block.blockFormat().indent() + (items.format().indent() if items is not None else 0)
    return round(steps * block.document().indentWidth())


def _is_heading(block: QTextBlock, anchor: str) -> bool:
    return bool(anchor) and block.blockFormat().headingLevel() > 0 and anchor_of(block.text()) == anchor


def _load(file: str, size: QSize) -> QImage:
    return QImage(file).scaled(size, Qt.AspectRatioMode.IgnoreAspectRatio, Qt.TransformationMode.SmoothTransformation)


@dataclass
class Visit:
    """A place in the history of the window: a page, and how far it was scrolled."""

    page: str
    scrolled: int = 0


class GuideWindow(QDialog):
    """The window of the guide. It is not modal, and may lie behind the main window.

    Args:
        guide: The guide; the program's own by default.

    Signals:
        template_wanted: The user clicked a link to this bundled template; its file name.
    """

    template_wanted = Signal(str)

    def __init__(self, parent: QWidget | None = None, guide: Guide | None = None) -> None:
        super().__init__(parent, Qt.WindowType.Window)
        self.setWindowTitle("User guide")
        self.guide = guide or Guide.read(docs_folder())
        self._visits: list[Visit] = []
        self._at = -1
        self._items: dict[str, QTreeWidgetItem] = {}
        self._groups: list[QTreeWidgetItem] = []
        self._fitted_for = 0.0
        self._typed = QTimer(self, singleShot=True, interval=SEARCH_DELAY_MS)
        self._worker = Worker(self, is_awaited=False)
        self.search = search_field("Search the guide")
        self.count = PlainLabel("", look="dim small")
        self.contents = self._contents_tree()
        self.hits = QListWidget()
        self.hits.setAccessibleName("Search results")
        self.hits.setWordWrap(True)
        self.hits.setProperty("bare", True)
        self.hits.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.left = QStackedWidget()
        for widget in (self.contents, self.hits):
            self.left.addWidget(widget)
        self.view = PageView(self.guide)
        self.title = ElidedLabel("", look="title")
        self.back = self._button("Back", "mdi6.arrow-left", "Alt+Left", -1)
        self.forward = self._button("Forward", "mdi6.arrow-right", "Alt+Right", 1)
        self._arrange()
        self._connect()
        call_between_frames(self, self._open_first_page, self._prepare_search)

    def _open_first_page(self) -> None:
        if not self._visits:
            self.open_page(FIRST_PAGE if FIRST_PAGE in self.guide.pages else START)

    def _prepare_search(self) -> None:
        self._worker.ask(self.guide.prepare_search)

    def open_page(self, name: str, anchor: str = "", query: str = "") -> None:
        """Show a page, at the heading of a fragment, with the words of a search highlighted."""
        self._leave()
        del self._visits[self._at + 1 :]
        self._visits.append(Visit(name))
        self._at += 1
        self._show(name, query)
        self.view.go_to(anchor, hit=bool(query))

    def show_hits(self, query: str) -> None:
        """Show the sections with all words of a search; the table of contents if it is empty."""
        self._typed.stop()
        found = self.guide.search(query)
        self.hits.clear()
        for hit in found[:MAX_HITS]:
            about = self.guide.titles.get(hit.page.name, hit.page.title) if hit.section.anchor else ""
            lines = (" · ".join(part for part in (hit.section.heading, about) if part), hit.snippet)
            item = QListWidgetItem("\n".join(lines))
            item.setData(Qt.ItemDataRole.UserRole, hit)
            self.hits.addItem(item)
        self.left.setCurrentWidget(self.hits if query.strip() else self.contents)
        self.count.setText((format_count(len(found), "section") if found else "No results") if query.strip() else "")
        self.count.setVisible(bool(query.strip()))

    def _contents_tree(self) -> QTreeWidget:
        tree = QTreeWidget()
        tree.setHeaderHidden(True)
        tree.setAccessibleName("Contents")
        tree.setProperty("bare", True)
        for entry in self.guide.contents:
            item = self._tree_item(entry)
            tree.addTopLevelItem(item)
            tree.expandItem(item)
        return tree

    def _tree_item(self, entry: Contents) -> QTreeWidgetItem:
        item = QTreeWidgetItem([entry.title])
        item.setData(0, Qt.ItemDataRole.UserRole, entry.page)
        item.setToolTip(0, entry.title)
        if entry.page:
            self._items[entry.page] = item
        else:
            self._groups.append(item)
            item.setFlags(Qt.ItemFlag.ItemIsEnabled)
        item.addChildren([self._tree_item(below) for below in entry.below])
        return item

    def _button(self, text: str, icon: str, keys: str, step: int) -> QToolButton:
        button = QToolButton()
        ThemedIcon(button, icon)
        button.setAccessibleName(text)
        button.setToolTip(f"{text} ({keys})")
        button.clicked.connect(lambda _checked=False: self._step(step))
        QShortcut(QKeySequence(keys), self, button.click)
        return button

    def _arrange(self) -> None:
        side = QWidget()
        vbox(self.search, self.count, (self.left, 1), spacing=2, margins=3, parent=side)
        page = QWidget()
        top = hbox(self.back, self.forward, (self.title, 1), spacing=1, margins=(3, 3, 3, 2))
        vbox(top, (self.view, 1), spacing=0, parent=page)
        splitter = self._splitter = QSplitter()
        for widget, width in ((side, CONTENTS_WIDTH), (page, SIZE.width() - CONTENTS_WIDTH)):
            splitter.addWidget(widget)
            widget.resize(round(width * style().scale), SIZE.height())
        splitter.setStretchFactor(1, 1)
        splitter.setHandleWidth(1)
        splitter.setChildrenCollapsible(False)
        vbox(splitter, parent=self)
        self.count.hide()
        resize_on_screen(self, SIZE)
        self._fit_contents()

    def _fit_contents(self) -> None:
        """Fit the table of contents to the text size."""
        for group in self._groups:
            group.setFont(0, style().font(weight=QFont.Weight.DemiBold))
        if style().scale != self._fitted_for:
            self._fitted_for = style().scale
            width = round(CONTENTS_WIDTH * style().scale)
            self._splitter.setSizes([width, max(self.width(), SIZE.width()) - width])

    def _connect(self) -> None:
        self.search.textChanged.connect(lambda _text: self._typed.start())
        self._typed.timeout.connect(lambda: self.show_hits(self.search.text()))
        self.search.returnPressed.connect(self._open_first_hit)
        self.hits.clicked.connect(self._open_hit)
        self.hits.activated.connect(self._open_hit)
        self.contents.currentItemChanged.connect(self._open_entry)
        self.view.followed.connect(self._follow)
        style().changed.connect(self._fit_contents)
        QShortcut(QKeySequence(QKeySequence.StandardKey.Find), self, self._focus_search)

    def _focus_search(self) -> None:
        self.search.setFocus()
        self.search.selectAll()

    def _open_first_hit(self) -> None:
        self.show_hits(self.search.text())
        self._open_hit(self.hits.model().index(0, 0))

    def _open_hit(self, index: QModelIndex) -> None:
        hit: Hit | None = index.data(Qt.ItemDataRole.UserRole)
        if hit is not None:
            self.open_page(hit.page.name, hit.section.anchor, self.search.text())

    def _open_entry(self, item: QTreeWidgetItem | None) -> None:
        name = item.data(0, Qt.ItemDataRole.UserRole) if item is not None else ""
        if name and name != self.view.name:
            self.open_page(name)

    def _follow(self, link: str) -> None:
        name, anchor = self.guide.resolve(self.view.name, link)
        if name:
            self.open_page(name, anchor)
        elif template_of(link):
            self.template_wanted.emit(template_of(link))
        elif is_external(link):
            confirm_link(self, QUrl(link))

    def _step(self, distance: int) -> None:
        if not 0 <= self._at + distance < len(self._visits):
            return
        self._leave()
        self._at += distance
        visit = self._visits[self._at]
        self._show(visit.page, "")
        self.view.return_to(visit.scrolled)

    def _leave(self) -> None:
        if self._visits:
            self._visits[self._at].scrolled = self.view.verticalScrollBar().value()

    def _show(self, name: str, query: str) -> None:
        self.view.show_page(name, query)
        self.title.set_full_text(self.guide.titles.get(name, self.guide.pages[name].title))
        self.back.setEnabled(self._at > 0)
        self.forward.setEnabled(self._at + 1 < len(self._visits))
        item = self._items.get(name)
        if item is not None:
            self.contents.setCurrentItem(item)
            self.contents.scrollToItem(item)
