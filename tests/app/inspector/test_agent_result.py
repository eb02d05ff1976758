"""The Result tab for agent steps, judges, items and questions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.canvas.run_view import RunDecorations
from app.inspector.result_text import agent_steps_text, result_sections
from app.runs.loop_status import loop_explanation
from app.runs.run_view_model import RunViewModel
from engine.document.builder import Builder
from engine.document.model import Workflow
from engine.document.operations import SetConfig
from engine.events import (
    LoopIterationCompleted,
    LoopIterationStarted,
    NodeRetrying,
    NodeStarted,
    NodeStreaming,
    NodeToolCalled,
    NodeWaiting,
)
from engine.models.protocol import Usage
from engine.nodes.node_registry import builtin_registry
from engine.plan.structure import analyse
from engine.run_state.state import NodeExecution, NodeState
from tests.app.inspector.conftest import Bench, OpenInspector


def with_agent() -> Workflow:
    flow = Builder("Agent")
    ask = flow.add("input", id="ask", default="How many?")
    agent = flow.add("agent", id="agent", prompt="{{input}}", config={"tools": ["read_file", "ask_person"]})
    out = flow.add("output", id="out")
    flow.connect(ask["value"], agent["input"])
    flow.connect(agent["output"], out["value"])
    return flow.build()


def shown(bench: Bench) -> dict[str, str]:
    return {key: view.content.view.text() for key, view in bench.inspector.result.sections.items()}


def test_agent_steps_show_thoughts_calls_and_results(open_inspector: OpenInspector, tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    calls = [{"name": "read_file", "arguments": {"path": "a.txt"}}, {"name": "nothing_such", "arguments": {}}]
    replies = [{"text": "I look into the file.", "tool_calls": calls}, "Seven."]
    script.write_text(json.dumps({"rules": [{"node": "agent", "replies": replies}]}))
    bench = open_inspector(with_agent())
    bench.select("agent")
    bench.inspector.show_result()
    bench.run(script, ask="How many?")

    parts = shown(bench)
    assert next(iter(parts)) == "steps"
    lines = parts["steps"].splitlines()
    assert lines[:3] == ["Turn 1", "I look into the file.", "→ read_file(path: a.txt)"]
    assert lines[3].startswith("✗ ")
    assert lines[4:6] == ["", "→ nothing_such()"]
    assert "nothing_such" in lines[6]
    assert parts["call:1:reply"] == "I look into the file.\n→ read_file(path: a.txt)\n→ nothing_such()"
    assert parts["call:2:reply"] == "Seven."


def test_running_agent_shows_its_calls_and_a_retry_clears_them() -> None:
    structure = analyse(with_agent())
    view_model, node = RunViewModel(structure.parent), structure.workflow.node("agent")
    base = ("run", 0, 0.0, "agent")
    view_model.apply(NodeStarted(*base, "agent", {}))
    view_model.apply(NodeStreaming(*base, "Let me see.", 3))
    view_model.apply(NodeToolCalled(*base, 0, "search", {"query": "sea"}, ["one", "two"], "", 0.1))
    marks = RunDecorations(view_model, structure, {})
    assert marks.card(node, None).line == "called search"
    assert agent_steps_text(view_model.node("agent")) == '→ search(query: sea)\n= [\n  "one",\n  "two"\n]'
    view_model.apply(NodeStreaming(*base, "So it is", 3))
    assert marks.card(node, None).line == "So it is"
    assert [part.key for part in result_sections(view_model.node("agent"))] == ["steps", "stream"]
    view_model.apply(NodeRetrying(*base, 1, 0.0, "It broke.", True))
    assert agent_steps_text(view_model.node("agent")).startswith("→ search(query: sea)")
    view_model.apply(NodeRetrying(*base, 2, 0.0, "It broke."))
    assert agent_steps_text(view_model.node("agent")) == ""


def judged(**config: object) -> Workflow:
    rubric = [{"name": "clarity", "weight": 2.0}, {"name": "good_length", "weight": 1.0}]
    judge = {"criteria": "It is clear.", "rubric": rubric, **config}
    flow = Builder("Judged")
    task = flow.add("input", id="task", default="the sea")
    loop = flow.add(
        "loop",
        id="loop",
        config={
            "max_iterations": 2,
            "stop_when": [{"condition": "judge"}],
            "judge": judge,
            "on_max_iterations": "return_best",
            "inject_feedback": False,
        },
    )
    draft = flow.add("llm", id="draft", prompt="Write: {{input}}")
    end = flow.add("exit", id="exit", config={"loop": "loop"})
    out = flow.add("output", id="out")
    flow.connect(task["value"], loop["input"])
    flow.connect(loop["body"], draft["input"])
    flow.connect(draft["output"], end["input"])
    flow.connect(end["output"], out["value"])
    return flow.build()


def test_judge_verdict_shows_scores_reason_and_best_iteration(open_inspector: OpenInspector, tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    verdicts = [
        {"reason": reason, "done": False, "scores": {"clarity": clarity, "good_length": 6}}
        for reason, clarity in (("Nearly.", 9), ("Worse.", 3))
    ]
    rules = [
        {"node": "judge", "iteration": index, "reply": {"json": verdict}} for index, verdict in enumerate(verdicts)
    ]
    rules.append({"node": "draft", "reply": "words"})
    script.write_text(json.dumps({"rules": rules}))
    bench = open_inspector(judged())
    bench.select("loop")
    bench.inspector.show_result()
    bench.run(script, task="the sea")

    result = bench.inspector.result
    assert shown(bench)["judge:1"].splitlines() == [
        "Not done, score 4 of 10",
        "clarity: 3 (weight 2)",
        "good length: 6 (weight 1)",
        "",
        "Worse.",
    ]
    assert "the result of iteration 1." in result.exit_reason.text()
    assert shown(bench)["out:exit_reason"] == "max_iterations"
    bench.session.shown.look_at("loop", 0)
    assert shown(bench)["judge:0"].startswith("Not done, score 8 of 10\nclarity: 9 (weight 2)")


def test_state_variable_is_shown_in_each_iteration(open_inspector: OpenInspector, tmp_path: Path) -> None:
    flow = judged()
    named, _ = SetConfig(("output_key",), {"draft": "current_document"}).apply(flow)
    named, _ = SetConfig(("stop_when",), {"loop": []}).apply(named)
    named, _ = SetConfig(("prompt",), {"draft": "Before: {{state.current_document}}. Write: {{input}}"}).apply(named)
    script = tmp_path / "script.json"
    verdict = {"reason": "r", "done": False, "scores": {"clarity": 1, "good_length": 1}}
    rules = [{"node": "draft", "replies": ["one", "two"]}, {"node": "judge", "reply": {"json": verdict}}]
    script.write_text(json.dumps({"rules": rules}))
    bench = open_inspector(named)
    bench.select("draft")
    bench.inspector.show_result()
    bench.run(script, task="the sea")

    for index, (before, given) in enumerate((("Before: . ", "one"), ("Before: one. ", "two"))):
        bench.session.shown.look_at("loop", index)
        assert bench.inspector.result.metrics.text().endswith(" · state.current_document")
        assert shown(bench)["call:1:reply"] == given
        assert shown(bench)["call:1:0"].startswith(before)


def test_running_loop_shows_its_best_iteration_so_far() -> None:
    structure = analyse(judged())
    view_model, workflow = RunViewModel(structure.parent), structure.workflow
    base = ("run", 0, 0.0, "loop")
    view_model.apply(NodeStarted(*base, "loop", {}))
    for index, score in enumerate((8.0, 5.0)):
        view_model.apply(LoopIterationStarted(*base, index, 3, ""))
        figures = (None, "loop_explanation", score, None, Usage(), 0.0, 0.0)
        view_model.apply(LoopIterationCompleted(*base, index, "in", "out", "out", *figures))
    view_model.apply(LoopIterationStarted(*base, 2, 3, ""))

    status = loop_explanation(workflow, view_model, builtin_registry(), {}, "loop")
    assert status == "Iteration 3 of up to 3. Best so far: iteration 1, score 8."
    card = RunDecorations(view_model, structure, {}).card(workflow.node("loop"), None)
    assert (card.note, card.line) == ("3 / 3", "best so far: iteration 1, score 8")


def test_question_of_a_node_is_part_of_its_result(open_inspector: OpenInspector) -> None:
    bench = open_inspector(with_agent())
    bench.select("agent")
    bench.inspector.show_result()
    view_model = RunViewModel({})
    base = ("run", 0, 0.0, "agent")
    view_model.apply(NodeStarted(*base, "agent", {}))
    view_model.apply(NodeWaiting(*base, "agent", "question", "Which unit?", None, ()))
    bench.session.shown.view_model = view_model
    bench.inspector.result.update_result()
    assert bench.inspector.result.state.text() == "Waiting for you"
    assert shown(bench)["question"] == "Which unit?"


@pytest.mark.parametrize("steps", [[], ["text"], [{"turn": 1}], None, "text"])
def test_steps_of_another_form_are_not_shown_as_steps(steps: object) -> None:
    execution = NodeExecution(state=NodeState.COMPLETED, outputs={"steps": steps})  # type: ignore[dict-item]
    assert agent_steps_text(execution) == ""


def test_result_in_an_iterator_names_the_item(open_inspector: OpenInspector, tmp_path: Path) -> None:
    flow = Builder("Each")
    each = flow.add("iterator", id="each", config={"source": "list", "items": ["x", "y"]})
    mark = flow.add("transform", id="mark", template="{{item}}")
    gather = flow.add("aggregator", id="gather", config={"iterator": "each"})
    out = flow.add("output", id="out")
    flow.connect(each["item"], mark["input"])
    flow.connect(mark["output"], gather["input"])
    flow.connect(gather["output"], out["value"])
    bench = open_inspector(flow.build())
    bench.select("mark")
    bench.inspector.show_result()
    script = tmp_path / "script.json"
    script.write_text(json.dumps({"rules": []}))
    bench.run(script)
    bench.session.shown.look_at("each", 0)
    assert bench.inspector.tabs.tabText(1) == "Result · item 1"
    assert shown(bench)["out:output"] == "x"
