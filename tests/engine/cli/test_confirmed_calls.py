"""Commands and hosts that a workflow from elsewhere creates during a run are shown for confirmation."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.engine.cli.kit import Program, document, write
from tests.wording import mentions

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the commands are for a POSIX shell")


@pytest.fixture(autouse=True)
def nothing_approved(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("LOOPWRIGHT_MODEL", raising=False)
    monkeypatch.setenv("LOOPWRIGHT_APPROVED", str(tmp_path / "approved.json"))


def running(command: str = "echo one", **config: Any) -> dict[str, Any]:
    """A shell tool whose command comes from an edge."""
    return document(
        [
            {"id": "task", "type": "input", "config": {"default": command}},
            {"id": "run_it", "type": "tool", "config": {"tool": "shell", **config}},
            {"id": "answer", "type": "output"},
        ],
        ["task.value > run_it.command", "run_it.output > answer.value"],
    )


def approved(file: Path) -> None:
    """Approve the document, but not calls that it creates during the run."""
    from engine.document.files import load
    from engine.store.consent import approve

    assert approve(load(file))


def test_consent_says_that_values_from_edges_are_unknown_until_the_run(program: Program, tmp_path: Path):
    ended = program("run", write(tmp_path, running()), "--allow-code")

    assert ended.code == 2
    asked = [line for line in ended.err.splitlines() if "asked for then: " in line]
    assert [line.partition("then: ")[2] for line in asked] == ["the command of “Tool” (shell)"]


def test_command_is_shown_for_confirmation_when_it_is_known(program: Program, tmp_path: Path):
    command = "echo one\necho two"
    file = write(tmp_path, running(command))
    approved(file)

    waiting = program("run", file, "--allow-code", "--json")

    assert (waiting.code, waiting.json["status"]) == (3, "waiting")
    assert "command:\n    echo one\n    echo two\n" in waiting.err
    run_id = waiting.json["run_id"]
    ended = program("runs", "answer", run_id, "--approve", "--allow-code", "--json")
    assert ended.json["outputs"]["answer"]["stdout"] == "one\ntwo\n"


def test_rejected_command_does_not_run(program: Program, tmp_path: Path):
    file = write(tmp_path, running(f"touch {tmp_path / 'made'}"))
    approved(file)
    run_id = program("run", file, "--allow-code", "--json").json["run_id"]

    ended = program("runs", "answer", run_id, "--reject", "--comment", "No.", "--allow-code", "--json")

    assert ended.code == 1
    assert mentions(ended.err, "refused … No."), ended.err
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("command", ["resume", "fork", "fork of a fork"])
def test_calls_of_an_imported_run_need_confirmation_despite_trust(program: Program, tmp_path: Path, command: str):
    file = write(tmp_path, running())
    ran = program("run", file, "--allow", "--allow-code", "--folder", tmp_path, "--json").json["run_id"]
    exported = json.loads(program("runs", "export", ran, "--to", "json").out)
    made = tmp_path / "made"
    events = [event for event in exported["events"] if event["path"] in {"", "task"}][:-1]
    exported["events"] = json.loads(json.dumps(events).replace("echo one", f"touch {made}"))
    foreign = write(tmp_path, exported, "foreign.json")
    run_id = program("runs", "import", foreign).out.split()[2]

    at = ("--at", "run_it", "--yes")
    if command == "fork of a fork":
        run_id = program("runs", "fork", run_id, *at, "--allow-code", "--json").json["run_id"]
    goes_on = ("resume", run_id) if command == "resume" else ("fork", run_id, *at)
    waiting = program("runs", *goes_on, "--allow-code", "--json")

    assert (waiting.code, waiting.json["status"]) == (3, "waiting"), waiting.err
    assert waiting.json["waiting"]["run_it"]["value"] == {"command": f"touch {made}"}
    assert not made.exists()


@pytest.mark.parametrize("options", [("--allow",), ()])
def test_allow_disables_confirmation_now_and_later(program: Program, tmp_path: Path, options: tuple[str, ...]):
    file = write(tmp_path, running())
    if not options:
        program("run", file, "--allow-code", "--allow")

    ended = program("run", file, "--allow-code", *options, "--json")

    assert ended.json["outputs"]["answer"]["stdout"] == "one\n"


def test_command_in_the_document_needs_consent_only_before_the_run(program: Program, tmp_path: Path):
    nodes = [
        {"id": "run_it", "type": "tool", "config": {"tool": "shell", "arguments": {"command": "echo one"}}},
        {"id": "answer", "type": "output"},
    ]
    file = write(tmp_path, document(nodes, ["run_it.output > answer.value"]))
    approved(file)

    assert program("run", file, "--allow-code", "--json").json["outputs"]["answer"]["stdout"] == "one\n"


def test_command_input_from_an_edge_needs_confirmation(program: Program, tmp_path: Path):
    source = running("echo from input")
    source["nodes"][1]["config"]["arguments"] = {"command": "sh"}
    source["edges"][0]["to"] = "run_it.input"
    file = write(tmp_path, source)
    approved(file)

    waiting = program("run", file, "--allow-code", "--json")

    assert waiting.json["status"] == "waiting"
    assert waiting.json["waiting"]["run_it"]["value"] == {"command": "sh", "input": "echo from input"}


def test_command_of_an_agent_needs_confirmation(program: Program, tmp_path: Path):
    nodes = [
        {"id": "task", "type": "input", "config": {"default": "Go."}},
        {"id": "worker", "type": "agent", "config": {"prompt": "{{input}}", "tools": ["shell"]}},
        {"id": "answer", "type": "output"},
    ]
    file = write(tmp_path, document(nodes, ["task.value > worker.input", "worker.output > answer.value"]))
    call = {"tool_calls": [{"name": "shell", "arguments": {"command": "echo one"}}]}
    script = write(tmp_path, {"rules": [{"replies": [call, {"text": "Done."}]}]}, "script.json")
    asked = program("run", file, "--allow-code", "-m", f"scripted:{script}")
    assert mentions(asked.err, "asked for then: … calls of shell … “Agent”"), asked.err
    approved(file)

    waiting = program("run", file, "--allow-code", "-m", f"scripted:{script}", "--json").json

    assert waiting["waiting"]["worker"]["value"] == {"command": "echo one"}


@pytest.mark.parametrize(
    "node",
    [
        {"id": "ask", "type": "llm", "config": {"prompt": "x", "model": "recorded:ab12"}},
        {"id": "ask", "type": "llm", "config": {"prompt": "x", "fallback_models": ["recorded:ab12"]}},
        {"id": "ask", "type": "agent", "config": {"prompt": "x", "model": "recorded:ab12"}},
        {"id": "ask", "type": "llm", "config": {"prompt": "x", "fallback_models": ["openai/x", "scripted:x.json"]}},
        {"id": "ask", "type": "llm", "config": {"prompt": "x", "model": "scripted:../diary.json"}},
        {"id": "ask", "type": "llm", "config": {"prompt": "x"}},
    ],
)
def test_model_that_reads_history_or_files_needs_consent(program: Program, tmp_path: Path, node: dict[str, Any]):
    task = {"id": "task", "type": "input", "config": {"default": "x"}}
    nodes = [task, node, {"id": "answer", "type": "output"}]
    source = document(nodes, ["task.value > ask.input", "task.value > answer.value"])
    if not {"model", "fallback_models", "judge"} & set(node["config"]):
        source["settings"] = {"model": "recorded:ab12"}

    ended = program("run", write(tmp_path, source), "-m", "embedded:smollm2-135m")

    assert "history or files: " in ended.err
    assert program("runs", "--json").json["count"] == 0


@pytest.mark.parametrize("hidden", ["\x1b[2K", "\u202e", "\u200b", "\r", "\x9b", "\u2028"])
def test_command_is_shown_in_full_with_hidden_characters_escaped(program: Program, tmp_path: Path, hidden: str):
    lines = ["echo " + "x" * 500, f"rm{hidden} -rf y", "Tool: nothing else"]
    nodes = [
        {"id": "run_it", "type": "tool", "config": {"tool": "shell", "arguments": {"command": "\n".join(lines)}}},
        {"id": "answer", "type": "output"},
    ]
    ended = program("run", write(tmp_path, document(nodes, ["run_it.output > answer.value"])), "--allow-code")

    written = ended.err.split("\n")
    start = written.index("  Command: ") + 1
    escaped = hidden.encode("unicode_escape").decode("ascii")
    expected = [lines[0], f"rm{escaped[:4]}", lines[2]]
    matches = [line.startswith(f"    {one}") for line, one in zip(written[start:], expected, strict=False)]
    assert matches == [True] * 3
    assert hidden not in ended.err
