"""Checks that hold for the events of every run of any workflow."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from engine import RunResult
from engine.events import (
    AnyEvent,
    LoopCompleted,
    LoopIterationCompleted,
    LoopIterationStarted,
    NodeCompleted,
    NodeFailed,
    NodeRetrying,
    NodeSkipped,
    NodeStarted,
    RunCancelled,
    RunCompleted,
    RunFailed,
    RunStarted,
)

_ENDS = {"completed": RunCompleted, "failed": RunFailed, "cancelled": RunCancelled}


def check_events(result: RunResult, events: Sequence[AnyEvent]) -> None:
    """Check the events of a run that ended with this result."""
    assert [event.seq for event in events] == list(range(len(events))), "the numbers have a gap"
    assert {event.run_id for event in events} == {result.run_id}
    assert isinstance(events[0], RunStarted)
    assert type(events[-1]) is _ENDS[result.status]
    ends = [event for event in events if isinstance(event, tuple(_ENDS.values()))]
    assert len(ends) == 1, "a run ends once"
    for event in events:
        json.dumps(event.to_json(), allow_nan=False)
    json.dumps(result.to_json(), allow_nan=False)
    _check_nodes(events, result.status)
    _check_iterations(events)
    _check_loops(result, events)


def _check_nodes(events: Sequence[AnyEvent], status: str) -> None:
    running: set[str] = set()
    for event in events:
        if isinstance(event, NodeStarted):
            assert event.path not in running, f"{event.path} was started while it was running"
            running.add(event.path)
        elif isinstance(event, (NodeCompleted, NodeFailed)) and event.path in running:
            running.remove(event.path)
        elif isinstance(event, LoopCompleted) and event.exit_reason in {"timeout", "error"}:  # the others are cancelled
            running = {path for path in running if not path.startswith(f"{event.path}[")}
        elif isinstance(event, NodeCompleted):
            raise AssertionError(f"{event.path} was completed without having been started")
        elif isinstance(event, NodeSkipped):
            assert event.path not in running, f"{event.path} was skipped while it was running"
    assert status != "completed" or not running, f"never ended: {running}"


def _check_iterations(events: Sequence[AnyEvent]) -> None:
    running: dict[str, int] = {}
    following: dict[str, int] = {}
    iterators = {event.path for event in events if isinstance(event, NodeStarted) and event.node_type == "iterator"}
    _check_items([event for event in events if event.path in iterators])
    for event in events:
        if event.path in iterators:
            continue
        if isinstance(event, LoopIterationStarted):
            assert event.path not in running, f"two iterations of {event.path} at once"
            assert event.index in {0, following.get(event.path, 0)}, f"{event.path}: iteration {event.index}"
            running[event.path] = event.index
        elif isinstance(event, LoopCompleted):
            running.pop(event.path, None)
        elif isinstance(event, LoopIterationCompleted):
            assert running.pop(event.path) == event.index
            following[event.path] = event.index + 1


def _check_items(events: Sequence[AnyEvent]) -> None:
    """Items start in order, and end in any order."""
    begun: dict[str, list[int]] = {}
    for event in events:
        if isinstance(event, LoopIterationStarted):
            of_this = begun.setdefault(event.path, [])
            if event.index == 0:
                of_this.clear()
            of_this.append(event.index)
            assert of_this == list(range(len(of_this))), f"{event.path}: items began in another order"
        elif isinstance(event, LoopIterationCompleted):
            assert event.index in begun[event.path], f"{event.path}: item {event.index} ended and had not begun"


def _check_loops(result: RunResult, events: Sequence[AnyEvent]) -> None:
    completed: dict[str, LoopCompleted] = {}
    for event in events:
        if isinstance(event, LoopCompleted):
            completed[event.path] = event
        elif isinstance(event, LoopIterationStarted) and event.index == 0:  # its body starts over
            completed = {path: ended for path, ended in completed.items() if not path.startswith(f"{event.path}[")}
        elif isinstance(event, NodeRetrying) and not event.goes_on:
            completed = {path: ended for path, ended in completed.items() if not path.startswith(f"{event.path}.")}
    assert result.status != "completed" or set(result.loops) == set(completed)
    for path, event in completed.items():
        loop_result = result.loops[path]
        as_kept: dict[str, Any] = {
            name: getattr(loop_result, name) for name in ("iterations_run", "exit_reason", "converged", "returned")
        }
        assert as_kept == {name: getattr(event, name) for name in as_kept}
        indices = [record.index for record in loop_result.iterations]
        assert indices == sorted(set(indices))
        assert event.exit_reason in {"error", "cancelled", "budget", "timeout"} or indices == list(range(len(indices)))
