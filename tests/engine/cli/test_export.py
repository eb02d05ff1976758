from __future__ import annotations

from pathlib import Path

import pytest

from engine import load
from engine.export.langgraph_module import export_langgraph
from tests.architecture.project import ROOT
from tests.engine.cli.kit import Program, process, refine, write


@pytest.mark.parametrize("to", ["python", "langgraph"])
def test_the_program_goes_to_standard_output_and_the_report_beside_it(program: Program, to: str):
    ended = program("export", "agentic-search", "--to", to)
    assert ended.code == 0
    compile(ended.out, "exported", "exec")
    assert all(line.startswith("Note: ") for line in ended.err.splitlines())
    assert ("search_files" in ended.err) == (to == "langgraph")


def test_the_program_goes_to_a_file(program: Program, tmp_path: Path):
    out = tmp_path / "exported.py"
    ended = program("export", "self-refine", "--to", "langgraph", "-o", out)
    assert (ended.code, ended.out) == (0, "")
    assert ended.err.endswith(f"Written to {out}.\n")
    assert out.read_text(encoding="utf-8") == export_langgraph(load(ROOT / "templates/self-refine.loop.json")).text


def test_program_and_report_are_an_object_too(program: Program):
    told = program("export", "self-refine", "--to", "python", "--json").json
    assert told["left_out"] == ["Where the nodes stand on the canvas is left out."]
    assert "from engine import Builder" in told["program"]


def test_a_document_with_errors_and_a_place_that_cannot_be_written_are_told(program: Program, tmp_path: Path):
    broken = refine()
    broken["edges"].pop()
    ended = program("export", write(tmp_path, broken), "--to", "python")
    assert (ended.code, ended.out) == (2, "")
    ended = program("export", "self-refine", "--to", "python", "-o", tmp_path / "none" / "x.py")
    assert (ended.code, "cannot be written" in ended.err) == (2, True)


def test_the_exported_script_runs_the_workflow(program: Program, tmp_path: Path):
    import os
    import subprocess
    import sys

    script = write(tmp_path, {"default": "Good."}, "script.json")
    out = tmp_path / "exported.py"
    assert program("export", write(tmp_path, refine(2)), "--to", "python", "-o", out).code == 0
    done = subprocess.run(
        [sys.executable, str(out), '{"task": "Rain"}'],
        env={**os.environ, "LOOPWRIGHT_MODEL": f"scripted:{script}"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "answer: Good.\n"), done.stderr


def test_a_target_that_is_none_is_told():
    done = process("export", "self-refine", "--to", "cobol")
    assert done.returncode == 2
    assert b"cobol" in done.stderr
