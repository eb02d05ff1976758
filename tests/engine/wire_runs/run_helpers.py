"""Helpers for whole runs whose model is a behavior of the wire server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import pytest

from engine import Builder, Run, RunResult, Workflow, start
from engine.events import AnyEvent
from tests.engine.semantics.event_checks import check_events
from tests.engine.wire.server import WireServer

E = TypeVar("E", bound=AnyEvent)
PATIENCE_S = 60.0
GIVEN = "a text about the sea"


_warm: list[str] = []


@pytest.fixture(autouse=True)
async def warm_client(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a first call once per process, so that no timeout includes its cost; start without any key."""
    for name in ("OPENAI_API_KEY", "OPENAI_API_BASE", "OPENAI_BASE_URL", "LOOPWRIGHT_MODEL"):
        monkeypatch.delenv(name, raising=False)
    if not _warm:
        with WireServer() as server:
            _warm.append((await ended(asking(server, "plain"))).result.status)


@dataclass(frozen=True)
class Ended:
    """A finished run and all its events."""

    result: RunResult
    events: list[AnyEvent]

    def of(self, kind: type[E], path: str | None = None) -> list[E]:
        return [event for event in self.events if isinstance(event, kind) and path in {None, event.path}]


def asking(wire: WireServer, behavior: str, **config: Any) -> Workflow:
    """A workflow of one model node called Draft; without retries unless configured."""
    return _around("llm", wire, behavior, {"prompt": "Write about {{input}}.", **config})


def deciding(wire: WireServer, behavior: str, **config: Any) -> Workflow:
    """A workflow of one router with a model; its branches lead to the outputs `done` and `more`."""
    builder = _with_input("routed")
    node = builder.add("router", id="check", config=_config(wire, behavior, {"criteria": "Is it good?", **config}))
    builder.connect("text.value", node["input"])
    for branch, name in (("done", "done"), ("continue", "more")):
        builder.connect(node[branch], builder.add("output", id=name)["value"])
    return builder.build()


def looping(wire: WireServer, behavior: str, judge: str | None = None, **config: Any) -> Workflow:
    """A workflow of a loop around Draft, followed by a router if a behavior of the judge is given."""
    builder = _with_input("looped")
    builder.add("loop", id="loop", config={"inject_feedback": False, **config})
    builder.add("llm", id="draft", config=_config(wire, behavior, {"prompt": "Better: {{input}}"}))
    builder.add("exit", id="exit", loop="loop")
    builder.add("output", id="out")
    builder.connect("text.value", "loop.input")
    builder.connect("loop.body", "draft.input")
    if judge is None:
        builder.connect("draft.output", "exit.input")
    else:
        builder.add("router", id="check", config=_config(wire, judge, {"criteria": "Is it good?"}))
        builder.connect("draft.output", "check.input")
        builder.connect("check.done", "exit.input")
    builder.connect("exit.output", "out.value")
    return builder.build()


def _around(node_type: str, wire: WireServer, behavior: str, config: dict[str, Any]) -> Workflow:
    builder = _with_input("asked")
    node = builder.add(node_type, id="draft", title="Draft", config=_config(wire, behavior, config))
    builder.connect("text.value", node["input"])
    builder.connect(node["output"], builder.add("output", id="out")["value"])
    return builder.build()


def _with_input(name: str) -> Builder:
    builder = Builder(name)
    builder.add("input", id="text")
    return builder


def _config(wire: WireServer, behavior: str, config: dict[str, Any]) -> dict[str, Any]:
    return {"model": f"openai/{behavior}", "api_base": wire.base_url, "retries": 0, "retry_delay_s": 0.0, **config}


async def ended(workflow: Workflow, *, meanwhile: Callable[[Run, AnyEvent], None] | None = None) -> Ended:
    """Run a workflow to its end; `meanwhile` gets each event and may act on the run."""
    run = start(workflow, {"text": GIVEN})
    events: list[AnyEvent] = []
    async with asyncio.timeout(PATIENCE_S):
        async for event in run.events():
            events.append(event)
            if meanwhile is not None:
                meanwhile(run, event)
        result = await run.result()
    check_events(result, events)
    return Ended(result, events)
