"""A run that waits in the window is answered from another process: the card goes, and the run goes on."""

from __future__ import annotations

from pytestqt.qtbot import QtBot

from app.bridge import EngineThread
from app.session import Session
from app.window.main_window import MainWindow
from engine.document.builder import Builder
from engine.nodes.context import Answer
from engine.runner.options import RunOptions
from engine.store import Store
from engine.store.answering import give_answer, question_at


def test_the_card_goes_and_the_run_goes_on_with_the_answer(
    window: MainWindow, store: Store, engine_thread: EngineThread, qtbot: QtBot
) -> None:
    flow = Builder("Asking")
    text = flow.add("input", id="text", default="the note")
    check = flow.add("approval", id="check", title="Check")
    out = flow.add("output", id="out")
    flow.connect(text["value"], check["input"])
    flow.connect(check["approved"], out["value"])
    document = window.documents._add(Session(engine_thread, flow.build()))
    session = document.session
    session.start_run({}, RunOptions(store=window.history.access.store))
    qtbot.waitUntil(lambda: document.log.questions.current is not None)

    (waiting,) = store.runs()
    taken = give_answer(store, question_at(store, waiting.run_id), Answer("approve", "their note", "From afar."))

    assert taken is True
    qtbot.waitUntil(lambda: session.picture is not None and session.picture.status == "completed")
    assert session.picture.outputs == {"out": "their note"}
    qtbot.waitUntil(lambda: document.log.questions.current is None)
