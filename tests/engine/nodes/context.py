"""Run a single node for tests, with a model that answers from a list."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from engine.models.protocol import Finish, Message, ModelChoice, Reply, Request, Usage
from engine.nodes.context import Answer, IterationNote, NodeContext, Services, ToolOutcome
from engine.nodes.node_registry import builtin_registry
from engine.nodes.spec import Outputs
from engine.values import Value


@dataclass
class FakeServices(Services):
    """Services of a run: parameters, a model that answers from a list, and recorded tool calls."""

    replies: list[str | Reply] = field(default_factory=list[str | Reply])
    parameters: dict[str, Value] = field(default_factory=dict[str, Value])
    requests: list[Request] = field(default_factory=list[Request])
    choices: list[ModelChoice] = field(default_factory=list[ModelChoice])
    tool_calls: list[tuple[str, dict[str, Value]]] = field(default_factory=list[tuple[str, dict[str, Value]]])

    def parameter(self, name: str) -> Value:
        return self.parameters[name]

    async def complete(self, context: NodeContext[Any], choice: ModelChoice, request: Request) -> Reply:
        self.requests.append(request)
        self.choices.append(choice)
        reply = self.replies.pop(0)
        context.usage = Usage(3, 2) if context.usage is None else context.usage + Usage(3, 2)
        return reply if isinstance(reply, Reply) else Reply(reply, Finish.STOP)

    async def confirm_call(
        self, context: NodeContext[Any], tool: str, arguments: Mapping[str, Value]
    ) -> Mapping[str, Value]:
        return arguments

    async def call_tool(
        self, name: str, arguments: Mapping[str, Value], context: Any, *, may_reuse: bool = False
    ) -> Value:
        self.tool_calls.append((name, dict(arguments)))
        return "what the tool gave"

    def notes(self, context: NodeContext[Any]) -> tuple[Message, ...]:
        return ()

    async def ask(self, context: NodeContext[Any], *asked: Any, **more: Any) -> Answer:
        raise NotImplementedError

    async def act(self, context: NodeContext[Any], *wanted: Any, **more: Any) -> ToolOutcome:
        raise NotImplementedError

    def post_note(self, context: NodeContext[Any], to: str, text: str) -> None:
        raise NotImplementedError

    def exit_loop(self, context: NodeContext[Any]) -> None:
        raise NotImplementedError


@dataclass
class Ran:
    """A finished execution of a node."""

    outputs: Outputs
    context: NodeContext[Any]
    services: FakeServices


async def run_node(
    node_type: str,
    config: Mapping[str, Any],
    inputs: Mapping[str, Value] | None = None,
    *replies: str | Reply,
    services: FakeServices | None = None,
    note: IterationNote | None = None,
) -> Ran:
    """Run a single node of a type."""
    spec = builtin_registry().find(node_type)
    assert spec is not None
    assert spec.run is not None
    services = services or FakeServices(list(replies))
    settings = spec.config.model_validate(config)
    given = dict(inputs or {})
    blank: dict[str, Value] = {port.name: None for port in spec.inputs(settings)}
    context: NodeContext[Any] = NodeContext(
        "here", settings, spec.prepare(settings), given, blank | given, services, iteration_note=note
    )
    return Ran(await spec.run(context), context, services)
