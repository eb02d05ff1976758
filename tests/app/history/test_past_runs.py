"""Past runs in their tabs: loading, differences from the current workflow, and resuming."""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from PySide6.QtCore import QCoreApplication, QEvent, Qt, QTimer
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from app.engine_thread import EngineThread
from app.history.past_run_bar import PastRunBar, workflow_differences
from app.history.store_client import StoreClient
from app.history.stored_session import READ_ONLY, StoredSession, read_level, read_outline
from app.settings.install_dialog import InstallDialog
from app.theme.widgets import ElidedLabel
from app.window.document_page import DocumentPage
from app.window.log_panel import LogLine, LogWriter
from app.workbench import Workbench
from app.worker import THREAD_NAME
from engine.document.builder import Builder
from engine.document.files import dumps, save
from engine.document.operations import RemoveNodes, SetConfig, SetText
from engine.events import AnyEvent
from engine.models.protocol import Usage
from engine.run_state.state import NodeState
from engine.store import RunStatus, Store
from engine.store.consent import approve
from tests.app.history.conftest import MakeWindow, close
from tests.app.history.stored_runs import refine, refine_script, run_and_store, store_run
from tests.app.window.conftest import Answers, answer, ended, open_file, press, question
from tests.app.window.web_search import NoSearch, no_search, searching
from tests.wording import mentions

__all__ = ["no_search"]


def test_outline_has_loops_without_nodes_and_truncated_texts(store: Store, tmp_path: Path) -> None:
    run_id = run_and_store(store, refine(), refine_script(tmp_path / "s.json"), {"task": "sea " * 1000})
    run = read_outline(store, run_id)
    loop = run.view_model.loops["loop"]
    assert [iteration.result for iteration in loop.iterations] == [
        f"The sea is wide, draft {number}." for number in (1, 2, 3)
    ]
    assert len(str(loop.iterations[0].input)) <= 201
    assert run.view_model.nodes == {}
    assert run.view_model.status == "completed"
    assert run.view_model.levels(run.structure.bodies) == ["", "loop[2]"]
    assert run.view_model.levels(run.structure.bodies, {"loop": 0}) == ["", "loop[0]"]
    run.add_level(read_level(store, run, "loop[0]"))
    assert loop.iterations[0].input == "sea " * 1000
    assert run.view_model.nodes["loop[0].draft"].outputs["output"] == "The sea is wide, draft 1."
    assert run.view_model.nodes["loop[0].draft"].calls[0].request.messages[0].text == f"Write: {'sea ' * 1000}"


def test_workflow_differences_are_described() -> None:
    ran = refine()
    other, _ = SetConfig(("prompt",), {"draft": "Write well: {{input}}"}).apply(ran)
    other, _ = SetConfig(("max_iterations",), {"loop": 9}).apply(other)
    assert workflow_differences(ran, ran) == []
    assert workflow_differences(ran, other) == [
        "“Max iterations” of “Loop” was changed.",
        "“Prompt” of “Draft” was changed.",
    ]
    less, _ = RemoveNodes(("text",)).apply(ran)
    assert workflow_differences(ran, less) == ["“Output” was removed."]
    assert workflow_differences(less, ran) == ["“Output” was added."]
    named, _ = SetText("name", "Other").apply(ran)
    assert workflow_differences(ran, named) == []


def past(workbench: Workbench, run_id: str, qtbot: QtBot) -> DocumentPage:
    """A run of the past, opened and read."""
    workbench.history.tabs.open_run(run_id)
    qtbot.waitUntil(lambda: workbench.current is not None and workbench.current.session.shown.run_id == run_id)
    document = workbench.current
    assert document is not None
    qtbot.waitUntil(lambda: document.session.loader.is_read)
    return document


def test_past_run_opens_with_canvas_iterations_log_and_result(
    workbench: Workbench, store: Store, tmp_path: Path, qtbot: QtBot
) -> None:
    run_id = run_and_store(store, refine(), refine_script(tmp_path / "s.json"))
    document = past(workbench, run_id, qtbot)
    session = document.session
    assert session.workflow == refine()
    assert session.shown.view_model is not None
    assert session.shown.view_model.node("draft").outputs["output"] == "The sea is wide, draft 3."
    assert session.shown.view_model.node("text").state is NodeState.COMPLETED
    workbench.bottom_panel.unfold("iterations")
    assert document.iterations.model.rowCount() == 3
    qtbot.waitUntil(lambda: bool(document.log.lines))
    written = [line.written for line in document.log.lines]
    assert any("The sea is wide, draft 2." in line for line in written)
    page = workbench.history.tabs.pages[run_id]
    assert page.bar.text == f"Run {run_id[:6]}, as it ran · Done"
    assert page.bar.origin == ""
    assert workbench.run_bar.saved.text() == "stored run"
    with qtbot.waitSignal(session.loader.filled):
        session.shown.look_at("loop", 0)
    assert session.shown.view_model.node("draft", session.shown.chosen).outputs["output"] == "The sea is wide, draft 1."


def test_past_run_shows_its_outputs_completely(workbench: Workbench, store: Store, qtbot: QtBot) -> None:
    flow = Builder()
    entry = flow.add("input", id="task")
    flow.connect(entry["value"], flow.add("output", id="out")["value"])
    document = past(workbench, run_and_store(store, flow.build(), "", {"task": "sea " * 1000}), qtbot)
    document.session.select([])
    document.inspector.show_result()
    result = document.inspector.result
    qtbot.waitUntil(lambda: [view.content.text for view in result.sections.values()] == ["sea " * 1000])


def test_export_while_the_list_of_runs_is_hidden_says_in_the_status_bar_where_it_went_or_why_not(
    workbench: Workbench, store: Store, answers: Answers, tmp_path: Path, qtbot: QtBot
) -> None:
    run_id = run_and_store(store, refine(), refine_script(tmp_path / "s.json"))
    notice, actions = workbench.status_bar.refusal, workbench.history.panel.run_actions
    for answers.to_save, expected, tone in (
        (tmp_path / "run.md", str(tmp_path / "run.md"), None),
        (tmp_path / "nowhere" / "run.md", "Cannot write run.md", "warning"),
    ):
        actions.export([store.find(run_id)], "markdown")
        qtbot.waitUntil(lambda expected=expected: expected in notice.full_text)
        assert notice.isVisible()
        assert notice.property("tone") == tone


def test_subflow_of_a_past_run_opens_as_it_ran(
    workbench: Workbench, store: Store, tmp_path: Path, qtbot: QtBot
) -> None:
    flow = Builder("Around")
    task = flow.add("input", id="task", default="the sea")
    copy = json.loads(dumps(refine()))
    part = flow.add("subflow", id="part", title="Part", config={"file": "refine.loop.json", "workflow": copy})
    out = flow.add("output", id="out")
    flow.connect(task["value"], part["task"])
    flow.connect(part["text"], out["value"])
    run_id = run_and_store(store, flow.build(), refine_script(tmp_path / "s.json"))
    document = past(workbench, run_id, qtbot)
    document.canvas.subflow_requested.emit("part")
    inside = workbench.current
    assert inside is not None
    session = inside.session
    assert (session.name, session.shown.run_id) == ("Part", run_id)
    qtbot.waitUntil(lambda: session.shown.view_model.node("draft").state is NodeState.COMPLETED)
    assert session.shown.view_model.path_of("draft") == "part.loop[2].draft"
    assert session.shown.view_model.node("draft").outputs["output"] == "The sea is wide, draft 3."
    assert "part.loop[0].draft" not in session.shown.view_model.nodes
    session.shown.look_at("loop", 0)
    qtbot.waitUntil(lambda: session.shown.view_model.node("draft", session.shown.chosen).calls != ())
    assert session.shown.view_model.node("draft", session.shown.chosen).outputs["output"] == "The sea is wide, draft 1."
    assert inside.iterations.detail.place == "part.loop[0]"
    workbench.history.tabs.open_run(run_id)
    assert workbench.current is document


def test_past_run_opens_once(workbench: Workbench, store: Store, tmp_path: Path, qtbot: QtBot) -> None:
    run_id = run_and_store(store, refine(), refine_script(tmp_path / "s.json"))
    document = past(workbench, run_id, qtbot)
    other = workbench.documents.new()
    assert workbench.current is other
    workbench.history.tabs.open_run(run_id)
    assert workbench.current is document
    assert len(workbench.tabs.documents) == 2


def test_past_run_opened_again_while_it_is_read_opens_once(
    workbench: Workbench, store: Store, tmp_path: Path, qtbot: QtBot
) -> None:
    run_id = run_and_store(store, refine(), refine_script(tmp_path / "s.json"))
    workbench.history.tabs.open_run(run_id)
    workbench.history.tabs.open_run(run_id)
    qtbot.waitUntil(lambda: not workbench.history.access.is_busy)
    workbench.history.tabs.open_run(run_id)
    qtbot.waitUntil(lambda: not workbench.history.access.is_busy)
    assert len(workbench.tabs.documents) == 1


def test_past_run_closed_while_its_summary_is_read_is_left_alone(
    workbench: Workbench, store: Store, tmp_path: Path, qtbot: QtBot
) -> None:
    document = past(workbench, run_and_store(store, refine(), refine_script(tmp_path / "s.json")), qtbot)
    workbench.history.note_end(document)
    workbench.documents.drop(document)
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    qtbot.waitUntil(lambda: not workbench.history.access.is_busy)


def test_level_read_for_an_older_outline_is_ignored(
    access: StoreClient, engine_thread: EngineThread, store: Store, tmp_path: Path, qtbot: QtBot
) -> None:
    run_id = run_and_store(store, refine(), refine_script(tmp_path / "s.json"))
    older, newer = read_outline(store, run_id), read_outline(store, run_id)
    session = StoredSession(engine_thread, access, older.workflow, "Run")
    session.loader.show(older)
    assert session.shown.read_levels is not None
    session.shown.read_levels(["loop[0]"])
    session.loader.show(newer)
    qtbot.waitUntil(lambda: not session.loader._worker.is_busy)
    assert session.loader.is_read
    assert newer.levels == {"", "loop[2]"}


def test_run_is_read_from_the_history_as_it_is_open_now(
    access: StoreClient, engine_thread: EngineThread, store: Store, tmp_path: Path, qtbot: QtBot
) -> None:
    run_id = run_and_store(store, refine(), refine_script(tmp_path / "s.json"))
    run = read_outline(store, run_id)
    session = StoredSession(engine_thread, access, run.workflow, "Run")
    access.close()
    session.loader.show(run)
    assert session.shown.read_levels is not None
    assert session.shown.read_results is not None
    assert session.shown.read_results("loop", 0, 2) == []
    with qtbot.waitSignal(access.opened):
        access.open()
    session.shown.read_levels(["loop[0]"])
    qtbot.waitUntil(lambda: run.levels >= {"loop[0]"})
    session.loader.read_shown()
    qtbot.waitUntil(lambda: run.levels >= {"", "loop[2]"})
    assert len(session.shown.read_results("loop", 0, 2)) == 3


def test_past_run_is_read_only(workbench: Workbench, store: Store, tmp_path: Path, qtbot: QtBot) -> None:
    run_id = run_and_store(store, refine(), refine_script(tmp_path / "s.json"))
    document = past(workbench, run_id, qtbot)
    session, actions = document.session, workbench.actions_by_name
    workbench.refresh_actions()
    assert not any(actions[name].isEnabled() for name in ("run", "run_with", "step_node", "save", "undo", "stop"))
    session.select(["draft"])
    document.inspector.focus_field("draft", "prompt")
    row = document.inspector.page.form.row("prompt")
    assert row is not None
    with qtbot.waitSignal(session.refused) as refused:
        QTest.keyClicks(row.editor.main_widget, "x")
    assert refused.args == [READ_ONLY]
    assert session.workflow == refine()
    assert row.editor.main_widget.toPlainText() == "Write: {{input}}"
    assert not session.is_modified


def test_past_run_opens_as_a_new_document(workbench: Workbench, store: Store, tmp_path: Path, qtbot: QtBot) -> None:
    run_id = run_and_store(store, refine(), refine_script(tmp_path / "s.json"))
    document = past(workbench, run_id, qtbot)
    press(workbench.history.tabs.pages[run_id].bar, "Open as new document")
    copy = workbench.current
    assert copy is not None
    assert copy is not document
    assert copy.session.workflow == refine()
    assert copy.session.path is None
    assert not copy.session.is_past
    assert copy.session.do(SetConfig(("prompt",), {"draft": "Other"}))


def test_stored_run_that_lacks_a_part_installs_it_and_resumes(
    workbench: Workbench, store: Store, qtbot: QtBot, no_search: NoSearch
) -> None:
    approve(searching(), fully=True)
    with no_search():
        run_id = run_and_store(store, searching(), "scripted:unused")
    document = past(workbench, run_id, qtbot)
    qtbot.waitUntil(lambda: "Install it" in document.bars.text("run"))
    press(document.bars, "Install…")
    (dialog,) = workbench.window.findChildren(InstallDialog)
    qtbot.mouseClick(dialog.start, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: store.find(run_id).status is RunStatus.COMPLETED)
    ended(document, qtbot)


@pytest.mark.parametrize("is_open", [True, False])
def test_differences_from_the_current_file_are_shown(
    is_open: bool, workbench: Workbench, tmp_path: Path, qtbot: QtBot
) -> None:
    workbench.preferences.set(default_model=refine_script(tmp_path / "s.json"))
    file = tmp_path / "mine.loop.json"
    save(refine(), file)
    document = open_file(workbench, file)
    workbench.runs.run(document)
    ended(document, qtbot)
    run_id = document.session.shown.run_id
    assert workbench.history.access.store is not None
    assert workbench.history.access.store.find(run_id).source == str(file)
    document.session.do(SetConfig(("prompt",), {"draft": "Other: {{input}}"}))
    if is_open:
        document.session.shown.run_id = ""  # it shows a later run by now
    else:
        save(document.session.workflow, file)
        workbench.documents.drop(document)
    past(workbench, run_id, qtbot)
    bar = workbench.history.tabs.pages[run_id].bar
    qtbot.waitUntil(lambda: bool(bar.differences))
    assert mentions(bar.differences, "1 difference … “Prompt” of “Draft” was changed")


def test_every_run_of_the_window_is_stored(workbench: Workbench, tmp_path: Path, qtbot: QtBot) -> None:
    workbench.preferences.set(default_model=refine_script(tmp_path / "s.json"))
    document = workbench.documents.open_copy(refine())
    workbench.runs.run(document)
    ended(document, qtbot)
    store = workbench.history.access.store
    assert store is not None
    (summary,) = store.runs()
    assert summary.run_id == document.session.shown.run_id
    assert (summary.workflow, summary.status, summary.iterations) == ("Refine", RunStatus.COMPLETED, 3)


def test_status_bar_links_to_the_stored_run(workbench: Workbench, store: Store, tmp_path: Path, qtbot: QtBot) -> None:
    store_run(store, "aaaa", started=time.time() - 60, name="Other")
    workbench.preferences.set(default_model=refine_script(tmp_path / "s.json"))
    document = workbench.documents.open_copy(refine())
    summary, panel = workbench.status_bar.stored, workbench.history.panel
    panel.text.setText("Other")
    workbench.runs.run(document)
    assert not summary.isVisible()
    ended(document, qtbot)
    run_id = document.session.shown.run_id
    qtbot.waitUntil(summary.isVisible)
    assert summary.text() == f"Stored as run {run_id[:6]}"
    summary.setFocus()
    QTest.keyClick(summary, Qt.Key.Key_Space)
    assert workbench.bottom_panel.open_panel == "runs"
    qtbot.waitUntil(lambda: [run.run_id for run in panel.view.selected] == [run_id])
    assert panel.view.hasFocus()
    assert panel.run_filter.is_all
    workbench.documents.new()
    assert not summary.isVisible()


def test_run_started_while_the_history_opens_waits_for_it(workbench: Workbench, tmp_path: Path, qtbot: QtBot) -> None:
    workbench.preferences.set(default_model=refine_script(tmp_path / "s.json"))
    access = workbench.history.access
    access.close()
    qtbot.waitUntil(lambda: not access.is_busy)
    document = workbench.documents.open_copy(refine())
    access.open()
    workbench.runs.run(document)
    assert document.session.shown.live is None
    # Its status is not checked: it may have ended by now.
    qtbot.waitUntil(lambda: document.session.shown.view_model is not None)
    ended(document, qtbot)
    assert access.store is not None
    assert len(access.store.runs()) == 1


def test_runs_work_without_a_history_with_one_notice(
    make_window: MakeWindow, store_path: Path, tmp_path: Path, qtbot: QtBot
) -> None:
    workbench = make_window()
    workbench.history.access.close()
    qtbot.waitUntil(lambda: not workbench.history.access.is_busy)
    store_path.write_bytes(b"no database" * 500)
    for beside in store_path.parent.glob("history.sqlite3-*"):
        beside.unlink()
    workbench.history.access.open()
    qtbot.waitUntil(lambda: bool(workbench.notices.text("history")))
    assert workbench.notices.text("history").startswith("Runs are not being stored. ")
    workbench.preferences.set(default_model=refine_script(tmp_path / "s.json"))
    document = workbench.documents.open_copy(refine())
    workbench.runs.run(document)
    ended(document, qtbot)
    assert document.session.shown.view_model is not None
    assert document.session.shown.view_model.status == "completed"
    store_path.unlink()
    press(workbench.notices, "Try again")
    qtbot.waitUntil(lambda: workbench.history.access.store is not None)


def test_failed_run_resumes_where_it_failed_in_the_window(
    workbench: Workbench, store: Store, tmp_path: Path, qtbot: QtBot
) -> None:
    script = tmp_path / "s.json"
    model = refine_script(script)
    whole = script.read_text()
    script.write_text(whole.replace('"Say more, advice 2."', '{"error": {"kind": "authentication"}}'))
    run_id = run_and_store(store, refine(), model)
    assert store.find(run_id).status is RunStatus.FAILED
    script.write_text(whole)
    document = past(workbench, run_id, qtbot)
    qtbot.waitUntil(lambda: bool(document.log.lines))
    page = workbench.history.tabs.pages[run_id]
    assert "Failed" in page.bar.text
    titles: list[str] = []
    document.session.shown.started.connect(lambda: titles.append(page.bar.text))
    press(page.bar, "Resume")
    qtbot.waitUntil(lambda: bool(titles))
    assert titles[0].endswith("Running")
    # Its status is not checked: it may have ended by now.
    qtbot.waitUntil(lambda: store.find(run_id).status is RunStatus.COMPLETED)
    ended(document, qtbot)
    view_model = document.session.shown.view_model
    assert view_model is not None
    assert view_model.status == "completed"
    assert [iteration.feedback for iteration in view_model.loops["loop"].iterations] == [
        f"Say more, advice {number}." for number in (1, 2, 3)
    ]
    qtbot.waitUntil(lambda: "Done" in page.bar.text)
    reported = [line.text.partition(" ")[0] for line in document.log.lines]
    assert (reported.count("Running"), reported.count("Resumed.")) == (1, 1), "its past is not told twice"
    assert store.find(run_id).status is RunStatus.COMPLETED
    assert len(store.runs()) == 1


def test_interrupted_run_is_offered_at_the_next_start(make_window: MakeWindow, store: Store, qtbot: QtBot) -> None:
    store_run(store, "aaaa", started=time.time() - 60, end=False)
    workbench = make_window()
    qtbot.waitUntil(lambda: bool(workbench.notices.text("unfinished")))
    assert workbench.notices.text("unfinished").endswith("interrupted. You can resume it.")
    press(workbench.notices, "Show run")
    qtbot.waitUntil(lambda: workbench.current is not None and workbench.current.session.shown.run_id == "aaaa")
    assert "Interrupted" in workbench.history.tabs.pages["aaaa"].bar.text
    assert workbench.notices.text("unfinished") == ""
    close(workbench, qtbot)


def test_interrupted_run_of_a_file_that_is_opened_again_can_be_resumed(
    make_window: MakeWindow, store: Store, tmp_path: Path, qtbot: QtBot
) -> None:
    path = tmp_path / "refine.loop.json"
    save(refine(), path)
    store_run(store, "aaaa", started=time.time() - 60, end=False, source=str(path))
    workbench = make_window()
    document = open_file(workbench, path)
    qtbot.waitUntil(lambda: document.bars.text("run") == "The program ended during the run.")
    assert any(button.text() == "Resume" for button in document.bars.findChildren(QPushButton))
    close(workbench, qtbot)


def test_nothing_is_offered_after_a_completed_run(make_window: MakeWindow, store: Store, qtbot: QtBot) -> None:
    store_run(store, "aaaa", started=time.time() - 60, end=False)
    store_run(store, "bbbb", started=time.time() - 50)
    workbench = make_window()
    qtbot.waitUntil(lambda: not workbench.history.access.is_busy)
    assert workbench.notices.text("unfinished") == ""


def test_runs_panel_exists_without_a_document(workbench: Workbench, store: Store, qtbot: QtBot) -> None:
    store_run(store, "aaaa", started=time.time() - 60)
    assert workbench.current is None
    assert [name for name, button in workbench.bottom_panel.buttons.items() if button.isVisible()] == ["runs"]
    QTest.mouseClick(workbench.bottom_panel.buttons["runs"], Qt.MouseButton.LeftButton)
    panel = workbench.history.panel
    qtbot.waitUntil(lambda: panel.model.rowCount() == 1)
    panel.view.select(["aaaa"])
    QTest.keyClick(panel.view, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: workbench.current is not None and workbench.current.session.shown.run_id == "aaaa")


def test_retention_runs_after_a_run_has_ended(workbench: Workbench, store: Store, tmp_path: Path, qtbot: QtBot) -> None:
    for number in range(4):
        store_run(store, f"{number:04}", started=time.time() - 100 + number)
    store.pin("0000", pinned=True)
    workbench.preferences.set(default_model=refine_script(tmp_path / "s.json"), keep_runs=2)
    document = workbench.documents.open_copy(refine())
    workbench.runs.run(document)
    ended(document, qtbot)
    qtbot.waitUntil(lambda: "0002" not in {run.run_id for run in store.runs()})
    assert {run.run_id for run in store.runs()} >= {"0000", document.session.shown.run_id}


def test_deleted_run_stays_displayed(workbench: Workbench, store: Store, qtbot: QtBot) -> None:
    store_run(store, "aaaa", started=time.time() - 60)
    document = past(workbench, "aaaa", qtbot)
    workbench.bottom_panel.unfold("runs")
    panel = workbench.history.panel
    qtbot.waitUntil(lambda: panel.model.rowCount() == 1)
    panel.view.select(["aaaa"])
    QTest.keyClick(panel.view, Qt.Key.Key_Delete)
    assert question(panel)
    answer(panel, "Delete")
    qtbot.waitUntil(lambda: panel.model.rowCount() == 0 and not panel.view.isVisible())
    assert workbench.current is document


def test_log_of_a_past_run_is_written_in_the_worker_while_displayed(
    workbench: Workbench, store: Store, tmp_path: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.window.log_panel.MOST_LINES", 4)
    threads: list[str] = []
    write = LogWriter.lines

    def lines(self: LogWriter, event: AnyEvent) -> Iterator[LogLine]:
        threads.append(threading.current_thread().name)
        return write(self, event)

    monkeypatch.setattr(LogWriter, "lines", lines)
    document = past(workbench, run_and_store(store, refine(), refine_script(tmp_path / "s.json")), qtbot)
    qtbot.waitUntil(lambda: bool(document.log.lines))
    assert set(threads) == {THREAD_NAME}
    shown = [line.text for line in document.log.lines]
    assert len(shown) == 4
    assert shown[0].startswith("Loop: Stopped after 3 of 3: max iterations reached.")
    assert shown[-1].startswith("Done in ")


def test_locked_history_delays_the_run_and_not_the_window(
    workbench: Workbench, store_path: Path, store: Store, tmp_path: Path, qtbot: QtBot
) -> None:
    workbench.preferences.set(default_model=refine_script(tmp_path / "s.json"))
    document = workbench.documents.open_copy(refine())
    with closing(sqlite3.connect(store_path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        workbench.runs.run(document)
        ticks: list[None] = []
        ticking = QTimer()
        ticking.timeout.connect(lambda: ticks.append(None))
        ticking.start(5)
        qtbot.waitUntil(lambda: len(ticks) >= 40)
        ticking.stop()
        assert document.session.shown.run_id == "", "it waits for the history"
        other.execute("ROLLBACK")
    ended(document, qtbot)
    assert store.find(document.session.shown.run_id).status is RunStatus.COMPLETED


def test_cache_hit_is_shown_and_costs_nothing(workbench: Workbench, tmp_path: Path, qtbot: QtBot) -> None:
    workbench.preferences.set(default_model=refine_script(tmp_path / "s.json"))
    workflow = refine(2)
    for name, value in (("prompt", "{{input == '' ? 'Nothing.' : 'Write.'}}"), ("cache", "always")):
        workflow, _ = SetConfig((name,), {"draft": value}).apply(workflow)
    document = workbench.documents.open_copy(workflow)
    workbench.runs.run(document)
    ended(document, qtbot)
    view_model = document.session.shown.view_model
    assert view_model is not None
    first, second = (view_model.nodes[f"loop[{index}].draft"] for index in range(2))
    assert (first.state, second.state) == (NodeState.COMPLETED, NodeState.CACHED)
    assert (second.cost_usd, second.usage) == (0.0, Usage())
    assert second.outputs["output"] == first.outputs["output"]
    item = document.canvas.view.nodes["draft"].status_item
    assert item is not None
    assert item.status.state is NodeState.CACHED
    document.session.select(["draft"])
    document.inspector.show_result()
    qtbot.waitUntil(lambda: "from an earlier run" in document.inspector.result.state.text())
    assert "draft (iteration 2): cache hit" in " ".join(line.text for line in document.log.lines).lower()


def test_bar_of_a_stored_run_puts_its_buttons_below_a_text_without_room(qtbot: QtBot) -> None:
    bar = PastRunBar()
    qtbot.addWidget(bar)
    bar.say("Run c9c2f1, as it ran · Done", "Fork of 780974, iteration 2")
    buttons = [bar.add_button(title, lambda: None) for title in ("Compare with original", "Open as new document")]
    bar.resize(700, 40)
    bar.show()
    assert buttons[0].y() == buttons[1].y() < bar.height() / 2
    bar.resize(440, 80)
    qtbot.waitUntil(lambda: bar.findChildren(ElidedLabel)[0].text() == bar.text)
    assert buttons[0].y() > bar.findChildren(ElidedLabel)[1].geometry().bottom()
