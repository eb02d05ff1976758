"""The calls in a run's past: those in flight when it stopped, and those that a scripted model has to count.

A call is in flight from the event that announces it until its outcome is in the history. On resume such a call would be
made a second time, so a person has to agree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from engine.events import (
    AnyEvent,
    LoopStarted,
    NodeCalled,
    NodeCalling,
    NodeCompleted,
    NodeFailed,
    NodeRetrying,
    NodeStarted,
    NodeToolCalled,
    NodeToolCalling,
)
from engine.models.base import Request
from engine.run_state.loop_starts import with_loop_starts


@dataclass(frozen=True, slots=True)
class UnknownCall:
    """A call that was in flight when its run stopped: nobody knows whether it finished.

    Attributes:
        path: The node that made it.
        model: The model; empty for a tool call.
        tool: The tool; empty for a model call.
        arguments: The tool's arguments as JSON text, truncated.
    """

    path: str
    model: str = ""
    tool: str = ""
    arguments: str = ""


@dataclass(slots=True)
class _ModelCall:
    """A model call that was begun; histories of older versions have the request only of a finished call."""

    model: str
    request: Request | None


class CallLog:
    """The calls in a run's past.

    Args:
        past: The run's events, in order.
    """

    def __init__(self, past: Iterable[AnyEvent]) -> None:
        self._begun: list[_ModelCall] = []
        self._models: dict[str, _ModelCall] = {}
        self._tools: dict[str, UnknownCall] = {}
        self._repeated: dict[str, _ModelCall] = {}
        handlers: dict[type[AnyEvent], Callable[[Any], object]] = {
            NodeStarted: self._node_started,
            NodeCalling: self._node_calling,
            NodeCalled: self._node_called,
            NodeToolCalling: self._node_tool_calling,
            NodeToolCalled: lambda event: self._tools.pop(event.path, None),
            NodeRetrying: self._node_retrying,
            NodeCompleted: self._node_completed,
            NodeFailed: lambda event: self._end(event.path),
            LoopStarted: lambda event: self._end_inside(event.path),
        }
        for event in with_loop_starts(past):
            handler = handlers.get(type(event))
            if handler is not None:
                handler(event)

    @property
    def in_flight(self) -> dict[str, UnknownCall]:
        """The calls in flight, by the path of their node; a node makes one at a time."""
        return {path: UnknownCall(path, call.model) for path, call in self._models.items()} | self._tools

    def requests(self, model: str) -> list[Request]:
        """The requests of all calls of that model, in the order in which they were begun; each once."""
        return [call.request for call in self._begun if call.model == model and call.request is not None]

    def paths_in_flight(self, model: str) -> set[str]:
        """The nodes with a call of that model in flight whose request is known."""
        calls = {**self._repeated, **self._models}
        return {path for path, call in calls.items() if call.model == model and call.request is not None}

    def _node_started(self, event: NodeStarted) -> None:
        call = self._models.get(event.path)
        self._end(event.path)
        if call is not None:  # the run was resumed: this execution makes the call again
            self._repeated[event.path] = call

    def _node_calling(self, event: NodeCalling) -> None:
        call = self._repeated.pop(event.path, None)
        if call is None or call.model != event.model:
            call = _ModelCall(event.model, event.request)
            self._begun.append(call)
        self._models[event.path] = call

    def _node_called(self, event: NodeCalled) -> None:
        call = self._models.pop(event.path, None)  # none for a cached reply
        if call is not None and call.request is None:
            call.request = event.call.request

    def _node_tool_calling(self, event: NodeToolCalling) -> None:
        self._tools[event.path] = UnknownCall(event.path, "", event.tool, event.arguments)

    def _node_retrying(self, event: NodeRetrying) -> None:
        self._end(event.path)
        self._end_inside(event.path)

    def _node_completed(self, event: NodeCompleted) -> None:
        self._end(event.path)
        self._end_inside(event.path)  # a loop that timed out may complete with calls in flight

    def _end_inside(self, path: str) -> None:
        inside = (f"{path}[", f"{path}.")
        for other in [*self._models, *self._tools, *self._repeated]:
            if other.startswith(inside):
                self._end(other)

    def _end(self, path: str) -> None:
        for by_path in (self._models, self._tools, self._repeated):
            by_path.pop(path, None)
