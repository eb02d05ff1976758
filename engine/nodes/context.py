"""What a node's run function gets: its config and inputs, and what the run offers to it.

This module knows neither how a graph is run nor which node types there are.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Literal, Protocol

from engine.expr import Scope
from engine.models.base import Message, Reply, Request, Usage
from engine.nodes.iteration_note import IterationNote
from engine.nodes.spec import ConfigT, ModelCall, ModelChoice
from engine.values import Value

QuestionKind = Literal["approval", "question"]
"""What a person is asked for: to approve a value, or to answer a question."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a person answered: one of the choices (or none), the value as they left it, and a comment."""

    choice: str = ""
    value: Value = None
    comment: str = ""


class Services(Protocol):
    """What a run offers to the nodes that it runs."""

    def parameter(self, name: str) -> Value:
        """The value given to the run for that input; raises KeyError where none was given."""
        ...

    def complete(self, context: NodeContext[Any], choice: ModelChoice, request: Request) -> Awaitable[Reply]:
        """Make one model call within the budget, streaming its text into the run's events."""
        ...

    async def call_tool(self, name: str, arguments: Mapping[str, Value]) -> Value:
        """Call a tool by name."""
        ...

    async def ask(
        self, context: NodeContext[Any], kind: QuestionKind, message: str, value: Value, choices: tuple[str, ...]
    ) -> Answer:
        """Ask a person, and wait for the answer however long it takes."""
        ...


@dataclass(slots=True)
class NodeContext(Generic[ConfigT]):
    """What a node's run function gets: its config, its inputs, and what the run offers.

    Attributes:
        path: Where in the run this is (`loop[2].draft`).
        config: The node's settings.
        prepared: What the node type's `prepare` made of them, once a run.
        inputs: Values by input port; a port that nothing live reached is not in it.
        scope: Names for templates and expressions: every input port (null where nothing live reached it), and `loop`
            in a body.
        services: What the run offers.
        node_type: The node's type.
        iteration_note: What the first model node of a loop's body is told about its iteration; None elsewhere.
        usage: Tokens used so far, failed attempts included.
        cost_usd: US dollars spent so far; None as soon as one price in it is unknown.
        calls: The model calls made so far.
        warnings: What a person should know although the node went on.
    """

    path: str
    config: ConfigT
    prepared: Any
    inputs: Mapping[str, Value]
    scope: Scope
    services: Services
    node_type: str = ""
    iteration_note: IterationNote | None = None
    usage: Usage | None = None
    cost_usd: float | None = 0.0
    calls: tuple[ModelCall, ...] = ()
    warnings: tuple[str, ...] = ()

    def complete(
        self,
        choice: ModelChoice,
        messages: Iterable[Message],
        *,
        temperature: float | None = None,
        max_tokens: int | None = None,
        schema: dict[str, Value] | None = None,
        seed: int | None = None,
    ) -> Awaitable[Reply]:
        """Make one model call.

        Raises:
            ModelError: The call gave no usable reply.
            BudgetError: It does not fit into what is left of the budget; no call was made.
        """
        request = Request(tuple(messages), temperature, max_tokens, schema, seed, self.path)
        return self.services.complete(self, choice, request)

    def ask(
        self, kind: QuestionKind, message: str, *, value: Value = None, choices: tuple[str, ...] = ()
    ) -> Awaitable[Answer]:
        """Ask a person, and wait for the answer however long it takes.

        Args:
            kind: Whether a value is to be approved or a question to be answered.
            message: What the person is asked; plain text.
            value: What is to be approved, or what the question is about.
            choices: What they may choose between; empty where only a text is asked for.
        """
        return self.services.ask(self, kind, message, value, choices)

    def warn(self, message: str) -> None:
        """Put a warning into the history of this node."""
        self.warnings = (*self.warnings, message)
