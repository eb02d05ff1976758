"""Start and end of the real process, and what is preloaded."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QSize, QTimer
from PySide6.QtWidgets import QLabel, QWidget
from pytestqt.qtbot import QtBot

from app.engine_thread import EngineThread
from app.gallery.gallery import MODEL_LINE
from app.main import ModelPreloader, build_parser, fit_frame_on_screen, preload
from app.settings.preferences import Preferences
from app.window.main_window import open_files
from app.workbench import Workbench
from engine.document.model import Workflow
from engine.expr.expression import compile_expression
from engine.models import litellm_adapter
from engine.models.embedded import EmbeddedModel
from engine.models.protocol import EMBEDDED_MODEL
from tests.app.window.conftest import MakeWindow, open_file, saved, small

# The process reports what it sees and closes its window itself. Without a file it acts early, before anything is
# preloaded.
PROGRAM = """
import sys
import threading

elsewhere = []


class Imports:
    def find_spec(self, name, path=None, target=None):
        if threading.current_thread() is not threading.main_thread():
            elsewhere.append(name)


sys.meta_path.insert(0, Imports())

import app.entry
import app.main
from PySide6.QtCore import QObject, QTimer


def has_classes_of_qt(name):
    return any(isinstance(value, type(QObject)) for value in vars(sys.modules.get(name)).values())


class Workbench(app.main.Workbench):
    def show(self):
        super().show()
        QTimer.singleShot(0, self.look)

    def press(self):
        print('documents' in vars(self), 'history' in vars(self))
        size = self.window.size()
        print('fits', size.boundedTo(self.window.screen().availableSize()) == size)
        self.actions_by_name['settings'].trigger()
        print('settings', self.commands.settings.isVisible())
        self.commands.settings.close()
        self.actions_by_name['show_runs'].trigger()
        print('panel', self.bottom_panel.open_panel, self.history.panel.isVisible())
        self.gallery.cards[0].button.click()
        print('palette', self.palette_panel.isVisible())

    def look(self):
        wanted = len(sys.argv) - 1
        if not wanted:
            self.press()
        if wanted and ('documents' not in vars(self) or len(self.documents.all) < wanted):
            QTimer.singleShot(10, self.look)
            return
        print('open', [document.session.name for document in self.documents.all])
        self.window.close()


app.main.Workbench = Workbench
code = app.entry.main(['open', *sys.argv[1:]])
there = [name for name in elsewhere if name in sys.modules]
print('elsewhere', [name for name in there if has_classes_of_qt(name)])
print('ended', code)
sys.exit(code)
"""


def started(home: Path, *files: Path) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "XDG_CONFIG_HOME": str(home / "config"),
        "XDG_DATA_HOME": str(home / "data"),
        "QT_QPA_PLATFORM": "offscreen",
    }
    command = [sys.executable, "-c", PROGRAM, *map(str, files)]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=60)


@pytest.mark.slow
def test_window_is_usable_before_its_controllers_exist_and_ends_cleanly(tmp_path: Path) -> None:
    done = started(tmp_path)

    assert done.stdout.splitlines() == [
        "False False",
        "fits True",
        "settings True",
        "panel runs True",
        "palette True",
        "open ['Self-Refine']",
        "elsewhere []",
        "ended 0",
    ], done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(("height", "expected"), [(-40, -40), (0, -30)], ids=["fits", "as high as the screen"])
def test_window_with_its_title_bar_fits_the_screen(qtbot: QtBot, height: int, expected: int) -> None:
    class Framed(QWidget):
        def frameSize(self) -> QSize:
            return self.size() + QSize(2, 30)

    window = Framed()
    qtbot.addWidget(window)
    screen = window.screen().availableSize()
    window.resize(300, screen.height() + height)
    fit_frame_on_screen(window)
    assert window.size() == QSize(300, screen.height() + expected)


def test_expression_parser_is_preloaded() -> None:
    from engine.expr import syntax

    compile_expression.cache_clear()
    syntax._parser.cache_clear()
    build_parser()

    assert syntax._parser.cache_info().currsize == 1


def test_files_of_the_command_line_open_and_qt_classes_stay_in_the_main_thread(tmp_path: Path) -> None:
    done = started(tmp_path, saved(tmp_path, "one.loop.json"), saved(tmp_path, "two.loop.json"))

    assert done.stdout.splitlines() == ["open ['Small', 'Small']", "elsewhere []", "ended 0"], done.stderr


CREATED = {name for name, attribute in vars(Workbench).items() if isinstance(attribute, cached_property)}


def test_controllers_are_created_one_by_one_while_events_are_handled(workbench: Workbench, qtbot: QtBot) -> None:
    for name in CREATED:
        vars(workbench).pop(name, None)
    steps: list[set[str]] = []
    timer = QTimer(workbench)
    timer.timeout.connect(lambda: steps.append(CREATED & vars(workbench).keys()))
    timer.start(0)
    ended: list[bool] = []

    preload(workbench, lambda: ended.append(True))
    assert CREATED & vars(workbench).keys() == set()
    qtbot.waitUntil(lambda: ended == [True])
    timer.stop()

    assert vars(workbench).keys() >= CREATED
    assert len({len(step) for step in steps}) > 2, "events were handled in between"


def test_start_page_shows_the_default_model(make_window: MakeWindow, preferences: Preferences) -> None:
    preferences.set(default_model="openai/one")
    workbench = make_window()

    def shown() -> list[str]:
        texts = [label.text() for label in workbench.gallery.findChildren(QLabel)]
        return [text for text in texts if text in {MODEL_LINE, "Default model: one", "Default model: two"}]

    assert shown() == ["Default model: one"]
    preferences.set(default_model="openai/two")
    assert shown() == ["Default model: two"]
    preferences.set(default_model=None)
    assert shown() == [MODEL_LINE]


def test_window_closed_at_once_still_reopens_documents_next_time(
    make_window: MakeWindow, preferences: Preferences, tmp_path: Path
) -> None:
    path = saved(tmp_path)
    open_file(make_window(), path)
    quick = make_window()
    quick.is_starting = True
    quick.window.close()

    assert open_files(preferences, tmp_path) == [path]


def test_failing_controller_does_not_prevent_the_others(
    workbench: Workbench, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_workbench: Workbench) -> None:
        raise RuntimeError("no presenter today")

    failing = cached_property(fail)
    failing.__set_name__(Workbench, "presenter")
    for name in ("presenter", "taskbar"):
        vars(workbench).pop(name, None)
    monkeypatch.setattr(Workbench, "presenter", failing)
    ended: list[bool] = []
    with qtbot.captureExceptions() as errors:
        preload(workbench, lambda: ended.append(True))
        qtbot.waitUntil(lambda: ended == [True])
    vars(workbench)["presenter"] = None

    assert [str(error[1]) for error in errors] == ["no presenter today"]
    assert "taskbar" in vars(workbench)


@pytest.fixture
def readied(workbench: Workbench, engine_thread: EngineThread, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record what would be preloaded."""
    done: list[str] = []

    async def load() -> Any:
        done.append("litellm")

    async def warm_up(_self: EmbeddedModel) -> None:
        done.append("embedded")

    monkeypatch.setattr(EmbeddedModel, "warm_up", warm_up)
    monkeypatch.setattr(litellm_adapter, "load_litellm", load)
    return done


def asking(model: str) -> Workflow:
    return small(model=model)


def test_only_models_of_open_documents_are_preloaded_once(
    workbench: Workbench, engine_thread: EngineThread, readied: list[str], tmp_path: Path, qtbot: QtBot
) -> None:
    warm_up = ModelPreloader(workbench, engine_thread)
    open_file(workbench, saved(tmp_path, "one.loop.json", asking(EMBEDDED_MODEL)))
    assert readied == [], "not before the window was painted"

    warm_up.begin()
    qtbot.waitUntil(lambda: readied == ["embedded"])
    open_file(workbench, saved(tmp_path, "two.loop.json", asking("openai/gpt-4o-mini")))
    qtbot.waitUntil(lambda: readied == ["embedded", "litellm"])
    open_file(workbench, saved(tmp_path, "three.loop.json", asking("openai/gpt-4o-mini")))
    open_file(workbench, saved(tmp_path, "four.loop.json", asking("scripted:x.json")))
    open_file(workbench, saved(tmp_path, "five.loop.json", asking("gguf:large")))
    engine_thread.submit(_nothing()).result(timeout=60)

    assert readied == ["embedded", "litellm"]


async def _nothing() -> None:
    """Return when all earlier requests have started."""
