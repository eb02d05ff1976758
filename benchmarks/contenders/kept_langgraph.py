"""LangGraph: three nodes with fresh texts, its state with all results stored by SqliteSaver after each."""

# pyright: basic
from __future__ import annotations

import operator
import sqlite3
import tempfile
from pathlib import Path
from typing import Annotated, TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Durability

from benchmarks import work
from benchmarks.timing import Stopwatch

CHARACTERS = 1_000


def outcome(steps: int) -> str:
    """The last text."""
    return work.fresh(steps, CHARACTERS)


class _State(TypedDict):
    text: str
    number: int
    iterations: Annotated[list[str], operator.add]


def _step(state: _State) -> dict[str, object]:
    number = state["number"] + 1
    return {"text": work.fresh(number, CHARACTERS), "number": number}


def _merge(state: _State) -> dict[str, object]:
    update = _step(state)
    return {**update, "iterations": [update["text"]]}


def run(iterations: int, stopwatch: Stopwatch, durability: Durability = "sync") -> str:
    """Do the work.

    Args:
        iterations: How many.
        stopwatch: Takes the time.
        durability: "sync" waits before the next step until the last one is safe; "async", its default, does not.
    """
    graph = StateGraph(_State)
    graph.add_node("draft", _step)
    graph.add_node("critique", _step)
    graph.add_node("merge", _merge)
    graph.add_edge(START, "draft")
    graph.add_edge("draft", "critique")
    graph.add_edge("critique", "merge")
    graph.add_conditional_edges(
        "merge", lambda state: "draft" if len(state["iterations"]) < iterations else END, ["draft", END]
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "langgraph.sqlite3"
        connection = sqlite3.connect(path, check_same_thread=False)
        connection.execute("PRAGMA synchronous = FULL")
        saver = SqliteSaver(connection)
        saver.setup()
        compiled = graph.compile(checkpointer=saver)
        config = {"recursion_limit": 3 * iterations + 10, "configurable": {"thread_id": "run"}}
        start = {"text": "", "number": 0, "iterations": []}
        with stopwatch.running():
            result = compiled.invoke(start, config, durability=durability)
        connection.close()
        stopwatch.disk_bytes = work.disk_bytes(path)
    if len(result["iterations"]) != iterations:
        raise RuntimeError(f"LangGraph kept {len(result['iterations'])} iterations of {iterations}.")
    return result["text"]
