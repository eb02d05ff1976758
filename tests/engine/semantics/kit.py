"""Run a workflow in a test with a fake model, and check what holds for every run."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from engine import Run, RunOptions, RunResult, Workflow, start
from engine.events import AnyEvent, NodeCompleted
from engine.values import Value
from tests.engine.semantics.event_checks import check_events
from tests.engine.semantics.models import Answer, FakeModels, FunctionModel, Said
from tests.engine.semantics.virtual_time import VirtualTimeLoop

E = TypeVar("E", bound=AnyEvent)
_TIMEOUT_S = 60.0
_VIRTUAL_TIMEOUT_S = 1e9


@dataclass(frozen=True)
class Played:
    """A run that has ended: its result, its events and its model."""

    result: RunResult
    events: list[AnyEvent]
    model: FunctionModel
    models: FakeModels

    @property
    def out(self) -> Value:
        """The output called `out`."""
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
    def iteration_inputs(self) -> list[Value]:
        """The iteration inputs of the loop called `loop`."""
        return [record.input for record in self.loop.iterations]

    def of(self, kind: type[E], path: str | None = None) -> list[E]:
        """The events of one type, optionally of one path."""
        return [event for event in self.events if isinstance(event, kind) and path in {None, event.path}]

    def output_of(self, path: str, port: str = "output") -> Value:
        """The output of the node at that path."""
        (event,) = self.of(NodeCompleted, path)
        return event.outputs[port]

    @property
    def ran(self) -> set[str]:
        """The paths of the nodes that completed."""
        return {event.path for event in self.of(NodeCompleted)}


def options(catalog: FunctionModel | FakeModels, **more: Any) -> RunOptions:
    """Options of a run with these models, or with one model for every name."""
    models = catalog if isinstance(catalog, FakeModels) else FakeModels(catalog)
    return RunOptions(models=models, **more)


def begin(
    workflow: Workflow,
    answer: Answer | Said | FunctionModel | FakeModels = "",
    inputs: Mapping[str, Value] | None = None,
    **more: Any,
) -> tuple[Run, FakeModels]:
    """Start a run. By default, the input `text` is "seed" if there is one."""
    if isinstance(answer, FakeModels):
        models = answer
    else:
        models = FakeModels(answer if isinstance(answer, FunctionModel) else FunctionModel(answer))
    if inputs is None:
        inputs = {"text": "seed"} if "text" in workflow.nodes_by_id else {}
    return start(workflow, inputs, options(models, **more)), models


async def finish(run: Run, models: FakeModels) -> Played:
    """Wait for a run to end, and check what holds for every run."""
    virtual = isinstance(asyncio.get_running_loop(), VirtualTimeLoop)
    async with asyncio.timeout(_VIRTUAL_TIMEOUT_S if virtual else _TIMEOUT_S):
        events = [event async for event in run.events()]
        outcome = await run.result()
    check_events(outcome, events)
    return Played(outcome, events, models.model, models)


async def play(
    workflow: Workflow,
    answer: Answer | Said | FunctionModel | FakeModels = "",
    inputs: Mapping[str, Value] | None = None,
    *,
    ends: str = "completed",
    **more: Any,
) -> Played:
    """Run a workflow and check its final status `ends`; `more` are options of the run."""
    played = await finish(*begin(workflow, answer, inputs, **more))
    assert played.result.status == ends, f"{played.result.error} {played.result.remedy}"
    return played


async def settle() -> None:
    """Let all tasks that are not waiting make progress."""
    for _ in range(200):
        await asyncio.sleep(0)
