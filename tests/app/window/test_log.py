from __future__ import annotations

from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication, QTextCursor
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.runs.loop_status import place_label
from app.theme.style import style
from app.window.document_page import DocumentPage
from app.window.log_panel import MOST_LINES, LogLine, LogPanel, LogWriter
from app.workbench import Workbench
from engine.document.model import Node, Workflow
from engine.events import (
    AnyEvent,
    BudgetWarning,
    LoopCompleted,
    LoopIterationCompleted,
    LoopIterationStarted,
    NodeCompleted,
    NodeFailed,
    NodeNoted,
    NodeRetrying,
    NodeSkipped,
    NodeStarted,
    NodeStreaming,
    NodeToolCalled,
    NotePosted,
    RunCancelled,
    RunCompleted,
    RunFailed,
    RunPaused,
    RunResumed,
    RunStarted,
)
from engine.models.protocol import Usage
from tests.app.conftest import MakeSession
from tests.app.window.conftest import ended
from tests.wording import mentions

USAGE = Usage(10, 2)
STABLE = {"stop_when": [{"condition": "stable_output", "threshold": 0.8}]}
WORKFLOW = Workflow(nodes=(Node(id="loop", type="loop", config=STABLE),))


def event(kind: Any, path: str, *values: Any) -> AnyEvent:
    return kind("run", 0, 0.0, path, *values)


def log_lines(*events: AnyEvent) -> list[tuple[str, str, str]]:
    writer = LogWriter(WORKFLOW)
    return [(line.level, line.node, line.text) for one in events for line in writer.lines(one)]


def test_place_label_counts_from_one() -> None:
    assert place_label("draft") == "draft"
    assert place_label("loop[2].draft") == "draft (iteration 3)"
    assert place_label("outer[0].inner[4].draft") == "draft (iteration 1.5)"
    assert place_label("loop[2].draft", {"draft": "First draft"}) == "First draft (iteration 3)"


def test_place_label_in_an_iterator_names_the_item() -> None:
    workflow = Workflow(nodes=(Node(id="each", type="iterator"), Node(id="loop", type="loop")))
    assert place_label("each[1].mark", None, {"each"}) == "mark (item 2)"
    assert place_label("each[1].loop[0].mark", None, {"each"}) == "mark (iteration 2.1)"
    writer = LogWriter(workflow)
    base = ("run", 0, 0.0, "each")
    figures = (None, None, None, None, Usage(), 0.0, 1.0)
    events: list[Any] = [
        LoopIterationStarted(*base, 0, 2, ""),
        LoopIterationCompleted(*base, 0, "in", "out", "out", *figures),
        NodeSkipped("run", 0, 0.0, "each[0].mark", "transform", "Not needed."),
    ]
    texts = [line.text for event in events for line in writer.lines(event)]
    assert texts[0].startswith("Iterator: item 1 of 2 · ")
    assert texts[1] == "mark (item 1): skipped: Not needed."


def test_node_and_answer_events_have_log_lines() -> None:
    lines = log_lines(
        event(NodeToolCalled, "boss", 0, "add", {"a": 1}, 42, "", 0.1),
        event(NodeToolCalled, "boss", 1, "hang", {}, None, "It took longer.\nThan 5 s.", 5.0),
        event(NodeToolCalled, "boss", 2, "exit_loop", {}, None, "", 0.0),
        event(NotePosted, "boss", "worker", "Hurry."),
        event(NotePosted, "", "loop[0].worker", "Slowly."),
        event(NodeNoted, "loop[0].worker", "worker", "Hurry.", "boss"),
    )

    assert lines == [
        ("info", "boss", 'boss: called add({"a":1}) → 42'),
        ("warning", "boss", "boss: called hang({}): It took longer. Than 5 s."),
        ("info", "boss", "boss: called exit_loop({})"),
        ("info", "boss", "boss: note to worker: Hurry."),
        ("info", "", "note to loop[0].worker: Slowly."),
        ("info", "worker", "worker (iteration 1): received the note: Hurry."),
    ]


def test_every_relevant_event_has_a_log_line() -> None:
    iteration = ("in", "the words", "back", "continue", "too long", 3.5, 0.81, USAGE, 0.002, 1.25, ("odd",))
    lines = log_lines(
        event(RunStarted, "", "Small", {}, ("a/b",)),
        event(NodeStarted, "draft", "llm", {}),
        event(NodeStreaming, "draft", "wo", 1),
        event(NodeRetrying, "draft", 1, 2.0, "Too busy."),
        event(NodeCompleted, "draft", "llm", {}, USAGE, 0.0, 1.0, False, (), ("cut off",)),
        event(NodeSkipped, "other", "transform", "nothing reached it"),
        event(NodeFailed, "loop[1].tool", "tool", "No such file.", "Choose another.", 0.5),
        event(LoopIterationStarted, "loop", 0, 3, ""),
        event(LoopIterationCompleted, "loop", 0, *iteration),
        event(LoopCompleted, "loop", 1, "stable_output", True, 0, 0.0, 1.0, ("nearly",)),
        event(BudgetWarning, "", "usd", 0.8, 1.0),
        event(BudgetWarning, "loop", "tokens", 80, 100),
        event(RunPaused, ""),
        event(RunResumed, ""),
        event(RunCancelled, "", {}, USAGE, 0.0, 2.0),
        event(RunFailed, "", "No such file.", "Choose another.", "loop[1].tool", {}, USAGE, 0.0, 2.0),
        event(RunCompleted, "", {}, USAGE, None, 2.0, ("mind",)),
    )

    expected = [
        ("info", "", "Running Small with a/b."),
        ("warning", "draft", "draft: attempt 1 in 2.0 s: Too busy."),
        ("info", "draft", "draft: done (1.0 s, 12 tokens, $0)"),
        ("warning", "draft", "draft: cut off"),
        ("info", "other", "other: skipped: nothing reached it"),
        ("error", "tool", "tool (iteration 2): failed: No such file. Choose another."),
        (
            "info",
            "loop",
            "Loop: iteration 1 of 3 · continue · score 3.5 · similarity 81% · $0.002 · 1.2 s · the words",
        ),
        ("warning", "loop", "Loop: odd"),
        ("info", "loop", "Loop: … 1 of 3: … 81% … (threshold 80%)."),
        ("warning", "loop", "Loop: nearly"),
        ("warning", "", "budget is used: $0.80 of $1.00"),
        ("warning", "loop", "budget is used: 80 of 100 tokens"),
        ("info", "", "Paused."),
        ("info", "", "Resumed."),
        ("warning", "", "Stopped after 2.0 s, $0."),
        ("error", "", "The run failed. “tool (iteration 2)”: No such file. Choose another."),
        ("info", "", "Done in 2.0 s, 12 tokens, $?."),
        ("warning", "", "mind"),
    ]
    assert [line[:2] for line in lines] == [line[:2] for line in expected]
    unlike = [text for (_, _, text), (_, _, parts) in zip(lines, expected, strict=True) if not mentions(text, parts)]
    assert unlike == []


def panel(make_session: MakeSession, qtbot: QtBot) -> LogPanel:
    made = LogPanel(make_session())
    qtbot.addWidget(made)
    made.resize(600, 300)
    made.show()
    qtbot.waitExposed(made)
    return made


def many(number: int) -> list[LogLine]:
    return [LogLine(0.0, f"node_{place % 3}", "info", f"line {place}") for place in range(number)]


@pytest.mark.parametrize("over_the_lines", [False, True])
def test_log_scrolls_until_the_user_scrolls_back(make_session: MakeSession, qtbot: QtBot, over_the_lines: bool) -> None:
    log = panel(make_session, qtbot)
    bar = log.view.verticalScrollBar()
    # While the wheel turns over the lines, the view looks up the line under the mouse at each step.
    QTest.mouseMove(log.view.viewport() if over_the_lines else log.filter)

    log.show_lines(many(200))
    qtbot.waitUntil(lambda: bar.maximum() > 0 and bar.value() == bar.maximum())
    bar.setValue(10)
    log.show_lines(many(50))
    assert bar.value() == 10
    bar.setValue(bar.maximum())
    log.show_lines(many(50))

    qtbot.waitUntil(lambda: bar.maximum() > 250 and bar.value() == bar.maximum())


def shown(log: LogPanel) -> list[str]:
    """The visible lines without their times."""
    return [line.partition("  ")[2] for line in log.view.toPlainText().split("\n")]


def test_log_is_limited_to_ten_thousand_lines(make_session: MakeSession, qtbot: QtBot) -> None:
    log = panel(make_session, qtbot)

    for _ in range(11):
        log.show_lines(many(1000))

    assert len(log.lines) == MOST_LINES
    assert log.view.blockCount() == len(log.view.shown) == MOST_LINES


def test_log_can_be_filtered_by_node(make_session: MakeSession, qtbot: QtBot) -> None:
    log = panel(make_session, qtbot)
    log.show_lines(many(9))

    log.filter.setFocus()
    QTest.keyClicks(log.filter, "node_1")

    assert log.filter.currentData() == "node_1"
    assert shown(log) == ["line 1", "line 4", "line 7"]
    log.show_lines(many(3))
    assert shown(log) == ["line 1", "line 4", "line 7", "line 1"]
    log.filter.setCurrentIndex(0)
    assert len(shown(log)) == 12


@pytest.mark.parametrize("text", ["several words in a line " * 20, "x" * 1000])
def test_log_lines_wrap(make_session: MakeSession, qtbot: QtBot, text: str) -> None:
    log = panel(make_session, qtbot)
    log.show_lines([LogLine(0.0, "draft", "info", text.strip())])

    layout = log.view.document().firstBlock().layout()
    qtbot.waitUntil(lambda: layout.lineCount() > 1)
    widest = max(layout.lineAt(line).naturalTextWidth() for line in range(layout.lineCount()))
    assert widest <= log.view.viewport().width()
    assert log.view.horizontalScrollBar().maximum() == 0
    assert shown(log) == [text.strip()]


@pytest.mark.parametrize("lines", [12, 200])
def test_last_line_stays_whole_when_the_text_size_changes(
    workbench: Workbench, self_refine: DocumentPage, qtbot: QtBot, lines: int
) -> None:
    workbench.window.resize(1280, 720)
    workbench.bottom_panel.unfold("log")
    log, view = self_refine.log, self_refine.log.view
    log.show_lines([LogLine(0.0, "draft", "info", f"line {number} " * (number % 30)) for number in range(lines)])
    log.show_lines([LogLine(0.0, "draft", "info", f"last {text}") for text in ("word " * 90, "")])

    def is_whole() -> bool:
        end = view.blockBoundingGeometry(view.document().lastBlock()).translated(view.contentOffset())
        return 0 < end.bottom() <= view.viewport().height()

    qtbot.waitUntil(is_whole)
    try:
        for scale in (2.0, 1.5, 1.0):
            style().choose("dark", scale)
            QApplication.processEvents()
            qtbot.waitUntil(is_whole)
    finally:
        style().choose("dark", 1.0)


def test_what_a_model_says_is_text_in_the_log(make_session: MakeSession, qtbot: QtBot) -> None:
    log = panel(make_session, qtbot)
    log.show_lines([LogLine(0.0, "draft", "info", "<b>bold</b> \ud800 <img src='x'>")])

    assert shown(log) == ["<b>bold</b> \ufffd <img src='x'>"]


def test_log_is_copied_by_key_and_button(make_session: MakeSession, qtbot: QtBot) -> None:
    log = panel(make_session, qtbot)
    log.show_lines(many(3))

    QTest.mouseClick(log._copy, Qt.MouseButton.LeftButton)
    assert [line[-6:] for line in QGuiApplication.clipboard().text().split("\n")] == ["line 0", "line 1", "line 2"]

    cursor = QTextCursor(log.view.document().findBlockByNumber(1))
    cursor.select(QTextCursor.SelectionType.BlockUnderCursor)
    log.view.setTextCursor(cursor)
    log.view.setFocus()
    QTest.keyClick(log.view, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert QGuiApplication.clipboard().text().strip().endswith("line 1")
    assert "line 0" not in QGuiApplication.clipboard().text()


def test_log_can_be_cleared(make_session: MakeSession, qtbot: QtBot) -> None:
    log = panel(make_session, qtbot)
    log.show_lines(many(3))

    QTest.mouseClick(log._clear, Qt.MouseButton.LeftButton)

    assert log.view.toPlainText() == ""
    log.show_lines(many(1))
    assert shown(log) == ["line 0"]


def test_refusal_is_logged_with_its_level_in_words_and_color(make_session: MakeSession, qtbot: QtBot) -> None:
    log = panel(make_session, qtbot)

    log.note_refusal("It cannot be,\nsadly.")

    (line,) = log.lines
    assert line.text == "It cannot be, sadly."
    assert shown(log) == ["Warning: It cannot be, sadly."]
    for theme in ("light", "dark"):
        style().choose(theme)
        (piece,) = log.view.document().firstBlock().textFormats()
        assert piece.format.foreground().color().name() == style().theme.warning


def test_double_click_on_a_log_line_shows_its_node(make_session: MakeSession, qtbot: QtBot) -> None:
    log = panel(make_session, qtbot)
    log.show_lines(many(2))

    with qtbot.waitSignal(log.node_chosen) as chosen:
        place = log.view.cursorRect(QTextCursor(log.view.document().findBlockByNumber(1))).center()
        QTest.mouseClick(log.view.viewport(), Qt.MouseButton.LeftButton, pos=place)
        QTest.mouseDClick(log.view.viewport(), Qt.MouseButton.LeftButton, pos=place)

    assert chosen.args == ["node_1"]


def test_log_uses_node_titles(workbench: Workbench, self_refine: DocumentPage, qtbot: QtBot) -> None:
    QTest.keyClick(workbench.window, Qt.Key.Key_F5)
    ended(self_refine, qtbot)

    log = self_refine.log
    texts = [line.text for line in log.lines]
    assert any(text.startswith("Draft (iteration 3): done") for text in texts)
    assert any(text.startswith("Refine: iteration 3 of 3") for text in texts)
    offered = {log.filter.itemText(row): log.filter.itemData(row) for row in range(log.filter.count())}
    assert offered["Draft"] == "draft"
    log.filter.setCurrentText("Draft")
    assert len(shown(log)) == 3
    assert all("Draft" in line for line in shown(log))
