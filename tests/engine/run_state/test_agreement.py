"""All views of a run agree, for any events and wherever the log ends."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.cli.run_monitor import loop_bars
from engine.events import (
    AnyEvent,
    LoopCompleted,
    LoopIterationCompleted,
    LoopIterationStarted,
    LoopStarted,
    NodeAnswered,
    NodeCalled,
    NodeCompleted,
    NodeFailed,
    NodeRetrying,
    NodeSkipped,
    NodeStarted,
    NodeStreaming,
    NodeWaiting,
    RunCancelled,
    RunCompleted,
    RunFailed,
    RunPaused,
    RunResumed,
    RunStarted,
)
from engine.models.protocol import Message, ModelCall, Reply, Request, Usage
from engine.run_state.reducer import end_open_nodes, reduce_events
from engine.run_state.result import RESULT_EVENTS, result_of
from engine.run_state.state import (
    QUESTION_EVENTS,
    Detail,
    NodeState,
    RunState,
    RunStatus,
    active_nodes,
    nodes_on,
    waits_only,
)
from engine.runner.loop_variables import IterationRecord
from engine.runner.run_storage import RunHead
from engine.store.run_sections import level_state
from engine.store.store_protocol import OPEN, level_of
from tests.engine.store.memory_store import MemoryStore

CALL = ModelCall("m", Request((Message("user", "?"),)), Reply("x"), 0.5, 0.1)
RECORD = IterationRecord(0, None, None, None, None, None, None, None, Usage(), 0.5, 0.0)
RUNNING = {NodeState.RUNNING, NodeState.WAITING}
ENDS: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    (RunCancelled, ({}, Usage(1, 1), 0.5, 1.0)),
    (RunFailed, ("It broke.", "", "draft", {}, Usage(1, 1), 0.5, 1.0)),
    (RunCompleted, ({"out": "x"}, Usage(1, 1), 0.5, 1.0)),
]


@dataclass
class Writer:
    """Writes the log of a run that behaves as the runner does, with random choices."""

    draw: st.DrawFn
    events: list[AnyEvent] = field(default_factory=list[AnyEvent])

    def emit(self, kind: Callable[..., Any], path: str = "", *fields: Any) -> None:
        self.events.append(kind("r", len(self.events), float(len(self.events)), path, *fields))

    def choose(self, *choices: Any) -> Any:
        return self.draw(st.sampled_from(choices))

    def leaf(self, path: str) -> None:
        if self.choose(False, False, False, True):
            self.emit(NodeSkipped, path, "llm", "It is disabled.")
            return
        self.emit(NodeStarted, path, "llm", {})
        for step in self.draw(st.lists(st.sampled_from(["stream", "ask", "retry", "call"]), max_size=3)):
            if step == "stream":
                self.emit(NodeStreaming, path, "text", 1)
            elif step == "call":
                self.emit(NodeCalled, path, 0, CALL)
            elif step == "retry":
                self.emit(NodeRetrying, path, 1, 0.0, "down", self.choose(True, False))
            else:
                self.emit(NodeWaiting, path, "llm", "question", "Well?", None, ())
                if self.choose(True, True, False):
                    self.emit(NodeAnswered, path, "", "yes", "")
        self.end_node(path, "llm", Usage(1, 1), 0.5)

    def end_node(self, path: str, kind: str, usage: Usage | None, cost: float | None) -> None:
        """The end of a node; none where it is stopped with whatever it is part of."""
        end = self.choose("completed", "completed", "completed", "failed", "none")
        if end == "completed":
            self.emit(NodeCompleted, path, kind, {}, usage, cost, 1.0, self.choose(True, False), (), ("Careful.",))
        elif end == "failed":
            self.emit(NodeFailed, path, kind, "It broke.", "", 1.0, usage, cost)

    def level(self, prefix: str, depth: int) -> None:
        kinds = ("leaf", "leaf", "loop", "each", "part") if depth else ("leaf",)
        chosen = self.draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=3))
        for number, kind in enumerate(chosen):
            self.node(kind, f"{prefix}{kind}{number}", depth)

    def node(self, kind: str, path: str, depth: int) -> None:
        if kind == "leaf":
            self.leaf(path)
            return
        node_type = {"loop": "loop", "each": "iterator", "part": "subflow"}[kind]
        self.emit(NodeStarted, path, node_type, {})
        attempts = self.choose(1, 1, 2)
        for attempt in range(1, attempts + 1):
            if kind == "part":
                self.level(f"{path}.", depth - 1)
            else:
                self.iterations(path, attempt, depth, is_loop=kind == "loop")
            if attempt < attempts:
                self.emit(NodeRetrying, path, attempt, 0.0, "down")
        self.end_node(path, node_type, Usage(1, 1) if kind != "part" else None, 0.5)

    def iterations(self, path: str, attempt: int, depth: int, *, is_loop: bool) -> None:
        count = self.choose(0, 1, 2, 3)
        self.emit(LoopStarted, path, attempt, 3)
        if not is_loop:  # items start in their order and complete in any
            for index in range(count):
                self.emit(LoopIterationStarted, path, index, 3, "")
        completed = 0
        for index in range(count) if is_loop else self.draw(st.permutations(range(count))):
            if is_loop:
                self.emit(LoopIterationStarted, path, index, 3, "")
            self.level(f"{path}[{index}].", depth - 1)
            if self.choose(True, True, False):
                self.emit(LoopIterationCompleted, path, *IterationRecord(index, *RECORD.fields()[1:]).fields())
                completed += 1
            elif is_loop:
                break
        if self.choose(True, True, False):
            self.emit(LoopCompleted, path, completed, "until", True, None, 0.5, 1.0)

    def session(self) -> None:
        """One process of the run: it ends in one of the ways, or not at all."""
        if self.choose(False, False, True):
            self.emit(RunPaused)
            self.emit(RunResumed)
        self.level("", 2)
        end = self.choose(None, *ENDS)
        if end is not None:
            self.emit(end[0], "", *end[1])


@st.composite
def logs(draw: st.DrawFn) -> list[AnyEvent]:
    """The log of a run of one or more processes, cut off anywhere."""
    writer = Writer(draw)
    writer.emit(RunStarted, "", "test", {}, ("m",))
    writer.session()
    for _ in range(draw(st.sampled_from([0, 0, 1, 2]))):
        del writer.events[draw(st.integers(1, len(writer.events))) :]
        if isinstance(writer.events[-1], RunCompleted):
            break
        writer.emit(RunResumed)
        writer.session()
    return writer.events[: draw(st.integers(1, len(writer.events)))]


def stored(events: list[AnyEvent]) -> MemoryStore:
    store = MemoryStore()
    journal = store.begin(RunHead("r", "", {}, ""))
    for event in events:
        journal.write(event)
    journal.close()
    return store


@given(events=logs())
def test_the_state_is_consistent(events: list[AnyEvent]) -> None:
    state = reduce_events(events, "r")
    running = {path for path, node in state.nodes.items() if node.state in RUNNING}
    waiting = {path for path, node in state.nodes.items() if node.state is NodeState.WAITING}

    assert running == set(state.open)
    assert waiting == set(state.questions)
    assert set(state.open_loops) <= set(state.loops)
    assert set(active_nodes(state)) <= running
    assert not waits_only(state) or state.status is not RunStatus.RUNNING
    for loop in state.loops.values():
        assert [iteration.index for iteration in loop.iterations] == list(range(len(loop.iterations)))
        assert len(loop.iterations) not in loop.ahead
    if state.is_over:
        assert (running, state.open_loops, state.questions) == (set(), {}, {})
        assert not any(bar.is_open for bar in loop_bars(state))


@given(events=logs())
def test_states_of_less_detail_agree(events: list[AnyEvent]) -> None:
    full, loops, summary = (reduce_events(events, "r", detail) for detail in reversed(Detail))

    for state in (loops, summary):
        for name in ("status", "usage", "cost_usd", "duration_s", "error", "questions", "unanswered", "exit_reason"):
            assert getattr(state, name) == getattr(full, name), name
    assert (loops.loops, loops.open_loops, loops.warnings.all) == (full.loops, full.open_loops, full.warnings.all)
    assert result_of(loops) == result_of(full)


@given(events=logs())
def test_the_list_of_runs_agrees(events: list[AnyEvent]) -> None:
    state, summary = reduce_events(events, "r"), stored(events).find("r")

    expected = RunStatus.INTERRUPTED if state.status in OPEN - {RunStatus.WAITING} else state.status
    assert (summary.status, summary.exit_reason, summary.error) == (expected, state.exit_reason, state.error)
    assert (summary.tokens, summary.cost_usd) == (state.usage.total_tokens, state.cost_usd)
    assert summary.iterations == state.completed_iterations


@given(events=logs())
def test_the_levels_of_a_stored_run_agree_with_the_whole_run(events: list[AnyEvent]) -> None:
    store, state = stored(events), reduce_events(events, "r")
    run = store.find("r")
    if run.status not in OPEN:
        end_open_nodes(state, NodeState.INTERRUPTED if run.status is RunStatus.INTERRUPTED else NodeState.CANCELLED)

    for level in {level_of(path) for path in state.nodes}:
        shown = level_state(store, run, level)
        nodes, expected = nodes_on(shown, level), nodes_on(state, level)
        ended = [(node.path, node.calls, node.usage, node.error) for node in expected if node.has_ended]
        assert [(node.path, node.calls, node.usage, node.error) for node in nodes if node.has_ended] == ended
        if run.status not in OPEN:
            assert RUNNING.isdisjoint(node.state for node in nodes)


@given(events=logs())
def test_a_filtered_log_agrees_in_what_it_has(events: list[AnyEvent]) -> None:
    state = reduce_events(events, "r")
    questions = reduce_events((event for event in events if type(event) in QUESTION_EVENTS), "r", Detail.SUMMARY)
    assert (questions.questions, questions.unanswered) == (state.questions, state.unanswered)

    result = result_of(reduce_events((event for event in events if type(event) in RESULT_EVENTS), "r", Detail.LOOPS))
    expected = result_of(state)
    assert (result.status, result.outputs, result.error) == (expected.status, expected.outputs, expected.error)
    assert _iterations(result) == _iterations(expected)


def _iterations(result: Any) -> dict[str, list[int]]:
    return {path: [each.index for each in loop.iterations] for path, loop in result.loops.items() if loop.iterations}


@given(events=logs())
def test_a_log_of_an_older_version_agrees(events: list[AnyEvent]) -> None:
    """It has no `loop.started`."""
    expected = reduce_events(events, "r")
    old = reduce_events([event for event in events if not isinstance(event, LoopStarted)], "r")

    started = {path for path, loop in expected.loops.items() if loop.current >= 0}
    for path in started:
        assert old.loops[path].iterations == expected.loops[path].iterations
    assert _states(old, started) == _states(expected, started)
    assert old.questions == expected.questions


def _states(state: RunState, loops: set[str]) -> dict[str, NodeState]:
    """The states of the nodes outside loops, and in loops that have begun an iteration."""
    return {
        path: node.state for path, node in state.nodes.items() if all(place in loops for place in _loops_around(path))
    }


def _loops_around(path: str) -> Iterator[str]:
    return (path[:end] for end in (at for at, sign in enumerate(path) if sign == "["))


def _log(*steps: tuple[Any, ...]) -> list[AnyEvent]:
    kinds = itertools.chain([(RunStarted, "", "test", {}, ())], steps)
    return [kind("r", seq, float(seq), path, *fields) for seq, (kind, path, *fields) in enumerate(kinds)]


def _kind(path: str) -> str:
    return "loop" if path in {"loop", "loop[1].inner"} else "subflow" if path == "part" else "llm"


PATHS = ["draft", "part", "part.ask", "loop", "loop[0].draft", "loop[1].ask", "loop[1].inner", "loop[1].inner[0].draft"]
BEGUN: list[tuple[Any, ...]] = [(NodeStarted, path, _kind(path), {}) for path in PATHS]


def _node_states(*steps: tuple[Any, ...]) -> dict[str, str]:
    return {path: node.state for path, node in reduce_events(_log(*steps)).nodes.items()}


@pytest.mark.parametrize(("end", "fields"), ENDS, ids=["cancelled", "failed", "completed"])
def test_nothing_runs_after_the_end_of_a_run(end: Any, fields: tuple[Any, ...]) -> None:
    assert set(_node_states(*BEGUN, (end, "", *fields)).values()) == {"cancelled"}


def test_nodes_stopped_in_a_loop_or_subflow_are_cancelled_while_the_rest_runs() -> None:
    loop = (NodeCompleted, "loop", "loop", {}, None, 0.0, 1.0)
    part = (NodeFailed, "part", "subflow", "It broke.", "", 1.0)
    states = _node_states(*BEGUN, loop, part)

    assert states["draft"] == "running"
    assert (states["loop"], states["part"]) == ("completed", "failed")
    inside = {state for path, state in states.items() if path.startswith(("loop[", "part."))}
    assert inside == {"cancelled"}


def test_running_nodes_of_an_item_are_cancelled_when_the_item_ends() -> None:
    ended = (LoopIterationCompleted, "loop", *IterationRecord(1, *RECORD.fields()[1:]).fields())
    states = _node_states(*BEGUN, ended)

    assert states["loop[0].draft"] == "running"
    assert states["loop[1].ask"] == states["loop[1].inner[0].draft"] == "cancelled"


def test_running_nodes_of_an_interrupted_run_are_interrupted_until_they_start_again() -> None:
    states = _node_states(*BEGUN, (RunResumed, ""), (NodeStarted, "draft", "llm", {}))

    assert states.pop("draft") == "running"
    assert set(states.values()) == {"interrupted"}
