"""Loops for tests of the history: as events, and as workflows that really run."""

from __future__ import annotations

from typing import Any

from app.runs.run_view_model import RunViewModel
from engine.document.builder import Builder
from engine.document.model import Workflow
from engine.events import LoopCompleted, LoopIterationCompleted, LoopIterationStarted
from engine.models.protocol import Usage
from engine.values import Value


def iteration(index: int, result: Value = "words", path: str = "loop", **fields: Any) -> LoopIterationCompleted:
    """A completed iteration."""
    given = {
        "input": "start",
        "result": result,
        "feedback": result,
        "branch": None,
        "reason": None,
        "score": None,
        "similarity": None,
        "usage": Usage(),
        "cost_usd": 0.0,
        "duration_s": 0.5,
    } | fields
    return LoopIterationCompleted("run", 0, 0.0, path, index=index, **given)


def start_iteration(view_model: RunViewModel, index: int, total: int = 5, path: str = "loop") -> None:
    """Start an iteration."""
    view_model.apply(LoopIterationStarted("run", 0, 0.0, path, index, total, "its beginning"))


def loop_model(*results: Value, total: int = 5, path: str = "loop", **fields: Any) -> RunViewModel:
    """The view model of a run whose loop has iterations with these results."""
    view_model = RunViewModel({})
    for index, result in enumerate(results):
        start_iteration(view_model, index, total, path)
        view_model.apply(iteration(index, result, path, **fields))
    return view_model


def end(
    view_model: RunViewModel, reason: str = "max_iterations", returned: int | None = None, path: str = "loop"
) -> None:
    """End the loop."""
    count = len(view_model.loops[path].iterations)
    index = count - 1 if returned is None else returned
    view_model.apply(LoopCompleted("run", 0, 0.0, path, count, reason, False, index, 0.0, 1.0))


def one_loop(**config: Value) -> Workflow:
    """A loop whose one node adds a full stop to a text in each iteration."""
    flow = Builder("One loop")
    text = flow.add("input", id="text", name="text", default="a")
    loop = flow.add("loop", id="loop", title="Refine", inject_feedback=False, **({"max_iterations": 4} | config))
    add = flow.add("transform", id="add", title="Add", template="{{input}}.")
    exit_ = flow.add("exit", id="end", loop="loop")
    out = flow.add("output", id="out", name="out")
    flow.connect(text["value"], loop["input"])
    flow.connect(loop["body"], add["input"])
    flow.connect(add["output"], exit_["input"])
    flow.connect(exit_["output"], out["value"])
    return flow.build()


def item_loop() -> Workflow:
    """An iterator that marks each of three items."""
    flow = Builder("Each")
    each = flow.add("iterator", id="each", title="Each", source="list", items=["x", "y", "z"])
    mark = flow.add("transform", id="mark", title="Mark", template="{{item}}.")
    gather = flow.add("aggregator", id="gather", title="Gather", iterator="each")
    out = flow.add("output", id="out", name="out")
    flow.connect(each["item"], mark["input"])
    flow.connect(mark["output"], gather["input"])
    flow.connect(gather["output"], out["value"])
    return flow.build()


def judged_loop() -> Workflow:
    """A loop that ends when the text is long enough, by a router's rule, with a score."""
    flow = Builder("Judged")
    text = flow.add("input", id="text", name="text", default="a")
    loop = flow.add("loop", id="loop", exit_condition="evaluator", score="size(output)", inject_feedback=False)
    add = flow.add("transform", id="add", template="{{input}}.")
    router = flow.add(
        "router",
        id="judge",
        mode="rules",
        branches=[
            {"name": "done", "when": "size(input) >= 4"},
            {"name": "continue", "when": "else"},
        ],
    )
    exit_ = flow.add("exit", id="end", loop="loop")
    out = flow.add("output", id="out", name="out")
    flow.connect(text["value"], loop["input"])
    flow.connect(loop["body"], add["input"])
    flow.connect(add["output"], router["input"])
    flow.connect(router["done"], exit_["input"])
    flow.connect(exit_["output"], out["value"])
    return flow.build()


def nested_loops() -> Workflow:
    """Three iterations of a loop around two of another."""
    flow = Builder("Nested")
    text = flow.add("input", id="text", name="text", default="a")
    outer = flow.add("loop", id="outer", title="Outer", max_iterations=3, inject_feedback=False)
    inner = flow.add("loop", id="inner", title="Inner", max_iterations=2, inject_feedback=False)
    add = flow.add("transform", id="add", title="Add", template="{{input}}.")
    inner_exit = flow.add("exit", id="inner_end", loop="inner")
    outer_exit = flow.add("exit", id="outer_end", loop="outer")
    out = flow.add("output", id="out", name="out")
    flow.connect(text["value"], outer["input"])
    flow.connect(outer["body"], inner["input"])
    flow.connect(inner["body"], add["input"])
    flow.connect(add["output"], inner_exit["input"])
    flow.connect(inner_exit["output"], outer_exit["input"])
    flow.connect(outer_exit["output"], out["value"])
    return flow.build()
