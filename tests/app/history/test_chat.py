"""The chat preview: the runs of a document as texts and answers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from app.history.chat_turns import PAGE, chat_input, read_chat
from app.inspector.inspector import RESULT
from app.window.chat_panel import TurnView
from app.window.document_page import DocumentPage
from app.workbench import Workbench
from engine.document.builder import Builder
from engine.document.model import Workflow
from engine.document.operations import SetConfig
from tests.app.history.stored_runs import refine
from tests.app.window.conftest import Script, drafted, ended, open_file, press, saved, small
from tests.engine.store.memory_store import MemoryStore
from tests.engine.store.run_samples import complete_run, head
from tests.engine.store.run_samples import store_run as store_samples

LEFT = Qt.MouseButton.LeftButton
SHIFT = Qt.KeyboardModifier.ShiftModifier


def with_inputs(**inputs: object) -> Workflow:
    """Inputs by name: a type, or a text as default."""
    flow = Builder("Inputs")
    for name, what in inputs.items():
        if what in {"number", "text", "any"}:
            flow.add("input", id=name, type=what)
        else:
            flow.add("input", id=name, default=what)
    return flow.build()


@pytest.mark.parametrize(
    ("inputs", "name"),
    [
        ({"task": "text"}, "task"),
        ({"task": "the sea"}, "task"),
        ({"task": "any"}, "task"),
        ({"task": "text", "count": "number"}, "task"),
        ({"task": "text", "tone": "friendly"}, "task"),
        ({"task": "text", "tone": "text"}, None),
        ({"task": "the sea", "tone": "friendly"}, None),
        ({"count": "number"}, None),
        ({}, None),
    ],
)
def test_chat_fills_in_the_only_text_or_the_only_one_that_is_required(inputs: dict[str, object], name: object) -> None:
    given = chat_input(with_inputs(**inputs))
    assert (given.name if given is not None else None) == name


def shown(view: TurnView) -> tuple[str, list[str], str]:
    """The text, the answers and the title of the link."""
    return view.text.text(), [answer.content.text for answer in view.answers], view.iterations.text()


def say(document: DocumentPage, text: str) -> None:
    chat = document.chat
    chat.field.setFocus()
    QTest.keyClicks(chat.field, text)
    QTest.keyClick(chat.field, Qt.Key.Key_Return)


@pytest.fixture
def document(workbench: Workbench, script: Script, tmp_path: Path, qtbot: QtBot) -> DocumentPage:
    """A loop of two iterations in a file, with its chat in front."""
    rules = [
        {"node": "draft", "iteration": number, "reply": f"Draft {number + 1} of {{{{prompt}}}}"} for number in range(2)
    ]
    script("fine", *rules)
    document = open_file(workbench, saved(tmp_path, "refine.loop.json", refine(2)))
    QTest.keyClick(workbench.window, Qt.Key.Key_7, Qt.KeyboardModifier.AltModifier)
    qtbot.waitUntil(document.chat.field.hasFocus)
    return document


def test_typed_text_runs_the_workflow_and_is_answered(document: DocumentPage, qtbot: QtBot) -> None:
    chat = document.chat
    assert chat.empty.isVisible()
    assert not chat.send.isEnabled()
    QTest.keyClicks(chat.field, "the")
    QTest.keyClick(chat.field, Qt.Key.Key_Return, SHIFT)
    say(document, "moon")
    assert document.session.shown.live is not None
    assert chat.field.text() == ""
    assert chat.send.text() == "Stop"
    ended(document, qtbot)

    (turn,) = chat.turns
    assert shown(turn)[0] == "the\nmoon"
    assert shown(turn)[1][0].startswith("Draft 2")
    assert shown(turn)[2] == "2 iterations"
    assert document.session.shown.view_model.state.inputs["task"] == "the\nmoon"
    assert chat.send.text() == "Send"
    assert not chat.empty.isVisible()
    assert chat.isVisible(), "the outputs are here already"


def test_run_that_starts_as_soon_as_the_document_is_open_is_in_the_chat(
    workbench: Workbench, script: Script, qtbot: QtBot
) -> None:
    script("fine")
    document = workbench.documents.open_copy(small())
    workbench.runs.run(document)
    qtbot.waitUntil(lambda: document.session.shown.view_model is not None)
    ended(document, qtbot)
    (turn,) = document.chat.turns
    assert shown(turn)[:2] == ("the sea", ["fine"])


def test_iterations_are_one_click_away_also_those_of_earlier_runs(
    workbench: Workbench, document: DocumentPage, qtbot: QtBot
) -> None:
    for text in ("one", "two"):
        say(document, text)
        ended(document, qtbot)
    first, second = document.chat.turns

    QTest.mouseClick(second.iterations, LEFT)
    assert workbench.bottom_panel.open_panel == "iterations"
    assert workbench.current is document

    QTest.mouseClick(first.iterations, LEFT)
    qtbot.waitUntil(lambda: workbench.current is not document and workbench.current is not None)
    shown = workbench.current.session.shown
    qtbot.waitUntil(lambda: shown.run_id == first.turn.run_id)
    assert workbench.bottom_panel.open_panel == "iterations"


def test_history_of_the_file_is_read_when_the_chat_is_shown(
    workbench: Workbench, document: DocumentPage, tmp_path: Path, qtbot: QtBot
) -> None:
    for text in ("one", "two"):
        say(document, text)
        ended(document, qtbot)
    other = open_file(workbench, saved(tmp_path, "other.loop.json", refine(2)))
    other.show_chat()
    workbench.documents.drop(document)

    again = open_file(workbench, tmp_path / "refine.loop.json")
    assert again.chat.turns == []
    qtbot.waitUntil(lambda: again.session.shown.view_model is not None)  # the last run, beside the chat
    again.show_chat()
    qtbot.waitUntil(lambda: len(again.chat.turns) == 2)
    assert [shown(view)[0] for view in again.chat.turns] == ["one", "two"]
    assert [shown(view)[2] for view in again.chat.turns] == ["2 iterations"] * 2
    assert other.chat.turns == []
    say(again, "three")
    ended(again, qtbot)
    assert [shown(view)[0] for view in again.chat.turns] == ["one", "two", "three"]


def test_failed_run_shows_the_reason_and_leads_to_the_node(
    workbench: Workbench, document: DocumentPage, script: Script, qtbot: QtBot
) -> None:
    script({"error": {"kind": "authentication", "message": "The key was refused."}})
    say(document, "one")
    ended(document, qtbot)
    (turn,) = document.chat.turns
    assert "The key was refused." in turn.error.text()
    assert turn.status.text().startswith("Failed")
    QTest.mouseClick(turn.show_it, LEFT)
    assert document.session.selection == ("draft",)
    assert document.inspector.tabs.currentIndex() == RESULT


def test_resumed_run_remains_one_turn(document: DocumentPage, script: Script, qtbot: QtBot) -> None:
    script({"error": {"kind": "authentication", "message": "The key was refused."}})
    say(document, "one")
    ended(document, qtbot)
    script("fine")
    with qtbot.waitSignal(document.session.shown.started):
        document.resume_wanted.emit()
    ended(document, qtbot)
    (turn,) = document.chat.turns
    assert shown(turn)[:2] == ("one", ["fine"])
    assert not turn.error.isVisible()


def test_run_that_cannot_start_leaves_no_turn_and_the_text(document: DocumentPage, qtbot: QtBot) -> None:
    document.session.do(SetConfig(("model",), {"draft": "nosuch/model"}))
    with qtbot.waitSignal(document.session.shown.refused):
        say(document, "one")
    ended(document, qtbot)
    assert document.chat.turns == []
    assert document.chat.field.text() == "one"
    assert document.chat.send.isEnabled()


def test_text_is_cleared_when_its_run_starts_also_after_a_question(
    workbench: Workbench, document: DocumentPage, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    starts: list[Callable[[], object]] = []
    monkeypatch.setattr(workbench.keys, "before_run", lambda _session, start: starts.append(start))
    say(document, "one")
    assert document.chat.field.text() == "one"
    starts[0]()
    assert document.chat.field.text() == ""
    ended(document, qtbot)
    assert [shown(view)[0] for view in document.chat.turns] == ["one"]


def test_text_that_is_typed_during_a_run_is_not_cleared(
    workbench: Workbench, document: DocumentPage, qtbot: QtBot
) -> None:
    say(document, "one")
    QTest.keyClicks(document.chat.field, "two")
    ended(document, qtbot)
    workbench.runs.run(document)
    ended(document, qtbot)
    assert document.chat.field.text() == "two"
    assert [shown(view)[0] for view in document.chat.turns] == ["one", "one"]


def test_partial_runs_are_not_in_the_chat(
    workbench: Workbench, document: DocumentPage, tmp_path: Path, qtbot: QtBot
) -> None:
    say(document, "one")
    ended(document, qtbot)
    whole = document.session.shown.run_id
    document.session.select(["draft"])
    workbench.actions_by_name["run_only"].trigger()
    qtbot.waitUntil(lambda: document.session.shown.run_id not in {whole, ""})
    ended(document, qtbot)
    assert document.session.shown.view_model.state.part is not None
    assert [shown(view)[0] for view in document.chat.turns] == ["one"]

    workbench.documents.drop(document)
    again = open_file(workbench, tmp_path / "refine.loop.json")
    qtbot.waitUntil(lambda: again.session.shown.view_model is not None)
    again.show_chat()
    qtbot.waitUntil(lambda: again.chat.turns != [])
    assert [view.turn.run_id for view in again.chat.turns] == [whole]


def test_a_page_is_full_of_runs_of_this_file() -> None:
    store, given = MemoryStore(), chat_input(refine(2))
    assert given is not None
    store_samples(store, head("own", source="/flows/a.loop.json"), complete_run("own"))
    for number in range(PAGE):
        run_id = f"other{number}"
        copy = head(run_id, source="/flows/a.loop.json.old")
        store_samples(store, copy, complete_run(run_id, time=2000.0 + number))
    page = read_chat(store, "/flows/a.loop.json", given, ())
    assert ([turn.run_id for turn in page.turns], page.has_more) == (["own"], False)


def test_approval_is_answered_in_the_chat(workbench: Workbench, tmp_path: Path, qtbot: QtBot) -> None:
    document = open_file(workbench, saved(tmp_path, "ask.loop.json", drafted()))
    document.show_chat()
    say(document, "A note.")
    chat = document.chat
    qtbot.waitUntil(lambda: chat.questions.current is not None)
    assert chat.questions.isVisible()
    assert chat.turns[0].status.text() == "Waiting for you"
    assert not chat.empty.isVisible()
    press(chat.questions, "Approve")
    ended(document, qtbot)
    assert shown(chat.turns[0])[1] == ["words"]
    assert not chat.questions.isVisible()
    assert document.questions.count == 0


def test_run_is_stopped_in_the_chat(document: DocumentPage, script: Script, qtbot: QtBot) -> None:
    script({"text": "slow", "delay_s": 30})
    say(document, "one")
    QTest.mouseClick(document.chat.send, LEFT)
    ended(document, qtbot)
    assert document.chat.turns[0].status.text().startswith("Stopped")


def test_workflow_without_a_text_has_no_chat(
    workbench: Workbench, document: DocumentPage, tmp_path: Path, qtbot: QtBot
) -> None:
    tabs = document.inspector.tabs
    assert tabs.isTabVisible(2)
    document.session.do(SetConfig(("type",), {"task": "number"}))
    assert not tabs.isTabVisible(2)
    workbench.actions_by_name["show_chat"].trigger()
    assert "text input" in workbench.status_bar.refusal.full_text
    document.session.undo()
    assert tabs.isTabVisible(2)
