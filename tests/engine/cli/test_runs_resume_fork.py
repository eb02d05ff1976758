"""`loopwright runs resume` and `fork`, and storing runs in the history."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.engine.cli.kit import Program, document, drafts, refine, write
from tests.engine.cli.test_process import on_terminal, read_terminal, slow, started, wait_for
from tests.wording import mentions

USAGE = {"usage": {"input_tokens": 10, "output_tokens": 5}}


@pytest.fixture(autouse=True)
def no_model_of_the_users_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LOOPWRIGHT_MODEL", raising=False)


def script(folder: Path, *texts: str, name: str = "script.json") -> str:
    return f"scripted:{write(folder, drafts(*({'text': text, **USAGE} for text in texts)), name)}"


def ran(program: Program, folder: Path, *texts: str, code: int = 0, options: tuple[object, ...] = ()) -> str:
    """Run three iterations of a draft, and return the run's id."""
    ended = program("run", write(folder, refine()), "-m", script(folder, *texts), "--json", *options)
    assert ended.code == code
    return ended.json["run_id"]


def results(program: Program, run_id: str) -> list[str]:
    shown = program("runs", "show", run_id, "--json").json
    return [each["result"] for each in shown["loops"]["loop"]["iterations"]]


def test_resume_repeats_no_finished_call(program: Program, tmp_path: Path):
    run_id = ran(program, tmp_path, "One.", code=1)
    ended = program("runs", "resume", run_id[:6], "--model", script(tmp_path, "Two.", "Three.", name="other.json"))
    assert (ended.code, ended.err) == (0, "")
    assert "One." not in ended.out
    assert [line.partition("): ")[2] for line in ended.out.splitlines() if line.startswith("loop ")] == [
        "Two.",
        "Three.",
    ]
    assert ended.out.splitlines()[-2].endswith(", 45 tokens, $0.")
    assert ended.out.splitlines()[-1].startswith(f"Stored as {run_id}: ")
    assert results(program, run_id) == ["One.", "Two.", "Three."]
    assert program("runs", "--json").json["count"] == 1


def test_resume_with_a_larger_budget(program: Program, tmp_path: Path):
    source = refine(on_budget="fail")
    source["nodes"][2]["config"]["max_tokens"] = 5
    file, model = write(tmp_path, source), script(tmp_path, "One.", "Two.", "Three.")
    first = program("run", file, "-m", model, "--budget-tokens", 50, "--json")
    assert (first.code, first.json["status"]) == (1, "failed")
    rest = script(tmp_path, "Two.", "Three.", name="other.json")
    ended = program("runs", "resume", first.json["run_id"], "-m", rest, "--budget-tokens", 300, "--json")
    assert (ended.code, ended.json["outputs"]) == (0, {"answer": "Three."})


def test_completed_run_is_not_resumed(program: Program, tmp_path: Path):
    run_id = ran(program, tmp_path, "One.", "Two.", "Three.")
    ended = program("runs", "resume", run_id, "--json")
    assert (ended.code, ended.json["status"]) == (2, "refused")
    assert mentions(ended.err, f"{run_id} has completed. Fork it … iterations"), ended.err


def test_resume_with_another_document(program: Program, tmp_path: Path):
    run_id = ran(program, tmp_path, "One.", code=1)
    longer = write(tmp_path, refine(2), "now.loop.json")
    model = script(tmp_path, "Two.", name="other.json")
    ended = program("runs", "resume", run_id, "--document", longer, "-m", model, "--json")
    assert (ended.code, ended.json["outputs"]) == (0, {"answer": "Two."})
    assert ended.json["run_id"] != run_id
    assert program("runs", "show", ended.json["run_id"], "--json").json["parent"] == run_id


def test_fork_announces_its_plan_and_reuses_earlier_outputs(program: Program, tmp_path: Path):
    run_id = ran(program, tmp_path, "One.", "Two.", "Three.")
    model = script(tmp_path, "Zwei.", "Drei.", name="other.json")
    ended = program("runs", "fork", run_id, "--at", "loop[1]", "-m", model)
    assert ended.code == 0
    assert ended.err.splitlines() == [
        f"Fork of {run_id} (Sample) at loop[1]",
        "Reused: “Input”, iteration 1 of “Loop”.",
        "Runs again: iterations 2 to 3 of “Loop”, at most, “Output”.",
        "Estimated cost: unknown.",
    ]
    (fork,) = program("runs", "show", run_id, "--json").json["forks"]
    assert results(program, fork) == ["One.", "Zwei.", "Drei."]
    assert f"Forked from {run_id} at loop[1]." in program("runs", "show", fork).out.splitlines()
    assert f"Fork at loop[1]: {fork}, completed." in program("runs", "show", run_id).out.splitlines()
    assert results(program, run_id) == ["One.", "Two.", "Three."]


def forked(program: Program, folder: Path, *options: object, texts: tuple[str, ...] = ("Zwei.", "Drei.")) -> Any:
    """Fork a run of three iterations, and return the fork as JSON."""
    run_id = ran(program, folder, "One.", "Two.", "Three.")
    model = script(folder, *texts, name="other.json")
    ended = program("runs", "fork", run_id, "-m", model, "--json", "--yes", *options)
    assert ended.code == 0, ended.err
    return program("runs", "show", ended.json["run_id"], "--json").json


def test_fork_with_other_settings(program: Program, tmp_path: Path):
    (tmp_path / "prompt.txt").write_text("From a file: {{input}}")
    settings = ("--set", f"draft.prompt=@{tmp_path / 'prompt.txt'}", "--set", "draft.temperature=0.5")
    run = forked(program, tmp_path, "--at", "loop[1]", *settings)
    node = program("runs", "show", run["run_id"], "--iteration", "loop[1].draft", "--json").json
    assert node["calls"][0]["messages"][0]["text"].startswith("From a file: One.")
    before = program("runs", "show", run["run_id"], "--iteration", "loop[0].draft", "--json").json
    assert before["calls"][0]["messages"][0]["text"].startswith("Explain tides.")


def test_fork_with_another_iteration_input(program: Program, tmp_path: Path):
    run = forked(program, tmp_path, "--at", "loop[1]", "--value", "By hand.")
    assert run["loops"]["loop"]["iterations"][1]["input"] == "By hand."
    assert [each["result"] for each in run["loops"]["loop"]["iterations"]] == ["One.", "Zwei.", "Drei."]


def test_fork_with_another_node_output(program: Program, tmp_path: Path):
    run = forked(program, tmp_path, "--at", "loop[1].draft", "--value", "By hand.", texts=("Drei.",))
    assert [each["result"] for each in run["loops"]["loop"]["iterations"]] == ["One.", "By hand.", "Drei."]


def test_fork_value_is_json_if_it_was_json(program: Program, tmp_path: Path):
    file = write(
        tmp_path,
        document(
            [
                {"id": "task", "type": "input", "config": {"default": "dark"}},
                {"id": "facts", "type": "transform", "config": {"mode": "expression", "expression": "{'kind': input}"}},
                {"id": "kind", "type": "transform", "config": {"template": "{{input.kind}}"}},
                {"id": "answer", "type": "output"},
            ],
            ["task.value > facts.input", "facts.output > kind.input", "kind.output > answer.value"],
        ),
    )
    run_id = program("run", file, "--json").json["run_id"]
    fork = program("runs", "fork", run_id, "--at", "facts", "--value", '{"kind": "light"}', "--json", "--yes")
    assert (fork.code, fork.json["outputs"]) == (0, {"answer": "light"})
    refused = program("runs", "fork", run_id, "--at", "facts", "--value", "light")
    assert refused.code == 2
    assert mentions(refused.err, 'value at facts is JSON … not ( … : {"kind": "dark"}\n'), refused.err


def test_fork_with_more_iterations(program: Program, tmp_path: Path):
    run = forked(program, tmp_path, "--at", "loop[2]", "--max-iterations", 4)
    assert [each["result"] for each in run["loops"]["loop"]["iterations"]] == ["One.", "Two.", "Zwei.", "Drei."]


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        (["--at", "loop[7]"], "did not reach loop[7]"),
        (["--at", "loop["], "loop[ is not a place"),
        (["--at", "gone[0]"], "gone"),
        (["--at", "loop[1]", "--set", "draft.prompt"], '"--set draft.prompt" is malformed … --set NODE.FIELD=VALUE'),
        (["--at", "loop[1]", "--set", "x.prompt=a"], 'no node "x" … : task (Input), loop (Loop), '),
        (["--at", "loop[1]", "--set", "draft.colour=a"], '"draft" has no setting "colour" … : '),
        (
            ["--at", "loop[1]", "--set", "loop.judge.model=a"],
            'The node "loop" has no setting "judge.model". Settings: ',
        ),
        (
            ["--at", "loop[1]", "--set", "draft.temperature=hot"],
            '"temperature" … "draft" does not accept "hot" … \'loopwright nodes llm\'',
        ),
        (["--at", "loop[1]", "--set", "draft.prompt=@no"], '"no" for --set draft.prompt cannot be read: '),
        (["--at", "loop[1]", "--value", "@no"], '"no" for --value cannot be read: '),
        (["--at", "loop[1]", "--model", "gpt-4o"], "no model 'gpt-4o'"),
        (["--at", "loop[1]", "--document", "no/such.loop.json"], "no/such.loop.json: … cannot be opened: "),
    ],
)
def test_invalid_fork_is_one_sentence(program: Program, tmp_path: Path, options: list[str], parts: str):
    run_id = ran(program, tmp_path, "One.", "Two.", "Three.")
    ended = program("runs", "fork", run_id, *options)
    assert ended.code == 2
    assert mentions(ended.err.splitlines()[-1], parts), ended.err
    assert program("runs", "--json").json["count"] == 1


@pytest.mark.skipif(os.name != "posix", reason="needs a terminal")
def test_fork_asks_for_confirmation_on_a_terminal(program: Program, tmp_path: Path):
    run_id = ran(program, tmp_path, "One.", "Two.", "Three.")
    with on_terminal("runs", "fork", run_id, "--at", "loop[1]") as (running, terminal):
        shown = read_terminal(terminal, b"Start this run? [Y/n]")
        os.write(terminal, b"n\n")
        assert running.wait(30) == 130
    assert "iterations 2 to 3 of “Loop”".encode() in shown
    assert program("runs", "--json").json["count"] == 1


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals")
def test_run_killed_during_a_call_resumes_with_retry_in_flight(program: Program, tmp_path: Path):
    with started(*slow(tmp_path, "One."), "--events", stdout=subprocess.PIPE) as running:
        wait_for(running.stdout, b'"type": "node.calling", "run_id"')
        wait_for(running.stdout, b'"path": "loop[1].draft", "number": 0')
        running.send_signal(signal.SIGKILL)
        running.wait(30)
    (run,) = program("runs", "--json").json["runs"]
    assert run["status"] == "interrupted"
    model = script(tmp_path, "Two.", "Three.", name="other.json")
    refused = program("runs", "resume", run["run_id"], "-m", model)
    assert refused.code == 2
    assert "unknown, and which may have been billed: loop[1].draft (model scripted:" in refused.err
    assert "--retry-in-flight" in refused.err
    ended = program("runs", "resume", run["run_id"], "-m", model, "--retry-in-flight", "--json")
    assert (ended.code, ended.json["outputs"]) == (0, {"answer": "Three."})
    assert results(program, run["run_id"]) == ["One.", "Two.", "Three."]


def test_no_store_stores_nothing(program: Program, tmp_path: Path, history_file: Path):
    ended = program("run", write(tmp_path, refine(1)), "-m", script(tmp_path, "One."), "--no-store")
    assert ended.code == 0
    assert ended.out.splitlines()[-1].startswith("Done: ")
    assert not history_file.exists()


def test_run_is_stored_in_the_given_history(program: Program, tmp_path: Path, history_file: Path):
    other = tmp_path / "other.sqlite3"
    run_id = ran(program, tmp_path, "One.", "Two.", "Three.", options=("--store", other))
    assert not history_file.exists()
    assert program("runs", "--store", other, "--json").json["runs"][0]["run_id"] == run_id


def test_run_warns_and_continues_if_the_default_history_cannot_be_opened(
    program: Program, tmp_path: Path, history_file: Path
):
    history_file.write_text("no database at all " * 100)
    file, model = write(tmp_path, refine(1)), script(tmp_path, "One.")
    ended = program("run", file, "-m", model)
    assert ended.code == 0
    assert mentions(ended.err, "Warning: … not be stored"), ended.err
    assert ended.out.splitlines()[-1].startswith("Done: ")
    named = program("run", file, "-m", model, "--store", history_file)
    assert (named.code, named.out, named.err.count("\n")) == (2, "", 1)


def test_recorded_model_replays_a_run(program: Program, tmp_path: Path):
    run_id = ran(program, tmp_path, "One.", "Two.", "Three.")
    played = program("run", tmp_path / "w.loop.json", "-m", f"recorded:{run_id[:7]}", "--json")
    assert (played.code, played.json["outputs"], played.json["cost_usd"]) == (0, {"answer": "Three."}, 0)
    program("runs", "export", run_id, "--to", "json", "-o", tmp_path / "run.json")
    from_file = program(
        "run", tmp_path / "w.loop.json", "-m", f"recorded:{tmp_path / 'run.json'}", "--no-store", "--json"
    )
    assert from_file.json["outputs"] == {"answer": "Three."}
    missing = program("run", tmp_path / "w.loop.json", "-m", "recorded:zzz")
    assert (missing.code, missing.out) == (2, "")
    assert 'no run "zzz"' in missing.err


@pytest.fixture
def version_1_run(program: Program, tmp_path: Path) -> str:
    """A run that failed in its second iteration, stored with a document of version 1."""
    run_id, file = ran(program, tmp_path, "One.", code=1), tmp_path / "run.json"
    program("runs", "export", run_id, "--to", "json", "-o", file)
    stored = json.loads(file.read_text("utf-8"))
    stored["run"]["document"] = json.dumps(refine(until="nodes.draft == 'Two.'"))
    assert json.loads(stored["run"]["document"])["version"] == 1
    write(tmp_path, stored, "run.json")
    program("runs", "delete", run_id, "--yes")
    assert program("runs", "import", file).code == 0
    return run_id


def test_a_stored_run_with_a_document_of_version_1_resumes(program: Program, tmp_path: Path, version_1_run: str):
    model = script(tmp_path, "Two.", name="other.json")
    ended = program("runs", "resume", version_1_run, "-m", model, "--json")
    assert (ended.code, ended.json["outputs"]) == (0, {"answer": "Two."})
    assert results(program, version_1_run) == ["One.", "Two."]


def test_a_stored_run_with_a_document_of_version_1_forks(program: Program, tmp_path: Path, version_1_run: str):
    model = script(tmp_path, "Two.", "Three.", name="other.json")
    settings = ("--set", "draft.prompt=Again: {{input}}", "--set", "loop.stop_when=[]")
    fork = program("runs", "fork", version_1_run, "--at", "loop[1]", "-m", model, *settings, "--json", "--yes")
    assert (fork.code, fork.json["outputs"]) == (0, {"answer": "Three."})
    stopped = program("runs", "fork", version_1_run, "--at", "loop[1]", "-m", model, "--json", "--yes")
    assert (stopped.code, stopped.json["outputs"]) == (0, {"answer": "Two."})


@pytest.mark.parametrize(
    ("setting", "remedy"),
    [
        ("until=done > 1", """use --set 'loop.stop_when=[{"condition":"until","expression":"done > 1"}]'."""),
        ("exit_condition=stable_output", """use --set 'loop.stop_when=[{"condition":"stable_output"}]'."""),
        (
            'exit_conditions=[{"condition": "time", "seconds": 5}]',
            """use --set 'loop.stop_when=[{"condition":"time","seconds":5}]'.""",
        ),
        ("exit_when=all", "stop_mode now: see 'loopwright nodes loop'."),
        ("stability_threshold=0.9", "stop_mode now: see 'loopwright nodes loop'."),
    ],
)
def test_a_loop_setting_of_version_1_is_refused_with_its_new_name(
    program: Program, version_1_run: str, setting: str, remedy: str
):
    ended = program("runs", "fork", version_1_run, "--at", "loop[1]", "--set", f"loop.{setting}")
    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
    name = setting.partition("=")[0]
    assert mentions(ended.err, f'"loop" has no setting "{name}" … {remedy}\n'), ended.err
