"""Size of the history and retention in the settings."""

from __future__ import annotations

import time

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from app.workbench import Workbench
from engine.store import Store
from tests.app.history.stored_runs import ids, store_run


def test_retention_frees_space_and_keeps_pinned_runs(workbench: Workbench, store: Store, qtbot: QtBot) -> None:
    for number in range(5):
        store_run(store, f"{number:04}", started=time.time() - 100 + number)
    store.pin("0000", pinned=True)
    workbench.commands.open_settings()
    settings = workbench.commands.settings
    assert settings is not None
    settings.show_page("history")
    space = settings.space
    assert space is not None
    qtbot.waitUntil(lambda: space.line.text().startswith("5 runs, "))
    row = settings.forms["history"].rows["keep_runs"]
    row.editor.widget.setFocus()
    QTest.keyClicks(row.editor.widget, "3")
    assert workbench.preferences.keep_runs is None, "somebody may still be typing"
    QTest.mouseClick(space.free, Qt.MouseButton.LeftButton)
    assert workbench.preferences.keep_runs == 3
    qtbot.waitUntil(lambda: not space._worker.is_busy)
    assert "freed" in space.line.text(), "the size does not replace it"
    assert ids(store.runs()) == ["0004", "0003", "0000"]
    settings.close()
