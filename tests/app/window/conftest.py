"""A whole window for tests: real parts, a scripted model, and answers to file dialogs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QDeadlineTimer, QEventLoop
from PySide6.QtWidgets import QApplication, QMessageBox, QPushButton, QWidget
from pytestqt.qtbot import QtBot

from app.engine_thread import EngineThread
from app.settings.preferences import Preferences
from app.window.document_page import DocumentPage
from app.workbench import Workbench
from engine.bundled import templates_folder
from engine.document.builder import Builder
from engine.document.files import save
from engine.document.model import Workflow

SELF_REFINE = templates_folder() / "self-refine.loop.json"


class Answers:
    """Answers the file dialogs."""

    def __init__(self) -> None:
        self.to_open: list[Path] = []
        self.to_save: Path | None = None
        self.to_read: Path | None = None
        self.suggested: Path | None = None

    def open_files(self, _parent: QWidget, chosen: Callable[[list[Path]], None]) -> None:
        if self.to_open:
            chosen(self.to_open)

    def save_file(
        self, _parent: QWidget, suggestion: Path, _filters: str, chosen: Callable[[Path], None], **_how: bool
    ) -> None:
        self.suggested = suggestion
        if self.to_save is not None:
            chosen(self.to_save)

    def open_text(self, _parent: QWidget, chosen: Callable[[Path], None], *_how: str) -> None:
        if self.to_read is not None:
            chosen(self.to_read)


@pytest.fixture
def answers() -> Answers:
    return Answers()


Script = Callable[..., None]


@pytest.fixture
def preferences(qapp: Any, tmp_path: Path) -> Iterator[Preferences]:
    preferences = Preferences(tmp_path / "settings.json")
    preferences.set(theme="dark")
    yield preferences
    preferences.deleteLater()


@pytest.fixture
def script(preferences: Preferences, tmp_path: Path) -> Script:
    """Make a scripted model the default."""

    def write(default: object = "words", *rules: dict[str, Any], **more: Any) -> None:
        file = tmp_path / "script.json"
        file.write_text(json.dumps({"rules": list(rules), "default": default, **more}))
        preferences.set(default_model=f"scripted:{file}")

    write()
    return write


MakeWindow = Callable[..., Workbench]


@pytest.fixture
def make_window(
    engine_thread: EngineThread,
    preferences: Preferences,
    answers: Answers,
    script: Script,
    tmp_path: Path,
    qtbot: QtBot,
) -> Iterator[MakeWindow]:
    made: list[Workbench] = []

    def make() -> Workbench:
        workbench = Workbench(engine_thread, preferences, dialogs=answers, data_folder=tmp_path / "data")
        made.append(workbench)
        workbench.show()
        workbench.window.activateWindow()
        qtbot.waitUntil(workbench.window.isActiveWindow)
        return workbench

    yield make
    for workbench in made:
        end(workbench, qtbot)


def end(workbench: Workbench, qtbot: QtBot) -> None:
    """Close a window with everything in it, and wait until nothing of it runs."""
    for document in list(workbench.documents.all):
        if document.session.shown.live is not None:
            document.session.shown.live.cancel()
        workbench.documents.drop(document)
    qtbot.waitUntil(lambda: not workbench.closing.background)
    workbench.closing.is_closing = True
    workbench.window.close()
    workbench.window.deleteLater()


@pytest.fixture
def workbench(make_window: MakeWindow) -> Workbench:
    return make_window()


@pytest.fixture
def self_refine(workbench: Workbench) -> DocumentPage:
    document = workbench.documents.open_template(SELF_REFINE)
    assert document is not None
    return document


def await_files(workbench: Workbench) -> None:
    """Wait until all requested files are read."""
    deadline = QDeadlineTimer(60_000)
    while workbench.documents.is_reading:
        assert not deadline.hasExpired()
        QApplication.processEvents(QEventLoop.ProcessEventsFlag.WaitForMoreEvents)


def open_file(workbench: Workbench, path: Path) -> DocumentPage:
    """Open a file, and wait until it is open."""
    workbench.documents.open_file(path)
    await_files(workbench)
    return next(document for document in workbench.documents.all if document.session.path == path)


def saved(folder: Path, name: str = "one.loop.json", workflow: Workflow | None = None) -> Path:
    """A file with a small workflow."""
    path = folder / name
    save(workflow or small(), path)
    return path


def small(**config: Any) -> Workflow:
    """An input, a model node and an output."""
    flow = Builder("Small")
    text = flow.add("input", id="text", default="the sea")
    draft = flow.add("llm", id="draft", prompt="Write about {{input}}.", config=config)
    out = flow.add("output", id="out")
    flow.connect(text["value"], draft["input"])
    flow.connect(draft["output"], out["value"])
    return flow.build()


def drafted() -> Workflow:
    """A model drafts a text that the user approves."""
    flow = Builder("To approve")
    text = flow.add("input", id="text", default="A note.")
    draft = flow.add("llm", id="draft", prompt="Write: {{input}}")
    ask = flow.add("approval", id="ask", title="Approve", config={"message": "Shall it go out?"})
    out = flow.add("output", id="out")
    flow.connect(text["value"], draft["input"])
    flow.connect(draft["output"], ask["input"])
    flow.connect(ask["approved"], out["value"])
    return flow.build()


def question(window: QWidget) -> QMessageBox:
    """The question that is open over a window."""
    boxes = [box for box in window.findChildren(QMessageBox) if box.isVisible()]
    assert len(boxes) == 1, [box.text() for box in boxes]
    return boxes[0]


def answer(window: QWidget, title: str) -> None:
    """Press a button of the question that is open."""
    box = question(window)
    (button,) = (button for button in box.buttons() if button.text() == title)
    button.click()


def press(parent: QWidget, title: str) -> None:
    """Press the visible button with that title."""
    buttons = [button for button in parent.findChildren(QPushButton) if button.text() == title and button.isVisible()]
    assert buttons, f"no button {title!r}"
    buttons[0].click()


def ended(document: DocumentPage, qtbot: QtBot) -> None:
    """Wait until a document's run is over."""
    qtbot.waitUntil(lambda: document.session.shown.live is None)
