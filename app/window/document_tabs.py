"""Tabs of the open documents, and the start page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, cast

from PySide6.QtCore import QEvent, QObject, QSize, Qt, Signal
from PySide6.QtGui import QIcon, QMouseEvent
from PySide6.QtWidgets import QStackedWidget, QTabBar, QTabWidget, QWidget

from app.theme.style import icon, icon_size, style
from app.theme.widgets import plain_tool_tip

if TYPE_CHECKING:
    from app.window.document_page import DocumentPage

_NARROWEST: Final = 112
"""Minimum width of a tab at a text scale of 1."""
_CLOSE_BUTTON: Final = 20
"""Side of a close button at a text scale of 1."""


class _Bar(QTabBar):
    """Keeps tabs wide enough for a part of their names, and scrolls if there are too many."""

    def minimumTabSizeHint(self, index: int) -> QSize:
        """As wide as it would like to be, up to a limit."""
        wanted = self.tabSizeHint(index)
        return QSize(min(wanted.width(), round(_NARROWEST * style().scale)), wanted.height())


class DocumentTabs(QTabWidget):
    """The tabs. They are empty until `show_start`.

    Signals:
        current_changed: The current tab has changed.
        close_requested: The user wants to close that document.
    """

    current_changed = Signal()
    close_requested = Signal(object)

    def __init__(self, start: QWidget) -> None:
        super().__init__()
        self.start = start
        self.setTabBar(_Bar(self))
        self.setDocumentMode(True)
        self.setMovable(True)
        self.setTabsClosable(True)
        self.setElideMode(Qt.TextElideMode.ElideRight)
        self.setAccessibleName("Documents")
        self.tabBar().setAccessibleName("Documents")
        self.tabBar().setExpanding(False)
        self.tabBar().installEventFilter(self)
        self.tabCloseRequested.connect(self._close)
        self.currentChanged.connect(lambda _place: self.current_changed.emit())
        style().changed.connect(self._dress)

    @property
    def stack(self) -> QWidget:
        """The parent of the pages."""
        return cast("QWidget", self.findChild(QStackedWidget))

    @property
    def documents(self) -> list[DocumentPage]:
        """The documents in tab order."""
        pages = (self.widget(place) for place in range(self.count()))
        return [cast("DocumentPage", page) for page in pages if page is not self.start]

    @property
    def current(self) -> DocumentPage | None:
        """The current document; None on the start page."""
        page = self.currentWidget()
        return None if page is self.start else cast("DocumentPage", page)

    def add(self, document: DocumentPage) -> None:
        """Add and show a document; the start page is closed."""
        start = self.indexOf(self.start)
        place = self.addTab(document, "")
        self._scale_icons()
        self.name(document)
        self.setCurrentIndex(place)
        if start >= 0:
            self.removeTab(start)

    def remove(self, document: DocumentPage) -> None:
        """Remove a document; after the last, the start page is shown."""
        if self.documents == [document]:
            self.show_start()
        self.removeTab(self.indexOf(document))

    def show_document(self, document: DocumentPage) -> None:
        """Bring a document to the front."""
        self.setCurrentWidget(document)

    def show_start(self) -> None:
        """Bring the start page to the front."""
        if self.indexOf(self.start) < 0:
            self.insertTab(0, self.start, "Start")
            self._scale_icons()
        self.setCurrentWidget(self.start)
        self.start.setFocus()

    def step(self, distance: int) -> None:
        """Move by a number of tabs, cyclically."""
        self.setCurrentIndex((self.currentIndex() + distance) % self.count())

    def name(self, document: DocumentPage) -> None:
        """Update a tab: name, a dot if it is modified, an icon if it runs or is a stored run."""
        place = self.indexOf(document)
        if place < 0:
            return
        session = document.session
        dot = " •" if session.is_modified else ""
        self.setTabText(place, session.name.replace("&", "&&")[:60] + dot)
        where = str(session.path) if session.path is not None else "Not saved yet"
        if session.is_past:
            where = "A stored run"
        self.setTabToolTip(place, plain_tool_tip(f"{where}{' (changed)' if session.is_modified else ''}"))
        past = icon("mdi6.history", style().theme.dim) if session.is_past else QIcon()
        self.setTabIcon(place, icon("mdi6.play", style().theme.accent) if session.shown.live is not None else past)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """A click with the middle button closes."""
        if watched is self.tabBar() and event.type() == QEvent.Type.MouseButtonRelease:
            assert isinstance(event, QMouseEvent)
            if event.button() is Qt.MouseButton.MiddleButton:
                place = self.tabBar().tabAt(event.position().toPoint())
                if place >= 0:
                    self._close(place)
                return True
        return super().eventFilter(watched, event)

    def tabInserted(self, index: int) -> None:
        """The close buttons say what they do."""
        super().tabInserted(index)
        self._dress_buttons()

    def tabRemoved(self, index: int) -> None:
        """A start page that is alone cannot be closed."""
        super().tabRemoved(index)
        self._dress_buttons()

    def _close_buttons(self) -> Iterator[tuple[int, QWidget]]:
        for place in range(self.count()):
            for side in (QTabBar.ButtonPosition.LeftSide, QTabBar.ButtonPosition.RightSide):
                button = self.tabBar().tabButton(place, side)
                if button is not None:
                    yield place, button

    def _dress_buttons(self) -> None:
        for place, button in self._close_buttons():
            button.setAccessibleName("Close this tab")
            button.setToolTip("Close")
            button.setVisible(self.count() > 1 or self.widget(place) is not self.start)

    def _scale_icons(self) -> None:
        side = round(_CLOSE_BUTTON * style().scale)
        for _, button in self._close_buttons():
            button.resize(side, side)  # Qt ignores the size in the style sheet; crashes within `tabInserted`
        self.setIconSize(icon_size())  # also lays the buttons out

    def _close(self, place: int) -> None:
        page = self.widget(place)
        if page is not self.start:
            self.close_requested.emit(page)
        elif self.count() > 1:
            self.removeTab(place)

    def _dress(self) -> None:
        self._scale_icons()
        for document in self.documents:
            self.name(document)
