"""Consent before the first run of a workflow from elsewhere."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from engine import loads
from engine.cli.exit_codes import ExitCode
from engine.store.consent import approve, is_approved
from tests.engine.cli.kit import Program, document, drafts, refine, write
from tests.engine.cli.test_process import on_terminal, read_terminal
from tests.wording import mentions

ASKED = "not run here before"
REFUSED = "consent … nothing was run … --allow"


@pytest.fixture(autouse=True)
def nothing_approved(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.delenv("LOOPWRIGHT_MODEL", raising=False)
    file = tmp_path / "settings" / "approved.json"
    monkeypatch.setenv("LOOPWRIGHT_APPROVED", str(file))
    return file


def searching(path: str = "x", **node: Any) -> dict[str, Any]:
    return document(
        [
            {"id": "find", "type": "tool", "config": {"tool": "search_files", "arguments": {"query": path}}, **node},
            {"id": "answer", "type": "output"},
        ],
        ["find.output > answer.value"],
    )


def test_without_a_terminal_nothing_runs_and_the_resources_are_listed(program: Program, tmp_path: Path):
    ended = program("run", write(tmp_path, searching()))
    assert ended.code == ExitCode.REFUSED
    first, tool, last = ended.err.splitlines(keepends=True)
    assert ASKED in first
    assert tool.startswith("  Tool: search_files (")
    assert mentions(last, REFUSED)
    assert program("runs", "--json").json["count"] == 0


def test_consent_is_remembered_until_the_workflow_changes(program: Program, tmp_path: Path):
    file = write(tmp_path, searching())
    assert program("run", file, "--allow").code == 0
    assert program("run", file).code == 0
    moved = {**searching(), "layout": {"find": {"x": 1}}, "name": "Other", "description": "words"}
    assert program("run", write(tmp_path, moved, "moved.loop.json")).code == 0
    assert program("run", write(tmp_path, searching("y"), "other.loop.json")).code == ExitCode.REFUSED


def test_workflow_that_only_calls_models_needs_no_consent(program: Program, tmp_path: Path):
    script = write(tmp_path, drafts("One."), "script.json")
    assert program("run", write(tmp_path, refine(1)), "-m", f"scripted:{script}").code == 0


def test_template_with_tools_needs_no_consent(program: Program, tmp_path: Path):
    script = write(tmp_path, {"rules": [{"reply": "done"}]}, "script.json")
    ended = program("run", "agentic-search", "-m", f"scripted:{script}", "--json")
    assert (ended.code, ASKED in ended.err) == (0, False)
    on = program("runs", "fork", ended.json["run_id"], "--at", "answer", "--yes", "-m", f"scripted:{script}")
    assert on.code == 0, "a run of a template continues without a question, too"


def test_consent_lists_hosts_commands_and_subflows(program: Program, tmp_path: Path):
    write(tmp_path, searching(), "inner.loop.json")
    source = document(
        [
            {"id": "ask", "type": "llm", "config": {"prompt": "x", "api_base": "https://elsewhere.example:8000/v1"}},
            {
                "id": "get",
                "type": "tool",
                "config": {"tool": "http_get", "arguments": {"url": "http://other.example/x"}},
            },
            {"id": "code", "type": "tool", "config": {"tool": "python", "arguments": {"code": "print(1)\nprint(2)"}}},
            {"id": "part", "type": "subflow", "config": {"file": "inner.loop.json"}},
            {"id": "answer", "type": "output"},
        ],
        ["part.answer > answer.value"],
    )
    ended = program("run", write(tmp_path, source), "--allow-code")
    lines = ended.err.splitlines()
    assert ended.code == ExitCode.REFUSED
    assert "  Host: elsewhere.example" in lines
    assert "  Host: other.example" in lines
    start = lines.index("  Command: ")
    assert lines[start + 1 : start + 3] == ["    print(1)", "    print(2)"]
    assert "  Workflow: inner.loop.json" in lines
    assert [line.split()[1] for line in lines if line.startswith("  Tool:")] == ["http_get", "python", "search_files"]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (
            {"prices": {"openai/gpt-4o": {"input_usd_per_million": 0, "output_usd_per_million": 0.5}}},
            ["openai/gpt-4o costs $0 input and $0.50 output per million tokens"],
        ),
        ({"allow_unknown_price": True}, ["unknown price may be used"]),
        (
            {
                "prices": {
                    name: {"input_usd_per_million": 1e-9, "output_usd_per_million": 15} for name in ("a", "b\x1b[2J")
                },
                "allow_unknown_price": True,
            },
            ["a costs < $0.0001 input", "b\\x1b[2J costs < $0.0001 input", "models of unknown price"],
        ),
    ],
)
def test_prices_in_the_file_need_consent_because_budgets_use_them(
    program: Program, tmp_path: Path, settings: dict[str, Any], expected: list[str]
):
    script = write(tmp_path, drafts("One."), "script.json")
    file = write(tmp_path, {**refine(1), "settings": settings})
    arguments = ("run", file, "-m", f"scripted:{script}", "--budget-usd", 1)
    ended = program(*arguments)
    assert ended.code == ExitCode.REFUSED
    lines = [line for line in ended.err.splitlines() if line.startswith("  Prices in the file: ")]
    assert [text in line for text, line in zip(expected, lines, strict=True)] == [True] * len(expected)
    assert program(*arguments, "--allow").code == 0
    assert program(*arguments).code == 0


@pytest.mark.parametrize("settings", [{"allow_unknown_price": False}, {"prices": {}}, {"budget_usd": 2.0}])
def test_settings_without_a_price_need_no_consent(program: Program, tmp_path: Path, settings: dict[str, Any]):
    script = write(tmp_path, drafts("One."), "script.json")
    file = write(tmp_path, {**refine(1), "settings": settings})
    assert program("run", file, "-m", f"scripted:{script}").code == 0


def test_imported_run_needs_consent_before_it_resumes(program: Program, tmp_path: Path, nothing_approved: Path):
    file = write(tmp_path, searching())
    run_id = program("run", file, "--allow", "--json").json["run_id"]
    nothing_approved.unlink()
    ended = program("runs", "fork", run_id, "--at", "answer", "--yes")
    assert ended.code == ExitCode.REFUSED
    assert mentions(ended.err.splitlines()[-1], REFUSED), ended.err
    assert program("runs", "fork", run_id, "--at", "answer", "--yes", "--allow").code == 0


@pytest.mark.parametrize("content", ["", "{", "[]", '{"approved": 3}', '{"approved": [1, null]}', "[" * 100_000])
def test_damaged_consent_file_approves_nothing_and_is_replaced(
    program: Program, tmp_path: Path, nothing_approved: Path, content: str
):
    nothing_approved.parent.mkdir()
    nothing_approved.write_text(content, encoding="ascii")
    file = write(tmp_path, searching())
    assert program("run", file).code == ExitCode.REFUSED
    assert program("run", file, "--allow").code == 0
    assert program("run", file).code == 0


def test_approvals_at_the_same_moment_are_all_stored(nothing_approved: Path):
    workflows = [loads(json.dumps(searching(str(number)))) for number in range(40)]
    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(approve, workflows))
    assert all(map(is_approved, workflows))


@pytest.mark.skipif(os.name != "posix", reason="needs terminals")
def test_consent_is_asked_on_a_terminal(tmp_path: Path):
    file = str(write(tmp_path, searching()))
    with on_terminal("run", file) as (running, terminal):
        read_terminal(terminal, b"Do you trust")
        os.write(terminal, b"n\n")
        assert running.wait(30) == 130
    with on_terminal("run", file) as (running, terminal):
        read_terminal(terminal, b"Do you trust")
        os.write(terminal, b"y\n")
        read_terminal(terminal, b"Stored as ")
        assert running.wait(30) == 0
