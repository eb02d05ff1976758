"""Running a workflow in a test: one call that plays it with a fake model and checks what holds for every run."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from engine import Run, RunOptions, RunResult, Workflow, start
from engine.events import AnyEvent, NodeCompleted
from engine.values import Value
from tests.engine.semantics.models import Answer, FakeModels, FunctionModel, Said
from tests.engine.semantics.story import check_story
from tests.engine.semantics.virtual_time import VirtualTimeLoop

E = TypeVar("E", bound=AnyEvent)
_PATIENCE_S = 60.0
_VIRTUAL_PATIENCE_S = 1e9


@dataclass(frozen=True)
class Played:
    """A run that has ended: its result, everything that it told, and its model."""

    result: RunResult
    events: list[AnyEvent]
    model: FunctionModel
    models: FakeModels

    @property
    def out(self) -> Value:
        """The result called `out`."""
        return self.result.outputs["out"]

    @property
    def loop(self) -> Any:
        """The loop called `loop`."""
        return self.result.loops["loop"]

    @property
    def results(self) -> list[Value]:
        """The result of each iteration of the loop called `loop`."""
        return [record.result for record in self.loop.iterations]

    @property
    def starts(self) -> list[Value]:
        """What each iteration of the loop called `loop` started from."""
        return [record.input for record in self.loop.iterations]

    def of(self, kind: type[E], path: str | None = None) -> list[E]:
        """The events of one kind, all or those of one path."""
        return [event for event in self.events if isinstance(event, kind) and path in {None, event.path}]

    def gave(self, path: str, port: str = "output") -> Value:
        """What the node at that path gave."""
        (event,) = self.of(NodeCompleted, path)
        return event.outputs[port]

    @property
    def ran(self) -> set[str]:
        """The paths of the nodes that did their work."""
        return {event.path for event in self.of(NodeCompleted)}


def options(catalogue: FunctionModel | FakeModels, **more: Any) -> RunOptions:
    """Options of a run with these models, or with one for every name."""
    models = catalogue if isinstance(catalogue, FakeModels) else FakeModels(catalogue)
    return RunOptions(models=models, **more)


def begin(
    workflow: Workflow,
    answer: Answer | Said | FunctionModel | FakeModels = "",
    inputs: Mapping[str, Value] | None = None,
    **more: Any,
) -> tuple[Run, FakeModels]:
    """Start a run. Where no inputs are given, the one called `text` gets "seed" if there is one."""
    if isinstance(answer, FakeModels):
        models = answer
    else:
        models = FakeModels(answer if isinstance(answer, FunctionModel) else FunctionModel(answer))
    if inputs is None:
        inputs = {"text": "seed"} if "text" in workflow.nodes_by_id else {}
    return start(workflow, inputs, options(models, **more)), models


async def finish(run: Run, models: FakeModels) -> Played:
    """Wait until a run has ended, and check what holds for every run."""
    virtual = isinstance(asyncio.get_running_loop(), VirtualTimeLoop)
    async with asyncio.timeout(_VIRTUAL_PATIENCE_S if virtual else _PATIENCE_S):
        events = [event async for event in run.events()]
        outcome = await run.result()
    check_story(outcome, events)
    return Played(outcome, events, models.model, models)


async def play(
    workflow: Workflow,
    answer: Answer | Said | FunctionModel | FakeModels = "",
    inputs: Mapping[str, Value] | None = None,
    *,
    ends: str = "completed",
    **more: Any,
) -> Played:
    """Run a workflow to its end, which is expected to be of that kind; `more` are options of the run."""
    played = await finish(*begin(workflow, answer, inputs, **more))
    assert played.result.status == ends, f"{played.result.error} {played.result.remedy}"
    return played


async def settle() -> None:
    """Let everything that can go on without waiting for anything go on."""
    for _ in range(200):
        await asyncio.sleep(0)
