"""The right-hand panel: properties of the selected node or workflow, and its result in the displayed run.

It depends only on the session and changes the document through it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Final, TypeVar

from PySide6.QtCore import QPoint, Qt, QTimer, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QApplication, QFrame, QPlainTextEdit, QScrollArea, QStackedWidget, QTabBar, QWidget

from app.inspector.form import order_tabs
from app.inspector.model_list import ModelSource
from app.inspector.pin_dialog import PinBar
from app.inspector.properties_pages import NodePage, NodesPage, WorkflowPage
from app.inspector.result_page import ResultPage
from app.runs.loop_status import unit_of
from app.session import Session
from app.theme.tokens import UNIT
from app.theme.widgets import STRETCH, vbox
from engine.document.operations import RenameNode

PROPERTIES: Final = 0
RESULT: Final = 1
RESULT_TITLE: Final = "Result"
_TAB_MARGINS: Final = 24
"""Horizontal margins of a tab in pixels, and the room that bold text needs."""
_UPDATE_AFTER_MS: Final = 40
_PREPARE_AFTER_MS: Final = 150
PageT = TypeVar("PageT", NodePage, NodesPage, WorkflowPage)


class Inspector(QWidget):
    """Properties and Result of the selection.

    Args:
        session: The open document.
        models: The models to choose from.

    Attributes:
        page: The current page of the Properties tab.
        tabs: The tab bar.

    Signals:
        compare_wanted: The user wants to compare a path of the run with another run.
        fix_wanted: The user wants to fix something outside of the document; what, as in `EngineError`.
    """

    compare_wanted = Signal(str)
    fix_wanted = Signal(str)

    def __init__(self, session: Session, models: ModelSource, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self._models = models
        self._pages: dict[str, NodePage] = {}
        self.page: NodePage | NodesPage | WorkflowPage
        self._node_id: str | None = None
        self._is_renaming = False
        self._is_advanced_open = False
        self.setObjectName("inspector")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setMinimumWidth(260)
        self.tabs = QTabBar(self)
        self.tabs.setObjectName("switcher")
        self.tabs.setExpanding(True)
        self.tabs.setDrawBase(False)
        self.tabs.setElideMode(Qt.TextElideMode.ElideRight)
        self.tabs.setUsesScrollButtons(False)
        self.tabs.setAccessibleName("Properties or result")
        self.tabs.addTab("Properties")
        self.tabs.addTab(RESULT_TITLE)
        self.pin_bar = PinBar(session, self)
        self._scrolls: dict[QWidget, QScrollArea] = {}
        self._lay_out()
        self._run_timer = QTimer(self, singleShot=True, interval=_UPDATE_AFTER_MS)
        self._run_timer.timeout.connect(self._show_run)
        self._page_timer = QTimer(self, singleShot=True, interval=_PREPARE_AFTER_MS)
        self._page_timer.timeout.connect(self._prepare_page)
        self._connect()
        self._show_selection()
        if not session.is_past:  # for past runs forms are created on demand, because results matter more
            self._page_timer.start()

    @cached_property
    def result(self) -> ResultPage:
        """The Result page, created when it is first shown."""
        result = ResultPage(self._session, self._result_scroll.holder, can_compare=True)
        result.node_id = self._node_id
        result.compare_wanted.connect(self.compare_wanted)
        self._result_scroll.add_page(result)
        return result

    @cached_property
    def _nodes_page(self) -> NodesPage:
        """The page for several nodes, created when it is first shown."""
        page = self._add_page(lambda parent: NodesPage(self._session, self._models, parent))
        page.form_created.connect(self._adopt_form)
        return page

    def focus_field(self, node_id: str | None, field: str) -> None:
        """Show a field, given as a dotted path, and move the focus to it; without a node, a field of the workflow."""
        self._session.select([] if node_id is None else [node_id])
        self.tabs.setCurrentIndex(PROPERTIES)
        self.page.focus_field(field)

    def focus_first_field(self) -> None:
        """Show the properties of the selection and move the focus to the first field."""
        self.tabs.setCurrentIndex(PROPERTIES)
        if isinstance(self.page, NodesPage):
            self.page.create_form()
        if self.page.form is None or not self.page.form.focus_first():
            self.page.focus_field("")

    def show_result(self) -> None:
        """Switch to the Result tab."""
        self.tabs.setCurrentIndex(RESULT)

    def show_tab(self, page: QWidget) -> None:
        """Switch to a page that `add_tab` added."""
        self.tabs.setCurrentIndex(self._stack.indexOf(page))

    def add_tab(self, title: str, page: QWidget) -> int:
        """Add a tab after Properties and Result, and return its index."""
        self._stack.addWidget(page)
        return self.tabs.addTab(title)

    def _lay_out(self) -> None:
        self._stack = QStackedWidget(self)
        self._properties_stack = QStackedWidget(self._stack)
        self._result_scroll = _ScrollPage(self._stack)
        self._stack.addWidget(self._properties_stack)
        self._stack.addWidget(self._result_scroll)
        self.workflow_page = self._add_page(lambda parent: WorkflowPage(self._session, self._models, parent))
        self.workflow_page.form.advanced_toggled.connect(self._remember_advanced)
        self.page = self.workflow_page
        head = vbox(self.tabs, self.pin_bar, spacing=3, margins=(0, 0, 3, 0))
        vbox(head, (self._stack, 1), spacing=3, margins=(3, 3, 0, 0), parent=self)

    def _connect(self) -> None:
        session = self._session
        session.changed.connect(self._document_changed)
        session.analyzed.connect(self._analyzed)
        session.selection_changed.connect(self._show_selection)
        session.shown.started.connect(self._run_timer.start)
        session.shown.ended.connect(self._run_timer.start)
        session.shown.ended.connect(self._page_timer.start)
        session.shown.updated.connect(self._run_updated)
        session.shown.view_changed.connect(self._show_run)
        if session.is_past:  # edits are refused: restore the values
            session.refused.connect(lambda _text: self._restore_values())
        self.tabs.currentChanged.connect(self._show_tab)

    def _add_page(self, make: Callable[[QWidget], PageT]) -> PageT:
        """Create a page in its final parent: Qt restyles a whole widget tree whenever its parent changes."""
        scroll = _ScrollPage(self._properties_stack)
        self._properties_stack.addWidget(scroll)
        page = make(scroll.holder)
        scroll.add_page(page)
        order_tabs(page)
        self._scrolls[page] = scroll
        page.binding.events.entered.connect(scroll.follow)
        page.binding.events.cursor_moved.connect(scroll.show_cursor)
        page.binding.fix_wanted.connect(self.fix_wanted)
        return page

    def _type_of(self, node_id: str) -> str:
        node = self._session.node(node_id)
        return node.type if node is not None else ""

    def _page_for(self, node_type: str) -> NodePage:
        page = self._pages.get(node_type)
        if page is None:
            page = self._add_page(lambda parent: NodePage(self._session, self._models, node_type, parent))
            page.rename_requested.connect(self._rename)
            if page.form is not None:
                page.form.advanced_toggled.connect(self._remember_advanced)
            self._pages[node_type] = page
        return page

    def _prepare_page(self) -> None:
        """Create or fill one page while the window is idle, and schedule the next.

        Selecting a node then only changes values in existing widgets. During a run nothing is created, because that
        would delay the display of streamed output.
        """
        if self._session.shown.live is not None:
            return
        for node in self._session.workflow.nodes:
            page = self._pages.get(node.type)
            if page is None:
                self._page_for(node.type)
            elif page.binding.node_id is None:
                page.show_node(node.id)
            else:
                continue
            self._page_timer.start()
            return

    def _show_selection(self) -> None:
        if self._is_renaming:
            return
        self._session.seal()
        selection = self._session.selection
        self._node_id = selection[0] if len(selection) == 1 else None
        self.tabs.setTabEnabled(RESULT, len(selection) < 2)
        shown: WorkflowPage | NodesPage | NodePage
        if len(selection) > 1:
            self.tabs.setCurrentIndex(PROPERTIES)
            shown = self._nodes_page
            shown.show_nodes(selection)
        elif self._node_id is None:
            self.workflow_page.show_values()
            self.workflow_page.show_problems()
            shown = self.workflow_page
        else:
            shown = self._page_for(self._type_of(self._node_id))
            shown.show_node(self._node_id)
        self.page = shown
        if shown.form is not None:
            shown.form.advanced_button.setChecked(self._is_advanced_open)
        self._properties_stack.setCurrentWidget(self._scrolls[shown])
        self._show_run()

    def _document_changed(self, old: object, new: object) -> None:
        del old, new
        if self._is_renaming:
            return
        self._show_pin()
        if isinstance(self.page, NodePage):
            node = self._session.node(self.page.binding.node_id or "")
            if node is None:
                return  # the selection changes next
            if node.type != self.page.node_type:
                self._show_selection()
                return
        elif isinstance(self.page, NodesPage) and len(self.page.binding.nodes) < len(self.page.binding.node_ids):
            return  # the selection changes next
        self.page.show_values()

    def _restore_values(self) -> None:
        self.page.show_values(force=True)

    def _analyzed(self) -> None:
        self._page_timer.start()
        self.page.show_problems()
        if not isinstance(self.page, WorkflowPage):
            self.page.refresh()

    def _run_updated(self, touched: set[str]) -> None:
        if self._node_id is None or touched & self._relevant_nodes():
            self._run_timer.start()

    def _relevant_nodes(self) -> set[str]:
        """Return the selected node and its surrounding loops; each of their iterations is another execution."""
        relevant: set[str] = set()
        node_id = self._node_id
        while node_id is not None:
            relevant.add(node_id)
            view_model = self._session.shown.view_model
            node_id = view_model.parents.get(node_id) if view_model is not None else None
        return relevant

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Fit the titles of the tabs to the width."""
        super().resizeEvent(event)
        self._show_result_title()

    def _show_result_title(self) -> None:
        """Name the iteration in the title, if there is room beside the other tabs."""
        title, metrics = self._result_title(), self.tabs.fontMetrics()
        others = [
            self.tabs.tabText(tab) for tab in range(self.tabs.count()) if tab != RESULT and self.tabs.isTabVisible(tab)
        ]
        needed = sum(metrics.horizontalAdvance(text) + _TAB_MARGINS for text in (title, *others))
        self.tabs.setTabText(RESULT, title if needed <= self.tabs.width() else RESULT_TITLE)

    def _show_run(self) -> None:
        self._show_result_title()
        self._show_pin()
        if self.tabs.currentIndex() == RESULT:
            self.result.node_id = self._node_id
            self.result.update_result()

    def _show_pin(self) -> None:
        view_model, node_id = self._session.shown.view_model, self._node_id
        outputs = view_model.node(node_id, self._session.shown.chosen).outputs if view_model and node_id else {}
        self.pin_bar.show_node(node_id, has_result=bool(outputs) and self.tabs.currentIndex() == RESULT)

    def _result_title(self) -> str:
        view_model, workflow = self._session.shown.view_model, self._session.shown.workflow
        loop = view_model.parents.get(self._node_id) if view_model is not None and self._node_id is not None else None
        if view_model is None or workflow is None or loop is None:
            return RESULT_TITLE
        return f"{RESULT_TITLE} · {unit_of(workflow, loop)} {view_model.index_of(loop, self._session.shown.chosen) + 1}"

    def _show_tab(self, index: int) -> None:
        self._stack.setCurrentIndex(index)
        self._show_run()

    def _adopt_form(self) -> None:
        form = self._nodes_page.form
        assert form is not None
        form.advanced_toggled.connect(self._remember_advanced)
        form.advanced_button.setChecked(self._is_advanced_open)

    def _remember_advanced(self, is_open: bool) -> None:  # Qt's signal
        self._is_advanced_open = is_open

    def _rename(self, new: str) -> None:
        old, page = self._node_id, self.page
        assert old is not None
        assert isinstance(page, NodePage)
        self._is_renaming = True
        try:
            if self._session.do(RenameNode(old, new)):
                self._node_id = page.binding.node_id = new
        finally:
            self._is_renaming = False
        page.show_values()
        page.show_problems()


class _ScrollPage(QScrollArea):
    """Scroll area for one page, which is created with `holder` as its parent and then added.

    The field with the focus stays where it is on the screen when others appear, grow or disappear.
    """

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.holder = QWidget(self.viewport())
        self.holder.setObjectName("page")
        self._box = vbox(STRETCH, margins=(0, 0, 3, 4), parent=self.holder)
        self._field_top: int | None = None
        self._settling = QTimer(self, singleShot=True, interval=0)
        self._settling.timeout.connect(self._show_field)
        self._resizing = QTimer(self, singleShot=True, interval=0)
        self._resizing.timeout.connect(self._keep_place)
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setWidget(self.holder)
        self.verticalScrollBar().valueChanged.connect(self._note_place)
        self.verticalScrollBar().rangeChanged.connect(self._resized)

    def add_page(self, page: QWidget) -> None:
        """Put the page above the stretch."""
        page.setObjectName("page")
        self._box.insertWidget(0, page)

    def follow(self, may_scroll: bool) -> None:  # a slot
        """Note that another field has the focus, and scroll it into view if that is wanted."""
        self._field_top = None
        if may_scroll:
            self._show_field()
            self._settling.start()  # again, once new fields have their places
        else:
            self._note_place()

    def show_cursor(self) -> None:
        """Scroll to the text cursor of the field with the focus."""
        edit = self._field()
        if isinstance(edit, QPlainTextEdit):
            line = edit.cursorRect()
            bottom = edit.viewport().mapTo(self.holder, line.bottomLeft())
            self.ensureVisible(0, bottom.y() - line.height() // 2, 0, line.height() // 2 + 2 * UNIT)

    def _field(self) -> QWidget | None:
        focus = QApplication.focusWidget()
        return focus if focus is not None and self.holder.isAncestorOf(focus) else None

    def _top(self) -> int | None:
        field = self._field()
        return field.mapTo(self.viewport(), QPoint(0, 0)).y() if field is not None else None

    def _show_field(self) -> None:
        if (field := self._field()) is not None:
            self.ensureWidgetVisible(field, 0, 6 * UNIT)
            self._note_place()

    def _note_place(self) -> None:
        self._field_top = self._top()

    def _resized(self) -> None:
        self._keep_place()
        self._resizing.start()  # again, because Qt may move the fields only now

    def _keep_place(self) -> None:
        before, now = self._field_top, self._top()
        if before is not None and now is not None and not self._settling.isActive():
            bar = self.verticalScrollBar()
            bar.setValue(bar.value() + now - before)
            self.show_cursor()
