"""The Result tab."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QWidget

from app.inspector.inspector import RESULT
from app.inspector.result_page import NO_RUN
from app.inspector.result_text import (
    iteration_summary,
    result_sections,
    state_label,
    usage_label,
    value_preview,
    value_text,
)
from app.inspector.text_widgets import INITIAL_CHARACTERS, LongTextView, displayable
from app.theme.widgets import plain_tool_tip
from engine.document.builder import Builder
from engine.document.operations import SetConfig, SetEnabled
from engine.events import LoopIterationCompleted
from engine.models.protocol import Message, ModelCall, Reply, Request, Usage
from engine.run_state.state import NodeExecution, NodeState
from engine.runner.options import RunOptions
from engine.values import Value
from tests.app.inspector.conftest import Bench, OpenInspector, refine
from tests.wording import mentions

WriteScript = Callable[..., Path]


def texts(bench: Bench) -> dict[str, str]:
    """The texts of the sections by heading."""
    return {view.heading.text(): view.content.view.text() for view in bench.inspector.result.sections.values()}


def at_result(open_inspector: OpenInspector, *selected: str) -> Bench:
    bench = open_inspector(refine())
    bench.select(*selected)
    bench.inspector.show_result()
    return bench


def ask_once(open_inspector: OpenInspector, reply: Path) -> Bench:
    """A run of one model call, whose node is selected."""
    flow = Builder()
    ask = flow.add("input", id="ask", name="ask")
    draft = flow.add("llm", id="draft", prompt="{{input}}")
    text = flow.add("output", id="text", name="text")
    flow.connect(ask["value"], draft["input"])
    flow.connect(draft["output"], text["value"])
    bench = open_inspector(flow.build())
    bench.select("draft")
    bench.inspector.show_result()
    bench.run(reply, ask="a note")
    return bench


def test_result_without_a_run_says_what_to_do(open_inspector: OpenInspector) -> None:
    bench = at_result(open_inspector, "draft")
    assert bench.inspector.result.state.text() == NO_RUN
    assert texts(bench) == {}


def test_model_node_shows_prompt_and_reply(open_inspector: OpenInspector, refine_script: Path) -> None:
    bench = at_result(open_inspector, "draft")
    bench.run(refine_script, task="a note")
    bench.session.shown.look_at("loop", 0)
    assert texts(bench)["System prompt as sent"] == "Be brief."
    assert texts(bench)["Prompt as sent"] == "Write: a note"
    assert texts(bench)["Reply"] == "one"
    assert texts(bench)["Input: input"] == "a note"
    assert "Output: output" not in texts(bench), "it is the reply, which stands there already"
    assert bench.inspector.result.state.text() == "Done"
    assert " in · " in bench.inspector.result.metrics.text()
    assert "$0.0" in bench.inspector.result.metrics.text()
    metadata = bench.inspector.result.sections["call:1:reply"].details.text()
    assert "temperature 0.5" in metadata
    assert "max tokens 1,024" in metadata


def test_no_value_is_shown_twice(open_inspector: OpenInspector, refine_script: Path) -> None:
    bench = at_result(open_inspector, "draft")
    bench.run(refine_script, task="a note")
    assert "Output: usage" not in texts(bench), "the line below the state has it"
    assert " in · " not in bench.inspector.result.sections["call:1:reply"].details.text()
    bench.select("text")
    assert texts(bench) == {"Output: value": "three"}
    assert bench.inspector.result.sections["out:value"].details.text() == "same as Input: value"


def test_output_that_a_json_reply_means_is_not_shown_again() -> None:
    reply = Reply('{"done": true, "why": "fine"}')
    call = ModelCall("m", Request((Message("user", "Go."),)), reply, 0.0, 1.0)
    outputs: dict[str, Value] = {"verdict": {"why": "fine", "done": True}, "flag": True, "again": True}
    sections = result_sections(NodeExecution(state=NodeState.COMPLETED, calls=(call,), outputs=outputs))
    assert [section.heading for section in sections] == ["Prompt as sent", "Reply", "Output: flag", "Output: again"]


def test_result_shows_and_names_the_selected_iteration(open_inspector: OpenInspector, refine_script: Path) -> None:
    bench = at_result(open_inspector, "draft")
    bench.run(refine_script, task="a note")
    assert bench.inspector.tabs.tabText(RESULT) == "Result · iteration 3"
    assert texts(bench)["Reply"] == "three"
    bench.session.shown.look_at("loop", 1)
    assert bench.inspector.tabs.tabText(RESULT) == "Result · iteration 2"
    assert texts(bench)["Reply"] == "two"
    bench.select("text")
    assert bench.inspector.tabs.tabText(RESULT) == "Result"


def test_title_of_the_tab_is_short_where_there_is_no_room(open_inspector: OpenInspector, refine_script: Path) -> None:
    bench = at_result(open_inspector, "draft")
    bench.inspector.add_tab("Chat", QWidget())
    bench.run(refine_script, task="a note")
    for width, title in ((600, "Result · iteration 3"), (260, "Result"), (600, "Result · iteration 3")):
        bench.inspector.resize(width, 900)
        bench.qtbot.waitUntil(lambda title=title: bench.inspector.tabs.tabText(RESULT) == title)


def test_converged_loop_explains_its_exit_with_figures(open_inspector: OpenInspector, refine_script: Path) -> None:
    bench = at_result(open_inspector, "loop")
    assert bench.session.do(SetConfig(("stop_when",), {"loop": [{"condition": "stable_output", "threshold": 0.1}]}))
    bench.run(refine_script, task="a note")
    # "two" and "three" share one letter of five; "one" and "two" share none.
    assert mentions(bench.inspector.result.exit_reason.text(), "3 of 3: … 20% … (threshold 10%)")


def test_loop_shows_exit_reason_and_iterations(open_inspector: OpenInspector, refine_script: Path) -> None:
    bench = at_result(open_inspector, "loop")
    bench.run(refine_script, task="a note")
    result = bench.inspector.result
    assert result.exit_reason.text() == "Stopped after 3 of 3: max iterations reached."
    assert [line.split(" · ")[0] for line in result.iterations.lines] == ["1", "2", "3"]
    assert " · returned · " in result.iterations.lines[2]
    assert "Output: iterations" not in texts(bench), "the list has them"
    assert texts(bench)["Output: output"] == "three"
    tip = result.iterations.model().index(0, 0).data(Qt.ItemDataRole.ToolTipRole)
    first = bench.session.shown.view_model.loop("loop").iterations[0]
    assert tip == plain_tool_tip(value_preview(first.reason or first.result)), "what a model says is never markup"
    place = result.iterations.visualRect(result.iterations.model().index(1, 0)).center()
    QTest.mouseClick(result.iterations.viewport(), Qt.MouseButton.LeftButton, pos=place)
    assert bench.session.shown.chosen == {"loop": 1}
    QTest.keyClick(result.iterations, Qt.Key.Key_Up)
    assert bench.session.shown.chosen == {"loop": 0}
    bench.session.shown.look_at_latest()
    assert not result.iterations.currentIndex().isValid()
    bench.session.shown.look_at("loop", 2)
    assert result.iterations.currentIndex().row() == 2


def test_second_run_replaces_the_iteration_list(open_inspector: OpenInspector, refine_script: Path) -> None:
    bench = at_result(open_inspector, "loop")
    bench.run(refine_script, task="a note")
    bench.run(refine_script, task="a note")
    assert len(bench.inspector.result.iterations.lines) == 3


def test_run_summary_without_a_selection(open_inspector: OpenInspector, refine_script: Path) -> None:
    bench = at_result(open_inspector)
    bench.run(refine_script, task="a note")
    assert texts(bench) == {"Output: text": "three"}
    assert bench.inspector.result.state.text() == "Done"


def test_failure_is_shown_with_its_remedy(open_inspector: OpenInspector, write_script: WriteScript) -> None:
    bench = at_result(open_inspector, "draft")
    bench.run(write_script(draft={"error": {"kind": "authentication", "message": "The key is refused."}}), task="x")
    assert bench.inspector.result.state.text() == "Failed"
    assert "The key is refused." in bench.inspector.result.problems.texts[0]
    bench.select()
    assert bench.inspector.result.state.text() == "Failed"
    assert bench.inspector.result.problems.texts != []


def test_skipped_node_shows_its_reason(open_inspector: OpenInspector, refine_script: Path) -> None:
    bench = at_result(open_inspector, "critique")
    bench.session.do(SetEnabled("draft", False))
    bench.run(refine_script, task="a note")
    bench.select("draft")
    assert bench.inspector.result.state.text().startswith(("Skipped: ", "Done"))


def test_copy_includes_the_whole_text(open_inspector: OpenInspector, write_script: WriteScript) -> None:
    long = "word " * 10_000
    bench = ask_once(open_inspector, write_script(draft=long))
    view = bench.inspector.result.sections["call:1:reply"]
    assert len(view.content.view.text().replace("\n", "")) == INITIAL_CHARACTERS
    view.copy.click()
    assert QGuiApplication.clipboard().text() == long


def test_reply_is_streamed_during_a_run(open_inspector: OpenInspector, write_script: WriteScript) -> None:
    bench = at_result(open_inspector, "draft")
    reply = {"text": "slowly it comes " * 10_000, "stream": 3, "chunk_delay_s": 0.05}
    bench.session.start_run(
        {"task": "a note"}, RunOptions(model=f"scripted:{write_script(draft=reply, critique='fine')}")
    )
    bench.qtbot.waitUntil(lambda: texts(bench).get("Reply so far", "").startswith("slow"))
    assert bench.inspector.result.state.text() == "Running"
    bench.session.shown.live.cancel()
    bench.qtbot.waitUntil(lambda: bench.session.shown.live is None)
    bench.settle()
    assert bench.inspector.result.state.text() != "Running"


def test_events_of_other_nodes_update_nothing(open_inspector: OpenInspector, refine_script: Path) -> None:
    bench = at_result(open_inspector, "text")
    updates = []
    bench.inspector.result.update_result = lambda: updates.append(1)
    bench.session.shown.started.emit()
    bench.qtbot.waitUntil(lambda: bool(updates))
    updates.clear()
    bench.inspector._run_updated({"draft", "critique"})
    assert not bench.inspector._run_timer.isActive()
    bench.inspector._run_updated({"text"})
    assert bench.inspector._run_timer.isActive()
    bench.settle()


def test_long_text_shows_its_beginning_and_the_rest_on_demand(
    open_inspector: OpenInspector, write_script: WriteScript
) -> None:
    text = "a long line without an end " * 40_000
    bench = ask_once(open_inspector, write_script(draft=text))
    content = bench.inspector.result.sections["call:1:reply"].content
    assert content.more.text() == f"Show all {len(text):,} characters"
    bench.qtbot.waitUntil(content.more.isVisible)
    content.more.setFocus()
    QTest.keyClick(content.more, Qt.Key.Key_Space)
    bench.qtbot.waitUntil(lambda: content.is_complete)
    assert content.view.text().replace("\n", "") == text
    assert not content.more.isVisible()


def test_growing_text_is_appended_once_all_is_shown(qtbot: object, qapp: object) -> None:
    del qapp
    content = LongTextView("text")
    qtbot.addWidget(content)  # type: ignore[attr-defined]
    content.set_text("x" * (INITIAL_CHARACTERS + 1))
    content.more.click()
    qtbot.waitUntil(lambda: content.is_complete)  # type: ignore[attr-defined]
    content.set_text(content.text + "\nand more")
    qtbot.waitUntil(lambda: content.is_complete)  # type: ignore[attr-defined]
    assert content.view.text().endswith("and more")
    content.set_text("another")
    assert content.view.text() == "another"


def test_lone_surrogates_and_very_long_lines_are_displayable() -> None:
    assert displayable("a\ud800b") == "a\ufffdb"
    assert max(map(len, displayable("x" * 10_000).split("\n"))) <= 2_000
    assert displayable("short\n\nlines") == "short\n\nlines"


def test_model_text_is_never_rendered_as_markup(open_inspector: OpenInspector, write_script: WriteScript) -> None:
    bench = at_result(open_inspector, "draft")
    bench.run(write_script(draft={"error": {"kind": "bad_request", "message": "<b>bold</b>"}}), task="x")
    result = bench.inspector.result
    assert "<b>bold</b>" in result.problems.texts[0]
    assert result.state.textFormat() == Qt.TextFormat.PlainText
    assert result.exit_reason.textFormat() == Qt.TextFormat.PlainText


def test_several_calls_of_a_node_are_numbered(open_inspector: OpenInspector, write_script: WriteScript) -> None:
    flow = Builder()
    ask = flow.add("input", id="ask", name="ask")
    judge = flow.add("router", id="judge", criteria="Is it good?")
    good, bad = flow.add("output", id="good"), flow.add("output", id="bad")
    flow.connect(ask["value"], judge["input"])
    flow.connect(judge["done"], good["value"])
    flow.connect(judge["continue"], bad["value"])
    bench = open_inspector(flow.build())
    bench.select("judge")
    bench.inspector.show_result()
    bench.run(write_script(judge=["no verdict", {"json": {"branch": "done", "reason": "fine"}}]), ask="x")
    assert texts(bench)["Reply, call 1 of 2"] == "no verdict"
    assert "Reply, call 2 of 2" in texts(bench)
    assert bench.inspector.result.problems.texts != [], "a warning about the verdict"


def test_iteration_summary_is_one_line() -> None:
    ended = LoopIterationCompleted(
        "r", 1, 0.0, "loop", 1, "in", "out", "back", "continue", "too long", 0.5, 0.41, Usage(10, 5), 0.0, 2.0
    )
    assert iteration_summary(ended, is_returned=False) == "2 · continue · score 0.5 · 41% similar · $0 · 2.0 s"
    priced = dataclasses.replace(ended, branch=None, score=None, similarity=None, cost_usd=None)
    assert iteration_summary(priced, is_returned=True) == "2 · returned · $? · 2.0 s"


def test_usage_output_is_formatted() -> None:
    assert usage_label({"input_tokens": 1200, "output_tokens": 1, "exact": True, "cost_usd": 0}) == (
        "1,200 in · 1 out · $0"
    )
    assert usage_label({"input_tokens": 2, "output_tokens": 1, "exact": True, "cost_usd": None}) == "2 in · 1 out · $?"
    assert usage_label({"input_tokens": "2", "output_tokens": 1, "exact": True, "cost_usd": None}) == ""
    assert usage_label({"input_tokens": 2}) == ""


@pytest.mark.parametrize("text", ["x" * 3000, "https://example.org/" + "a/b-c" * 60, "Donaudampfschiff" * 40])
def test_text_without_spaces_is_wrapped(open_inspector: OpenInspector, write_script: WriteScript, text: str) -> None:
    bench = ask_once(open_inspector, write_script(draft=text))
    bench.inspector.resize(320, 900)
    view = bench.inspector.result.sections["call:1:reply"].content.view
    bench.qtbot.waitUntil(lambda: view.viewport().width() < 320)
    assert not view.horizontalScrollBar().isVisible()
    bench.qtbot.waitUntil(lambda: view.horizontalScrollBar().maximum() == 0)
    layout = view.document().firstBlock().layout()
    widest = max(layout.lineAt(line).naturalTextWidth() for line in range(layout.lineCount()))
    assert widest <= view.viewport().width(), "all of it can be read"


def test_structured_values_are_indented() -> None:
    assert value_text({"score": 0.5, "why": ["short", "é"]}) == (
        '{\n  "score": 0.5,\n  "why": [\n    "short",\n    "é"\n  ]\n}'
    )


def test_truncated_reply_shows_its_finish_reason(open_inspector: OpenInspector, write_script: WriteScript) -> None:
    bench = ask_once(open_inspector, write_script(draft={"text": "half", "finish": "length"}))
    assert "finish reason: length" in bench.inspector.result.sections["call:1:reply"].details.text()
    assert "cut off" in bench.inspector.result.problems.texts[0]


def test_labels_of_states_costs_and_values() -> None:
    assert state_label(NodeExecution(state=NodeState.RUNNING, retries=2)) == "Running (retry 2)"
    assert state_label(NodeExecution(state=NodeState.RUNNING, retries=1)) == "Running (retry 1)"
    assert value_text({"a": [1]}) == '{\n  "a": [\n    1\n  ]\n}'
    assert "\n" not in value_text(["long"] * 10_000)
    assert value_preview("a\n b") == "a b"
    assert value_preview("word " * 100).endswith("…")
