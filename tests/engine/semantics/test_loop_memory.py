"""Memory of model nodes in a loop: messages of their earlier iterations."""

from __future__ import annotations

from typing import Any

import pytest

from engine import Workflow
from engine.models.protocol import Reply
from tests.engine.semantics.agents import agent, wants
from tests.engine.semantics.documents import around, entry, flow, leave, llm, loop, result
from tests.engine.semantics.kit import play
from tests.engine.semantics.models import Call


def remembering(memory: str, **config: Any) -> Workflow:
    return around(
        llm("draft", "Write: {{input}}", system="You write."),
        llm("check", "Check: {{input}}"),
        edges="loop -> draft -> check -> exit",
        max_iterations=4,
        memory=memory,
        **config,
    )


def prompts_of(call: Call) -> str:
    return f"{call.node}{call.iteration}"


def conversation(call: Call) -> list[tuple[str, str]]:
    return [(message.role, message.text) for message in call.request.messages]


@pytest.mark.parametrize(
    ("memory", "config", "remembered"),
    [("fresh", {}, []), ("accumulate", {}, [0, 1, 2]), ("window", {"memory_window": 2}, [1, 2])],
)
async def test_a_model_node_sees_its_own_earlier_iterations(
    memory: str, config: dict[str, Any], remembered: list[int]
) -> None:
    played = await play(remembering(memory, **config), prompts_of)

    last = next(call for call in played.model.calls if call.path == "loop[3].draft")
    before = [
        turn
        for index in remembered
        for turn in [("user", f"Write: {played.iteration_inputs[index]}"), ("assistant", f"draft{index}")]
    ]
    assert conversation(last) == [("system", "You write."), *before, ("user", "Write: check2")]


async def test_each_node_remembers_only_its_own_messages() -> None:
    played = await play(remembering("accumulate"), prompts_of)

    second = next(call for call in played.model.calls if call.path == "loop[1].check")
    assert conversation(second) == [("user", "Check: draft0"), ("assistant", "check0"), ("user", "Check: draft1")]


async def test_an_agent_remembers_its_final_answer_and_no_empty_messages() -> None:
    workflow = around(
        agent("work", max_turns=1, allow_empty=True),
        edges="loop -> work -> exit",
        max_iterations=3,
        memory="accumulate",
    )

    def answer(call: Call) -> Reply | str:
        return [wants(("finish", {"answer": "first"})), "", "third"][call.iteration]

    played = await play(workflow, answer)

    last = played.model.calls[-1]
    assert [text for role, text in conversation(last) if role == "assistant"] == ["first"]


async def test_a_restarted_loop_remembers_nothing() -> None:
    workflow = flow(
        entry(),
        loop("outer", max_iterations=2),
        loop("inner", max_iterations=2, memory="accumulate"),
        llm("draft"),
        leave("leave_inner", "inner"),
        leave("leave_outer", "outer"),
        result(),
        edges="text -> outer -> inner -> draft -> leave_inner -> leave_outer -> out",
    )

    played = await play(workflow, lambda call: call.path)

    assert [len(call.request.messages) for call in played.model.calls] == [1, 3, 1, 3]
