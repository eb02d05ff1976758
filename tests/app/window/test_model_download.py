"""The demo model is downloaded by the button of the run that lacks it, from a loopback index."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from app.settings.model_download import ModelDownloadDialog
from app.window.document_page import DocumentPage
from app.workbench import Workbench
from engine.document.builder import Builder
from engine.formatting import format_bytes
from engine.models import demo_weights
from engine.models.protocol import EMBEDDED_MODEL
from tests.app.window.conftest import open_file, saved
from tests.engine.models.test_demo_weights import CONTENT, Index, index

__all__ = ["index"]

LEFT = Qt.MouseButton.LeftButton


@pytest.fixture
def document(workbench: Workbench, index: Index, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> DocumentPage:
    """A document whose node needs the demo model, which is nowhere."""
    find = demo_weights.importlib.util.find_spec
    without = lambda name: None if name == demo_weights.PACKAGE else find(name)  # noqa: E731
    monkeypatch.setattr(demo_weights.importlib.util, "find_spec", without)
    made = Builder("Greeting")
    draft = made.add("llm", id="draft", prompt="Say hi.", model=EMBEDDED_MODEL)
    made.connect(draft["output"], made.add("output", id="text", name="text")["value"])
    return open_file(workbench, saved(tmp_path, "one.loop.json", made.build()))


def ended(document: DocumentPage) -> bool:
    shown = document.session.shown
    return shown.live is None and shown.view_model is not None and shown.view_model.is_over


def download_dialog(workbench: Workbench, document: DocumentPage, qtbot: QtBot) -> ModelDownloadDialog:
    """Run, and click the button of the message that says what is missing."""
    workbench.runs.run(document)
    qtbot.waitUntil(lambda: ended(document))
    (button,) = (each for each in document.findChildren(QPushButton) if each.text() == "Download the model…")
    qtbot.mouseClick(button, LEFT)
    (dialog,) = workbench.window.findChildren(ModelDownloadDialog)
    return dialog


@pytest.mark.slow
def test_button_of_the_failed_run_downloads_the_model_and_runs_again(
    workbench: Workbench, document: DocumentPage, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    again: list[DocumentPage] = []
    dialog = download_dialog(workbench, document, qtbot)
    monkeypatch.setattr(workbench.runs, "run", again.append)
    with qtbot.waitSignal(dialog.downloaded):
        qtbot.mouseClick(dialog.start, LEFT)

    assert demo_weights.find_weights().read_bytes() == CONTENT
    assert again == [document]


@pytest.mark.slow
def test_paused_download_of_the_demo_model_is_resumed(
    workbench: Workbench, document: DocumentPage, index: Index, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.stall = True
    dialog = download_dialog(workbench, document, qtbot)
    monkeypatch.setattr(workbench.runs, "run", lambda _document: None)
    qtbot.mouseClick(dialog.start, LEFT)
    qtbot.waitUntil(lambda: f" of {format_bytes(len(index.wheel))}" in dialog.status.text())
    qtbot.mouseClick(dialog.start, LEFT)
    qtbot.waitUntil(lambda: not dialog.is_running)
    index.go_on.set()

    assert dialog.start.text() == "Resume"
    assert dialog.bar.value() > 0
    assert not dialog.discard.isHidden()
    with qtbot.waitSignal(dialog.downloaded):
        qtbot.mouseClick(dialog.start, LEFT)
    assert index.ranges[-1] is not None
    assert demo_weights.find_weights().read_bytes() == CONTENT


@pytest.mark.slow
def test_failed_download_says_why_and_can_be_repeated(
    workbench: Workbench, document: DocumentPage, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    dialog = download_dialog(workbench, document, qtbot)
    monkeypatch.setattr(demo_weights, "_NEEDED_BYTES", 10**18)
    qtbot.mouseClick(dialog.start, LEFT)
    qtbot.waitUntil(lambda: "too little space" in dialog.status.text())

    assert dialog.start.isEnabled()
    assert dialog.bar.isHidden()
    dialog.close()
