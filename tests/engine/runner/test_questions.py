"""Which questions are open, by what a run has told."""

from __future__ import annotations

from typing import Any

import pytest

from engine.models.base import Usage
from engine.runner.questions import open_questions
from engine.store.base import RunStatus
from engine.store.fold import RunFold
from tests.engine.cli.kit import Events

_ENDED: dict[str, Any] = {"node_type": "loop", "error": "No.", "remedy": "Do.", "duration_s": 1.0}


def told(path: str, around: str) -> dict[str, list[Any]]:
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
        "a loop begins anew": [
            asked,
            event("LoopIterationStarted", around, index=0, total=2, input_preview=""),
        ],
    }


@pytest.mark.parametrize(("path", "around"), [("loop[1].ask", "loop"), ("part.ask", "part")])
def test_a_question_is_closed_with_what_it_lies_in(path: str, around: str) -> None:
    for why, events in told(path, around).items():
        if why == "a loop begins anew" and around == "part":
            continue
        fold = RunFold()
        fold.take(events[0])
        assert (list(open_questions(events[:1])), fold.state) == ([path], RunStatus.WAITING)

        fold.take(events[1])

        assert open_questions(events) == {}, why
        assert fold.state is RunStatus.RUNNING, why


def test_a_question_is_closed_with_the_item_it_lies_in() -> None:
    event = Events()
    (asked, *_) = told("each[1].ask", "each")["the node is answered"]
    nothing: dict[str, Any] = dict.fromkeys(("input", "result", "feedback", "branch", "reason", "score", "similarity"))

    def ended(index: int) -> Any:
        spent = {"usage": Usage(), "cost_usd": 0.0, "duration_s": 1.0}
        return event("LoopIterationCompleted", "each", index=index, **nothing, **spent)

    assert list(open_questions([asked, ended(0), ended(11)])) == ["each[1].ask"]
    assert open_questions([asked, ended(1)]) == {}


def test_a_question_stays_open_whatever_others_do() -> None:
    event = Events()
    for other in ("other", "loop2", "loop[1].asking"):
        (asked, *_) = told("loop[1].ask", "loop")["the node is answered"]
        ended = event.node(other, Usage())
        fold = RunFold()
        fold.take(asked)
        fold.take(ended)

        assert list(open_questions([asked, ended])) == ["loop[1].ask"]
        assert fold.state is RunStatus.WAITING
