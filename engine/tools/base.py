"""What a tool is: a named function with declared parameters that a workflow may call.

A tool is declared in one place: its parameters are a pydantic model, from which ports, form, validation and
reference page are made. A tool touches only what its `ToolContext` allows.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

from engine.errors import EngineError
from engine.values import Value

ParametersT = TypeVar("ParametersT", bound=BaseModel)


class ToolError(EngineError):
    """A tool call that failed. `retryable` says whether the same call may well succeed when made again."""

    def __init__(self, message: str, remedy: str = "", *, retryable: bool = False) -> None:
        super().__init__(message, remedy)
        self.retryable = retryable


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What the person who started the run lets tools do. A document cannot widen it.

    Attributes:
        folder: The one folder that file tools may read and write; None allows none.
        allow_private_addresses: Whether `http_get` may reach loopback and private networks.
    """

    folder: Path | None = None
    allow_private_addresses: bool = False


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
    """

    name: str
    title: str
    help: str
    parameters: type[ParametersT]
    output_type: str
    run: Callable[[ParametersT, ToolContext], Awaitable[Value]]


AnyTool = Tool[Any]
