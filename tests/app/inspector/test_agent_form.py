"""The agent's fields in the inspector: tools, turn strategy, and notes while it runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from app.inspector.result_page import NOTE_SENT
from app.inspector.template_variables import variables_at
from engine.document.builder import Builder
from engine.document.model import Workflow
from engine.nodes.agent_tools import tool_choices
from engine.nodes.spec import NamedText, TextKind
from engine.runner.options import RunOptions
from engine.tools.mcp_settings import McpServer
from engine.tools.mcp_tools import ListedTool, Listing, served_tools
from engine.tools.registry import set_tools
from tests.app.inspector.conftest import Bench, OpenInspector

OneNode = Callable[..., Bench]
WriteScript = Callable[..., Path]


def test_checked_tools_keep_the_order_of_checking(one_node: OneNode) -> None:
    bench = one_node("agent")
    boxes = bench.editor("tools").boxes
    assert list(boxes) == list(tool_choices())
    assert boxes["exit_loop"].text() == "End the loop"
    assert boxes["exit_loop"].accessibleName() == "Tools: End the loop"

    boxes["write_file"].click()
    boxes["read_file"].click()
    assert bench.config("it") == {"tools": ["write_file", "read_file"]}
    boxes["write_file"].click()
    assert bench.config("it") == {"tools": ["read_file"]}
    bench.session.undo()
    assert bench.config("it") == {"tools": ["write_file", "read_file"]}
    assert boxes["write_file"].isChecked()
    QTest.keyClick(boxes["read_file"], Qt.Key.Key_Space)
    QTest.keyClick(boxes["write_file"], Qt.Key.Key_Space)
    assert bench.config("it") == {}


def test_missing_tool_is_shown_and_can_be_unchecked(one_node: OneNode) -> None:
    bench = one_node("agent", tools=["gone"])

    box = bench.editor("tools").boxes["gone"]
    assert (box.text(), box.isChecked()) == ("gone (missing)", True)
    bench.analyzed()
    assert 'There is no tool "gone"' in bench.problems("tools")[0]
    box.click()
    assert bench.config("it") == {}


def test_mcp_tools_can_be_checked(one_node: OneNode) -> None:
    tool = ListedTool(name="look", title="Look it up", input_schema={"properties": {"word": {"type": "string"}}})
    set_tools("dictionary", served_tools("dictionary", McpServer(command="x"), Listing(fingerprint="", tools=(tool,))))
    try:
        bench = one_node("agent")
        boxes = bench.editor("tools").boxes
        assert boxes["dictionary/look"].text() == "Look it up (dictionary)"
        boxes["dictionary/look"].click()
        assert bench.config("it") == {"tools": ["dictionary/look"]}
        bench.analyzed()
        assert bench.problems("tools") == []
    finally:
        set_tools("dictionary", ())


def test_approval_offers_only_tools_of_the_agent(one_node: OneNode) -> None:
    bench = one_node("agent")
    editor = bench.editor("require_approval")
    assert (list(editor.boxes), editor.empty.isVisible()) == ([], True)

    bench.editor("tools").boxes["write_file"].click()
    bench.page.refresh()
    assert (list(editor.boxes), editor.empty.isVisible()) == (["write_file"], False)
    editor.boxes["write_file"].click()
    assert bench.config("it") == {"tools": ["write_file"], "require_approval": ["write_file"]}


def test_turn_strategies_are_offered(one_node: OneNode) -> None:
    bench = one_node("agent")
    combo = bench.editor("turn_strategy").combo

    assert [combo.itemText(row) for row in range(combo.count())] == ["Tool calling", "Single call"]


def test_state_variables_are_offered_with_their_writers(open_inspector: OpenInspector) -> None:
    flow = Builder()
    flow.add("llm", id="write", title="Writer", prompt="x", output_key="draft")
    flow.add("llm", id="read", prompt="y")
    bench = open_inspector(flow.build())
    node = bench.session.node("read")
    assert node is not None

    names = variables_at(bench.session.structure, node, NamedText("prompt", TextKind.TEMPLATE, ""))

    assert ("state.draft", "Latest output of Writer in this run.") in [(name.text, name.help) for name in names]


def asking() -> Workflow:
    """An agent that asks a person before it answers."""
    flow = Builder()
    task = flow.add("input", id="task", name="task")
    agent = flow.add("agent", id="agent", prompt="{{input}}", tools=["ask_person"], output_key="answer")
    out = flow.add("output", id="out")
    flow.connect(task["value"], agent["input"])
    flow.connect(agent["output"], out["value"])
    return flow.build()


def test_note_reaches_the_next_call_of_a_running_node(open_inspector: OpenInspector, write_script: WriteScript) -> None:
    bench = open_inspector(asking())
    question = {"tool_calls": [{"name": "ask_person", "arguments": {"question": "Which?"}}]}
    script = write_script(agent=[question, "done"])
    note = bench.inspector.result.note
    bench.select("agent")
    bench.inspector.show_result()
    assert not note.isVisible()

    session = bench.session
    session.start_run({"task": "x"}, RunOptions(model=f"scripted:{script}"))
    bench.qtbot.waitUntil(lambda: session.shown.view_model is not None and bool(session.shown.view_model.questions))
    bench.qtbot.waitUntil(note.isVisible)
    assert not note.send.isEnabled()
    QTest.keyClicks(note.line, "Make it rhyme.")
    assert note.send.isEnabled()
    QTest.keyClick(note.line, Qt.Key.Key_Return)
    assert (note.line.text(), note.status.text(), note.status.isVisible()) == ("", NOTE_SENT, True)

    bench.select("task")
    bench.qtbot.waitUntil(lambda: not note.isVisible())
    with bench.qtbot.waitSignal(session.shown.ended):
        assert session.shown.live is not None
        session.shown.live.answer("agent", "", "blue", "")
    bench.select("agent")
    bench.settle()
    assert bench.inspector.result.metrics.text().endswith(" · state.answer")
    assert session.shown.view_model is not None
    second = session.shown.view_model.nodes["agent"].calls[1].request.messages
    assert [message.text.splitlines()[-1] for message in second if message.role == "user"] == ["x", "Make it rhyme."]
