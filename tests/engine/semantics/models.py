"""Fake models: the reply is a function of the call, and all calls are recorded."""

from __future__ import annotations

import asyncio
import inspect
import json
import re
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any

from engine.models.protocol import OnText, Price, Reply, Request, Usage

FREE = Price(0.0, 0.0)
DOLLAR_A_TOKEN_OUT = Price(0.0, 1.0)
TEN_OUT = Usage(input_tokens=0, output_tokens=10)


@dataclass(frozen=True)
class Call:
    """One call of a model: the request, the model's name, and when it was made (the event loop's clock, in seconds)."""

    request: Request
    model: str
    time: float

    @property
    def path(self) -> str:
        return self.request.path

    @property
    def node(self) -> str:
        return self.path.rpartition(".")[2]

    @property
    def indices(self) -> tuple[int, ...]:
        """The iteration of each loop around it, outermost first."""
        return tuple(int(index) for index in re.findall(r"\[(\d+)\]", self.path))

    @property
    def iteration(self) -> int:
        """The iteration of the innermost loop, from 0."""
        return self.indices[-1]

    @property
    def prompt(self) -> str:
        """The last user message."""
        return self.request.messages[-1].text

    @property
    def system(self) -> str:
        return "\n".join(message.text for message in self.request.messages if message.role == "system")


Said = str | Reply | Exception
Answer = Callable[[Call], "Said | Awaitable[Said]"]


class FunctionModel:
    """A model whose replies come from a function of the call; exceptions are raised."""

    note = ""

    def __init__(
        self,
        answer: Answer | Said,
        *,
        name: str = "fake/model",
        price: Price | None = FREE,
        usage: Usage = Usage(10, 5),  # noqa: B008 # it cannot change
        pieces: Callable[[str], Iterable[str]] = lambda text: [text],
    ) -> None:
        self.name = name
        self.calls: list[Call] = []
        self.closed = False
        self._answer = answer
        self._price = price
        self._usage = usage
        self._pieces = pieces

    async def price(self) -> Price | None:
        return self._price

    async def complete(self, request: Request, on_text: OnText | None = None) -> Reply:
        call = Call(request, self.name, asyncio.get_running_loop().time())
        self.calls.append(call)
        result = self._answer(call) if callable(self._answer) else self._answer
        if inspect.isawaitable(result):
            result = await result
        if isinstance(result, Exception):
            raise result
        reply = result if isinstance(result, Reply) else Reply(result, usage=self._usage, model=self.name)
        if on_text is not None:
            for piece in self._pieces(reply.text):
                on_text(piece)
        return reply

    async def close(self) -> None:
        self.closed = True

    def prompts(self, node: str) -> list[str]:
        """The prompts of a node, call by call."""
        return [call.prompt for call in self.calls if call.node == node]

    @property
    def paths(self) -> list[str]:
        return [call.path for call in self.calls]


class FakeModels:
    """A model catalog with one model for all names, or one for each."""

    def __init__(self, model: FunctionModel, **by_name: FunctionModel) -> None:
        self.model = model
        self.by_name = by_name
        self.asked: list[tuple[str, str | None]] = []
        self.closed = 0

    def get(self, name: str, api_base: str | None = None) -> FunctionModel:
        self.asked.append((name, api_base))
        return self.by_name.get(name, self.model)

    async def close(self) -> None:
        self.closed += 1


def by_node(**answers: Answer | Said | list[Any]) -> Answer:
    """Replies by node id: one for all calls, a list (one per call, the last one repeated), or a function."""
    queues = {node: list(answer) for node, answer in answers.items() if isinstance(answer, list)}

    def answer(call: Call) -> Any:
        if call.node in queues:
            queue = queues[call.node]
            return queue.pop(0) if len(queue) > 1 else queue[0]
        given = answers[call.node]
        assert not isinstance(given, list)
        return given(call) if callable(given) else given

    return answer


def verdict(branch: str, reason: str = "because") -> str:
    """A valid reply of a router."""
    return json.dumps({"reason": reason, "branch": branch})


def numbered(call: Call) -> str:
    """A reply that names the node and its iterations: `draft 0`, `draft 1.0`."""
    return f"{call.node} {'.'.join(map(str, call.indices))}".strip()


class Gate:
    """Replies with the call's path; the call at one path waits until it is opened."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.reached = asyncio.Event()
        self.open = asyncio.Event()
        self.cancelled = False

    async def __call__(self, call: Call) -> str:
        if call.path == self.path:
            self.reached.set()
            try:
                await self.open.wait()
            except asyncio.CancelledError:
                self.cancelled = True
                raise
        return call.path
