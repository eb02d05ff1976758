"""What a workflow would do on this machine that a person must have allowed, found before anything is done."""

from __future__ import annotations

from collections.abc import Iterator

from engine.errors import EngineError
from engine.nodes.agent_config import AgentConfig
from engine.nodes.spec import NodeConfig
from engine.nodes.tool import ToolConfig
from engine.plan.execution_plan import GraphPlan
from engine.tools.registry import all_tools


class CodeNotAllowedError(EngineError):
    """A workflow runs code, and nobody has allowed it."""


def tools_of(config: NodeConfig) -> tuple[str, ...]:
    """The tools that a node with these settings may call, by name."""
    if isinstance(config, ToolConfig):
        return (config.tool,)
    return tuple(config.tools) if isinstance(config, AgentConfig) else ()


def refuse_code(graph: GraphPlan) -> None:
    """Refuse a workflow that would run code, before any of it has been paid for.

    Raises:
        CodeNotAllowedError: A node may call a tool that runs code.
    """
    known = all_tools()
    for node, tool in tools_in(graph):
        if tool in known and known[tool].runs_code:
            raise CodeNotAllowedError(
                f'"{node}" may call the tool "{tool}", which runs code on this machine, and this run may not do that.',
                "If you trust the workflow, allow it: with --allow-code, or with the box where a run is started.",
            )


def tools_in(graph: GraphPlan) -> Iterator[tuple[str, str]]:
    """Each enabled node that may call a tool, with the tool's name; those in loops and subflows included."""
    for node in graph.nodes:
        if node.enabled:
            yield from ((node.id, name) for name in tools_of(node.config))
        if node.body is not None:
            yield from tools_in(node.body)
