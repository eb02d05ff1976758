"""Saving the document of a session on a slow disk."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import QObject
from pytestqt.qtbot import QtBot

from app.document_file import FileFingerprint, FileWatcher
from app.engine_thread import EngineThread
from app.session import MAX_NODES_AT_ONCE, Session
from engine.document.files import load, save
from engine.document.model import Node, Workflow
from engine.document.operations import SetText
from engine.document.problems import Problem
from engine.errors import EngineError
from tests.app.conftest import MakeSession


class SlowDisk:
    """Writes only when it is let."""

    def __init__(self) -> None:
        self.may_go_on = threading.Event()
        self.written: list[tuple[str, str]] = []
        self.fails_at: str | None = None

    def save(self, workflow: Workflow, path: Path, between: Callable[[], object]) -> None:
        assert self.may_go_on.wait(10)
        if workflow.description == self.fails_at:
            raise EngineError("The disk is full.", "Make room.")
        self.written.append((workflow.description, path.name))
        save(workflow, path, between)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> SlowDisk:
    slow = SlowDisk()
    monkeypatch.setattr("app.document_file.save", slow.save)
    return slow


def change(session: Session, text: str) -> None:
    assert session.do(SetText("description", text))


def over(session: Session, qtbot: QtBot) -> None:
    qtbot.waitUntil(lambda: not session.is_saving)


def test_saving_does_not_block_and_emits_saved(
    make_session: MakeSession, disk: SlowDisk, tmp_path: Path, qtbot: QtBot
) -> None:
    session = make_session()
    change(session, "new")

    session.save(tmp_path / "a.loop.json")
    assert session.is_saving
    assert session.is_modified
    assert session.path is None

    with qtbot.waitSignal(session.saved) as saved:
        disk.may_go_on.set()
    assert saved.args == [tmp_path / "a.loop.json"]
    assert session.path == tmp_path / "a.loop.json"
    assert not session.is_modified
    over(session, qtbot)
    assert load(tmp_path / "a.loop.json").description == "new"


def test_changes_during_a_save_are_not_marked_as_saved(
    make_session: MakeSession, disk: SlowDisk, tmp_path: Path, qtbot: QtBot
) -> None:
    session = make_session(path=tmp_path / "a.loop.json")
    change(session, "first")
    session.save()
    change(session, "second")
    disk.may_go_on.set()
    over(session, qtbot)

    assert load(tmp_path / "a.loop.json").description == "first"
    assert session.is_modified
    session.undo()
    assert not session.is_modified


def test_saves_run_in_order_and_the_last_one_wins(
    make_session: MakeSession, disk: SlowDisk, tmp_path: Path, qtbot: QtBot
) -> None:
    session = make_session(path=tmp_path / "a.loop.json")
    done: list[str] = []

    for text in ("1", "2", "3"):
        change(session, text)
        session.save(then=lambda text=text: done.append(text))
    change(session, "4")
    session.save(tmp_path / "b.loop.json", lambda: done.append("4"))
    disk.may_go_on.set()
    over(session, qtbot)

    assert disk.written == [("1", "a.loop.json"), ("3", "a.loop.json"), ("4", "b.loop.json")]
    assert done == ["1", "2", "3", "4"]
    assert session.path == tmp_path / "b.loop.json"
    assert not session.is_modified


def test_failed_save_is_reported_and_later_ones_are_tried(
    make_session: MakeSession, disk: SlowDisk, tmp_path: Path, qtbot: QtBot
) -> None:
    session = make_session(path=tmp_path / "a.loop.json")
    reported: list[str] = []
    ends: list[str] = []
    session.save_failed.connect(reported.append)
    disk.fails_at = "bad"
    change(session, "bad")
    session.save(then=lambda: ends.append("bad"))
    session.when_saved(lambda: ends.append("over"))
    change(session, "good")
    session.save(then=lambda: ends.append("good"))
    disk.may_go_on.set()
    over(session, qtbot)

    assert reported == ["The disk is full. Make room."]
    assert ends == ["good", "over"]
    assert load(tmp_path / "a.loop.json").description == "good"


def test_document_closed_during_a_save_is_still_written(
    engine_thread: EngineThread, disk: SlowDisk, tmp_path: Path, qtbot: QtBot
) -> None:
    session = Session(engine_thread, path=tmp_path / "a.loop.json")
    change(session, "kept")
    session.save()

    with qtbot.waitSignal(session.destroyed):
        session.deleteLater()
    disk.may_go_on.set()

    qtbot.waitUntil(lambda: disk.written == [("kept", "a.loop.json")])


def broken(number: int) -> Workflow:
    """So many nodes of a type that does not exist, with places."""
    nodes = tuple(Node(id=f"n{place}", type="teleport") for place in range(number))
    layout = {"nodes": {node.id: {"x": 0, "y": 0} for node in nodes}}
    return Workflow(nodes=nodes, layout=layout)


def test_small_document_is_analyzed_on_opening(make_session: MakeSession) -> None:
    assert len(make_session(broken(MAX_NODES_AT_ONCE)).problems) >= MAX_NODES_AT_ONCE


def test_large_document_opens_at_once_and_problems_follow(
    make_session: MakeSession, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    from engine.plan.structure import analyse

    here = threading.current_thread()
    places: list[bool] = []

    def watched(workflow: Workflow, *rest: object) -> object:
        if workflow.nodes:
            places.append(threading.current_thread() is here)
        return analyse(workflow, *rest)

    monkeypatch.setattr("app.session.analyse", watched)
    session = make_session(broken(MAX_NODES_AT_ONCE + 1))
    assert len(session.workflow.nodes) == MAX_NODES_AT_ONCE + 1
    assert [problem for problem in session.problems if problem.node] == []

    qtbot.waitUntil(lambda: session.structure.workflow is session.workflow)
    assert len(session.problems) >= MAX_NODES_AT_ONCE + 1
    assert places == [False]


def test_saving_a_large_document_yields_to_the_window(
    make_session: MakeSession, tmp_path: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, steps = threading.current_thread(), list[bool]()
    monkeypatch.setattr(
        "app.document_file.yield_to_other_threads", lambda: steps.append(threading.current_thread() is here)
    )
    session = make_session(broken(1000), tmp_path / "a.loop.json")
    change(session, "new")
    session.save()
    over(session, qtbot)

    assert len(steps) > 40
    assert not any(steps)
    assert load(tmp_path / "a.loop.json").description == "new"


def test_change_before_the_file_is_watched_is_reported(tmp_path: Path, qtbot: QtBot) -> None:
    path, owner = tmp_path / "a.loop.json", QObject()
    path.write_text("as it was read")
    read = FileFingerprint.of(path)
    path.write_text("as another program wrote it")
    watcher = FileWatcher(path, read, owner)
    with qtbot.waitSignal(watcher.changed):
        pass
    owner.deleteLater()


def test_problems_of_this_computer_wait_for_the_analysis(make_session: MakeSession, qtbot: QtBot) -> None:
    session = make_session(Workflow(nodes=(Node(id="a", type="llm"),)))
    missing = Problem("missing-key", "No key.", "Add one.", node="a")
    seen: list[bool] = []
    session.analyzed.connect(lambda: seen.append(session.structure.workflow is session.workflow))

    change(session, "new")
    with qtbot.waitSignal(session.analyzed):
        session.show_setup_problems([missing])
        assert not seen
    assert missing in session.problems
    assert seen == [True]
