"""Tool declarations: named functions with declared parameters that a workflow may call.

A tool is declared once: its parameters are a pydantic model, from which ports, form, validation and reference page are
generated. A tool may access only what its `ToolContext` allows.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Generic, Protocol, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict

from engine.errors import EngineError
from engine.values import Value, encodable_text

ParametersT = TypeVar("ParametersT", bound=BaseModel)


class ToolError(EngineError):
    """A tool call that failed."""


class Parameters(BaseModel):
    """Base class of a tool's parameters: unknown names are refused, values do not change."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def _encodable(value: object) -> object:
    return encodable_text(value) if isinstance(value, str) else value


Text = Annotated[str, BeforeValidator(_encodable)]
"""A text that may come from a language model. Such a text can hold lone surrogates, which pydantic's `str` refuses."""


class Session(Protocol):
    """Something that a tool keeps open between calls, such as a connection."""

    async def close(self) -> None:
        """Release all resources. Called once, at the end of the run."""
        ...


SessionT = TypeVar("SessionT", bound=Session)


class ToolSessions:
    """The open sessions of one run's tools. Belongs to the event loop of the run."""

    def __init__(self) -> None:
        self._open: dict[Hashable, Session] = {}

    def get(self, key: Hashable, make: Callable[[], SessionT]) -> SessionT:
        """The session with that key, created on first use."""
        found = self._open.get(key)
        if found is None:
            found = self._open[key] = make()
        return found  # type: ignore[return-value] # a key stands for one kind of session

    async def close(self) -> None:
        """Close every session, even if closing another one fails."""
        sessions, self._open = self._open, {}
        async with AsyncExitStack() as stack:
            for session in sessions.values():
                stack.push_async_callback(session.close)


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What the person who started the run allows tools to do. A document cannot widen it.

    Attributes:
        folder: The one folder that file tools may read and write; None allows none.
        allow_private_addresses: Whether `http_get` may reach loopback and private networks.
        allow_code: Whether tools may run code and commands on this computer.
        sessions: Sessions that stay open until the run ends.
    """

    folder: Path | None = None
    allow_private_addresses: bool = False
    allow_code: bool = False
    sessions: ToolSessions = field(default_factory=ToolSessions)


class Consent(StrEnum):
    """What a person must approve before a call whose arguments are not in the document."""

    NONE = "none"
    HOST = "host"
    """The host in the argument `url`, once a run."""
    CALL = "call"
    """All arguments, once for each distinct call."""


@dataclass(frozen=True, slots=True)
class Tool(Generic[ParametersT]):
    """A declared tool.

    Attributes:
        name: Its name in documents (`search_files`).
        title: Its name for people.
        help: One line on what it does.
        parameters: A pydantic model; each field is an input port of the tool node, with its title, help and limits.
        output_type: The port type of the result (`text`, `json`, `list` …).
        run: Runs the tool. Cancelling the awaiting task stops it.
        runs_code: Whether it runs code or commands on this computer, which a person must allow.
        uses_folder: Whether it uses the run's folder, so that a person is asked about it.
        consent: What a person must approve if a call of a workflow from elsewhere is known only during the run.
        idempotent: Whether a repeated call does no harm, as with a tool that only reads. After a crash, a call in
            flight of any other tool is repeated only if a person agrees.
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
        """Whether a person must approve each distinct call."""
        return self.runs_code or self.consent is Consent.CALL


AnyTool = Tool[Any]
