"""Active nodes and open questions."""

from __future__ import annotations

from typing import Any

import pytest

from engine.models.protocol import Usage
from engine.run_state.reducer import apply, reduce_events
from engine.run_state.state import Detail, RunStatus, active_nodes, unanswered_questions, waits_only
from tests.engine.cli.kit import Events


def asked(event: Events, path: str) -> list[Any]:
    fields = {"kind": "approval", "message": "?", "value": None, "choices": ("approve",)}
    return [
        event("NodeStarted", path, node_type="approval", inputs={}),
        event("NodeWaiting", path, node_type="approval", **fields),
    ]


@pytest.mark.parametrize(("around", "node_type", "path"), [("loop", "loop", "loop[0].ask"), ("p", "subflow", "p.ask")])
def test_a_run_whose_active_nodes_all_wait_for_people_waits_only(around: str, node_type: str, path: str) -> None:
    event = Events()

    state = reduce_events([event("NodeStarted", around, node_type=node_type, inputs={}), *asked(event, path)])

    assert active_nodes(state).keys() == state.questions.keys() == {path}
    assert waits_only(state)


@pytest.mark.parametrize("end", ["completed", "failed", "retrying"])
def test_a_node_stopped_with_its_loop_is_inactive_and_has_no_question(end: str) -> None:
    event = Events()
    before = [
        event("NodeStarted", "loop", node_type="loop", inputs={}),
        event("NodeStarted", "loop[1].slow", node_type="llm", inputs={}),
        *asked(event, "loop[1].ask"),
    ]
    failure: dict[str, Any] = {"error": "No.", "remedy": "Do.", "duration_s": 1.0}
    ends = {
        "completed": event.node("loop", Usage(), node_type="loop"),
        "failed": event("NodeFailed", "loop", node_type="loop", **failure),
        "retrying": event("NodeRetrying", "loop", attempt=1, delay_s=1.0, error="No."),
    }

    state = reduce_events([*before, ends[end]])

    assert not active_nodes(state)
    assert not state.questions


_ENDED: dict[str, Any] = {"node_type": "loop", "error": "No.", "remedy": "Do.", "duration_s": 1.0}


def question_and_ends(path: str, around: str) -> dict[str, list[Any]]:
    """A question at a path, and what closes it, by what that is."""
    event = Events()
    asked = event(
        "NodeWaiting", path, node_type="approval", kind="approval", message="?", value=None, choices=("approve",)
    )
    return {
        "the node is answered": [asked, event("NodeAnswered", path, choice="approve", value=None, comment="")],
        "what it lies in is over": [asked, event.node(around, Usage(), node_type="loop")],
        "what it lies in has failed": [asked, event("NodeFailed", around, **_ENDED)],
        "what it lies in is tried again": [asked, event("NodeRetrying", around, attempt=1, delay_s=1.0, error="No.")],
        "a loop restarts": [
            asked,
            event("LoopIterationStarted", around, index=0, total=2, input_preview=""),
        ],
    }


@pytest.mark.parametrize(("path", "around"), [("loop[1].ask", "loop"), ("part.ask", "part")])
def test_a_question_is_closed_with_its_loop_or_subflow(path: str, around: str) -> None:
    for why, events in question_and_ends(path, around).items():
        if why == "a loop restarts" and around == "part":
            continue
        for detail in Detail:
            state = reduce_events(events[:1], detail=detail)
            assert (list(state.questions), state.status) == ([path], RunStatus.WAITING)

            apply(state, events[1])

            assert (state.questions, state.status) == ({}, RunStatus.RUNNING), why


def test_a_question_is_closed_with_its_item() -> None:
    event = Events()
    (asked, *_) = question_and_ends("each[1].ask", "each")["the node is answered"]
    nothing: dict[str, Any] = dict.fromkeys(("input", "result", "feedback", "branch", "reason", "score", "similarity"))

    def ended(index: int) -> Any:
        spent = {"usage": Usage(), "cost_usd": 0.0, "duration_s": 1.0}
        return event("LoopIterationCompleted", "each", index=index, **nothing, **spent)

    assert list(reduce_events([asked, ended(0), ended(11)]).questions) == ["each[1].ask"]
    assert reduce_events([asked, ended(1)]).questions == {}


def test_events_of_other_nodes_keep_a_question_open() -> None:
    event = Events()
    for other in ("other", "loop2", "loop[1].asking"):
        (asked, *_) = question_and_ends("loop[1].ask", "loop")["the node is answered"]
        ended = event.node(other, Usage())
        state = reduce_events([asked, ended])

        assert list(state.questions) == ["loop[1].ask"]
        assert state.status is RunStatus.WAITING


def test_a_question_of_a_cancelled_run_is_closed_and_can_still_be_answered() -> None:
    event = Events()
    (asked, answered) = question_and_ends("loop[1].ask", "loop")["the node is answered"]
    figures: dict[str, Any] = {"outputs": {}, "usage": Usage(), "cost_usd": 0.0, "duration_s": 1.0}
    state = reduce_events([asked, event("RunCancelled", **figures)])
    assert state.questions == {}
    assert unanswered_questions(state) == {"loop[1].ask": asked}

    apply(state, answered)

    assert unanswered_questions(state) == {}
