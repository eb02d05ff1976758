"""Documents create only what is shown; closed ones are freed, and no widget is styled again on the way."""

from __future__ import annotations

import ctypes
import gc
import sys
import weakref
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QCoreApplication, QEvent, QMargins, QObject, QPoint, QPointF, Qt
from PySide6.QtGui import QPixmap, QPixmapCache
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QGraphicsItem, QSpinBox, QWidget
from pytestqt.qtbot import QtBot
from shiboken6 import isValid

from app.canvas.popups import PickList
from app.engine_thread import EngineThread
from app.history.iterations_panel import IterationsPanel
from app.inspector.properties_pages import NodesPage
from app.inspector.result_page import ResultPage
from app.inspector.text_editors import NumberBox
from app.settings.preferences import Preferences
from app.timers import call_later
from app.window.chat_panel import ChatPanel
from app.window.document_page import DocumentPage
from app.workbench import Workbench
from tests.app.window.conftest import SELF_REFINE, MakeWindow, Script, end, ended

IDLE_MS = 400
"""Long enough for forms that are made while nothing happens."""


def opened(workbench: Workbench) -> DocumentPage:
    document = workbench.documents.open_template(SELF_REFINE)
    assert document is not None
    return document


def collect() -> None:
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    gc.collect()


def test_new_document_creates_only_what_is_shown(workbench: Workbench, qtbot: QtBot) -> None:
    document = workbench.documents.new()
    assert document.created_inspector is None
    widgets = [*document.findChildren(QWidget), *document.inspector.findChildren(QWidget)]
    deferred = (ChatPanel, IterationsPanel, NodesPage, PickList, ResultPage)
    assert [type(widget) for widget in widgets if isinstance(widget, deferred)] == []
    qtbot.waitUntil(lambda: bool(document.inspector.findChildren(ChatPanel)))


def test_inspector_is_created_after_the_first_frame_and_shown_for_the_current_document(
    workbench: Workbench, qtbot: QtBot
) -> None:
    first, second = opened(workbench), workbench.documents.new()
    workbench.tabs.show_document(first)
    assert workbench.inspectors.isVisible()
    assert first.created_inspector is second.created_inspector is None
    qtbot.waitUntil(lambda: None not in (first.created_inspector, second.created_inspector))
    assert workbench.inspectors.currentWidget() is first.created_inspector
    workbench.tabs.show_document(second)
    assert workbench.inspectors.currentWidget() is second.created_inspector


def test_inspector_that_is_used_earlier_is_created_and_shown_at_once(workbench: Workbench) -> None:
    document = opened(workbench)
    document.inspector.focus_field("draft", "prompt")
    assert workbench.inspectors.currentWidget() is document.created_inspector
    assert document.inspector.page.form is not None
    assert document.inspector.page.form.row("prompt").editor.edit.hasFocus()


def test_document_closed_before_its_inspector_is_created_gets_none(workbench: Workbench, qtbot: QtBot) -> None:
    document = opened(workbench)
    number = workbench.inspectors.count()
    created: list[object] = []
    document.inspector_created.connect(created.append)

    def close() -> None:
        workbench.documents.drop(document)
        qtbot.wait(IDLE_MS)  # as a dialog does: the page is deleted only after it

    call_later(workbench, close)
    qtbot.waitUntil(lambda: not isValid(document))
    assert created == []
    assert workbench.inspectors.count() == number


def test_document_closed_while_its_panels_are_being_resized_is_freed(workbench: Workbench, qtbot: QtBot) -> None:
    def resize_and_close() -> list[weakref.ref[QObject]]:
        document = opened(workbench)
        workbench.bottom_panel.unfold("iterations")
        QApplication.processEvents()
        document.iterations.resize(document.iterations.size().grownBy(QMargins(0, 0, 0, 100)))
        workbench.documents.drop(document)
        collect()
        return [weakref.ref(part) for part in (document, document.session, document.canvas, document.iterations)]

    freed = resize_and_close()
    qtbot.waitUntil(lambda: collect() or all(part() is None for part in freed))


def test_document_closed_as_its_menu_closes_is_freed(workbench: Workbench, qtbot: QtBot) -> None:
    def close_menu_and_document() -> list[weakref.ref[QObject]]:
        document = opened(workbench)
        popups = document.canvas.popups
        popups.open_menu(QPoint(100, 100), QPointF(0, 0))
        assert popups.menu is not None
        popups.menu.hide()
        workbench.documents.drop(document)
        collect()
        return [weakref.ref(part) for part in (document, document.session, document.canvas, popups)]

    freed = close_menu_and_document()
    qtbot.waitUntil(lambda: collect() or all(part() is None for part in freed))


def test_fields_that_were_visible_when_their_document_was_closed_are_freed(workbench: Workbench, qtbot: QtBot) -> None:
    def close_document() -> list[weakref.ref[QObject]]:
        document = opened(workbench)
        visible = [box for box in document.inspector.findChildren(NumberBox) if box.isVisible()]
        assert visible
        workbench.documents.drop(document)
        return [weakref.ref(box) for box in visible]

    freed = close_document()
    qtbot.waitUntil(lambda: collect() or all(box() is None for box in freed))


class _HeapStatistics(ctypes.Structure):
    """`struct mallinfo2` of the GNU C library: ten numbers."""

    _fields_ = [("first", ctypes.c_size_t * 7), ("allocated", ctypes.c_size_t), ("last", ctypes.c_size_t * 2)]


def heap_bytes() -> int:
    """The allocated bytes of the heap, without the free ones that the process keeps."""
    read = getattr(ctypes.CDLL(None), "mallinfo2", None) if sys.platform == "linux" else None
    if read is None:
        pytest.skip("needs the heap statistics of the GNU C library")
    read.restype = _HeapStatistics
    return read().allocated


def test_closing_a_document_frees_the_style_of_the_fields_that_it_had(workbench: Workbench, qtbot: QtBot) -> None:
    def open_and_close(fields: int) -> None:
        document = opened(workbench)
        for _ in range(fields):
            QSpinBox(document)
        freed = weakref.ref(document)
        workbench.documents.drop(document)
        del document
        qtbot.waitUntil(lambda: collect() or freed() is None)

    for _ in range(2):  # the first ones create what stays
        open_and_close(0)
    before = heap_bytes()
    open_and_close(2_000)
    assert heap_bytes() - before < 1_000_000  # half of what Qt keeps without help


def test_closing_a_document_frees_the_images_that_it_showed(workbench: Workbench) -> None:
    document = opened(workbench)
    image = QPixmapCache.insert(QPixmap(16, 16))
    assert image.isValid()
    workbench.documents.drop(document)
    assert not image.isValid()


@pytest.mark.slow
def test_opening_running_and_closing_leaves_no_object(workbench: Workbench, script: Script, qtbot: QtBot) -> None:
    def round_trip() -> Counter[str]:
        document = opened(workbench)
        QTest.qWait(IDLE_MS)
        workbench.runs.run(document)
        ended(document, qtbot)
        QTest.qWait(IDLE_MS)
        workbench.documents.drop(document)
        del document
        QTest.qWait(IDLE_MS)
        collect()
        # Of Qt's own classes, PySide keeps an empty wrapper for the close button of each tab.
        found = [one for one in gc.get_objects() if isinstance(one, (QObject, QGraphicsItem))]
        alive = Counter(type(one).__name__ for one in found if not type(one).__module__.startswith("PySide6."))
        alive["widgets of Qt"] = len(QApplication.allWidgets())
        alive["objects of the window"] = len(workbench.window.findChildren(QObject))
        return alive

    for _ in range(3):  # the first ones create what stays
        round_trip()
    before = round_trip()
    for _ in range(4):
        after = round_trip()
    assert after - before == Counter()


class Restyled(QObject):
    """Counts the widgets that Qt styles again because they have another parent."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.StyleChange and watched.isWidgetType():
            self.count += watched.testAttribute(Qt.WidgetAttribute.WA_WState_Polished)
        return False


@pytest.fixture
def restyled(qapp: QApplication) -> Iterator[Restyled]:
    counter = Restyled()
    qapp.installEventFilter(counter)
    yield counter
    qapp.removeEventFilter(counter)


def test_widgets_of_a_window_are_not_styled_twice(restyled: Restyled, make_window: MakeWindow) -> None:
    workbench = make_window()
    assert restyled.count < len(workbench.window.findChildren(QWidget)) / 10


def test_widgets_of_a_new_document_are_not_styled_twice(workbench: Workbench, restyled: Restyled) -> None:
    workbench.documents.new()
    restyled.count = 0
    workbench.documents.new()
    assert restyled.count < 10


def test_closing_a_document_styles_nothing(workbench: Workbench, restyled: Restyled) -> None:
    document = opened(workbench)
    restyled.count = 0
    workbench.documents.drop(document)
    collect()
    assert restyled.count < 10


def test_closed_window_is_freed(
    engine_thread: EngineThread, preferences: Preferences, script: Script, tmp_path: Path, qtbot: QtBot
) -> None:
    def open_and_close() -> list[weakref.ref[QObject]]:
        workbench = Workbench(engine_thread, preferences, data_folder=tmp_path / "data")
        workbench.show()
        parts = [workbench, workbench.gallery, workbench.history, opened(workbench)]
        end(workbench, qtbot)
        return [weakref.ref(part) for part in parts]

    freed = open_and_close()
    qtbot.waitUntil(lambda: collect() or all(part() is None for part in freed))
