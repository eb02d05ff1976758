"""Runs are listed by the turn strategy of their agents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.engine.cli.kit import Program, document, drafts, write


def agent(**config: Any) -> dict[str, Any]:
    nodes = [
        {"id": "task", "type": "input", "config": {"default": "Explain tides."}},
        {"id": "think", "type": "agent", "config": {"prompt": "{{input}}", **config}},
        {"id": "answer", "type": "output"},
    ]
    return document(nodes, ["task.value > think.input", "think.output > answer.value"])


def test_runs_are_listed_by_the_turn_strategy_of_their_agents(program: Program, tmp_path: Path):
    script = write(tmp_path, drafts("One.", "Two."), "script.json")
    run_ids = {
        strategy: program(
            "run", write(tmp_path, agent(turn_strategy=strategy)), "-m", f"scripted:{script}", "--json"
        ).json["run_id"]
        for strategy in ("tool_calling", "single_call")
    }
    for strategy, run_id in run_ids.items():
        listed = program("runs", "--strategy", strategy, "--json").json["runs"]
        assert [run["run_id"] for run in listed] == [run_id]
    assert program("runs", "--strategy", "debate", "--json").json["runs"] == []
