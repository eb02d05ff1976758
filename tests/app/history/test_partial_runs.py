"""Runs of a part of a document in the window, and pinned nodes."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QHelpEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QMessageBox, QToolTip
from pytestqt.qtbot import QtBot

from app.canvas import run_view
from app.canvas.node_status_item import NodeStatus
from app.inspector.pin_dialog import PinDialog
from app.inspector.result_text import state_label
from app.session import MAX_NODES_AT_ONCE
from app.window.document_page import DocumentPage
from app.window.run_dialog import PermissionDialog, RunDialog
from app.workbench import Workbench
from engine.document.model import Workflow
from engine.document.operations import SetConfig, SetPinned
from engine.plan.dependencies import stale_nodes
from engine.run_state.state import NodeState
from engine.store import Store
from tests.app.window.conftest import Script, ended, open_file, press, saved
from tests.engine.semantics.documents import entry, flow, leave, llm, loop, part, result
from tests.engine.wire.fixtures import wire
from tests.engine.wire.server import WireServer

__all__ = ["wire"]

CHAIN = flow(
    entry(default="the sea"),
    llm("plan", "Plan: {{input}}"),
    llm("draft", "Draft: {{input}}"),
    result(),
    edges="text -> plan -> draft -> out",
)
LOOP = flow(
    entry(default="the sea"),
    llm("plan", "Plan: {{input}}"),
    loop(max_iterations=2),
    llm("draft", "Draft: {{input}}"),
    leave(),
    result(),
    edges="text -> plan -> loop -> draft -> exit -> out",
)


def opened(workbench: Workbench, folder: Path, workflow: Workflow = CHAIN) -> DocumentPage:
    return open_file(workbench, saved(folder, workflow=workflow))


def run(workbench: Workbench, document: DocumentPage, key: Qt.Key, node: str, qtbot: QtBot) -> None:
    """Select a node, press a key of the Run menu, and wait until that run is over."""
    document.session.select([node])
    with qtbot.waitSignal(document.session.shown.started):
        QTest.keyClick(workbench.window, key)
    ended(document, qtbot)


def states(document: DocumentPage) -> dict[str, NodeState]:
    view_model = document.session.shown.view_model
    assert view_model is not None
    return {path: node.state for path, node in view_model.nodes.items()}


def card(document: DocumentPage, node: str) -> NodeStatus:
    item = document.canvas.view.nodes[node].status_item
    return item.status if item is not None else NodeStatus()


def text(document: DocumentPage) -> str:
    return document.bars.text("part")


DONE, CACHED = NodeState.COMPLETED, NodeState.CACHED


def test_run_up_to_here_runs_what_the_node_needs(workbench: Workbench, tmp_path: Path, qtbot: QtBot) -> None:
    document = opened(workbench, tmp_path)
    run(workbench, document, Qt.Key.Key_F7, "plan", qtbot)
    assert states(document) == {"text": DONE, "plan": DONE}
    assert card(document, "draft").state is None
    assert document.session.shown.view_model.outputs == {"output": "words"}  # in the summary, and to compare
    assert workbench.status_bar.state.full_text.startswith("Done · up to LLM")
    run(workbench, document, Qt.Key.Key_F7, "draft", qtbot)
    assert states(document) == {"text": CACHED, "plan": CACHED, "draft": DONE}


def test_run_this_node_uses_the_values_of_the_last_run(
    workbench: Workbench, tmp_path: Path, script: Script, qtbot: QtBot
) -> None:
    document = opened(workbench, tmp_path)
    QTest.keyClick(workbench.window, Qt.Key.Key_F5)
    ended(document, qtbot)
    script("other words")
    document.session.do(SetConfig(("prompt",), {"draft": "Write: {{input}}"}))
    run(workbench, document, Qt.Key.Key_F8, "draft", qtbot)
    assert states(document) == {"text": CACHED, "plan": CACHED, "draft": DONE}
    execution = document.session.shown.view_model.node("draft")
    assert (execution.inputs, execution.outputs["output"]) == ({"input": "words"}, "other words")


def test_run_from_here_runs_everything_after_the_node(workbench: Workbench, tmp_path: Path, qtbot: QtBot) -> None:
    document = opened(workbench, tmp_path)
    QTest.keyClick(workbench.window, Qt.Key.Key_F5)
    ended(document, qtbot)
    run(workbench, document, Qt.Key.Key_F9, "draft", qtbot)
    assert states(document) == {"text": CACHED, "plan": CACHED, "draft": DONE, "out": DONE}


def lacking_values(workbench: Workbench, tmp_path: Path, qtbot: QtBot) -> DocumentPage:
    """Run a node alone whose inputs have no values yet."""
    document = opened(workbench, tmp_path)
    document.session.select(["draft"])
    QTest.keyClick(workbench.window, Qt.Key.Key_F8)
    qtbot.waitUntil(lambda: text(document) != "")
    return document


def test_missing_values_are_reported_with_the_button_that_gets_them(
    workbench: Workbench, tmp_path: Path, qtbot: QtBot
) -> None:
    document = lacking_values(workbench, tmp_path, qtbot)
    assert "“LLM” has not run" in text(document)
    assert "--" not in text(document)
    with qtbot.waitSignal(document.session.shown.started):
        press(document.bars, "Run up to here instead")
    ended(document, qtbot)
    assert states(document) == {"text": DONE, "plan": DONE, "draft": DONE}
    assert text(document) == ""


def test_the_report_of_missing_values_ends_when_another_run_starts(
    workbench: Workbench, tmp_path: Path, qtbot: QtBot
) -> None:
    document = lacking_values(workbench, tmp_path, qtbot)
    QTest.keyClick(workbench.window, Qt.Key.Key_F5)
    ended(document, qtbot)
    assert text(document) == ""


def test_a_loop_runs_alone(workbench: Workbench, tmp_path: Path, qtbot: QtBot) -> None:
    document = opened(workbench, tmp_path, LOOP)
    QTest.keyClick(workbench.window, Qt.Key.Key_F5)
    ended(document, qtbot)
    document.session.select(["loop", "draft", "exit"])  # as a click on its label does
    assert workbench.actions_by_name["run_only"].isEnabled()
    with qtbot.waitSignal(document.session.shown.started):
        workbench.actions_by_name["run_only"].trigger()
    ended(document, qtbot)
    found = states(document)
    assert (found["plan"], found["loop"], found["loop[1].draft"]) == (CACHED, DONE, DONE)
    assert "out" not in found


def test_nodes_that_take_no_part_do_not_wait(
    workbench: Workbench, tmp_path: Path, script: Script, qtbot: QtBot
) -> None:
    script("words", {"node": "draft", "reply": {"text": "words", "delay_s": 600}})
    document = opened(workbench, tmp_path)
    document.session.select(["draft"])
    QTest.keyClick(workbench.window, Qt.Key.Key_F7)
    qtbot.waitUntil(lambda: card(document, "draft").state is NodeState.RUNNING)
    assert card(document, "out").state is None


def test_the_actions_need_one_node(workbench: Workbench, tmp_path: Path) -> None:
    document = opened(workbench, tmp_path)
    action = workbench.actions_by_name["run_only"]
    enabled: list[bool] = []
    for selection in ((), ("draft",), ("plan", "draft")):
        document.session.select(selection)
        enabled.append(action.isEnabled())
    assert enabled == [False, True, False]
    document.session.select(["draft"])
    menu = [one.objectName() for one in document.canvas.popups.run_actions]
    assert menu == ["run_until", "run_only", "run_from"]


def test_an_input_without_a_value_is_asked_for(workbench: Workbench, tmp_path: Path, qtbot: QtBot) -> None:
    workflow = flow(entry(), entry("tone"), llm("plan"), llm("sing"), edges="text -> plan\ntone -> sing")
    document = opened(workbench, tmp_path, workflow)
    document.session.select(["sing"])
    QTest.keyClick(workbench.window, Qt.Key.Key_F7)
    qtbot.waitUntil(lambda: bool(workbench.window.findChildren(RunDialog)))
    (dialog,) = workbench.window.findChildren(RunDialog)
    assert [field.declared.name for field in dialog.fields] == ["tone"]
    dialog.fields[0].editor.setPlainText("sad")
    with qtbot.waitSignal(document.session.shown.started):
        press(dialog, "Run")
    ended(document, qtbot)
    assert document.session.shown.view_model.node("sing").inputs == {"input": "sad"}


# Pins


def pin_dialog(document: DocumentPage) -> PinDialog:
    (dialog,) = (one for one in QApplication.topLevelWidgets() if isinstance(one, PinDialog) and one.isVisible())
    return dialog


def test_an_output_is_pinned_edited_and_unpinned(workbench: Workbench, tmp_path: Path, qtbot: QtBot) -> None:
    document = opened(workbench, tmp_path)
    session, canvas = document.session, document.canvas
    QTest.keyClick(workbench.window, Qt.Key.Key_F5)
    ended(document, qtbot)
    session.select(["plan"])
    canvas.actions_by_name["pin"].trigger()
    dialog = pin_dialog(document)
    assert [field.editor.toPlainText() for field in dialog.fields] == ["words"]
    dialog.fields[0].editor.setPlainText("my plan")
    dialog.pin.click()
    assert session.node("plan").pinned == {"output": "my plan"}
    assert card(document, "plan").is_pinned
    assert canvas.actions_by_name["pin"].text() == "Edit pinned value…"
    assert workbench.run_bar.pinned.text() == "1 pinned"
    assert not document.inspector.pin_bar.isHidden()

    QTest.keyClick(workbench.window, Qt.Key.Key_F5)
    ended(document, qtbot)
    assert states(document)["plan"] is NodeState.PINNED
    assert session.shown.view_model.node("draft").inputs == {"input": "my plan"}

    document.inspector.pin_bar.remove.click()
    assert session.node("plan").pinned == {}
    assert workbench.run_bar.pinned.isHidden()
    session.undo()
    assert session.node("plan").pinned == {"output": "my plan"}


def test_a_value_that_does_not_fit_is_not_pinned(workbench: Workbench, tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    document = opened(workbench, tmp_path, flow(entry(), llm("plan", reply_schema=schema), edges="text -> plan"))
    document.session.select(["plan"])
    document.canvas.actions_by_name["pin"].trigger()
    dialog = pin_dialog(document)
    dialog.fields[0].editor.setPlainText("{not json")
    dialog.pin.click()
    assert dialog.isVisible()
    assert not dialog.fields[0].error.isHidden()
    dialog.fields[0].editor.setPlainText('{"n": 1}')
    dialog.pin.click()
    assert document.session.node("plan").pinned == {"output": {"n": 1}}


def test_the_exit_of_a_loop_pins_the_loop(workbench: Workbench, tmp_path: Path) -> None:
    document = opened(workbench, tmp_path, LOOP)
    document.session.select(["exit"])
    document.canvas.actions_by_name["pin"].trigger()
    dialog = pin_dialog(document)
    assert [field.port.name for field in dialog.fields] == ["output"]
    dialog.fields[0].editor.setPlainText("result")
    dialog.pin.click()
    assert document.session.node("loop").pinned == {"output": "result"}
    assert document.canvas.actions_by_name["unpin"].isEnabled()
    document.canvas.actions_by_name["unpin"].trigger()
    assert document.session.node("loop").pinned == {}


def test_inputs_and_outputs_cannot_be_pinned(workbench: Workbench, tmp_path: Path) -> None:
    document = opened(workbench, tmp_path)
    for node in ("text", "out"):
        document.session.select([node])
        assert not document.canvas.actions_by_name["pin"].isEnabled()


def test_a_partial_run_is_in_the_history(workbench: Workbench, tmp_path: Path, store: Store, qtbot: QtBot) -> None:
    document = opened(workbench, tmp_path)
    run(workbench, document, Qt.Key.Key_F7, "plan", qtbot)
    run(workbench, document, Qt.Key.Key_F8, "draft", qtbot)
    newest, oldest = store.runs()
    assert (newest.parent, newest.forked_at) == (oldest.run_id, "draft")


# The last run of a file, and stopped runs


def reopened(workbench: Workbench, document: DocumentPage, qtbot: QtBot) -> DocumentPage:
    """Close a document and open its file again."""
    path = document.session.path
    assert path is not None
    workbench.closing.close_document(document)
    qtbot.waitUntil(lambda: document not in workbench.documents.all)
    return open_file(workbench, path)


def test_the_results_of_the_last_run_are_there_when_a_file_is_opened_again(
    workbench: Workbench, tmp_path: Path, qtbot: QtBot
) -> None:
    document = opened(workbench, tmp_path, LOOP)
    QTest.keyClick(workbench.window, Qt.Key.Key_F5)
    ended(document, qtbot)
    run_id = document.session.shown.run_id
    again = reopened(workbench, document, qtbot)
    qtbot.waitUntil(lambda: card(again, "draft").line == "words")
    assert again.session.shown.run_id == run_id
    assert states(again)["loop[1].draft"] is DONE
    assert again.session.selection == ()
    assert workbench.status_bar.state.full_text.startswith("Run of today, ")
    assert "Done" in workbench.status_bar.state.full_text
    assert not card(again, "plan").is_stale

    again.session.do(SetConfig(("prompt",), {"draft": "Write: {{input}}"}))
    qtbot.waitUntil(lambda: card(again, "draft").is_stale)
    assert (card(again, "loop").is_stale, card(again, "out").is_stale) == (True, True)
    assert not card(again, "plan").is_stale
    run(workbench, again, Qt.Key.Key_F8, "loop", qtbot)
    assert states(again)["plan"] is CACHED
    assert not card(again, "draft").is_stale


def test_a_file_that_is_opened_again_asks_with_the_inputs_of_its_last_run(
    workbench: Workbench, tmp_path: Path, qtbot: QtBot
) -> None:
    document = opened(workbench, tmp_path, flow(entry(), result(), edges="text -> out"))
    workbench.runs.run_with_text(document, "text", "the sea")
    ended(document, qtbot)
    again = reopened(workbench, document, qtbot)
    qtbot.waitUntil(lambda: again.session.shown.view_model is not None)

    QTest.keyClick(workbench.window, Qt.Key.Key_F5)

    dialog = workbench.window.findChild(RunDialog)
    assert dialog is not None
    assert dialog.fields[0].value() == "the sea"


def test_runs_of_a_document_without_a_file_belong_to_the_file_that_it_is_saved_as(
    workbench: Workbench, tmp_path: Path, qtbot: QtBot
) -> None:
    document = workbench.documents.open_copy(LOOP, is_trusted=True)
    QTest.keyClick(workbench.window, Qt.Key.Key_F5)
    ended(document, qtbot)
    run_id = document.session.shown.run_id
    document.session.save(tmp_path / "mine.loop.json")
    qtbot.waitUntil(lambda: document.session.path is not None)

    again = reopened(workbench, document, qtbot)

    qtbot.waitUntil(lambda: again.session.shown.run_id == run_id)


def test_saving_a_document_that_never_ran_changes_nothing_in_the_history(
    workbench: Workbench, tmp_path: Path, qtbot: QtBot
) -> None:
    document, access = workbench.documents.open_copy(LOOP, is_trusted=True), workbench.history.access
    changes: list[bool] = []
    access.changed.connect(lambda: changes.append(True))
    with qtbot.waitSignal(document.session.saved):
        document.session.save(tmp_path / "mine.loop.json")
    qtbot.waitUntil(lambda: not access.is_busy)
    assert not changes


def test_outdated_nodes_of_a_large_document_are_found_in_a_thread(
    workbench: Workbench, tmp_path: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    extra = [part(f"note{number}", "transform") for number in range(MAX_NODES_AT_ONCE)]
    edges = "\n".join(["text -> plan -> draft -> out", *(f"text -> {node.id}" for node in extra)])
    large = flow(entry(default="the sea"), llm("plan", "Plan: {{input}}"), llm("draft"), result(), *extra, edges=edges)
    threads: set[threading.Thread] = set()

    def find(*args: Any) -> frozenset[str]:
        threads.add(threading.current_thread())
        return stale_nodes(*args)

    monkeypatch.setattr(run_view, "stale_nodes", find)
    document = opened(workbench, tmp_path, large)
    QTest.keyClick(workbench.window, Qt.Key.Key_F5)
    ended(document, qtbot)
    document.session.do(SetConfig(("prompt",), {"draft": "Write: {{input}}"}))
    qtbot.waitUntil(lambda: card(document, "draft").is_stale)
    assert [card(document, node).is_stale for node in ("plan", "out", "note0")] == [False, True, False]
    assert threads
    assert threading.main_thread() not in threads


def test_results_behind_a_pinned_loop_are_current_when_the_file_is_opened_again(
    workbench: Workbench, tmp_path: Path, qtbot: QtBot
) -> None:
    document = opened(workbench, tmp_path, LOOP)
    QTest.keyClick(workbench.window, Qt.Key.Key_F5)
    ended(document, qtbot)
    for output, is_stale in (("words", False), ("other words", True)):
        saved(tmp_path, workflow=SetPinned("loop", {"output": output}).apply(LOOP)[0])
        again = reopened(workbench, document, qtbot)
        qtbot.waitUntil(lambda again=again: card(again, "plan").line == "words")
        assert [card(again, node).is_stale for node in ("plan", "loop", "out")] == [False, is_stale, is_stale]
        document = again


def calling(tool: str, argument: str) -> Workflow:
    """A workflow whose tool needs a permission; a model writes its argument."""
    nodes = (entry(default="the sea"), llm("plan"), part("read", "tool", tool=tool), result())
    return flow(*nodes, edges=f"text -> plan -> read.{argument}\nread -> out")


def allow(workbench: Workbench, document: DocumentPage, qtbot: QtBot, box: str) -> None:
    """Press the button of the failed run, allow something in the dialog, and wait until the run is over."""
    press(document.bars, "Allow and run…")
    qtbot.waitUntil(lambda: isinstance(QApplication.activeModalWidget(), (PermissionDialog, RunDialog)))
    dialog = QApplication.activeModalWidget()
    assert isinstance(dialog, PermissionDialog)
    getattr(dialog.fields, box).setChecked(True)
    with qtbot.waitSignal(document.session.shown.started):
        dialog.resume.click()
    ended(document, qtbot)


def failed(document: DocumentPage) -> str:
    view_model = document.session.shown.view_model
    assert view_model is not None
    assert view_model.status == "failed"
    return document.session.shown.run_id


@pytest.mark.parametrize(("key", "last"), [(Qt.Key.Key_F5, {"out": DONE}), (Qt.Key.Key_F7, {})])
def test_a_run_that_lacked_a_permission_resumes_with_it(
    workbench: Workbench, tmp_path: Path, script: Script, qtbot: QtBot, key: Qt.Key, last: dict[str, NodeState]
) -> None:
    script("a.txt")
    (tmp_path / "a.txt").write_text("the file")
    document = opened(workbench, tmp_path, calling("read_file", "path"))
    document.session.is_trusted = True
    run(workbench, document, key, "read", qtbot)
    run_id = failed(document)
    script("another call")
    allow(workbench, document, qtbot, "folder")
    assert document.session.shown.run_id == run_id
    assert states(document) == {"text": DONE, "plan": DONE, "read": DONE, **last}
    assert document.session.shown.view_model.node("read").outputs == {"output": "the file"}
    assert document.may_use_folder


def test_a_run_that_lacked_a_private_address_is_asked_for_it(
    workbench: Workbench, tmp_path: Path, script: Script, wire: WireServer, qtbot: QtBot
) -> None:
    script(f"{wire.base_url}/models")
    document = opened(workbench, tmp_path, calling("http_get", "url"))
    document.session.is_trusted = True
    run(workbench, document, Qt.Key.Key_F5, "read", qtbot)
    failed(document)
    allow(workbench, document, qtbot, "private")
    assert states(document)["read"] is DONE
    assert document.may_reach_private


def test_runs_of_another_file_are_not_shown(workbench: Workbench, tmp_path: Path, qtbot: QtBot) -> None:
    document = opened(workbench, tmp_path)
    QTest.keyClick(workbench.window, Qt.Key.Key_F5)
    ended(document, qtbot)
    other = open_file(workbench, saved(tmp_path, "other.loop.json", CHAIN))
    qtbot.waitUntil(lambda: not workbench.store_access.is_busy)
    qtbot.wait(50)
    assert other.session.shown.view_model is None


SLOW = {"node": "draft", "reply": {"text": "words", "delay_s": 600}}


def stopped(workbench: Workbench, document: DocumentPage, script: Script, qtbot: QtBot) -> None:
    """Run, and stop while `draft` is running."""
    script("words", SLOW)
    QTest.keyClick(workbench.window, Qt.Key.Key_F5)
    qtbot.waitUntil(lambda: card(document, "draft").state is NodeState.RUNNING)
    workbench.actions_by_name["stop"].trigger()
    ended(document, qtbot)


def test_a_stopped_run_resumes_where_it_stands(
    workbench: Workbench, tmp_path: Path, script: Script, qtbot: QtBot
) -> None:
    document = opened(workbench, tmp_path)
    stopped(workbench, document, script, qtbot)
    shown, run_id = document.session.shown, document.session.shown.run_id
    assert card(document, "draft").state is NodeState.CANCELLED
    assert card(document, "out").state is NodeState.CANCELLED  # it did not run because of the stop
    assert document.canvas.view.nodes["out"].status_item._text() == "stopped"
    assert state_label(shown.view_model.node("out")) == "Stopped"
    assert "stopped" in document.bars.text("run")
    assert workbench.actions_by_name["pause"].iconText() == "Resume"
    script("other words")
    with qtbot.waitSignal(shown.started) as started:
        press(document.bars, "Resume")
        qtbot.waitUntil(lambda: bool(QApplication.activeModalWidget()) or started.signal_triggered)
        if (box := QApplication.activeModalWidget()) is not None:  # the call that was in flight
            press(box, "Call again and resume")
    ended(document, qtbot)
    assert shown.run_id == run_id
    assert shown.view_model.outputs == {"out": "other words"}
    assert document.bars.text("run") == ""
    assert workbench.actions_by_name["pause"].iconText() == "Pause"
    assert workbench.documents.all == [document]


def test_a_stopped_run_resumes_with_the_permission_that_it_had(
    workbench: Workbench, tmp_path: Path, script: Script, wire: WireServer, qtbot: QtBot
) -> None:
    nodes = (entry(default="the sea"), llm("draft"), part("read", "tool", tool="http_get"), result())
    document = opened(workbench, tmp_path, flow(*nodes, edges="text -> draft -> read.url\nread -> out"))
    document.session.is_trusted = document.may_reach_private = True
    stopped(workbench, document, script, qtbot)
    script(f"{wire.base_url}/models")
    with qtbot.waitSignal(document.session.shown.started):
        press(document.bars, "Resume")
        qtbot.waitUntil(lambda: isinstance(QApplication.activeModalWidget(), QMessageBox))
        press(QApplication.activeModalWidget(), "Call again and resume")
    ended(document, qtbot)
    assert states(document)["read"] is DONE


def test_a_failed_run_says_failed_and_shows_why(
    workbench: Workbench, tmp_path: Path, script: Script, qtbot: QtBot
) -> None:
    script("words", {"node": "draft", "reply": {"error": {"kind": "authentication", "message": "The key is refused."}}})
    document = opened(workbench, tmp_path)
    QTest.keyClick(workbench.window, Qt.Key.Key_F5)
    ended(document, qtbot)
    assert workbench.status_bar.problems.text() == "Failed"
    press(document.bars, "Show it")
    assert document.session.selection == ("draft",)
    assert document.inspector.tabs.currentIndex() == 1
    qtbot.waitUntil(lambda: "The key is refused." in document.inspector.result.problems.texts[0])
    document.session.select(())
    workbench.status_bar.problems.click()
    assert document.session.selection == ("draft",)
    script("words")
    QTest.keyClick(workbench.window, Qt.Key.Key_F5)
    ended(document, qtbot)
    assert workbench.status_bar.problems.text() == "No problems"


def test_values_are_shown_at_ports_and_on_edges(
    workbench: Workbench, tmp_path: Path, script: Script, qtbot: QtBot
) -> None:
    script("<b>words</b>")
    document = opened(workbench, tmp_path, LOOP)
    QTest.keyClick(workbench.window, Qt.Key.Key_F5)
    ended(document, qtbot)
    document.fit_initial_view()
    view, tip = document.canvas.view, document.canvas.run_view.tool_tip
    plan, exit_ = view.nodes["plan"], view.nodes["exit"]
    assert tip(plan.outputs[0].middle).endswith("<b>words</b>")  # as plain text; escaped where it is shown
    assert tip(plan.inputs[0].middle).startswith("input: ")
    assert tip(plan.inputs[0].middle).endswith("the sea")
    assert tip(exit_.outputs[0].middle).endswith("<b>words</b>")
    edge = next(edge for edge in plan.outputs[0].connected_pipes)
    middle = edge.path().pointAtPercent(0.5)
    assert tip(middle) == "plan.output → loop.input\n\n<b>words</b>"
    assert tip(plan.card_rect.center()).endswith("<b>words</b>")
    viewer = document.canvas.viewer
    place = viewer.mapFromScene(middle)
    QApplication.sendEvent(viewer.viewport(), QHelpEvent(QEvent.Type.ToolTip, place, viewer.mapToGlobal(place)))
    assert "plan.output" in QToolTip.text()
    QToolTip.hideText()
