from __future__ import annotations

from typing import Any

import pytest

from engine.events import LoopStarted
from engine.models.protocol import Message, ModelCall, Reply, Request, Usage
from engine.run_state.reducer import apply, reduce_events
from engine.run_state.state import Detail, LoopExecution, iteration_at, nodes_on
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


def test_nodes_are_found_by_level_in_order_of_their_start():
    event = Events()
    state = reduce_events(
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
    assert (state.workflow, state.inputs, state.models) == ("Sample", {"task": "x"}, ("m",))
    assert (state.parent, state.forked_at, state.started) == ("p", "loop[1]", 1000.0)
    assert [node.path for node in nodes_on(state, "")] == ["loop"]
    draft, check = nodes_on(state, "loop[0]")
    assert (draft.node_id, draft.state, draft.inputs, draft.outputs) == (
        "draft",
        "completed",
        {"input": "a"},
        {"output": "one"},
    )
    assert (draft.usage, draft.calls[0].reply.text) == (Usage(1, 2), "one")
    assert (check.node_id, check.state, check.error) == ("check", "skipped", "Nothing reached it.")
    assert state.loops["loop"].total == 3
    iteration = iteration_at(state, "loop[0]")
    assert iteration is not None
    assert iteration.result == "one"
    assert iteration_at(state, "loop[1]") is None
    assert iteration_at(state, "other[0]") is None
    assert (state.status, state.outputs) == ("completed", {"answer": "one"})


def test_a_new_attempt_of_a_loop_drops_everything_inside():
    event = Events()
    state = reduce_events([])
    for reported in (
        begun(event, "outer", 0),
        begun(event, "outer[0].inner", 0),
        started(event, "outer[0].inner[0].draft"),
        event.iteration("outer[0].inner", 0, "stale"),
        begun(event, "outer", 0),
        started(event, "outer[0].other"),
    ):
        apply(state, reported)
    assert list(state.nodes) == ["outer[0].other"]
    assert state.loops["outer"].total == 3
    assert list(state.loops) == ["outer"]


def test_a_resumed_run_continues_where_it_was_interrupted():
    event = Events()
    state = reduce_events(
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
    assert (state.status, state.error, state.nodes["loop[1].draft"].remedy) == (
        "failed",
        "No.",
        "Wait.",
    )
    for reported in (
        event("RunResumed"),
        started(event, "loop[1].draft"),
        event.node("loop[1].draft", outputs={"output": "two"}),
        event.iteration("loop", 1, "two"),
    ):
        apply(state, reported)
    assert (state.status, state.error, state.failed_node) == ("running", "", "")
    assert [iteration.result for iteration in state.loops["loop"].iterations] == ["one", "two"]
    assert state.nodes["loop[1].draft"].state == "completed"
    assert state.nodes["loop[1].draft"].error == ""


def test_an_interrupted_run_has_its_finished_calls():
    event = Events()
    state = reduce_events(
        [
            started(event, "draft"),
            event("NodeCalled", "draft", number=0, call=call("first")),
            event("NodeRetrying", "draft", attempt=1, delay_s=0.1, error="Busy."),
            event("RunPaused"),
        ],
    )
    draft = state.nodes["draft"]
    assert (draft.state, draft.retries, [each.reply.text for each in draft.calls]) == ("running", 1, ["first"])
    assert state.status == "paused"
    apply(state, event("RunResumed"))
    assert state.status == "running"


def test_a_node_that_waits_for_a_person():
    event = Events()
    question = {"node_type": "approval", "kind": "approval", "message": "Good?", "value": "x", "choices": ()}
    state = reduce_events([started(event, "ask"), event("NodeWaiting", "ask", **question)])
    assert state.nodes["ask"].state == "waiting"


def test_tool_calls_and_output_key_of_an_agent():
    event = Events()

    def called(number: int, tool: str, **fields: Any) -> Any:
        usual: dict[str, Any] = {"arguments": {"a": number}, "result": None, "error": "", "duration_s": 0.1}
        return event("NodeToolCalled", "agent", number=number, tool=tool, **{**usual, **fields})

    state = reduce_events([started(event, "agent"), called(0, "add", result=1), called(1, "break", error="Broken.")])
    apply(state, started(event, "agent"))  # it was interrupted there, and continues
    apply(state, called(2, "finish", result="done"))
    apply(state, event.node("agent", Usage(1, 2), outputs={"output": "done"}, output_key="answer"))

    agent = state.nodes["agent"]
    assert [(call.tool, call.arguments, call.result, call.error) for call in agent.tool_calls] == [
        ("add", {"a": 0}, 1, ""),
        ("break", {"a": 1}, None, "Broken."),
        ("finish", {"a": 2}, "done", ""),
    ]
    assert agent.output_key == "answer"


def test_a_new_attempt_of_a_subflow_drops_earlier_ones() -> None:
    event = Events()
    state = reduce_events(
        [
            event("NodeStarted", "part", node_type="subflow", inputs={}),
            event.node("part.draft"),
            event("LoopIterationStarted", "part.loop", index=0, total=2, input_preview=""),
            event("NodeRetrying", "part", attempt=1, delay_s=0.0, error="Busy."),
            event.node("part.other"),
        ],
    )

    assert set(state.nodes) == {"part", "part.other"}
    assert not state.loops


@pytest.mark.parametrize("node_type", ["loop", "iterator"])
def test_the_cost_of_a_loop_is_counted_once_at_its_nodes(node_type: str) -> None:
    event = Events()
    failure: dict[str, Any] = {"error": "No.", "remedy": "Do.", "duration_s": 1.0}
    state = reduce_events(
        [
            event("RunStarted", workflow="Sample", inputs={}, models=()),
            event.node("loop[0].draft", Usage(3, 4), 0.5),
            event.node("loop", Usage(3, 4), 0.5, node_type=node_type),
            event("NodeFailed", "other", node_type=node_type, usage=Usage(1, 1), cost_usd=None, **failure),
        ],
        detail=Detail.SUMMARY,
    )

    assert (state.usage, state.cost_usd) == (Usage(3, 4), 0.5)
    assert (state.nodes, state.loops) == ({}, {})


def test_items_that_complete_out_of_order_are_sorted() -> None:
    event = Events()
    state = reduce_events([begun(event, "each", index) for index in range(4)])
    for index in (3, 1):
        apply(state, event.iteration("each", index, f"item {index}"))
    loop = state.loops["each"]
    assert (loop.iterations, sorted(loop.ahead), loop.completed) == ([], [1, 3], 2)
    assert [item.index for item in loop.all_iterations] == [1, 3]

    apply(state, event.iteration("each", 0, "item 0"))

    assert [item.index for item in loop.iterations] == [0, 1]
    assert loop.iteration(3) is loop.ahead[3]
    assert loop.iteration(2) is None


def test_a_loop_that_continues_after_a_resume_has_no_exit_reason() -> None:
    event = Events()
    figures: dict[str, Any] = {"converged": False, "returned": None, "cost_usd": 0.0, "duration_s": 1.0}
    start = event("NodeStarted", "loop", node_type="loop", inputs={})
    state = reduce_events(
        [
            start,
            event("LoopStarted", "loop", attempt=1, max_iterations=3),
            begun(event, "loop", 0),
            event("LoopCompleted", "loop", iterations_run=0, exit_reason="cancelled", **figures),
            ended(event, "RunCancelled"),
        ]
    )
    assert state.loops["loop"].exit_reason == "cancelled"
    assert not state.open_loops

    for reported in (event("RunResumed"), event("NodeStarted", "loop", node_type="loop", inputs={})):
        apply(state, reported)

    assert state.loops["loop"].exit_reason == ""
    assert list(state.open_loops) == ["loop"]


def test_each_attempt_of_a_loop_is_counted_and_starts_empty() -> None:
    event = Events()
    state = reduce_events(
        [
            event("LoopStarted", "loop", attempt=1, max_iterations=3),
            begun(event, "loop", 0),
            event.iteration("loop", 0, "stale", warnings=("loop[0]: Careful.",)),
            event("NodeRetrying", "loop", attempt=1, delay_s=0.0, error="No."),
            event("LoopStarted", "loop", attempt=2, max_iterations=3),
        ]
    )

    assert state.loops["loop"] == LoopExecution("loop", 2, 3)
    assert state.warnings.all == ()


def test_a_log_without_loop_started_reads_the_same() -> None:
    """The logs of older versions: there, iteration 0 starts the loop or starts it over."""
    event = Events()
    log = [
        event("LoopStarted", "outer", attempt=1, max_iterations=2),
        begun(event, "outer", 0),
        event("LoopStarted", "outer[0].inner", attempt=1, max_iterations=3),
        begun(event, "outer[0].inner", 0),
        event.iteration("outer[0].inner", 0, "stale", warnings=("Stale.",)),
        event("LoopStarted", "outer[0].inner", attempt=2, max_iterations=3),
        begun(event, "outer[0].inner", 0),
        event.iteration("outer[0].inner", 0, "fresh"),
        begun(event, "outer[0].inner", 1),
        event("LoopStarted", "outer", attempt=2, max_iterations=2),
        begun(event, "outer", 0),
        event("LoopStarted", "outer[0].inner", attempt=1, max_iterations=3),
        begun(event, "outer[0].inner", 0),
    ]
    for length in range(len(log) + 1):
        new = log[:length]
        if new and isinstance(new[-1], LoopStarted):
            continue  # a log of an older version does not end here
        old = [each for each in new if not isinstance(each, LoopStarted)]
        for detail in Detail:
            read, expected = reduce_events(old, detail=detail), reduce_events(new, detail=detail)
            totals = [{path: loop.total for path, loop in state.loops.items()} for state in (read, expected)]
            assert totals[0] == totals[1]
            assert (read.loops, read.open_loops, read.nodes) == (expected.loops, expected.open_loops, expected.nodes)
            assert read.warnings.all == expected.warnings.all


def test_the_text_of_a_stream_is_joined_and_starts_over_with_a_retry_and_a_tool_call() -> None:
    event = Events()
    state = reduce_events([started(event, "draft"), event("NodeStreaming", "draft", text="one ", tokens=1)])
    apply(state, event("NodeStreaming", "draft", text="two", tokens=2))
    assert state.nodes["draft"].text == "one two"

    apply(state, event("NodeRetrying", "draft", attempt=1, delay_s=0.1, error="Busy."))

    assert state.nodes["draft"].text == ""


def test_the_active_time_of_a_run_excludes_time_without_a_process() -> None:
    event = Events()  # one second after the other
    state = reduce_events(
        [
            event("RunStarted", workflow="Sample", inputs={}, models=()),
            event("NodeStarted", "a", node_type="llm", inputs={}),
            event("RunResumed"),
            event("NodeStarted", "a", node_type="llm", inputs={}),
        ]
    )
    assert state.active_s == 2.0
    assert state.active_until(state.updated + 5.0) == 7.0

    apply(state, ended(event, "RunFailed", error="No.", remedy="", node="a", duration_s=7.0))

    assert state.active_s == 7.0
