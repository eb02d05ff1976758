"""docs/agents.md is correct: its examples, ports and limits."""

from __future__ import annotations

import json
import re

from engine.nodes.agent import MAX_CALLS_PER_TURN, SPEC
from engine.nodes.agent_tools import MAX_TURNS, AgentConfig, tool_choices
from tests.architecture.markdown import blocks, read
from tests.architecture.project import in_a_new_process

PAGE = "docs/agents.md"


def test_the_examples_are_valid_settings():
    for block in blocks(PAGE):
        if block.language == "json":
            node = json.loads(block.text)
            if node["type"] == "agent":
                assert list(SPEC.problems(AgentConfig.model_validate(node["config"]))) == []
                assert set(node["config"]["tools"]) <= set(tool_choices())


def test_the_python_examples_print_what_the_page_says():
    (code,) = [block.text for block in blocks(PAGE) if block.language == "python"]
    (printed,) = [block.text for block in blocks(PAGE) if block.language == "text"]

    assert in_a_new_process(code) == printed


def test_ports_and_limits_match_the_program():
    text = read(PAGE)

    assert re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE) == [port.name for port in SPEC.outputs(AgentConfig())]
    assert f"({AgentConfig().max_turns} by default, {MAX_TURNS} at most)" in " ".join(text.split())
    assert f"at most {MAX_CALLS_PER_TURN} calls are made" in text
