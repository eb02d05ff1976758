"""docs/people.md is correct: its workflow asks, a rejection becomes feedback, an approval ends the loop."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

from engine import RunOptions, loads, start, validate
from engine.events import NodeWaiting
from engine.nodes.approval import SPEC, ApprovalConfig
from engine.nodes.context import Answer
from engine.runner.human_input import POLL_INTERVAL_S
from tests.architecture.markdown import blocks, read

PAGE = "docs/people.md"


def _example() -> str:
    (block,) = [block for block in blocks(PAGE) if block.language == "json"]
    return block.text


async def test_the_example_drafts_until_a_person_approves(tmp_path: Path):
    workflow = loads(_example())
    assert validate(workflow) == []
    rules = [{"node": "draft", "iteration": 1, "pattern": "A reader says: Shorter.", "reply": "Tides rise."}]
    replies = tmp_path / "replies.json"
    replies.write_text(json.dumps({"rules": rules, "default": "Tides rise and fall."}), encoding="utf-8")
    answers = [Answer("reject", comment="Shorter."), Answer("approve", "Tides rise!")]

    run = start(workflow, {"task": "tides"}, RunOptions(model=f"scripted:{replies}"))
    asked: list[tuple[str, str, object]] = []
    async for event in run.events():
        if isinstance(event, NodeWaiting):
            asked.append((event.path, event.message, event.value))
            run.answer(event.path, answers[len(asked) - 1])
    result = await asyncio.wait_for(run.result(), 30)

    assert asked == [
        ("loop[0].check", "Draft 1: may it go out?", "Tides rise and fall."),
        ("loop[1].check", "Draft 2: may it go out?", "Tides rise."),
    ]
    assert result.outputs == {"answer": "Tides rise!"}
    assert result.loops["loop"].exit_reason == "until"


def test_ports_and_settings_match_the_program():
    text = read(PAGE)
    named = set(re.findall(r"`(\w+)`", text))
    assert {port.name for port in SPEC.outputs(ApprovalConfig())} <= named
    assert {"answer_within_s", "when_unanswered"} <= named
    assert {"fail", "approve", "reject"} <= named
    assert POLL_INTERVAL_S <= 1, "the page says that an answer is taken within a second"
