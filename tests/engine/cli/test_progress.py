"""What is at work and what waits for a person, by what a run has told."""

from __future__ import annotations

from typing import Any

import pytest

from engine.cli.progress import Progress
from engine.models.base import Usage
from tests.engine.cli.kit import Events


def progress_of(*told: Any) -> Progress:
    progress = Progress()
    for event in told:
        progress.take(event)
    return progress


def asked(event: Events, path: str) -> list[Any]:
    fields = {"kind": "approval", "message": "?", "value": None, "choices": ("approve",)}
    return [
        event("NodeStarted", path, node_type="approval", inputs={}),
        event("NodeWaiting", path, node_type="approval", **fields),
    ]


@pytest.mark.parametrize(("around", "node_type", "path"), [("loop", "loop", "loop[0].ask"), ("p", "subflow", "p.ask")])
def test_a_run_in_which_all_that_is_at_work_waits_for_a_person_is_seen_as_such(
    around: str, node_type: str, path: str
) -> None:
    event = Events()

    progress = progress_of(event("NodeStarted", around, node_type=node_type, inputs={}), *asked(event, path))

    assert progress.at_work.keys() == progress.questions.keys() == {path}


@pytest.mark.parametrize("end", ["completed", "failed", "retrying"])
def test_what_was_stopped_with_a_loop_is_no_longer_at_work_and_asks_no_more(end: str) -> None:
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

    progress = progress_of(*before, ends[end])

    assert not progress.at_work
    assert not progress.questions


def test_a_result_is_compared_with_the_one_before_it_in_the_same_loop() -> None:
    progress, event = Progress(), Events()
    for index in range(2):
        for item in range(2):
            progress.take(event("LoopIterationStarted", f"each[{item}].loop", index=index, total=2, input_preview=""))
            progress.take(event.iteration(f"each[{item}].loop", index, f"item {item}, draft {index}"))
    loop = progress.loops["each.loop"]
    assert (loop.before, loop.result) == ("item 1, draft 0", "item 1, draft 1")
