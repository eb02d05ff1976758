"""Nodes that may end a loop have to lie in one."""

from __future__ import annotations

from collections.abc import Iterator

from engine.document.problems import Problem
from engine.nodes.agent_config import AgentConfig
from engine.nodes.agent_tools import EXIT_LOOP
from engine.nodes.llm import LlmConfig
from engine.nodes.pairs import LOOP
from engine.plan.structure import Structure


def exit_loop_problems(structure: Structure) -> Iterator[Problem]:
    """A problem for each node outside of all loops that is given the tool `exit_loop`."""
    for resolved in structure.resolution.nodes.values():
        field = _field(resolved.config)
        if field and structure.order and structure.around(resolved.id, LOOP) is None:
            yield Problem(
                "exit-loop-outside",
                f'"{resolved.id}" may end the loop around it, and lies in none.',
                "Put it between a Loop and its Exit, or take the tool exit_loop from it.",
                node=resolved.id,
                field=field,
            )


def _field(config: object) -> str:
    """The setting that lets a node end its loop; empty where none does."""
    if isinstance(config, LlmConfig):
        return "may_exit_loop" if config.may_exit_loop else ""
    return "tools" if isinstance(config, AgentConfig) and EXIT_LOOP in config.tools else ""
