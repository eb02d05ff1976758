"""What a tool is: a named function with declared parameters that a workflow may call.

A tool is declared in one place: its parameters are a pydantic model, from which ports, form, validation and
reference page are made. A tool touches only what its `ToolContext` allows.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Hashable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Generic, Protocol, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict

from engine.errors import EngineError
from engine.values import Value

ParametersT = TypeVar("ParametersT", bound=BaseModel)


class ToolError(EngineError):
    """A tool call that failed. `retryable` says whether the same call may well succeed when made again."""

    def __init__(self, message: str, remedy: str = "", *, retryable: bool = False) -> None:
        super().__init__(message, remedy)
        self.retryable = retryable


class Session(Protocol):
    """What a tool keeps open from one call to the next, such as a connection."""

    async def close(self) -> None:
        """Give back what it holds. Called once, at the end of the run."""
        ...


SessionT = TypeVar("SessionT", bound=Session)


class ToolSessions:
    """What the tools of one run keep open. It belongs to the event loop of the run."""

    def __init__(self) -> None:
        self._open: dict[Hashable, Session] = {}

    def get(self, key: Hashable, make: Callable[[], SessionT]) -> SessionT:
        """The session of that key, made when it is first asked for."""
        found = self._open.get(key)
        if found is None:
            found = self._open[key] = make()
        return found  # type: ignore[return-value] # a key stands for one kind of session

    async def close(self) -> None:
        """Close all of them; each, also where closing another one fails."""
        sessions, self._open = self._open, {}
        async with AsyncExitStack() as stack:
            for session in sessions.values():
                stack.push_async_callback(session.close)


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What the person who started the run lets tools do. A document cannot widen it.

    Attributes:
        folder: The one folder that file tools may read and write; None allows none.
        allow_private_addresses: Whether `http_get` may reach loopback and private networks.
        allow_code: Whether tools may run code and commands on this machine.
        sessions: What tools keep open until the run has ended.
    """

    folder: Path | None = None
    allow_private_addresses: bool = False
    allow_code: bool = False
    sessions: ToolSessions = field(default_factory=ToolSessions)


class Consent(StrEnum):
    """What a person is asked about before a call whose arguments a document does not hold."""

    NONE = "none"
    HOST = "host"
    """The host in the argument `url`, once a run."""
    CALL = "call"
    """All arguments, once for each distinct call."""


@dataclass(frozen=True, slots=True)
class Tool(Generic[ParametersT]):
    """A declared tool.

    Attributes:
        name: How documents call it (`search_files`).
        title: How people call it.
        help: One line on what it does.
        parameters: A pydantic model; each field is an input port of the tool node, with its title, help and limits.
        output_type: The port type of what it gives (`text`, `json`, `list` …).
        run: Does it. Cancelling the awaiting task stops the work.
        runs_code: Whether it runs code or commands on this machine, which a person must have allowed.
        uses_folder: Whether it uses the folder that the run was given, so that a person is asked about it.
        consent: What a person is asked about where a call of a workflow from elsewhere is known only during the run.
        idempotent: Whether a second call does no harm, as with a tool that only reads. After a crash, a call in flight
            of any other tool is made again only if a person agrees.
    """

    name: str
    title: str
    help: str
    parameters: type[ParametersT]
    output_type: str
    run: Callable[[ParametersT, ToolContext], Awaitable[Value]]
    runs_code: bool = False
    uses_folder: bool = False
    consent: Consent = Consent.NONE
    idempotent: bool = False

    @property
    def consents_to_calls(self) -> bool:
        """Whether a person is asked about each distinct call."""
        return self.runs_code or self.consent is Consent.CALL


AnyTool = Tool[Any]


class Parameters(BaseModel):
    """The base of every tool's parameters: unknown names are refused, values do not change."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def _mend(value: object) -> object:
    """Make a model's text encodable: surrogate pairs become their character, lone surrogates U+FFFD."""
    if isinstance(value, str) and not value.isascii():
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return value


def whole_characters(value: Value) -> Value:
    """A value with all its texts made encodable, as those of `Text` are."""
    text = json.dumps(value, ensure_ascii=False)
    mended = _mend(text)
    return value if mended == text else json.loads(str(mended))


Text = Annotated[str, BeforeValidator(_mend)]
"""A text that may come from a language model. Such a text can hold lone surrogates, which pydantic's `str` refuses."""
