"""Agents in tests: scripted model replies, and tools that record their calls."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from pydantic import BaseModel

from engine.models.protocol import Reply, ToolCall, Usage
from engine.tools.registry import set_tools
from engine.tools.tool import AnyTool, Tool, ToolContext, ToolError
from tests.engine.semantics.documents import Part, part
from tests.engine.semantics.models import Call


def agent(node_id: str = "agent", **config: Any) -> Part:
    return part(node_id, "agent", **{"prompt": "{{input}}", "retries": 0, **config})


def wants(*calls: tuple[str, Any], text: str = "") -> Reply:
    """A reply with tool calls: name and arguments of each."""
    wanted = tuple(ToolCall(f"call_{number}", name, arguments) for number, (name, arguments) in enumerate(calls))
    return Reply(text, usage=Usage(10, 5), tool_calls=wanted)


def script(*replies: Reply | str) -> Callable[[Call], Reply | str]:
    """Scripted replies of an agent's model, one for each turn."""

    def answer(call: Call) -> Reply | str:
        return replies[sum(message.role == "assistant" for message in call.request.messages)]

    return answer


def results(call: Call) -> list[str]:
    """The tool results that the model got, in order."""
    return [message.text for message in call.request.messages if message.role == "tool"]


def said_by_people(call: Call) -> list[str]:
    return [message.text for message in call.request.messages if message.role == "user"]


class _Numbers(BaseModel):
    a: float
    b: float = 0


@dataclass
class Tools:
    """Four tools that record their calls: `add`, `hang` (never returns), `break` (always fails), `crash` (has a bug).

    Attributes:
        called: Name and arguments of each call.
        stopped: The number of calls that were cancelled before they ended.
    """

    called: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    stopped: int = 0

    def all(self) -> list[AnyTool]:
        return [
            Tool(name, name.title(), f"It does {name}.", _Numbers, "number", run)
            for name, run in (
                ("add", self._add),
                ("hang", self._hang),
                ("break", self._break),
                ("crash", self._crash),
            )
        ]

    async def _add(self, numbers: _Numbers, _context: ToolContext) -> float:
        self.called.append(("add", numbers.model_dump()))
        return numbers.a + numbers.b

    async def _hang(self, numbers: _Numbers, _context: ToolContext) -> float:
        self.called.append(("hang", numbers.model_dump()))
        try:
            await asyncio.Event().wait()
        finally:
            self.stopped += 1
        return 0

    async def _break(self, numbers: _Numbers, _context: ToolContext) -> float:
        self.called.append(("break", numbers.model_dump()))
        raise ToolError("It is broken.", "Mend it.")

    async def _crash(self, numbers: _Numbers, _context: ToolContext) -> float:
        self.called.append(("crash", numbers.model_dump()))
        raise KeyError("sum")


@pytest.fixture(name="tools")
def tools_fixture() -> Iterator[Tools]:
    """Registers the tools `add`, `hang`, `break` and `crash`."""
    tools = Tools()
    set_tools("test", tools.all())
    yield tools
    set_tools("test", ())
