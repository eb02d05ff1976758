"""Code runs only with permission, which is checked before anything runs."""

from __future__ import annotations

from typing import Any

import pytest

from engine import Workflow
from engine.runner.capabilities import CodeNotAllowedError
from tests.engine.semantics.agents import agent, script, wants
from tests.engine.semantics.documents import Part, entry, flow, leave, llm, loop, part, result
from tests.engine.semantics.kit import play

CODE = "import sys; print(sys.stdin.read() + '!')"


def python(**more: Any) -> Part:
    return part("code", "tool", tool="python", arguments={"code": CODE}, **more)


def in_a_row() -> Workflow:
    return flow(entry(), llm("draft"), python(), result(), edges="text -> draft -> code.input\ncode -> out")


def in_a_loop() -> Workflow:
    parts = (entry(), loop(max_iterations=2), agent(tools=["shell"]), leave(), result())
    return flow(*parts, edges="text -> loop -> agent -> exit -> out")


@pytest.mark.parametrize(
    ("workflow", "node", "tool"), [(in_a_row(), "Tool", "python"), (in_a_loop(), "Agent", "shell")]
)
async def test_a_workflow_that_runs_code_does_not_start_without_permission(
    workflow: Workflow, node: str, tool: str
) -> None:
    with pytest.raises(CodeNotAllowedError, match=f'"{node}" may call .* "{tool}", which runs code') as caught:
        await play(workflow, "never asked")
    assert caught.value.fix == "allow_code"


async def test_a_workflow_that_runs_code_runs_with_permission() -> None:
    played = await play(in_a_row(), "drafted", allow_code=True)
    assert played.out == {"exit_code": 0, "stdout": "drafted!\n", "stderr": ""}


async def test_an_agent_with_permission_gets_the_output_of_its_code() -> None:
    workflow = flow(entry(), agent(tools=["python"]), result(), edges="text -> agent -> out")
    played = await play(workflow, script(wants(("python", {"code": "print(6 * 7)"})), "42"), allow_code=True)
    assert played.out == "42"
    (step,) = played.output_of("agent", "steps")  # type: ignore[misc]
    assert step["result"]["stdout"] == "42\n"


async def test_a_disabled_node_needs_no_permission() -> None:
    from dataclasses import replace

    parts = (entry(), replace(python(), enabled=False), result())
    played = await play(flow(*parts, edges="text -> code.input\ntext -> out"), "")
    assert played.out == "seed"
