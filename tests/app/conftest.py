"""Fixtures of all tests of the window: application, engine thread, sessions, and a check for leftover threads."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Callable, Iterator
from functools import partialmethod
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import pytest
from PySide6.QtCore import QCoreApplication, QEvent, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from app.engine_thread import EngineThread
from app.session import Session
from app.theme.style import Style
from engine.document.model import Workflow
from engine.exits import MAX_ITERATIONS_CAP, set_shown_cap

# What Qt's offscreen platform says of itself.
_OFFSCREEN_SAYS = "This plugin does not support (propagateSizeHints|raise|grabbing)"
_HERE = Path(__file__).parent
_PATIENCE_MS = 60_000


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if _HERE in item.path.parents:
            item.add_marker(pytest.mark.qt_log_level_fail("WARNING"))
            item.add_marker(pytest.mark.qt_log_ignore(_OFFSCREEN_SAYS))


@pytest.fixture(scope="session")
def qapp(qapp: QApplication) -> QApplication:
    qapp.setApplicationName("loopwright")
    style = Style(qapp)
    style.choose("dark")
    return qapp


class PatientQtBot(QtBot):
    """Waits longer than five seconds for what a test expects: a busy machine is no failure."""

    waitActive = partialmethod(QtBot.waitActive, timeout=_PATIENCE_MS)  # noqa: N815 - the names are Qt's
    waitExposed = partialmethod(QtBot.waitExposed, timeout=_PATIENCE_MS)  # noqa: N815
    waitSignal = partialmethod(QtBot.waitSignal, timeout=_PATIENCE_MS)  # noqa: N815
    waitSignals = partialmethod(QtBot.waitSignals, timeout=_PATIENCE_MS)  # noqa: N815
    waitUntil = partialmethod(QtBot.waitUntil, timeout=_PATIENCE_MS)  # noqa: N815


@pytest.fixture
def qtbot(qapp: QApplication, request: pytest.FixtureRequest) -> QtBot:
    return PatientQtBot(request)


@pytest.fixture(autouse=True)
def own_folders(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Settings and data of the program lie in a folder of the test."""
    home = tmp_path_factory.mktemp("home")
    for variable in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(variable, str(home / variable.lower()))
    monkeypatch.delenv("LOOPWRIGHT_SETTINGS")
    return home


def pytest_runtest_logfinish() -> None:
    """Free what the test created; pytest holds its fixtures until their teardown is over."""
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)  # which only an event loop does by itself
    gc.collect(1)
    gc.enable()


@pytest.fixture(autouse=True)
def no_collection_in_other_threads() -> None:
    """As in the program (`app.garbage_collector`), garbage is collected in the window's thread only."""
    gc.disable()


@pytest.fixture(autouse=True)
def usual_cap() -> Iterator[None]:
    """Preferences set the cap that texts about documents show, for the whole process."""
    yield
    set_shown_cap(MAX_ITERATIONS_CAP)


@pytest.fixture
def thread_patience_s() -> float:
    """How many seconds the threads of a test may take to end after it."""
    return 60.0


@pytest.fixture(autouse=True)
def no_threads_left(thread_patience_s: float) -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    left = [thread for thread in threading.enumerate() if thread not in before]
    for thread in left:
        thread.join(timeout=thread_patience_s)
    names = [thread.name for thread in left if thread.is_alive()]
    assert not names, f"threads left behind: {names}"


@pytest.fixture(autouse=True)
def no_button_held(qapp: QApplication) -> Iterator[None]:
    """A double click of `QTest` leaves its button held down, and all that moves the mouse later would be a drag."""
    yield
    for button in (Qt.MouseButton.LeftButton, Qt.MouseButton.RightButton, Qt.MouseButton.MiddleButton):
        if QApplication.mouseButtons() & button:
            anywhere = QWidget()
            QTest.mouseRelease(anywhere, button)
            anywhere.deleteLater()


@pytest.fixture
def engine_thread(qapp: QApplication) -> Iterator[EngineThread]:
    engine = EngineThread()
    yield engine
    engine.stop()
    engine.deleteLater()


MakeSession = Callable[..., Session]


@pytest.fixture
def make_session(engine_thread: EngineThread, qtbot: QtBot) -> Iterator[MakeSession]:
    """Makes sessions, and ends their runs after the test."""
    made: list[Session] = []

    def make(workflow: Workflow | None = None, path: Path | None = None) -> Session:
        session = Session(engine_thread, workflow, path)
        made.append(session)
        return session

    yield make
    for session in made:
        if session.shown.live is not None:
            session.shown.live.cancel()
            qtbot.waitUntil(lambda session=session: session.shown.live is None)
        session.deleteLater()
