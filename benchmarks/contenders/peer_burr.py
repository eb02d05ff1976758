"""Burr: three actions and a transition back until the count is reached; without a tracker."""

# pyright: basic
from __future__ import annotations

from burr.core import ApplicationBuilder, State, action, default, expr

from benchmarks.timing import Stopwatch
from benchmarks.work import START, step


@action(reads=["text"], writes=["text"])
def draft(state: State) -> State:
    return state.update(text=step(state["text"]))


@action(reads=["text"], writes=["text"])
def critique(state: State) -> State:
    return state.update(text=step(state["text"]))


@action(reads=["text", "count"], writes=["text", "count"])
def merge(state: State) -> State:
    return state.update(text=step(state["text"]), count=state["count"] + 1)


@action(reads=["text"], writes=[])
def finish(state: State) -> State:
    return state


def run(iterations: int, stopwatch: Stopwatch) -> str:
    """Do the work."""
    application = (
        ApplicationBuilder()
        .with_actions(draft=draft, critique=critique, merge=merge, finish=finish)
        .with_transitions(
            ("draft", "critique"),
            ("critique", "merge"),
            ("merge", "draft", expr(f"count < {iterations}")),
            ("merge", "finish", default),
        )
        .with_state(text=START, count=0)
        .with_entrypoint("draft")
        .build()
    )
    with stopwatch.running():
        *_, state = application.run(halt_after=["finish"])
    if state["count"] != iterations:
        raise RuntimeError(f"Burr did {state['count']} iterations of {iterations}.")
    return state["text"]
