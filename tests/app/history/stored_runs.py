"""Stored runs for tests of the window: hand-made or really run."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from engine.document.builder import Builder
from engine.document.files import dumps
from engine.document.model import Workflow
from engine.events import (
    AnyEvent,
    LoopIterationCompleted,
    LoopIterationStarted,
    RunCompleted,
    RunFailed,
    RunStarted,
)
from engine.models.protocol import Usage
from engine.plan.partial_run import Part
from engine.runner.options import RunOptions
from engine.runner.run import start
from engine.runner.run_storage import RunHead
from engine.store.store_protocol import Store

DAY = 86_400.0


def refine(count: int = 3, name: str = "Refine", **config: object) -> Workflow:
    """An input, a loop of a draft and a critique, an output."""
    flow = Builder(name)
    task = flow.add("input", id="task", default="the sea")
    loop = flow.add(
        "loop", id="loop", title="Loop", config={"max_iterations": count, "inject_feedback": False, **config}
    )
    draft = flow.add("llm", id="draft", title="Draft", config={"prompt": "Write: {{input}}"})
    critique = flow.add("llm", id="critique", title="Critique", config={"prompt": "Judge: {{input}}"})
    end = flow.add("exit", id="exit", config={"loop": "loop"})
    out = flow.add("output", id="text")
    for source, target in (
        (task["value"], loop["input"]),
        (loop["body"], draft["input"]),
        (draft["output"], critique["input"]),
        (draft["output"], end["input"]),
        (critique["output"], end["feedback"]),
        (end["output"], out["value"]),
    ):
        flow.connect(source, target)
    return flow.build()


def refine_script(file: Path, count: int = 3) -> str:
    """A script in which each iteration writes and judges something else; the model's name."""
    rules = [
        {"node": node, "iteration": turn, "reply": text.format(turn + 1)}
        for turn in range(count)
        for node, text in (("draft", "The sea is wide, draft {}."), ("critique", "Say more, advice {}."))
    ]
    file.write_text(json.dumps({"rules": rules, "default": "Something else entirely."}))
    return f"scripted:{file}"


def store_run(
    store: Store,
    run_id: str,
    *,
    started: float,
    name: str = "Refine",
    iterations: int = 2,
    parent: str = "",
    end: bool = True,
    error: str = "",
    cost: float = 0.25,
    part: Part | None = None,
    source: str = "",
) -> str:
    """Store a hand-made run."""
    place = "" if not parent else "loop[1]" if part is None else part.node
    first = RunStarted(run_id, 0, started, "", name, {}, ("scripted:x",), parent, place)
    if part is not None:
        first = replace(first, extent=part.extent.value, target=part.node)
    events: list[AnyEvent] = [first]
    for turn in range(iterations):
        at = started + turn
        events.append(LoopIterationStarted(run_id, 0, at, "loop", turn, iterations, "in"))
        events.append(
            LoopIterationCompleted(
                run_id, 0, at, "loop", turn, "in", f"r{turn}", "f", None, None, None, None, Usage(5, 5), cost, 1.0
            )
        )
    if error:
        events.append(RunFailed(run_id, 0, started + 9, "", error, "", "draft", {}, Usage(9, 1), cost, 9.0))
    elif end:
        events.append(RunCompleted(run_id, 0, started + 9, "", {"text": "r"}, Usage(9, 1), cost, 9.0))
    numbered = [replace(event, seq=seq) for seq, event in enumerate(events)]
    head = RunHead(run_id, dumps(refine(name=name)), {}, source, parent, place)
    return store.import_run(head, numbered)


def run_and_store(store: Store, workflow: Workflow, model: str, inputs: dict[str, str] | None = None) -> str:
    """Run a workflow and return the id of its stored run."""

    async def work() -> str:
        run = start(workflow, inputs or {}, RunOptions(default_model=model, store=store))
        await run.result()
        return run.run_id

    return asyncio.run(work())


def ids(runs: Sequence[object]) -> list[str]:
    """Their ids."""
    return [run.run_id for run in runs]  # type: ignore[attr-defined]
