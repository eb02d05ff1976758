"""Compare from the window: the first iteration, and a node or an iteration with itself in another run."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QMenu
from pytestqt.qtbot import QtBot

from app.controllers.history_controller import MOST_OFFERED
from app.history.compare_window import CompareWindow
from app.window.document_page import DocumentPage
from app.workbench import Workbench
from engine.store import Store
from tests.app.history.stored_runs import refine, refine_script, run_and_store
from tests.app.window.conftest import Script, ended, open_file, saved
from tests.engine.store.run_samples import complete_run, head

LEFT = Qt.MouseButton.LeftButton


@pytest.fixture
def document(workbench: Workbench, script: Script, tmp_path: Path, qtbot: QtBot) -> DocumentPage:
    """A document that has run twice, with different drafts."""
    document = open_file(workbench, saved(tmp_path, "refine.loop.json", refine(2)))
    for word in ("wide", "deep"):
        rules = [
            {"node": "draft", "iteration": number, "reply": f"The sea is {word}, draft {number + 1}."}
            for number in range(2)
        ]
        script(f"{word} critique", *rules)
        QTest.keyClick(workbench.window, Qt.Key.Key_F5)
        ended(document, qtbot)
    return document


def compared(workbench: Workbench, qtbot: QtBot, *texts: str) -> CompareWindow:
    """The Compare window, once it shows these texts."""
    qtbot.waitUntil(lambda: workbench.history.compare is not None)
    window = workbench.history.compare
    assert window is not None
    qtbot.waitUntil(lambda: window.comparison is not None)
    qtbot.waitUntil(lambda: [pane.toPlainText() for pane in window.panes] == list(texts))
    return window


def test_first_iteration_is_compared_with_nothing_and_says_so(
    workbench: Workbench, document: DocumentPage, qtbot: QtBot
) -> None:
    document.session.shown.look_at("loop", 0)
    workbench.bottom_panel.unfold("iterations")
    QTest.mouseClick(document.iterations.detail.compare, LEFT)
    window = compared(workbench, qtbot, "", "The sea is deep, draft 1.")
    assert window.left.place.currentText() == "Nothing"
    assert window.line.text().startswith("Iteration 1 is the first")
    assert window.comparison is not None
    assert window.comparison.changes == ()
    assert not window.next.isEnabled()

    at = window.left.place.findText("Iteration 2")
    window.left.place.setCurrentIndex(at)
    window.left.place.activated.emit(at)
    compared(workbench, qtbot, "The sea is deep, draft 2.", "The sea is deep, draft 1.")
    assert window.line.text() == "1 place differs: 1 word removed, 1 word added."
    window.close()


def chosen_run(workbench: Workbench, qtbot: QtBot) -> QMenu:
    """The menu of runs to compare with."""
    menu = workbench.history.run_menu
    qtbot.waitUntil(lambda: bool(menu.actions()))
    return menu


def test_runs_of_files_with_a_similar_name_do_not_hide_another_run(
    workbench: Workbench, document: DocumentPage, qtbot: QtBot
) -> None:
    store = workbench.history.access.store
    assert store is not None
    for number in range(MOST_OFFERED):
        run_id = f"copy{number}"
        copy = head(run_id, source=f"{document.session.path}.old")
        store.import_run(copy, complete_run(run_id, time=4e9 + number))
    document.session.select(["draft"])
    document.inspector.show_result()
    QTest.mouseClick(document.inspector.result.compare, LEFT)
    (action,) = chosen_run(workbench, qtbot).actions()
    assert action.text().startswith("Refine, today")


def test_node_is_compared_with_itself_in_another_run(
    workbench: Workbench, document: DocumentPage, qtbot: QtBot
) -> None:
    document.session.select(["draft"])
    document.inspector.show_result()
    document.session.shown.look_at("loop", 0)
    QTest.mouseClick(document.inspector.result.compare, LEFT)
    (action,) = chosen_run(workbench, qtbot).actions()
    assert action.text().startswith("Refine, today")
    action.trigger()
    window = compared(workbench, qtbot, "The sea is wide, draft 1.", "The sea is deep, draft 1.")
    assert [side.what.currentText() for side in (window.left, window.right)] == ["Draft · output"] * 2
    assert [side.place.currentText() for side in (window.left, window.right)] == ["Iteration 1"] * 2
    window.close()


def test_iteration_is_compared_with_the_same_one_of_another_run(
    workbench: Workbench, document: DocumentPage, store: Store, tmp_path: Path, qtbot: QtBot
) -> None:
    run_and_store(store, refine(name="Refine"), refine_script(tmp_path / "s.json"))  # of no file
    document.session.shown.look_at("loop", 1)
    workbench.bottom_panel.unfold("iterations")
    QTest.mouseClick(document.iterations.detail.compare_run, LEFT)
    menu = chosen_run(workbench, qtbot)
    assert len(menu.actions()) == 1
    menu.actions()[0].trigger()
    compared(workbench, qtbot, "The sea is wide, draft 2.", "The sea is deep, draft 2.").close()


def test_results_of_whole_runs_are_compared(workbench: Workbench, document: DocumentPage, qtbot: QtBot) -> None:
    document.session.select([])
    document.inspector.show_result()
    QTest.mouseClick(document.inspector.result.compare, LEFT)
    chosen_run(workbench, qtbot).actions()[0].trigger()
    compared(workbench, qtbot, "The sea is wide, draft 2.", "The sea is deep, draft 2.").close()


def test_workflow_with_one_run_has_nothing_to_compare_with(
    workbench: Workbench, script: Script, tmp_path: Path, qtbot: QtBot
) -> None:
    document = open_file(workbench, saved(tmp_path, "refine.loop.json", refine(2)))
    document.session.select(["draft"])
    document.inspector.show_result()
    assert not document.inspector.result.compare.isVisible()
    QTest.keyClick(workbench.window, Qt.Key.Key_F5)
    ended(document, qtbot)
    qtbot.waitUntil(document.inspector.result.compare.isVisible)
    QTest.mouseClick(document.inspector.result.compare, LEFT)
    (action,) = chosen_run(workbench, qtbot).actions()
    assert not action.isEnabled()
