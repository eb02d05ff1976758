"""Missing templates: deleted before the start or while the program runs."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from app.gallery import gallery as gallery_templates
from app.theme.widgets import MessageBar
from engine.document.operations import SetText
from tests.app.window.conftest import SELF_REFINE, MakeWindow, open_file, question, saved
from tests.wording import mentions


@pytest.fixture
def templates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of templates of the test's own."""
    folder = tmp_path / "templates"
    folder.mkdir()
    shutil.copy(SELF_REFINE, folder)
    monkeypatch.setattr(gallery_templates, "templates_folder", lambda: folder)
    return folder


def test_missing_template_folder_is_reported(templates: Path, make_window: MakeWindow, tmp_path: Path) -> None:
    path = saved(tmp_path)
    shutil.rmtree(templates)

    workbench = make_window()

    (message,) = (bar.text for bar in workbench.gallery.findChildren(MessageBar) if bar.isVisible())
    assert mentions(message, f"{templates}: … missing … Reinstall"), message
    assert open_file(workbench, path).session.workflow.name == "Small"


def test_template_deleted_while_running_is_reported(templates: Path, make_window: MakeWindow, tmp_path: Path) -> None:
    workbench = make_window()
    document = open_file(workbench, saved(tmp_path))
    document.session.do(SetText("description", "Something else."))
    workbench.tabs.show_start()
    shutil.rmtree(templates)

    (card,) = workbench.gallery.cards
    QTest.mouseClick(card.button, Qt.MouseButton.LeftButton)

    assert question(workbench.window).text() == "“self-refine.loop.json” cannot be opened."
    assert "no such file" in question(workbench.window).informativeText()
    assert workbench.documents.all == [document]
    assert document.session.is_modified
