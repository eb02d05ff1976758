from __future__ import annotations

from typing import Any

from engine.models.base import Message, Reply, Request, Usage
from engine.nodes.spec import ModelCall
from engine.store.outline import RunOutline
from tests.engine.cli.kit import Events


def call(text: str) -> ModelCall:
    return ModelCall("m", Request((Message("user", "?"),)), Reply(text), 0.0, 0.1)


def started(event: Events, path: str, **inputs: Any) -> Any:
    return event("NodeStarted", path, node_type="llm", inputs=inputs)


def begun(event: Events, loop: str, index: int) -> Any:
    return event("LoopIterationStarted", loop, index=index, total=3, input_preview="")


def ended(event: Events, kind: str, **fields: Any) -> Any:
    usual = {"outputs": {}, "usage": Usage(3, 4), "cost_usd": 0.5, "duration_s": 2.0}
    return event(kind, **{**usual, **fields})


def test_nodes_are_found_by_level_in_the_order_in_which_they_began():
    event = Events()
    outline = RunOutline(
        "r",
        [
            event(
                "RunStarted", workflow="Sample", inputs={"task": "x"}, models=("m",), parent="p", forked_at="loop[1]"
            ),
            started(event, "loop"),
            begun(event, "loop", 0),
            started(event, "loop[0].draft", input="a"),
            event.node("loop[0].draft", Usage(1, 2), outputs={"output": "one"}, calls=(call("one"),)),
            event("NodeSkipped", "loop[0].check", node_type="router", reason="Nothing reached it."),
            event.iteration("loop", 0, "one"),
            ended(event, "RunCompleted", outputs={"answer": "one"}),
        ],
    )
    assert (outline.workflow, outline.inputs, outline.models) == ("Sample", {"task": "x"}, ("m",))
    assert (outline.parent, outline.forked_at, outline.started) == ("p", "loop[1]", 1000.0)
    assert [node.path for node in outline.on_level("")] == ["loop"]
    draft, check = outline.on_level("loop[0]")
    assert (draft.node_id, draft.state, draft.inputs, draft.outputs) == (
        "draft",
        "completed",
        {"input": "a"},
        {"output": "one"},
    )
    assert (draft.usage, draft.calls[0].reply.text) == (Usage(1, 2), "one")
    assert (check.node_id, check.state, check.error) == ("check", "skipped", "Nothing reached it.")
    assert outline.totals == {"loop": 3}
    iteration = outline.iteration("loop[0]")
    assert iteration is not None
    assert iteration.result == "one"
    assert outline.iteration("loop[1]") is None
    assert outline.iteration("other[0]") is None
    assert (outline.result.status, outline.result.outputs) == ("completed", {"answer": "one"})


def test_a_loop_that_begins_anew_takes_back_everything_under_its_path():
    event = Events()
    outline = RunOutline("r")
    for told in (
        begun(event, "outer", 0),
        begun(event, "outer[0].inner", 0),
        started(event, "outer[0].inner[0].draft"),
        event.iteration("outer[0].inner", 0, "stale"),
        begun(event, "outer", 0),
        started(event, "outer[0].other"),
    ):
        outline.take(told)
    assert list(outline.nodes) == ["outer[0].other"]
    assert outline.totals == {"outer": 3}
    assert list(outline.loops) == ["outer"]


def test_a_run_that_was_resumed_goes_on_where_it_broke_off():
    event = Events()
    outline = RunOutline(
        "r",
        [
            begun(event, "loop", 0),
            event.iteration("loop", 0, "one"),
            begun(event, "loop", 1),
            started(event, "loop[1].draft"),
            event("NodeCalled", "loop[1].draft", number=0, call=call("first")),
            event("NodeFailed", "loop[1].draft", node_type="llm", error="No.", remedy="Wait.", duration_s=1.0),
            ended(event, "RunFailed", error="No.", remedy="Wait.", node="loop[1].draft"),
        ],
    )
    assert (outline.result.status, outline.result.error, outline.nodes["loop[1].draft"].remedy) == (
        "failed",
        "No.",
        "Wait.",
    )
    for told in (
        event("RunResumed"),
        started(event, "loop[1].draft"),
        event.node("loop[1].draft", outputs={"output": "two"}),
        event.iteration("loop", 1, "two"),
    ):
        outline.take(told)
    assert (outline.result.status, outline.result.error, outline.result.node) == ("running", "", "")
    assert [iteration.result for iteration in outline.loops["loop"].iterations] == ["one", "two"]
    assert outline.nodes["loop[1].draft"].state == "completed"
    assert outline.nodes["loop[1].draft"].error == ""


def test_a_run_that_broke_off_shows_the_calls_that_were_finished():
    event = Events()
    outline = RunOutline(
        "r",
        [
            started(event, "draft"),
            event("NodeCalled", "draft", number=0, call=call("first")),
            event("NodeRetrying", "draft", attempt=1, delay_s=0.1, error="Busy."),
            event("RunPaused"),
        ],
    )
    draft = outline.nodes["draft"]
    assert (draft.state, draft.retries, [each.reply.text for each in draft.calls]) == ("running", 1, ["first"])
    assert outline.paused
    outline.take(event("RunResumed"))
    assert not outline.paused


def test_a_node_that_waits_for_a_person():
    event = Events()
    question = {"node_type": "approval", "kind": "approval", "message": "Good?", "value": "x", "choices": ()}
    outline = RunOutline("r", [started(event, "ask"), event("NodeWaiting", "ask", **question)])
    assert outline.nodes["ask"].state == "waiting"


def test_an_agents_tool_calls_and_the_name_of_what_it_gave():
    event = Events()

    def called(number: int, tool: str, **fields: Any) -> Any:
        usual: dict[str, Any] = {"arguments": {"a": number}, "result": None, "error": "", "duration_s": 0.1}
        return event("NodeToolCalled", "agent", number=number, tool=tool, **{**usual, **fields})

    outline = RunOutline(
        "r", [started(event, "agent"), called(0, "add", result=1), called(1, "break", error="Broken.")]
    )
    outline.take(started(event, "agent"))  # it broke off there, and goes on
    outline.take(called(2, "finish", result="done"))
    outline.take(event.node("agent", Usage(1, 2), outputs={"output": "done"}, output_key="answer"))

    agent = outline.nodes["agent"]
    assert [(call.tool, call.arguments, call.result, call.error) for call in agent.tool_calls] == [
        ("add", {"a": 0}, 1, ""),
        ("break", {"a": 1}, None, "Broken."),
        ("finish", {"a": 2}, "done", ""),
    ]
    assert agent.output_key == "answer"


def test_what_a_subflow_did_before_it_began_anew_counts_no_more() -> None:
    event = Events()
    outline = RunOutline(
        "r",
        [
            event("NodeStarted", "part", node_type="subflow", inputs={}),
            event.node("part.draft"),
            event("LoopIterationStarted", "part.loop", index=0, total=2, input_preview=""),
            event("NodeRetrying", "part", attempt=1, delay_s=0.0, error="Busy."),
            event.node("part.other"),
        ],
    )

    assert set(outline.nodes) == {"part", "part.other"}
    assert not outline.loops
    assert not outline.totals
