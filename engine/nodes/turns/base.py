"""What a turn strategy is: it decides how often an agent's model is called, and when its work is done.

A plugin adds its own through `engine.nodes.turns.registry.register_strategy`. A strategy knows neither how a graph is
run nor who adapts its model; it works through the `NodeContext` that it is given.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from engine.models.protocol import Message
from engine.nodes.agent_config import AgentConfig
from engine.nodes.context import NodeContext
from engine.nodes.spec import FieldProblem
from engine.values import Value

AgentStatus = Literal["finished", "max_turns", "exited_loop"]
"""How an agent's work came to its end."""


@dataclass(frozen=True, slots=True)
class AgentEnd:
    """What an agent's work came to.

    Attributes:
        status: How it ended.
        output: The final answer; where turns ran out, the last text; nothing where the agent ended the loop.
        steps: What it did, one object a tool call: `turn` (from 1), `thought`, `tool`, `arguments`, `result`, `error`.
    """

    status: AgentStatus
    output: Value = None
    steps: tuple[Value, ...] = ()


def no_problems(_config: AgentConfig) -> Iterable[FieldProblem]:
    """For strategies that any settings fit."""
    return ()


@dataclass(frozen=True, slots=True)
class TurnStrategy:
    """A way of taking turns.

    Attributes:
        name: How documents call it.
        title: How people call it.
        help: One line on what it does.
        run: Does an agent's work, starting from these messages. What it puts into `context.kept` is there again when
            it is called anew after a failure that may pass.
        check: Refuses settings that do not fit it, before the run.
    """

    name: str
    title: str
    help: str
    run: Callable[[NodeContext[AgentConfig], list[Message]], Awaitable[AgentEnd]]
    check: Callable[[AgentConfig], Iterable[FieldProblem]] = no_problems
