"""LangGraph: three nodes and a conditional edge back; its updates are streamed and read."""

from __future__ import annotations

from typing import TypedDict

from langgraph.graph import END, START, StateGraph

from benchmarks import work
from benchmarks.timing import Stopwatch


class _State(TypedDict):
    text: str
    count: int


def _step(state: _State) -> dict[str, object]:
    return {"text": work.step(state["text"])}


def _merge(state: _State) -> dict[str, object]:
    return {"text": work.step(state["text"]), "count": state["count"] + 1}


def run(iterations: int, stopwatch: Stopwatch) -> str:
    """Do the work."""
    graph = StateGraph(_State)
    graph.add_node("draft", _step)
    graph.add_node("critique", _step)
    graph.add_node("merge", _merge)
    graph.add_edge(START, "draft")
    graph.add_edge("draft", "critique")
    graph.add_edge("critique", "merge")
    graph.add_conditional_edges("merge", lambda state: "draft" if state["count"] < iterations else END, ["draft", END])
    compiled = graph.compile()
    config = {"recursion_limit": 3 * iterations + 10}
    updates, last = 0, {}
    with stopwatch.running():
        for update in compiled.stream({"text": work.START, "count": 0}, config, stream_mode="updates"):
            updates, last = updates + 1, update
    if updates != 3 * iterations:
        raise RuntimeError(f"LangGraph did {updates} steps of {3 * iterations}.")
    return last["merge"]["text"]
