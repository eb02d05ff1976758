"""End to end by mouse and keyboard: run, select, compare, fork, find again, resume."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QComboBox, QMessageBox, QWidget
from pytestqt.qtbot import QtBot

from app.history.compare_window import CompareWindow
from app.history.fork_dialog import ForkDialog
from app.window.document_page import DocumentPage
from app.workbench import Workbench
from engine.store import RunStatus, Store
from tests.app.history.conftest import MakeWindow, close, prompt_of
from tests.app.history.stored_runs import refine_script
from tests.app.window.conftest import SELF_REFINE, answer, ended, press, question

ROOT = Path(__file__).parents[3]
CTRL, ALT = Qt.KeyboardModifier.ControlModifier, Qt.KeyboardModifier.AltModifier


def key(key: Qt.Key, modifiers: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier) -> None:
    """Press a key, wherever the keyboard is."""
    widget = QApplication.focusWidget()
    assert widget is not None, "nothing has the keyboard"
    QTest.keyClick(widget, key, modifiers)
    QApplication.processEvents()


def card(document: DocumentPage, node_id: str) -> str:
    """The state on the card of a node."""
    item = document.canvas.view.nodes[node_id].status_item
    return "" if item is None else item.status.line


def pick(box: QComboBox, text: str) -> None:
    """Choose an entry by keyboard."""
    box.setFocus()
    key(Qt.Key.Key_Home)
    for _ in range(box.count()):
        if box.currentText() == text:
            return
        key(Qt.Key.Key_Down)
    raise AssertionError(f"{text} is not on offer")


def texts(window: CompareWindow) -> list[str]:
    return [pane.toPlainText() for pane in window.panes]


def until(qtbot: QtBot, is_so: object) -> None:
    qtbot.waitUntil(is_so)  # type: ignore[arg-type]


def fork_dialog(workbench: Workbench, qtbot: QtBot) -> ForkDialog:
    until(qtbot, lambda: any(dialog.plan is not None for dialog in workbench.window.findChildren(ForkDialog)))
    return workbench.window.findChildren(ForkDialog)[0]


def click(widget: QWidget) -> None:
    QTest.mouseClick(widget, Qt.MouseButton.LeftButton)


def test_run_select_compare_fork_close_and_find_both_again(
    make_window: MakeWindow, tmp_path: Path, qtbot: QtBot
) -> None:
    workbench = make_window()
    workbench.preferences.set(default_model=refine_script(tmp_path / "s.json"))
    document = workbench.documents.open_template(SELF_REFINE)
    assert document is not None
    click(workbench.run_bar.run)
    until(qtbot, lambda: document.session.shown.view_model is not None and document.session.shown.view_model.is_over)
    ended(document, qtbot)
    first = document.session.shown.run_id

    # Step through the iterations; the canvas follows.
    click(workbench.bottom_panel.buttons["iterations"])
    document.canvas.setFocus()
    until(qtbot, lambda: card(document, "draft") == "The sea is wide, draft 3.")
    for number in (2, 1):
        key(Qt.Key.Key_Left, ALT)
        assert document.session.shown.chosen == {"loop": number - 1}
        assert card(document, "draft") == f"The sea is wide, draft {number}."
        assert card(document, "critique") == f"Say more, advice {number}."
    key(Qt.Key.Key_Right, ALT)
    key(Qt.Key.Key_Right, ALT)
    assert card(document, "draft") == "The sea is wide, draft 3."

    # Compare iteration 1 and 3.
    press(document.iterations, "Compare…")
    compared = workbench.history.compare
    assert compared is not None
    until(qtbot, lambda: texts(compared) == ["The sea is wide, draft 2.", "The sea is wide, draft 3."])
    pick(compared.left.place, "Iteration 1")
    until(qtbot, lambda: texts(compared) == ["The sea is wide, draft 1.", "The sea is wide, draft 3."])
    assert compared.line.text() == "1 place differs: 1 word removed, 1 word added."
    compared.close()

    # Fork from iteration 2 with another prompt.
    document.session.shown.look_at("loop", 1)
    press(document.iterations, "Fork from here…")
    dialog = fork_dialog(workbench, qtbot)
    prompt = prompt_of(dialog.form, "draft")
    prompt.setFocus()
    key(Qt.Key.Key_End, CTRL)
    QTest.keyClicks(prompt, " Write about the moon.")
    until(qtbot, dialog.run.isEnabled)
    click(dialog.run)
    until(qtbot, lambda: workbench.current is not document)
    fork = workbench.current
    assert fork is not None
    until(qtbot, lambda: fork.session.shown.view_model is not None and fork.session.shown.view_model.is_over)
    ended(fork, qtbot)
    second = fork.session.shown.run_id
    assert second not in {"", first}

    # See both side by side: tabs, and the texts of both.
    assert [tab.session.shown.run_id for tab in workbench.tabs.documents] == [first, second]
    bar = workbench.history.tabs.pages[second].bar
    until(qtbot, lambda: "Done" in bar.text)
    press(bar, "Compare with original")
    until(qtbot, lambda: compared.isVisible() and compared.right.source is not None)
    until(qtbot, lambda: (compared.left.run.currentData(), compared.right.run.currentData()) == (first, second))
    pick(compared.left.what, "Draft · prompt")
    until(qtbot, lambda: texts(compared)[1].endswith(" Write about the moon."))
    assert not texts(compared)[0].endswith("moon.")
    compared.close()

    # Close the window, open a new one, and find both.
    document.session.mark_saved()
    close(workbench, qtbot)
    again = make_window()
    panel = again.history.panel
    key(Qt.Key.Key_6, ALT)
    until(qtbot, lambda: panel.model.index_of(second).isValid())
    assert panel.model.index_of(second).parent() == panel.model.index_of(first)
    for run_id in (first, second):
        panel.view.select([run_id])
        panel.view.setFocus()
        key(Qt.Key.Key_Return)
        until(qtbot, lambda run_id=run_id: again.current is not None and again.current.session.shown.run_id == run_id)
        shown = again.current
        assert shown is not None
        until(qtbot, lambda shown=shown: card(shown, "draft") == "The sea is wide, draft 3.")


@contextmanager
def another_process(store: Path, script: Path) -> Generator[subprocess.Popen[str]]:
    """A process that runs and stores the workflow; it is killed at the end."""
    command = [sys.executable, "-m", "tests.app.history.running_process", str(store), str(script)]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)}
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.slow
def test_killed_run_is_interrupted_and_resumes_without_paying_twice(
    make_window: MakeWindow, store: Store, store_path: Path, tmp_path: Path, qtbot: QtBot
) -> None:
    script = tmp_path / "s.json"
    refine_script(script)
    quick = json.loads(script.read_text())
    slow = json.loads(script.read_text())
    for rule in slow["rules"]:
        if (rule["node"], rule["iteration"]) == ("draft", 1):
            rule["reply"] = {"text": rule["reply"], "delay_s": 600}
    script.write_text(json.dumps(slow))
    workbench = make_window()
    key(Qt.Key.Key_6, ALT)
    panel = workbench.history.panel

    def words() -> list[str]:
        return [panel.model.index(row, 2).data() for row in range(panel.model.rowCount())]

    with another_process(store_path, script) as process:
        assert process.stdout is not None
        calling = next(line for line in process.stdout if "node.calling loop[1].draft" in line)
        run_id = calling.split()[0]
        until(qtbot, lambda: words() == ["Running"])
        panel.view.select([run_id])
        assert not panel.actions_by_name["delete"].isEnabled()
        assert not panel.actions_by_name["resume"].isEnabled()
        process.send_signal(signal.SIGKILL)
        process.wait()
    until(qtbot, lambda: words() == ["Interrupted"])
    close(workbench, qtbot)

    script.write_text(json.dumps(quick))
    again = make_window()
    until(qtbot, lambda: bool(again.notices.text("unfinished")))
    press(again.notices, "Show run")
    until(qtbot, lambda: again.current is not None and again.current.session.shown.run_id == run_id)
    document = again.current
    assert document is not None
    until(qtbot, again.history.tabs.pages[run_id].bar.isVisible)
    press(again.history.tabs.pages[run_id].bar, "Resume")
    until(qtbot, lambda: any(box.isVisible() for box in again.window.findChildren(QMessageBox)))
    asked = question(again.window)
    assert "may have been billed" in asked.informativeText()
    assert "Iteration 2, Draft" in asked.informativeText()
    answer(again.window, "Call again and resume")
    until(qtbot, lambda: store.find(run_id).status is RunStatus.COMPLETED)
    ended(document, qtbot)
    view_model = document.session.shown.view_model
    assert view_model is not None
    assert [iteration.result for iteration in view_model.loops["loop"].iterations] == [
        f"The sea is wide, draft {number}." for number in (1, 2, 3)
    ]
    finished = [event.path for event in store.events(run_id) if event.type == "node.called"]
    assert sorted(finished) == sorted(set(finished))
    assert finished.count("loop[0].draft") == 1
