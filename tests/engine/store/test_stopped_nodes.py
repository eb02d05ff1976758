"""No view shows a node as running once its run, its loop or its subflow is over, whatever had begun before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.cli.progress import Progress
from engine.events import (
    AnyEvent,
    LoopCompleted,
    LoopIterationCompleted,
    LoopIterationStarted,
    NodeAnswered,
    NodeCompleted,
    NodeFailed,
    NodeRetrying,
    NodeSkipped,
    NodeStarted,
    NodeWaiting,
    RunCancelled,
    RunCompleted,
    RunFailed,
    RunResumed,
    RunStarted,
)
from engine.models.base import Usage
from engine.runner.records import IterationRecord
from engine.store.outline import RunOutline

PATHS = ["draft", "part", "part.ask", "loop", "loop[0].draft", "loop[1].ask", "loop[1].inner", "loop[1].inner[0].draft"]
LOOPS = ["loop", "loop[1].inner"]
RECORD = IterationRecord(0, None, None, None, None, None, None, None, Usage(), 0.0, 0.0)

Told = tuple[Callable[..., Any], str, tuple[Any, ...]]


def _kind(path: str) -> str:
    return "loop" if path in LOOPS else "subflow" if path == "part" else "llm"


@st.composite
def _steps(draw: st.DrawFn) -> Told:
    path = draw(st.sampled_from(PATHS))
    loop, index, kind = draw(st.sampled_from(LOOPS)), draw(st.integers(0, 2)), _kind(path)
    record = IterationRecord(index, *RECORD.fields()[1:])
    return draw(
        st.sampled_from(
            [
                (NodeStarted, path, (kind, {})),
                (NodeStarted, path, (kind, {})),
                (NodeWaiting, path, (kind, "question", "Well?", None, ())),
                (NodeAnswered, path, ("", "yes", "")),
                (NodeRetrying, path, (1, 0.0, "down")),
                (NodeCompleted, path, (kind, {}, None, 0.0, 1.0)),
                (NodeFailed, path, (kind, "It broke.", "", 1.0)),
                (NodeSkipped, path, (kind, "It is disabled.")),
                (LoopIterationStarted, loop, (index, 3, "")),
                (LoopIterationCompleted, loop, record.fields()),
                (LoopCompleted, loop, (1, "cancelled", False, None, 0.0, 1.0)),
                (RunResumed, "", ()),
            ]
        )
    )


def _event(seq: int, step: Told) -> AnyEvent:
    kind: Callable[..., Any] = step[0]
    return kind("r", seq, float(seq), step[1], *step[2])


def _log(steps: list[Told], *ends: Told) -> list[AnyEvent]:
    begin: Told = (RunStarted, "", ("test", {}, ()))
    return [_event(seq, step) for seq, step in enumerate([begin, *steps, *ends])]


FIGURES = (Usage(), 0.0, 1.0)
ENDS: list[Told] = [
    (RunCancelled, "", ({}, *FIGURES)),
    (RunFailed, "", ("It broke.", "", "draft", {}, *FIGURES)),
    (RunCompleted, "", ({}, *FIGURES)),
]


@pytest.mark.parametrize("end", ENDS, ids=["cancelled", "failed", "completed"])
@given(steps=st.lists(_steps(), max_size=25))
def test_nothing_runs_after_the_end_of_a_run(end: Told, steps: list[Told]) -> None:
    events = _log(steps, end)
    outline, progress = RunOutline("r", events), Progress()
    for event in events:
        progress.take(event)

    assert {node.state for node in outline.nodes.values()} <= {
        *("completed", "failed", "skipped", "cancelled", "interrupted"),
    }
    assert (progress.at_work, progress.questions) == ({}, {})
    assert all(loop.ended for loop in progress.loops.values())


@given(steps=st.lists(_steps(), max_size=25))
def test_nothing_runs_in_a_run_whose_process_is_gone(steps: list[Told]) -> None:
    outline = RunOutline("r", _log(steps))
    running = {path for path, node in outline.nodes.items() if node.state == "running"}

    outline.stop("interrupted")

    assert all(outline.nodes[path].state == "interrupted" for path in running)
    assert {node.state for node in outline.nodes.values()}.isdisjoint({"running"})


def _states(*steps: Told) -> dict[str, str]:
    return {path: node.state for path, node in RunOutline("r", _log(list(steps))).nodes.items()}


BEGUN: list[Told] = [(NodeStarted, path, (_kind(path), {})) for path in PATHS]


def test_what_is_stopped_inside_a_loop_or_a_subflow_is_cancelled_while_the_rest_runs() -> None:
    loop: Told = (NodeCompleted, "loop", ("loop", {}, None, 0.0, 1.0))
    part: Told = (NodeFailed, "part", ("subflow", "It broke.", "", 1.0))
    states = _states(*BEGUN, loop, part)

    assert states["draft"] == "running"
    assert (states["loop"], states["part"]) == ("completed", "failed")
    inside = {state for path, state in states.items() if path.startswith(("loop[", "part."))}
    assert inside == {"cancelled"}


def test_what_an_item_had_begun_is_cancelled_when_the_item_ends() -> None:
    ended: Told = (LoopIterationCompleted, "loop", IterationRecord(1, *RECORD.fields()[1:]).fields())
    states = _states(*BEGUN, ended)

    assert states["loop[0].draft"] == "running"
    assert states["loop[1].ask"] == states["loop[1].inner[0].draft"] == "cancelled"


def test_what_ran_when_a_run_broke_off_is_interrupted_until_it_starts_again() -> None:
    again: Told = (NodeStarted, "draft", ("llm", {}))
    states = _states(*BEGUN, (RunResumed, "", ()), again)

    assert states.pop("draft") == "running"
    assert set(states.values()) == {"interrupted"}
