from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from engine import load
from engine.export.langgraph_module import export_langgraph
from tests.architecture.project import ROOT
from tests.engine.cli.kit import Program, document, process, refine, write
from tests.wording import mentions


@pytest.mark.parametrize("to", ["python", "langgraph"])
def test_program_goes_to_standard_output_and_report_to_standard_error(program: Program, to: str):
    ended = program("export", "agentic-search", "--to", to)
    assert ended.code == 0
    compile(ended.out, "exported", "exec")
    assert all(line.startswith("Note: ") for line in ended.err.splitlines())
    assert ("search_files" in ended.err) == (to == "langgraph")


def test_program_is_written_to_a_file(program: Program, tmp_path: Path):
    out = tmp_path / "exported.py"
    ended = program("export", "self-refine", "--to", "langgraph", "-o", out)
    assert (ended.code, ended.out) == (0, "")
    assert ended.err.endswith(f"Written to {out}.\n")
    assert out.read_text(encoding="utf-8") == export_langgraph(load(ROOT / "templates/self-refine.loop.json")).text


def test_program_and_report_as_json(program: Program):
    exported = program("export", "self-refine", "--to", "python", "--json").json
    assert [mentions(item, "positions … left out") for item in exported["left_out"]] == [True]
    assert "from loopwright import Builder" in exported["program"]


def test_invalid_document_and_unwritable_file_are_reported(program: Program, tmp_path: Path):
    broken = refine()
    broken["edges"].pop()
    ended = program("export", write(tmp_path, broken), "--to", "python")
    assert (ended.code, ended.out) == (2, "")
    ended = program("export", "self-refine", "--to", "python", "-o", tmp_path / "none" / "x.py")
    assert (ended.code, "cannot be written" in ended.err) == (2, True)


def test_the_exported_script_runs_the_workflow(program: Program, tmp_path: Path):
    out = tmp_path / "exported.py"
    assert program("export", write(tmp_path, refine(2)), "--to", "python", "-o", out).code == 0
    done = exported(out, {"default": "Good."})
    assert (done.returncode, done.stdout) == (0, "answer: Good.\n"), done.stderr
    refused: Any = {"error": {"kind": "authentication", "message": "The key is wrong."}}
    done = exported(out, {"default": refused})
    assert (done.returncode, done.stdout) == (1, "")
    assert "The key is wrong." in done.stderr
    assert "Traceback" not in done.stderr


def exported(file: Path, script: Any) -> subprocess.CompletedProcess[str]:
    """Run the script in a separate process with a scripted model."""
    replies = write(file.parent, script, "script.json")
    return subprocess.run(
        [sys.executable, str(file), '{"task": "Rain"}'],
        env={**os.environ, "LOOPWRIGHT_MODEL": f"scripted:{replies}"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def uses(*tools: str, **top: Any) -> dict[str, Any]:
    """A workflow that calls tools one after another with its input."""
    nodes = [{"id": "task", "type": "input", "config": {"default": "x"}}, {"id": "answer", "type": "output"}]
    calls = [{"id": f"call_{number}", "type": "tool", "config": {"tool": name}} for number, name in enumerate(tools)]
    ports = {"python": "code", "shell": "command", "read_file": "path", "http_get": "url", "search_files": "query"}
    places = [f"call_{number}.{ports[name]}" for number, name in enumerate(tools)]
    sources = ["task.value", *(f"call_{number}.output" for number in range(len(tools)))]
    edges = [f"{source} > {target}" for source, target in zip(sources, [*places, "answer.value"], strict=True)]
    return document([*nodes, *calls], edges, **top)


@pytest.mark.parametrize(
    ("tools", "offered", "needed"),
    [
        ("", "", ""),
        ("python", "--folder --allow-code", "--allow-code"),
        ("shell read_file", "--folder --allow-code", "--folder --allow-code"),
        ("search_files", "--folder", "--folder"),
        ("http_get", "--allow-private-addresses", ""),
    ],
)
def test_script_has_options_for_the_permissions_it_needs(
    program: Program, tmp_path: Path, tools: str, offered: str, needed: str
):
    out = tmp_path / "exported.py"
    assert program("export", write(tmp_path, uses(*tools.split())), "--to", "python", "-o", out).code == 0
    helped = subprocess.run([sys.executable, str(out), "--help"], capture_output=True, text=True, check=False)
    options = {word.strip("[],") for word in helped.stdout.split() if word.strip("[]").startswith("--")}
    assert (helped.returncode, options - {"--help"}) == (0, set(offered.split()))
    if not needed:
        return
    done = subprocess.run([sys.executable, str(out)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)
    assert {word for word in done.stderr.split() if word.startswith("--")} == set(needed.split())


def test_script_runs_code_in_its_folder_if_allowed(program: Program, tmp_path: Path):
    out, folder = tmp_path / "exported.py", tmp_path / "folder"
    folder.mkdir()
    (folder / "a.txt").write_text("Rain.")
    assert program("export", write(tmp_path, uses("python")), "--to", "python", "-o", out).code == 0
    command = [sys.executable, str(out), json.dumps({"task": "print(open('a.txt').read())"}), "--allow-code"]
    done = subprocess.run([*command, "--folder", str(folder)], capture_output=True, text=True, check=False)
    assert (done.returncode, "Rain." in done.stdout) == (0, True), done.stderr
    done = subprocess.run([*command, "--folder", str(folder / "none")], capture_output=True, text=True, check=False)
    assert (done.returncode, "no such folder" in done.stderr) == (2, True)
    for inputs in ('{"nonsense": 1}', "[1]", "{"):
        done = subprocess.run([sys.executable, str(out), inputs, "--allow-code"], capture_output=True, check=False)
        assert (done.returncode, b"Traceback" in done.stderr) == (2, False)


def test_permissions_come_from_all_enabled_parts(program: Program, tmp_path: Path):
    inner = write(tmp_path, uses("shell"), "inner.loop.json")
    nodes = [
        {"id": "task", "type": "input"},
        {"id": "part", "type": "subflow", "config": {"file": inner.name}},
        {"id": "off", "type": "tool", "enabled": False, "config": {"tool": "read_file"}},
        {"id": "answer", "type": "output"},
    ]
    edges = ["task.value > part.task", "part.answer > answer.value", "task.value > off.path"]
    whole = document(nodes, edges, settings={"budget_usd": 1.0})
    text = program("export", write(tmp_path, whole), "--to", "python").out
    needed = text[text.index("needed = (") : text.index("missing = [")]
    assert ("--allow-code" in needed, "--folder" in needed) == (True, False)
    assert "--allow-unknown-price" in text


def test_script_of_a_workflow_with_questions_reports_that_it_cannot_ask(program: Program, tmp_path: Path):
    asks = document(
        [{"id": "task", "type": "input"}, {"id": "check", "type": "approval"}, {"id": "answer", "type": "output"}],
        ["task.value > check.input", "check.approved > answer.value"],
    )
    (sentence, *_) = program("export", write(tmp_path, asks), "--to", "python", "--json").json["left_out"]
    assert mentions(sentence, 'Nobody answers … "check"'), sentence


def test_unknown_target_is_reported():
    done = process("export", "self-refine", "--to", "cobol")
    assert done.returncode == 2
    assert b"cobol" in done.stderr
