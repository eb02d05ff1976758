from __future__ import annotations

import codecs
import csv
import json
import os
import signal
import subprocess
from pathlib import Path

import pytest
import xlsxwriter

from engine import BatchResult, read_table
from engine.batch.rows import RowResult, summarize
from engine.cli.batch_command import BatchView
from engine.errors import Fix
from tests.engine.cli.kit import Program, echo, refine, write
from tests.engine.cli.test_process import FOR_EVER, started, wait_for
from tests.wording import mentions


def table(folder: Path, *rows: str) -> Path:
    file = folder / "t.csv"
    file.write_text("task\n" + "".join(f"{row}\n" for row in rows), encoding="utf-8")
    return file


def scripted(folder: Path, content: object) -> str:
    return f"scripted:{write(folder, content, 'script.json')}"


def results(file: Path) -> list[dict[str, str]]:
    with file.open(newline="", encoding="utf-8-sig") as lines:
        return list(csv.DictReader(lines))


@pytest.mark.parametrize(
    ("fix", "option"),
    [
        (Fix.REPEAT_CALLS, "--retry-in-flight"),
        (Fix.ALLOW_CODE, "--allow-code"),
        (Fix.RAISE_BUDGET.of("loop"), "--row-budget-usd"),
        (Fix.RAISE_BUDGET.of("budget_usd"), " --budget-usd"),
        ("", ""),
    ],
)
def test_a_failed_row_names_the_option_that_helps(fix: str, option: str, capsys: pytest.CaptureFixture[str]):
    rows = (RowResult(1, "key", "run", "failed", error="It failed.", fix=fix),)
    result = BatchResult("batch", rows, summarize(rows, 1))
    assert BatchView(1, is_quiet=True).finish(result, None, as_json=False, stopped_code=None) == 1
    (line,) = (line for line in capsys.readouterr().err.splitlines() if "It failed." in line)
    assert option in line
    assert ("--" in line) is bool(option)


def test_a_row_that_lacks_a_permission_says_which_and_pinned_nodes_are_named(program: Program, tmp_path: Path):
    document = {
        "format": "loopwright.workflow",
        "version": 2,
        "nodes": [
            {"id": "task", "type": "input", "config": {}},
            {"id": "kept", "type": "transform", "config": {}, "pinned": {"output": "a.txt"}},
            {"id": "read", "type": "tool", "config": {"tool": "read_file"}},
            {"id": "answer", "type": "output", "config": {}},
        ],
        "edges": [
            {"from": "task.value", "to": "kept.input"},
            {"from": "kept.output", "to": "read.path"},
            {"from": "read.output", "to": "answer.value"},
        ],
    }
    ended = program("batch", write(tmp_path, document), table(tmp_path, "a"), "--no-store", "--allow")
    lines = ended.err.splitlines()
    assert [line for line in lines if "pinned" in line and "kept" in line]
    assert [line for line in lines if line.startswith("Row 1 failed") and "--folder" in line]


def test_each_row_is_a_run_with_its_figures(program: Program, tmp_path: Path):
    model = scripted(tmp_path, {"default": "Good.", "price": {"input_usd_per_million_tokens": 0,
                                                              "output_usd_per_million_tokens": 1e6}})  # fmt: skip
    ended = program(
        "batch", write(tmp_path, refine(2)), table(tmp_path, "a", "b"), "-o", tmp_path / "out.csv", "-m", model
    )
    assert ended.code == 0
    assert "2 of 2 rows completed." in ended.out
    assert "iterations  rows  mean score  mean cost  exit reasons" in ended.out
    assert "max_iterations 2" in ended.out
    assert sorted(line.split(",")[0] for line in ended.err.splitlines()) == ["row 1: completed", "row 2: completed"]
    rows = results(tmp_path / "out.csv")
    assert [(row["row"], row["input.task"], row["output.answer"], row["iterations"]) for row in rows] == [
        ("1", "a", "Good.", "2"),
        ("2", "b", "Good.", "2"),
    ]
    assert float(rows[0]["cost_usd"]) > 0
    assert program("runs", "show", rows[0]["run_id"]).code == 0


def test_summary_as_json(program: Program, tmp_path: Path):
    model = scripted(tmp_path, {"default": "Good."})
    arguments = ("batch", write(tmp_path, refine(2)), table(tmp_path, "a", "b"), "-m", model, "--json")
    ended = program(*arguments)
    assert (ended.code, ended.err) == (0, "")
    summary = ended.json["summary"]
    assert (summary["rows"], summary["completed"], summary["reused"], summary["cost_usd"]) == (2, 2, 0, 0.0)
    assert summary["by_iterations"][0]["exit_reasons"] == {"max_iterations": 2}
    assert program(*arguments).json["summary"]["reused"] == 2


def test_failed_rows_are_reported(program: Program, tmp_path: Path):
    error = {"error": {"kind": "authentication", "message": "The key is wrong."}}
    model = scripted(tmp_path, {"rules": [{"pattern": "bad", "reply": error}], "default": "Good."})
    ended = program("batch", write(tmp_path, refine(1)), table(tmp_path, "good", "bad"), "-m", model, "--no-store")
    assert ended.code == 1
    assert "1 of 2 rows completed, 1 failed." in ended.out
    assert "Row 2 failed: " in ended.err
    assert "The key is wrong." in ended.err


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--column", "job=task"), 'no input "job"'),
        (("--column", "nonsense"), '"--column nonsense" is malformed.'),
        (("--executor", "spark"), 'The executor "spark" is unknown.'),
        (("-m", "scripted:none.json"), "none.json"),
    ],
)
def test_wrong_usage_is_one_sentence(program: Program, tmp_path: Path, arguments: tuple[str, ...], expected: str):
    ended = program("batch", write(tmp_path, refine(1)), table(tmp_path, "a"), "--no-store", *arguments)
    assert (ended.code, ended.out) == (2, "")
    assert expected in ended.err
    assert len(ended.err.splitlines()) == 1


def test_wrong_columns_are_one_sentence(program: Program, tmp_path: Path):
    ended = program("batch", write(tmp_path, echo()), table(tmp_path, "a"), "--no-store")
    assert (ended.code, ended.out) == (2, "")
    assert mentions(ended.err, 't.csv: … no column … "value" … : task.\n'), ended.err
    ended = program("batch", write(tmp_path, echo()), table(tmp_path, "a"), "--no-store", "--column", "value=task")
    assert (ended.code, ended.err.startswith("row 1: completed")) == (0, True)


def test_workbook_is_read_and_written_with_extra_columns(program: Program, tmp_path: Path):
    book = xlsxwriter.Workbook(str(tmp_path / "t.xlsx"))
    book.add_worksheet("Notes").write_column(0, 0, ["About", "Nothing here."])
    page = book.add_worksheet("Tasks")
    for place, line in enumerate([["id", "task", "score"], [7, "Größe 日本", "high"], [], [8, "second", "low"]]):
        page.write_row(place, 0, line)
    book.close()
    model = scripted(tmp_path, {"default": "=1+1"})
    arguments = ("batch", write(tmp_path, refine(1)), tmp_path / "t.xlsx", "-o", tmp_path / "out.xlsx", "-m", model)
    ended = program(*arguments, "--sheet", "nothing")
    assert (ended.code, 'no sheet "nothing"' in ended.err, '"Tasks"' in ended.err) == (2, True, True)
    ended = program(*arguments, "--sheet", "tasks")
    assert ended.code == 0, ended.err
    assert 'Read the sheet "Tasks"' in ended.err
    rows = read_table(tmp_path / "out.xlsx").rows
    assert [(row["id"], row["input.task"], row["table.score"], row["output.answer"]) for row in rows] == [
        (7, "Größe 日本", "high", "=1+1"),
        (8, "second", "low", "=1+1"),
    ]
    again = program(*arguments, "--sheet", "Tasks", "--json")
    assert again.json["summary"]["reused"] == 2
    assert read_table(tmp_path / "out.xlsx").rows == rows


def test_invalid_row_fails_and_the_others_run(program: Program, tmp_path: Path):
    document = echo()
    document["nodes"][0]["config"]["type"] = "number"
    file = tmp_path / "t.csv"
    file.write_bytes("größe;value\nä;1\n;\nö;many\nü;3\n".encode("cp1252"))
    out = tmp_path / "out.csv"
    ended = program("batch", write(tmp_path, document), file, "-o", out, "--no-store")
    assert (ended.code, "2 of 3 rows completed, 1 failed." in ended.out) == (1, True)
    assert "t.csv: Read as Windows-1252." in ended.err
    assert 'Row 2 failed: t.csv, line 4, column "value"' in ended.err
    assert out.read_bytes().startswith(codecs.BOM_UTF8)
    assert [(row["größe"], row["status"]) for row in results(out)] == [
        ("ä", "completed"),
        ("ö", "failed"),
        ("ü", "completed"),
    ]
    file.write_text("größe;value\nä;1\n;\nö;2\nü;3\n", encoding="utf-8")
    ended = program("batch", write(tmp_path, document), file, "-o", out, "--no-store", "--no-extra-columns", "--json")
    assert (ended.code, ended.json["summary"]["reused"]) == (0, 2)
    assert [row["status"] for row in results(out)] == ["completed"] * 3
    assert "größe" not in results(out)[0]
    ended = program("batch", write(tmp_path, document), file, "--no-store", "--encoding", "cp1251", "--ignore-others")
    assert (ended.code, "Windows-1251" in ended.err) == (0, True)


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals")
@pytest.mark.parametrize(
    ("how", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -signal.SIGKILL)]
)
def test_the_same_command_resumes_an_interrupted_batch(
    program: Program, tmp_path: Path, how: signal.Signals, code: int
):
    stuck = {"pattern": "stuck", "reply": {"text": "never", "delay_s": FOR_EVER}}
    model = scripted(tmp_path, {"rules": [stuck], "default": "Good."})
    out = tmp_path / "out.csv"
    rows = table(tmp_path, "easy", "stuck", "last")
    arguments = ("batch", str(write(tmp_path, refine(1))), str(rows), "-o", str(out), "-m", model, "--concurrency", "1")
    with started(*arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0) as running:
        wait_for(running.stderr, b"row 1: completed")
        running.send_signal(how)
        _, err = running.communicate(timeout=30)
    assert running.returncode == code
    assert (b"Stopped. To continue, run the same command again." in err) == (how is not signal.SIGKILL)
    listed = json.loads(program("runs", "--json").out)["runs"]
    assert {run["status"] for run in listed} <= {"completed", "interrupted" if how is signal.SIGKILL else "cancelled"}
    assert [row["input.task"] for row in results(out)] == ["easy"]
    first = results(out)[0]
    write(tmp_path, {"default": "Good."}, "script.json")
    ended = program(*arguments, "--json")
    assert ended.code == 0, ended.err
    assert (ended.json["summary"]["completed"], ended.json["summary"]["reused"]) == (3, 1)
    assert [row["input.task"] for row in results(out)] == ["easy", "stuck", "last"]
    assert results(out)[0] == first
    listed = json.loads(program("runs", "--json").out)["runs"]
    assert sorted(run["run_id"] for run in listed) == sorted(row["run_id"] for row in results(out))


def test_batch_stops_at_its_budget_and_resumes_with_a_higher_one(program: Program, tmp_path: Path):
    price = {"input_usd_per_million_tokens": 0, "output_usd_per_million_tokens": 1e6}
    model = scripted(tmp_path, {"default": "Good.", "price": price})
    rows = table(tmp_path, *"abcd")
    document = refine(1)
    for node in document["nodes"]:
        node["config"] |= {"max_tokens": 2} if node["type"] == "llm" else {}
    arguments = ("batch", write(tmp_path, document), rows, "-m", model, "--concurrency", 1, "--json", "--budget-usd")
    cost = program(*arguments, 1000, "--name", "first").json["summary"]["cost_usd"] / 4
    ended = program(*arguments, cost * 1.5)
    assert (ended.code, ended.json["summary"]["is_budget_spent"]) == (1, True)
    assert ended.json["summary"]["cost_usd"] == pytest.approx(cost)
    done = ended.json["summary"]["completed"]
    refused, spent = ended.err.splitlines()
    assert mentions(refused, f"Row {done + 1} failed: … budget of the batch is too small"), refused
    assert mentions(spent, f"used up: {4 - done - 1} rows … not started"), spent
    again = program(*arguments, cost * 9)
    assert (again.code, again.json["summary"]["completed"]) == (0, 4)
    assert again.json["summary"]["reused"] == done
