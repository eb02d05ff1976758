"""Questions of a run on the command line: suspended and answered later, or answered at once."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.engine.cli.kit import Program, document, drafts, write
from tests.engine.cli.test_process import on_terminal, read_terminal
from tests.wording import mentions


@pytest.fixture(autouse=True)
def no_model_of_the_users_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LOOPWRIGHT_MODEL", raising=False)


def checked(*, second: bool = False) -> dict[str, Any]:
    """draft -> check -> answer; with `second`, two checks in parallel."""
    nodes: list[dict[str, Any]] = [
        {"id": "task", "type": "input", "config": {"default": "Explain tides."}},
        {"id": "draft", "type": "llm", "config": {"prompt": "{{input}}"}},
        {"id": "check", "type": "approval", "config": {"message": "May it go out?"}},
        {"id": "answer", "type": "output"},
        {"id": "refused", "type": "output"},
    ]
    edges = [
        "task.value > draft.input",
        "draft.output > check.input",
        "check.approved > answer.value",
        "check.comment > refused.value",
    ]
    if second:
        nodes += [{"id": "other", "type": "approval"}, {"id": "more", "type": "output"}]
        edges += ["task.value > other.input", "other.approved > more.value"]
    return document(nodes, edges)


def start_waiting_run(program: Program, folder: Path, **more: Any) -> str:
    """Start a run that waits for an answer, and return its id."""
    ended = program("run", write(folder, checked(**more)), "-m", script(folder, "One."), "--json")
    assert (ended.code, ended.json["status"]) == (3, "waiting")
    return ended.json["run_id"]


def script(folder: Path, *texts: str) -> str:
    return f"scripted:{write(folder, drafts(*texts), 'script.json')}"


def status(program: Program, run_id: str) -> str:
    return next(run["status"] for run in program("runs", "--json").json["runs"] if run["run_id"] == run_id)


def test_without_a_terminal_a_run_waits_and_says_how_to_answer(program: Program, tmp_path: Path):
    ended = program("run", write(tmp_path, checked()), "-m", script(tmp_path, "One."))
    (run_id,) = [run["run_id"] for run in program("runs", "--json").json["runs"]]
    assert ended.code == 3
    assert ended.err.splitlines() == [
        "check asks: May it go out?",
        "One.",
        f"Answer with: loopwright runs answer {run_id} --approve or --reject",
        f"The run {run_id} waits for an answer; nothing is lost.",
    ]
    assert "check: waits for an answer: May it go out?" in ended.out.splitlines()
    assert status(program, run_id) == "waiting"


def test_answer_resumes_the_run_without_repeating_calls(program: Program, tmp_path: Path):
    run_id = start_waiting_run(program, tmp_path)
    ended = program(
        "runs", "answer", run_id[:6], "--approve", "--comment", "Good.", "-m", script(tmp_path, "Never."), "--json"
    )
    assert ended.code == 0
    assert ended.json["outputs"] == {"answer": "One.", "refused": "Good."}
    assert status(program, run_id) == "completed"
    again = program("runs", "answer", run_id, "--approve")
    assert again.code == 2
    assert mentions(again.err, f"{run_id} is not waiting … 'loopwright runs show {run_id}'"), again.err


def test_answer_uses_the_given_model(program: Program, tmp_path: Path):
    nodes = [*checked()["nodes"], {"id": "polish", "type": "llm", "config": {"prompt": "{{input}}"}}]
    nodes.append({"id": "polished", "type": "output"})
    pairs = [(edge["from"], edge["to"]) for edge in checked()["edges"]]
    edges = [f"{source} > {target}" for source, target in pairs]
    source = document(nodes, [*edges, "check.approved > polish.input", "polish.output > polished.value"])
    first = program("run", write(tmp_path, source), "-m", script(tmp_path, "One."), "--json")
    other = write(tmp_path, {"default": {"text": "Polished."}}, "other.json")
    ended = program("runs", "answer", first.json["run_id"], "--approve", "-m", f"scripted:{other}", "--json")
    assert (ended.code, ended.json["outputs"]["polished"]) == (0, "Polished.")


def test_answer_can_replace_the_value_from_a_file(program: Program, tmp_path: Path):
    run_id = start_waiting_run(program, tmp_path)
    (tmp_path / "better.txt").write_text("Better.", encoding="utf-8")
    options = ("--approve", "--value", f"@{tmp_path / 'better.txt'}", "--json")
    assert program("runs", "answer", run_id, *options).json["outputs"]["answer"] == "Better."


def test_with_several_questions_the_node_option_is_required(program: Program, tmp_path: Path):
    run_id = start_waiting_run(program, tmp_path, second=True)
    asked = program("runs", "answer", run_id, "--approve")
    assert asked.code == 2
    assert mentions(asked.err, f"{run_id} … 2 answers: other, check. … --node: 'loopwright runs show {run_id}'"), (
        asked.err
    )
    wrong = program("runs", "answer", run_id, "--node", "draft", "--approve")
    assert wrong.code == 2
    assert mentions(wrong.err, 'no question at "draft" … : other, check.'), wrong.err
    first = program("runs", "answer", run_id, "--node", "check", "--reject", "--json")
    assert (first.code, list(first.json["waiting"])) == (3, ["other"])
    assert status(program, run_id) == "waiting"
    last = program("runs", "answer", run_id, "--approve", "--json")
    assert (last.code, last.json["outputs"]) == (0, {"refused": "", "more": "Explain tides."})


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        ((), "no answer … --approve … --reject.\n"),
        (("--choice", "maybe"), '"maybe" … at "check" … : approve, reject.\n'),
        (("--approve", "--reject"), "several … only one … --approve, --reject … --choice.\n"),
    ],
)
def test_invalid_answer_is_refused_and_the_run_keeps_waiting(
    program: Program, tmp_path: Path, options: tuple[str, ...], parts: str
):
    run_id = start_waiting_run(program, tmp_path)
    ended = program("runs", "answer", run_id, *options)
    assert ended.code == 2
    assert mentions(ended.err, parts), ended.err
    assert status(program, run_id) == "waiting"


def test_unstored_run_reports_that_nobody_can_answer(program: Program, tmp_path: Path):
    ended = program("run", write(tmp_path, checked()), "-m", script(tmp_path, "One."), "--no-store")
    assert ended.code == 1
    assert mentions(ended.err, "answer at check … not stored"), ended.err


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals and terminals")
class TestOnATerminal:
    def test_terminal_asks_for_choice_value_and_comment(self, tmp_path: Path):
        arguments = ["run", str(write(tmp_path, checked())), "-m", script(tmp_path, "One.")]
        with on_terminal(*arguments) as (running, terminal):
            read_terminal(terminal, b"approve / reject: ")
            os.write(terminal, b"perhaps\n")
            read_terminal(terminal, b"Enter one of: approve, reject.")
            os.write(terminal, b"a\n")
            read_terminal(terminal, b"New value")
            os.write(terminal, b"Two.\n")
            read_terminal(terminal, b"Comment")
            os.write(terminal, b"Now.\n")
            shown = read_terminal(terminal, b"Stored as ")
            assert running.wait(30) == 0
        assert b"Two." in shown
        assert b"Now." in shown

    def test_run_stopped_at_a_question_can_be_answered(self, program: Program, tmp_path: Path):
        arguments = ["run", str(write(tmp_path, checked())), "-m", script(tmp_path, "One.")]
        with on_terminal(*arguments) as (running, terminal):
            read_terminal(terminal, b"approve / reject: ")
            running.send_signal(signal.SIGINT)
            read_terminal(terminal, b"The run was cancelled.")
            assert running.wait(30) == 130
        (run_id,) = [run["run_id"] for run in program("runs", "--json").json["runs"]]
        ended = program("runs", "answer", run_id, "--approve", "--json")
        assert (ended.code, ended.json["outputs"]["answer"]) == (0, "One.")

    def test_run_killed_while_waiting_can_be_answered(self, program: Program, tmp_path: Path):
        with on_terminal("run", str(write(tmp_path, checked())), "-m", script(tmp_path, "One.")) as (running, terminal):
            read_terminal(terminal, b"approve / reject: ")
            (run_id,) = [run["run_id"] for run in program("runs", "--json").json["runs"]]
            running.kill()
            running.wait(30)
        assert status(program, run_id) == "waiting"
        ended = program("runs", "answer", run_id, "--approve", "--json")
        assert (ended.code, ended.json["outputs"]["answer"]) == (0, "One.")

    def test_answer_from_another_process_reaches_the_waiting_process(self, program: Program, tmp_path: Path):
        with on_terminal("run", str(write(tmp_path, checked())), "-m", script(tmp_path, "One.")) as (running, terminal):
            read_terminal(terminal, b"approve / reject: ")
            (run_id,) = [run["run_id"] for run in program("runs", "--json").json["runs"]]
            ended = program(
                "runs", "answer", run_id, "--approve", "--value", "Two.", "--comment", "From afar.", "--json"
            )
            assert (ended.code, ended.json) == (0, {"run_id": run_id, "status": "running", "answered": "check"})
            assert mentions(ended.err, f"process … {run_id} … received the answer … continues"), ended.err
            shown = read_terminal(terminal, b"Stored as ")
            assert running.wait(30) == 0
        assert b"The question was answered elsewhere" in shown
        assert b"Two." in shown
        assert b"From afar." in shown
        assert status(program, run_id) == "completed"


def asking_agent(folder: Path) -> tuple[Path, str]:
    """An agent whose tool call needs approval, and its model."""
    agent = {"prompt": "{{input}}", "tools": ["read_file"], "require_approval": ["read_file"]}
    nodes = [
        {"id": "task", "type": "input", "config": {"default": "Read."}},
        {"id": "reader", "type": "agent", "config": agent},
        {"id": "answer", "type": "output"},
    ]
    (folder / "kept.txt").write_text("kept", encoding="utf-8")
    (folder / "other.txt").write_text("other", encoding="utf-8")
    call = {"tool_calls": [{"name": "read_file", "arguments": {"path": "kept.txt"}}]}
    replies = {"rules": [{"replies": [call, {"text": "Done."}]}]}
    model = f"scripted:{write(folder, replies, 'script.json')}"
    return write(folder, document(nodes, ["task.value > reader.input", "reader.output > answer.value"])), model


@pytest.mark.parametrize("value", ['["x"]', "null", "5", '"kept.txt"', "{", '{"path": 3}', "{}"])
def test_invalid_arguments_are_refused_and_the_tool_is_not_called(program: Program, tmp_path: Path, value: str):
    file, model = asking_agent(tmp_path)
    waiting = program("run", file, "-m", model, "--folder", tmp_path, "--allow", "--json").json
    answer = ("runs", "answer", waiting["run_id"], "--approve", "-m", model, "--folder", tmp_path, "--json")

    refused = program(*answer, "--value", value)

    assert refused.code == 2
    assert mentions(refused.err, 'value … at "reader" does not fit'), refused.err
    assert status(program, waiting["run_id"]) == "waiting"


def test_edited_arguments_are_used_for_the_call(program: Program, tmp_path: Path):
    file, model = asking_agent(tmp_path)
    run_id = program("run", file, "-m", model, "--folder", tmp_path, "--allow", "--json").json["run_id"]
    write(tmp_path, {"default": {"text": "Done."}}, "script.json")  # the first reply is in the history
    answer = ("runs", "answer", run_id, "--approve", "-m", model, "--folder", tmp_path, "--json")

    ended = program(*answer, "--value", '{"path": "other.txt"}')

    assert ended.code == 0, ended.err
    shown = program("runs", "show", run_id, "--iteration", "reader", "--json").json
    assert "other" in json.dumps(shown)
