"""From the program's start to a window, and to its end: the real process, and what is got ready when nobody waits."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pytestqt.qtbot import QtBot

from app.bridge import EngineThread
from app.main import WarmUp, build_expression_parser, import_in_background
from app.window.main_window import MainWindow
from engine.document.model import Workflow
from engine.expr.expression import compile_expression
from engine.models import litellm_import
from engine.models.embedded import EmbeddedModel
from engine.models.model_names import EMBEDDED_MODEL
from tests.app.window.conftest import open_file, saved, small

# The process closes its window itself, and tells what it saw.
PROGRAM = """
import sys
import app.main
from PySide6.QtCore import QTimer


class Window(app.main.MainWindow):
    def showEvent(self, event):
        super().showEvent(event)
        loaded = sorted(name for name in ('NodeGraphQt', 'litellm', 'xllamacpp') if name in sys.modules)
        print('loaded', loaded)
        QTimer.singleShot(0, self.look)

    def look(self):
        wanted = len(sys.argv) - 1
        if len(self.documents.all) < wanted:
            QTimer.singleShot(10, self.look)
            return
        print('open', [document.session.name for document in self.documents.all])
        self.close()


app.main.MainWindow = Window
code = app.main.run_window(sys.argv[1:])
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
def test_the_window_comes_before_everything_slow_and_the_program_ends_cleanly(tmp_path: Path) -> None:
    done = started(tmp_path)

    assert done.stdout.splitlines() == ["loaded []", "open []", "ended 0"], done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_the_parser_of_expressions_is_built_before_it_is_wanted() -> None:
    from engine.expr import syntax

    compile_expression.cache_clear()
    syntax._parser.cache_clear()
    build_expression_parser().join()

    assert syntax._parser.cache_info().currsize == 1


def test_files_named_at_the_start_are_opened(tmp_path: Path) -> None:
    done = started(tmp_path, saved(tmp_path, "one.loop.json"), saved(tmp_path, "two.loop.json"))

    assert done.stdout.splitlines()[1:] == ["open ['Small', 'Small']", "ended 0"], done.stderr


@pytest.fixture
def readied(window: MainWindow, engine_thread: EngineThread, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Notes what is got ready, in place of doing it."""
    done: list[str] = []

    async def load() -> Any:
        done.append("litellm")

    monkeypatch.setattr(EmbeddedModel, "warm_up", lambda _self: done.append("embedded"))
    monkeypatch.setattr(litellm_import, "load_litellm", load)
    monkeypatch.setattr("app.main.load_litellm", load)
    return done


def asking(model: str) -> Workflow:
    return small(model=model)


def test_only_models_that_a_document_names_are_got_ready_and_once(
    window: MainWindow, engine_thread: EngineThread, readied: list[str], tmp_path: Path, qtbot: QtBot
) -> None:
    warm_up = WarmUp(window, engine_thread)
    open_file(window, saved(tmp_path, "one.loop.json", asking(EMBEDDED_MODEL)))
    assert readied == [], "not before the window was painted"

    warm_up.begin()
    qtbot.waitUntil(lambda: readied == ["embedded"])
    open_file(window, saved(tmp_path, "two.loop.json", asking("openai/gpt-4o-mini")))
    qtbot.waitUntil(lambda: readied == ["embedded", "litellm"])
    open_file(window, saved(tmp_path, "three.loop.json", asking("openai/gpt-4o-mini")))
    open_file(window, saved(tmp_path, "four.loop.json", asking("scripted:x.json")))
    engine_thread.submit(_nothing()).result(timeout=5)

    assert readied == ["embedded", "litellm"]


async def _nothing() -> None:
    """Ends when all that was asked for before has begun."""


def test_an_import_that_fails_in_the_background_fails_where_it_is_used() -> None:
    import_in_background("no_such_module_at_all")
