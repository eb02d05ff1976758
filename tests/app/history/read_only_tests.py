"""Tests of a history in a folder that is mounted read-only; `test_read_only_history` runs them, as root of a namespace.

Pytest does not collect this file by itself.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from app.controllers.history_controller import NOT_STORED
from app.history.runs_panel import RunsPanel
from app.workbench import Workbench
from engine.document.files import save
from engine.store import RunStatus, open_store
from tests.app.history.conftest import MakeWindow
from tests.app.history.stored_runs import DAY, refine, refine_script, run_and_store, store_run
from tests.app.window.conftest import Answers, ended, open_file, press

WRITING = ("resume", "pin", "delete", "import")


@pytest.fixture
def store_path(tmp_path: Path) -> Path:
    folder = tmp_path / "archive"
    folder.mkdir()
    return folder / "history.sqlite3"


@pytest.fixture
def run_id(store_path: Path, tmp_path: Path) -> str:
    """A completed run; the history has an interrupted one too, `aaaa`, the latest."""
    with closing(open_store(store_path)) as store:
        store_run(store, "aaaa", started=time.time() + DAY, end=False)
        return run_and_store(store, refine(), refine_script(tmp_path / "s.json"))


@pytest.fixture
def read_only(store_path: Path, run_id: str) -> Iterator[Path]:
    """The folder of the history, which cannot be written until it is unmounted."""
    folder = store_path.parent
    subprocess.run(["mount", "--bind", folder, folder], check=True)
    subprocess.run(["mount", "-o", "remount,bind,ro", folder], check=True)
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=False)


@pytest.fixture
def workbench(read_only: Path, make_window: MakeWindow) -> Workbench:
    return make_window()


@pytest.fixture
def panel(workbench: Workbench, qtbot: QtBot) -> RunsPanel:
    """The list of runs, shown and read."""
    with qtbot.waitSignal(workbench.history.panel.listed):
        workbench.bottom_panel.unfold("runs")
    return workbench.history.panel


def test_runs_are_listed_and_opened(workbench: Workbench, panel: RunsPanel, run_id: str, qtbot: QtBot) -> None:
    assert {summary.run_id for summary in panel.model.summaries()} == {"aaaa", run_id}
    assert "archive" in workbench.notices.text("history")
    titles = {button.text() for button in workbench.notices.findChildren(QPushButton)}
    assert titles >= {"Try again", "Choose another history…", "Open folder"}
    assert not workbench.notices.text("unfinished")
    panel.view.select([run_id])
    panel.actions_by_name["open"].trigger()
    qtbot.waitUntil(lambda: workbench.current is not None and workbench.current.session.shown.run_id == run_id)
    assert workbench.current is not None
    shown = workbench.current.session.shown
    qtbot.waitUntil(lambda: shown.view_model is not None and "loop[2].draft" in shown.view_model.nodes)


def test_what_writes_is_disabled_and_says_why(workbench: Workbench, panel: RunsPanel) -> None:
    panel.view.select(["aaaa"])
    for name in WRITING:
        assert not panel.actions_by_name[name].isEnabled()
        assert "archive" in panel.actions_by_name[name].toolTip()
    for name in ("resume", "import"):
        assert "archive" in panel.buttons[name].toolTip()
    settings = workbench.commands.open_settings()
    settings.show_page("history")
    free = next(button for button in settings.findChildren(QPushButton) if button.text() == "Free up space")
    assert not free.isEnabled()
    assert "archive" in free.toolTip()
    settings.close()


def test_runs_are_compared_and_exported(
    workbench: Workbench, panel: RunsPanel, run_id: str, answers: Answers, tmp_path: Path, qtbot: QtBot
) -> None:
    panel.view.select([run_id])
    QTest.mouseClick(panel.buttons["compare"], Qt.MouseButton.LeftButton)
    compare = workbench.history.compare
    assert compare is not None
    qtbot.waitUntil(lambda: "draft 3" in compare.panes[1].toPlainText())
    compare.close()
    answers.to_save = tmp_path / "run.md"
    panel.view.select([run_id])
    panel.actions_by_name["export_md"].trigger()
    qtbot.waitUntil((tmp_path / "run.md").exists)


def test_resume_and_fork_say_that_the_history_cannot_be_written(
    workbench: Workbench, run_id: str, qtbot: QtBot
) -> None:
    workbench.history.tabs.open_run("aaaa")
    qtbot.waitUntil(lambda: "aaaa" in workbench.history.tabs.pages)
    page = workbench.history.tabs.pages["aaaa"]
    qtbot.waitUntil(lambda: page.bar.isVisible() and page.session.shown.run_id == "aaaa")
    said = {workbench.notices.text("history")}
    for refuse in (lambda: press(page.bar, "Resume"), partial(workbench.history.resuming.fork_from, page.document, "")):
        refuse()
        said.add(workbench.notices.text("history"))
    assert len(said) == 3
    assert all("archive" in text for text in said)
    assert page.session.shown.live is None


def test_run_is_not_stored_and_compared_all_the_same(
    workbench: Workbench, panel: RunsPanel, run_id: str, tmp_path: Path, qtbot: QtBot
) -> None:
    refine_script(tmp_path / "script.json")
    path = tmp_path / "refine.loop.json"
    save(refine(), path)
    document = open_file(workbench, path)
    workbench.runs.run(document)
    ended(document, qtbot)
    shown = document.session.shown
    assert shown.view_model is not None
    assert shown.view_model.status == RunStatus.COMPLETED
    assert not document.bars.text(NOT_STORED)
    assert not document.can_resume()
    workbench.actions_by_name["compare"].trigger()
    compare = workbench.history.compare
    assert compare is not None
    qtbot.waitUntil(lambda: "draft 3" in compare.panes[1].toPlainText())
    compare.close()
    assert {summary.run_id for summary in panel.model.summaries()} == {"aaaa", run_id}


def test_history_that_can_be_written_again_is_written(
    workbench: Workbench, panel: RunsPanel, read_only: Path, qtbot: QtBot
) -> None:
    subprocess.run(["umount", "--lazy", read_only], check=True)
    press(workbench.notices, "Try again")
    qtbot.waitUntil(lambda: not workbench.notices.text("history") and workbench.history.access.writable is not None)
    panel.view.select(["aaaa"])
    assert all(panel.actions_by_name[name].isEnabled() for name in WRITING)
    assert "archive" not in panel.actions_by_name["pin"].toolTip()
    panel.actions_by_name["pin"].trigger()
    qtbot.waitUntil(lambda: any(summary.pinned for summary in panel.model.summaries()))


def test_another_history_replaces_it_if_it_can_be_opened(
    workbench: Workbench, panel: RunsPanel, answers: Answers, run_id: str, tmp_path: Path, qtbot: QtBot
) -> None:
    answers.to_read = tmp_path / "bad.sqlite3"
    answers.to_read.write_bytes(b"no database" * 500)
    press(workbench.notices, "Choose another history…")
    qtbot.waitUntil(lambda: "bad.sqlite3" in workbench.notices.text("history"))
    panel.view.select([run_id])
    panel.actions_by_name["open"].trigger()
    qtbot.waitUntil(lambda: workbench.current is not None and workbench.current.session.shown.run_id == run_id)
    answers.to_read = tmp_path / "new.sqlite3"
    press(workbench.notices, "Choose another history…")
    qtbot.waitUntil(lambda: workbench.history.access.writable is not None)
    assert not workbench.notices.text("history")
