"""A window with a history in a file of the test, and its parts with a store of the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QCoreApplication, QEvent, QObject
from pytestqt.qtbot import QtBot

from app.engine_thread import EngineThread
from app.history.fork_dialog import ForkForm
from app.history.store_client import StoreClient
from app.inspector.prompt_editor import TemplateEdit
from app.settings.preferences import Preferences
from app.workbench import Workbench
from engine.store import Store, open_store
from tests.app.window.conftest import Answers, Script, answers, end, ended, preferences, script

__all__ = ["answers", "preferences", "script"]


@pytest.fixture
def store_path(tmp_path: Path) -> Path:
    return tmp_path / "history.sqlite3"


@pytest.fixture
def store(store_path: Path) -> Iterator[Store]:
    """The history as another part of the program has it open."""
    opened = open_store(store_path)
    yield opened
    opened.close()


@pytest.fixture
def access(store: Store, store_path: Path, qtbot: QtBot) -> Iterator[StoreClient]:
    """The window's client of that history."""
    owner = QObject()
    access = StoreClient(store_path, owner)
    access.open()
    qtbot.waitUntil(lambda: access.store is not None)
    yield access
    access.close()
    qtbot.waitUntil(lambda: not access.is_busy)
    owner.deleteLater()


MakeWindow = Callable[[], Workbench]


@pytest.fixture
def make_window(
    engine_thread: EngineThread,
    preferences: Preferences,
    answers: Answers,
    script: Script,
    tmp_path: Path,
    store_path: Path,
    qtbot: QtBot,
) -> Iterator[MakeWindow]:
    """Makes windows on the same history; each has the keyboard when it is made."""
    made: list[Workbench] = []

    def make() -> Workbench:
        workbench = Workbench(
            engine_thread, preferences, dialogs=answers, data_folder=tmp_path / "data", store=store_path
        )
        made.append(workbench)
        workbench.show()
        workbench.window.activateWindow()
        workbench.history.access.open()
        qtbot.waitUntil(lambda: workbench.window.isActiveWindow() and workbench.history.access.store is not None)
        return workbench

    yield make
    for workbench in made:
        close(workbench, qtbot)
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


def close(workbench: Workbench, qtbot: QtBot) -> None:
    """Close a window with everything in it, and its history; may be called twice."""
    if workbench.closing.is_closing:
        return
    for document in workbench.documents.all:
        if document.session.shown.live is not None:
            document.session.shown.live.cancel()
            ended(document, qtbot)
    workbench.history.access.close()
    qtbot.waitUntil(lambda: not workbench.history.access.is_busy)
    end(workbench, qtbot)


@pytest.fixture
def workbench(make_window: MakeWindow) -> Workbench:
    return make_window()


def prompt_of(form: ForkForm, node_id: str, name: str = "prompt") -> TemplateEdit:
    """A prompt of a node."""
    row = form.forms[node_id].row(name)
    assert row is not None
    assert isinstance(row.editor.text_widget, TemplateEdit)
    return row.editor.text_widget
