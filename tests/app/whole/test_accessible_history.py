"""The windows for comparing, forking and batches have names for screen readers and are reached with Tab."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QDialog
from pytestqt.qtbot import QtBot
from shiboken6 import isValid

from app.batch.batch_window import BatchWindow
from app.history.fork_dialog import ForkDialog
from app.workbench import Workbench
from tests.app.history.conftest import MakeWindow, answers, make_window, preferences, script, store_path
from tests.app.history.stored_runs import refine_script
from tests.app.whole.test_accessible_window import controls, nameless, spoken, top_left, unreached, walked
from tests.app.window.conftest import SELF_REFINE, ended

__all__ = ["answers", "make_window", "preferences", "script", "store_path"]


@pytest.fixture
def ran(make_window: MakeWindow, tmp_path: Path, qtbot: QtBot) -> Workbench:
    """Self-Refine, run to its end and kept."""
    workbench = make_window()
    workbench.preferences.set(default_model=refine_script(tmp_path / "s.json"))
    document = workbench.documents.open_template(SELF_REFINE)
    assert document is not None
    workbench.actions_by_name["run"].trigger()
    ended(document, qtbot)
    qtbot.waitUntil(workbench.actions_by_name["compare"].isEnabled)
    return workbench


def compare(workbench: Workbench) -> Callable[[], QDialog | None]:
    workbench.actions_by_name["compare"].trigger()
    compared = workbench.history.compare
    assert compared is not None
    return lambda: compared if all(pane.toPlainText() for pane in compared.panes) else None


def fork(workbench: Workbench) -> Callable[[], QDialog | None]:
    workbench.actions_by_name["fork"].trigger()
    return lambda: next(
        (dialog for dialog in workbench.window.findChildren(ForkDialog) if dialog.plan is not None), None
    )


def batch(workbench: Workbench) -> Callable[[], QDialog | None]:
    workbench.actions_by_name["run_batch"].trigger()
    return lambda: next((dialog for dialog in workbench.window.findChildren(BatchWindow) if dialog.isVisible()), None)


COMPARED = ["Left: run", "Left: part", "Left text", "Right: run", "Right text", "Swap sides", "Next change"]
FORKED = ["Iteration input", "Draft: Prompt", "Critique: Prompt", "Model", "Stop 1", "Cancel", "Run fork"]
TABLE = ["Choose table…", "Choose the results file", "Concurrent rows", "Rows"]


@pytest.mark.parametrize(("opened", "names"), [(compare, COMPARED), (fork, FORKED), (batch, TABLE)])
def test_windows_of_the_history(
    ran: Workbench, opened: Callable[[Workbench], Callable[[], QDialog | None]], names: list[str], qtbot: QtBot
) -> None:
    find = opened(ran)
    qtbot.waitUntil(lambda: find() is not None)
    dialog = find()
    assert dialog is not None
    dialog.activateWindow()
    qtbot.waitUntil(dialog.isActiveWindow)

    assert len(controls(dialog)) > 3
    assert nameless(dialog) == []
    assert dialog.focusWidget() is not None, "the keyboard is somewhere as soon as it is open"
    assert unreached(dialog) == []
    order = [widget.accessibleName() or spoken(widget) for widget in walked(dialog, top_left(dialog))]
    assert [name for name in order if name in names] == names

    QTest.keyClick(dialog, Qt.Key.Key_Escape)
    qtbot.waitUntil(lambda: not is_open(dialog))


def is_open(dialog: QDialog) -> bool:
    return isValid(dialog) and dialog.isVisible()
