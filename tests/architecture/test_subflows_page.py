"""docs/subflows.md is correct: the outer workflow runs the inner one at the paths on the page."""

from __future__ import annotations

import json
from pathlib import Path

from engine import RunOptions, load, run_blocking, validate
from engine.document.subflows import refresh_subflows
from engine.events import AnyEvent, NodeCompleted
from tests.architecture.markdown import blocks, read

PAGE = "docs/subflows.md"


def test_the_example_runs_and_its_paths_match_the_page(tmp_path: Path):
    inner, outer = (block.text for block in blocks(PAGE) if block.language == "json")
    (tmp_path / "polish.loop.json").write_text(inner, encoding="utf-8")
    file = tmp_path / "write.loop.json"
    file.write_text(outer, encoding="utf-8")
    workflow, problems = refresh_subflows(load(file), file)
    assert (problems, validate(workflow)) == ([], [])
    rules = [{"node": "improve", "pattern": "in a plain tone: Tides", "reply": "Tides, better."}]
    replies = tmp_path / "replies.json"
    replies.write_text(json.dumps({"rules": rules, "default": "Tides."}), encoding="utf-8")

    events: list[AnyEvent] = []
    result = run_blocking(workflow, {"topic": "tides"}, RunOptions(model=f"scripted:{replies}"), on_event=events.append)

    assert result.outputs == {"answer": "Tides, better."}
    paths = [event.path for event in events if isinstance(event, NodeCompleted)]
    assert "polish.loop[2].improve" in paths
    assert "`polish.loop[2].improve`" in read(PAGE)
