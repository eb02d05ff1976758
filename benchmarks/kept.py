"""Runs of this engine that are stored on disk: a loop over three nodes with a fresh text each."""

from __future__ import annotations

import asyncio
import itertools
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from benchmarks import work
from benchmarks.timing import Span, Stopwatch
from benchmarks.workflows import STEP_SPEC, InstantModel, OneModel, loop_of_three, options
from engine import Workflow, start
from engine.models.protocol import OnText, Reply, Request
from engine.nodes.context import NodeContext
from engine.nodes.node_registry import builtin_registry
from engine.nodes.spec import NodeConfig, NodeSpec, Outputs
from engine.store import Store, open_store

Mode = Literal["replace", "append", "wired"]
NodeType = Literal["llm", "fresh"]
"""Nodes that call a model, or a function."""


class FreshModel(InstantModel):
    """Replies to each call with a unique text, after `delay_s` seconds."""

    def __init__(self, characters: int, delay_s: float = 0.0) -> None:
        super().__init__(delay_s)
        self._characters = characters
        self._delay_s = delay_s
        self._calls = 0

    async def complete(self, request: Request, on_text: OnText | None = None) -> Reply:
        """Reply in one piece."""
        if self._delay_s:
            await asyncio.sleep(self._delay_s)
        self._calls += 1
        return Reply(work.fresh(self._calls, self._characters))


def fresh_spec(characters: int) -> NodeSpec[NodeConfig]:
    """A node type that outputs a unique text, like `FreshModel`, without a model call."""
    calls = itertools.count(1)

    async def run(_context: NodeContext[NodeConfig]) -> Outputs:
        return {"output": work.fresh(next(calls), characters)}

    return replace(STEP_SPEC, type="fresh", title="Fresh text", help="Gives a fresh text.", run=run)


@dataclass(frozen=True)
class Kept:
    """A stored run: its time, id and last text."""

    span: Span
    run_id: str
    text: str


@contextmanager
def new_store() -> Iterator[tuple[Store, Path]]:
    """A new, empty history and its file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "history.sqlite3"
        with closing(open_store(path)) as store:
            yield store, path


def keep_run(
    store: Store | None,
    path: Path | None,
    iterations: int,
    characters: int,
    mode: Mode = "replace",
    delay_s: float = 0,
    node_type: NodeType = "llm",
) -> Kept:
    """Run the loop, stored in that store (None: nowhere), and measure it."""
    stopwatch = Stopwatch()
    run_options = replace(
        options(),
        models=OneModel(FreshModel(characters, delay_s)),
        registry=builtin_registry().with_types([fresh_spec(characters)]),
        store=store,
    )

    async def do() -> tuple[str, str]:
        run = start(_workflow(iterations, mode, node_type), {}, run_options)
        with stopwatch.running():
            result = await run.result()
        if result.status != "completed" or result.loops["loop"].iterations_run != iterations:
            raise RuntimeError(f"The run ended as {result.status}. {result.error}")
        return result.run_id, str(result.outputs["out"])

    run_id, text = asyncio.run(do())
    if store is not None:
        store.delete([])  # what waits is written, and the log beside the file is empty
    size = 0 if path is None else work.disk_bytes(path)
    return Kept(replace(stopwatch.span, disk_bytes=size), run_id, text)


def _workflow(iterations: int, mode: Mode, node_type: NodeType) -> Workflow:
    workflow = loop_of_three(node_type, iterations)
    document: dict[str, Any] = workflow.model_dump(mode="json", by_alias=True)
    if mode == "append":
        for node in document["nodes"]:
            if node["id"] == "loop":
                node["config"] = {**node["config"], "feedback_mode": "append"}
    if mode == "wired":
        document["nodes"].append({"id": "log", "type": "output"})
        document["edges"].append({"from": "loop.iterations", "to": "log.value"})
    return Workflow.model_validate(document)
