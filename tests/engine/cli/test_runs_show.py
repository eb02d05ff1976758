"""`loopwright runs show`, `diff`, `export` and `import`."""

from __future__ import annotations

import csv
import io
import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.engine.cli.kit import Program, document, drafts, echo, refine, write
from tests.wording import mentions

USAGE = {"usage": {"input_tokens": 10, "output_tokens": 5}}
TEXTS = ("One fish swims.", "One red fish swims far.", "One red fish swims away.")


@pytest.fixture(autouse=True)
def no_model_of_the_users_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LOOPWRIGHT_MODEL", raising=False)


def ran(program: Program, folder: Path, source: dict[str, Any] | None = None, *texts: str, code: int = 0) -> str:
    """Run a workflow, and return the run's id."""
    usual = refine(exit_condition="stable_output", stability_threshold=0.9)
    script = write(folder, drafts(*({"text": text, **USAGE} for text in texts or TEXTS)), "script.json")
    ended = program("run", write(folder, source or usual), "-m", f"scripted:{script}", "--allow", "--json")
    assert ended.code == code
    return ended.json["run_id"]


def nested() -> dict[str, Any]:
    """A loop around a loop around a model node."""
    nodes = [
        {"id": "task", "type": "input", "config": {"default": "x"}},
        {"id": "outer", "type": "loop", "config": {"max_iterations": 2}},
        {"id": "inner", "type": "loop", "config": {"max_iterations": 2}},
        {"id": "draft", "type": "llm", "config": {"prompt": "{{input}}"}},
        {"id": "end", "type": "exit", "config": {"loop": "inner"}},
        {"id": "exit", "type": "exit", "config": {"loop": "outer"}},
        {"id": "answer", "type": "output"},
    ]
    edges = ["task.value > outer.input", "outer.body > inner.input", "inner.body > draft.input"]
    return document(
        nodes, [*edges, "draft.output > end.input", "end.output > exit.input", "exit.output > answer.value"]
    )


def test_show_run_with_iterations_and_exit_reason(program: Program, tmp_path: Path):
    run_id = ran(program, tmp_path)
    shown = program("runs", "show", run_id[:5])
    lines = shown.out.splitlines()
    assert (shown.code, lines[0]) == (0, f"Sample: {run_id}, completed")
    assert "; 45 tokens, $0." in lines[1]
    assert "Input task: Explain tides." in lines
    assert f"From {tmp_path / 'w.loop.json'}." in lines
    assert "loop: Stopped after 3 of 3: max iterations reached; similarity 87.5% < 90%." in lines
    rows = [line for line in lines if line.startswith("loop[")]
    assert [row.split("  ")[-1] for row in rows] == list(TEXTS)
    assert "65.2%" in rows[1]
    assert lines[-2:] == ["answer:", TEXTS[2]]


def test_show_iteration_with_tests_and_outputs(program: Program, tmp_path: Path):
    run_id = ran(program, tmp_path)
    lines = program("runs", "show", run_id, "--iteration", "loop[1]").out.splitlines()
    assert lines[0] == "loop[1]: iteration 2 of at most 3"
    assert lines[1:3] == ["Tested: similarity 65.2% < 90%; iteration 2 of at most 3.", "The loop continued."]
    assert lines[3:6] == ["", "input:", TEXTS[0]]
    assert any(line.startswith("loop[1].draft (llm, completed, ") for line in lines)
    assert lines[-2:] == ["result:", TEXTS[1]]
    last = program("runs", "show", run_id, "--iteration", "loop[2]").out.splitlines()
    assert last[2] == "Stopped after 3 of 3: max iterations reached; similarity 87.5% < 90%."


def test_show_node_with_its_prompt(program: Program, tmp_path: Path):
    run_id = ran(program, tmp_path)
    shown = program("runs", "show", run_id, "--iteration", "loop[0].draft").out
    assert "\nprompt:\nuser:\nExplain tides.\n" in shown
    assert f"\noutput output:\n{TEXTS[0]}\n" in shown
    outside = program("runs", "show", run_id, "--iteration", "task").out
    assert "\noutput value:\nExplain tides.\n" in outside


def test_show_as_json(program: Program, tmp_path: Path):
    run_id = ran(program, tmp_path)
    run = program("runs", "show", run_id, "--json").json
    assert (run["run_id"], run["status"], run["outputs"], run["forks"]) == (
        run_id,
        "completed",
        {"answer": TEXTS[2]},
        [],
    )
    assert run["loops"]["loop"]["why"].startswith("Stopped after 3 of 3: ")
    assert [each["result"] for each in run["loops"]["loop"]["iterations"]] == list(TEXTS)
    iteration = program("runs", "show", run_id, "--iteration", "loop[1]", "--json").json
    assert (iteration["iteration"]["result"], iteration["tested"][0]) == (TEXTS[1], "similarity 65.2% < 90%")
    (draft,) = iteration["nodes"]
    assert (draft["path"], draft["calls"][0]["reply"]) == ("loop[1].draft", TEXTS[1])
    node = program("runs", "show", run_id, "--iteration", "loop[1].draft", "--json").json
    assert node == draft


def test_nested_loop_is_shown_in_its_iteration(program: Program, tmp_path: Path):
    run_id = ran(program, tmp_path, nested(), "a", "b", "c", "d")
    run = program("runs", "show", run_id).out
    assert "outer: Stopped after 2 of 2: max iterations reached." in run
    assert "inner" not in run
    outer = program("runs", "show", run_id, "--iteration", "outer[1]").out
    assert "outer[1].inner: Stopped after 2 of 2: max iterations reached." in outer
    assert "outer[1].inner[0]" in outer
    inner = program("runs", "show", run_id, "--iteration", "outer[1].inner[1]").out
    assert inner.endswith("\nresult:\nd\n")
    assert program("runs", "show", run_id, "--iteration", "outer[1].inner[1].draft").out.count("\nd\n") == 1


def test_exit_reason_of_until_shows_the_node_outputs(program: Program, tmp_path: Path):
    run_id = ran(program, tmp_path, refine(until="nodes.draft == 'b'"), "a", "b")
    sentence = "Stopped after 2 of 3: “nodes.draft == 'b'” became true (nodes.draft “b”)."
    assert f"loop: {sentence}" in program("runs", "show", run_id).out


def test_failed_run_shows_error_and_node(program: Program, tmp_path: Path):
    run_id = ran(program, tmp_path, None, TEXTS[0], code=1)
    shown = program("runs", "show", run_id).out
    assert "Failed at loop[1].draft: " in shown
    assert "loop: Stopped after 1 of 3: an error occurred: " in shown
    unfinished = program("runs", "show", run_id, "--iteration", "loop[1]").out
    assert "The iteration has not ended." in unfinished
    assert "loop[1].draft (llm, failed" in unfinished


@pytest.mark.parametrize(
    ("place", "parts"),
    [
        ("loop[9]", "nothing at loop[9]. … there are: task, loop, answer, loop[0], loop[1], loop[2]."),
        ("loop[0].none", "nothing at loop[0].none. … there are: loop[0].draft."),
        ("gone[0].x", "nothing at gone[0].x. … 'loopwright runs show "),
        ("loop[-1]", "loop[-1] is not a place"),
        ("", " is not a place"),
    ],
)
def test_missing_place_is_one_sentence(program: Program, tmp_path: Path, place: str, parts: str):
    run_id = ran(program, tmp_path)
    ended = program("runs", "show", run_id, "--iteration", place)
    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert mentions(ended.err, parts), ended.err


@pytest.mark.parametrize("title", ["Cafe\u0301 [1].x", "caf\u00e9  [1].x", "Caf\u00e9 [1].x\n"])
def test_node_is_found_by_a_title_with_brackets_spaces_and_accents(program: Program, tmp_path: Path, title: str):
    source = refine(3)
    next(node for node in source["nodes"] if node["id"] == "draft")["title"] = "Caf\u00e9\n[1].x"
    run_id = ran(program, tmp_path, source)
    by_title = program("runs", "show", run_id, "--iteration", f"loop[1].{title}", "--json")
    assert by_title.json == program("runs", "show", run_id, "--iteration", "loop[1].draft", "--json").json


def test_two_iterations_are_compared_word_by_word(program: Program, tmp_path: Path):
    run_id = ran(program, tmp_path)
    compared = program("runs", "diff", f"{run_id[:6]}@loop[0]", "@loop[2]")
    assert (compared.code, compared.err) == (0, "")
    assert compared.out == "One {+red +}fish swims{+ away+}.\n"
    assert program("runs", "diff", f"{run_id}@loop[0]", f"{run_id}@loop[0]").out == "No differences.\n"
    spans = program("runs", "diff", f"{run_id}@loop[0]", "@loop[1]", "--json").json["spans"]
    assert "".join(span["text"] for span in spans if span["kind"] != "insert") == TEXTS[0]


def test_nodes_prompts_feedback_and_whole_runs_are_compared(program: Program, tmp_path: Path):
    run_id = ran(program, tmp_path)
    other = ran(program, tmp_path, None, "A", "B", "C")
    prompt = program("runs", "diff", f"{run_id}@loop[0]", "@loop[1]", "--node", "draft", "--part", "prompt").out
    assert "[-Explain tides-]{+One fish swims+}." in prompt
    reply = program("runs", "diff", f"{run_id}@loop[0].draft", f"{other}@loop[0].draft", "--part", "reply").out
    assert reply == "[-One fish swims.-]{+A+}\n"
    assert program("runs", "diff", run_id, other).out == "[-One red fish swims away.-]{+C+}\n"
    feedback = program("runs", "diff", f"{run_id}@loop[0]", f"{other}@loop[0]", "--part", "feedback").out
    assert feedback == "[-One fish swims.-]{+A+}\n"


def test_diff_of_long_texts_shows_context_only(program: Program, tmp_path: Path):
    lines = [f"Line {number}." for number in range(30)]
    changed = [*lines]
    changed[10] = "Row 10."
    run_id = ran(program, tmp_path, None, "\n".join(lines), "\n".join(changed), "x")
    assert program("runs", "diff", f"{run_id}@loop[0]", "@loop[1]").out.splitlines() == [
        "... 7 equal lines ...",
        *lines[7:10],
        "[-Line-]{+Row+} 10.",
        *lines[11:14],
        "... 16 equal lines ...",
    ]


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        (["RUN@loop[0]", "@loop[1]", "--part", "cost"], '"cost" is not a part … : result, feedback, '),
        (["RUN@loop[0]", "@loop[1]", "--part", "prompt"], "loop[0] has no prompt"),
        (["RUN", "RUN", "--part", "reply"], "whole run has no reply"),
        (["RUN@task", "@task", "--part", "reply"], "node task … no model"),
        (["RUN@task", "@task", "--part", "feedback"], "node task has no feedback"),
        (["RUN@loop[7]", "@loop[1]"], "nothing at loop[7]"),
        (["none", "RUN"], 'no run "none"'),
    ],
)
def test_invalid_comparison_is_one_sentence(program: Program, tmp_path: Path, options: list[str], parts: str):
    run_id = ran(program, tmp_path)
    ended = program("runs", "diff", *(option.replace("RUN", run_id) for option in options))
    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert mentions(ended.err, parts), ended.err


def test_model_texts_cannot_control_the_terminal_in_show_and_diff(program: Program, tmp_path: Path):
    run_id = ran(program, tmp_path, None, "[red]a[/red]\x1b[2J", "\x1b]0;t\x07b", "c")
    for command in (
        ["show", run_id],
        ["show", run_id, "--iteration", "loop[0]"],
        ["show", run_id, "--iteration", "loop[0].draft"],
        ["diff", f"{run_id}@loop[0]", "@loop[1]"],
    ):
        ended = program("runs", *command)
        assert ended.code == 0
        assert "\x1b" not in ended.out
    assert "[red]a[/red]\\x1b[2J" in program("runs", "show", run_id, "--iteration", "loop[0]").out


def test_run_is_exported_as_json_and_imported(program: Program, tmp_path: Path):
    run_id = ran(program, tmp_path)
    file, other = tmp_path / "run.json", tmp_path / "other.sqlite3"
    assert program("runs", "export", run_id, "--to", "json", "-o", file).out == ""
    assert program("runs", "import", file, "--store", other).out == f"Imported as {run_id}.\n"
    shown = program("runs", "show", run_id)
    lines = [line for line in shown.out.splitlines() if not line.startswith("From ")]
    assert program("runs", "show", run_id, "--store", other).out.splitlines() == lines
    again, first = (
        program("runs", "export", run_id, "--to", "json", "--store", other).json,
        json.loads(file.read_text()),
    )
    assert again["events"] == first["events"]
    assert again["run"]["document"] == first["run"]["document"]
    assert again["run"]["source"] == "", "what the run was allowed elsewhere does not count here"
    named = program("runs", "import", file).out
    assert named.endswith(f" ({run_id} already exists).\n")
    assert program("runs", "--json").json["count"] == 2


def test_run_is_exported_as_markdown_and_csv(program: Program, tmp_path: Path):
    run_id = ran(program, tmp_path)
    page = program("runs", "export", run_id, "--to", "markdown").out
    assert page.startswith(f"# Sample\n\n- Run {run_id}, completed\n")
    assert "\nStopped after 3 of 3: max iterations reached; similarity 87.5% \\< 90%.\n" in page
    table = program("runs", "export", run_id, "--to", "csv").out
    assert table.startswith("run,")
    rows = list(csv.DictReader(io.StringIO(table)))
    assert [(row["run"], row["iteration"], row["result"]) for row in rows] == [
        (run_id, str(number), text) for number, text in enumerate(TEXTS, 1)
    ]


def test_lone_surrogates_survive_export_and_import(program: Program, tmp_path: Path):
    run_id = program("run", write(tmp_path, echo("text", "half \ud83d")), "--json").json["run_id"]
    file, other = tmp_path / "run.json", tmp_path / "other.sqlite3"
    program("runs", "export", run_id, "--to", "json", "-o", file)
    assert program("runs", "import", file, "--store", other).code == 0
    shown = program("runs", "show", run_id, "--json", "--store", other)
    assert shown.json["outputs"] == {"result": "half \ud83d"}
    assert program("runs", "export", run_id, "--to", "markdown", "-o", tmp_path / "run.md").code == 0
    assert "half \\ud83d" in (tmp_path / "run.md").read_text("utf-8")


def test_unwritable_and_invalid_files_are_reported(program: Program, tmp_path: Path):
    run_id = ran(program, tmp_path)
    ended = program("runs", "export", run_id, "--to", "json", "-o", tmp_path / "no" / "run.json")
    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert "run.json: The file cannot be written: " in ended.err
    assert program("runs", "export", run_id, "--to", "pdf").err.startswith('The export format "pdf" is unknown. ')
    (tmp_path / "bad.json").write_text(json.dumps({"format": "loopwright.run", "version": 1}))
    imported = program("runs", "import", tmp_path / "bad.json")
    assert (imported.code, imported.err.count("\n")) == (2, 1)
    assert [file.name for file in tmp_path.iterdir() if file.name.endswith(".tmp")] == []


def test_export_follows_a_symbolic_link_and_refuses_a_pipe(program: Program, tmp_path: Path):
    run_id = ran(program, tmp_path)
    real, link, pipe = tmp_path / "real.csv", tmp_path / "link.csv", tmp_path / "pipe"
    real.touch(mode=0o600)
    link.symlink_to(real)
    os.mkfifo(pipe)
    assert program("runs", "export", run_id, "--to", "csv", "-o", link).code == 0
    assert link.is_symlink()
    assert len(real.read_text().splitlines()) > 2
    assert real.read_bytes().startswith(b"\xef\xbb\xbfrun,")  # so that Excel reads it as UTF-8
    assert real.stat().st_mode & 0o777 == 0o600
    ended = program("runs", "export", run_id, "--to", "csv", "-o", pipe)
    assert (ended.code, "not an ordinary file" in ended.err) == (2, True)
    assert pipe.is_fifo()


def test_reasoning_is_truncated_unless_full(program: Program, tmp_path: Path):
    thought = "I weigh it. " * 100
    run_id = ran(program, tmp_path, None, "<think>" + thought + "</think>One.", "Two.", "Three.")

    place = ("runs", "show", run_id, "--iteration", "loop[0].draft")
    short, full = program(*place).out, program(*place, "--full").out
    assert "reasoning:" in short
    assert thought.strip() not in short
    assert thought.strip() in full
    (call,) = program(*place, "--json").json["calls"]
    assert (call["reply"], call["reasoning"]) == ("One.", thought.strip())
    again = tmp_path / "again.json"
    program("runs", "export", run_id, "--to", "json", "-o", str(again))
    assert thought.strip() in again.read_text(encoding="utf-8")
    assert thought.strip() in program("runs", "export", run_id, "--to", "markdown").out
    assert "weigh" not in program("runs", "show", run_id).out
    played = program("run", str(tmp_path / "w.loop.json"), "-m", f"recorded:{run_id}", "--json").json
    (call,) = program("runs", "show", played["run_id"], "--iteration", "loop[0].draft", "--json").json["calls"]
    assert (call["reply"], call["reasoning"]) == ("One.", thought.strip())


def titled() -> dict[str, Any]:
    """A loop around two calls, an approval and a subflow, all with titles."""
    inner = document(
        [{"id": "x", "title": "Inner text", "type": "input"}, {"id": "y", "title": "Result", "type": "output"}],
        ["x.value > y.value"],
    )
    source = refine()
    titles = {"loop": "Refine [twice]", "draft": "v1.2 Draft", "exit": "Twice", "answer": "Twice"}
    source["nodes"] = [{**node, "title": titles.get(node["id"], "")} for node in source["nodes"]]
    source["nodes"] += [
        {"id": "sub", "title": "Other flow", "type": "subflow", "config": {"workflow": inner}},
        {"id": "check", "title": "The check", "type": "approval", "config": {}},
        {"id": "more", "title": "More", "type": "output", "config": {}},
    ]
    ends = [("exit.output", "sub.x"), ("sub.y", "check.input"), ("check.approved", "more.value")]
    source["edges"] += [{"from": start, "to": end} for start, end in ends]
    return source


def test_places_name_nodes_by_titles_too(program: Program, tmp_path: Path):
    run_id = ran(program, tmp_path, titled(), code=3)
    show = ("runs", "show", run_id, "--json", "--iteration")
    places = {
        "refine [TWICE][1].v1.2 draft": "loop[1].draft",
        "loop[1].v1.2 Draft": "loop[1].draft",
        "Refine [twice][2].draft": "loop[2].draft",
        "Other flow.Inner text": "sub.x",
        "Input": "task",
    }
    for named, place in places.items():
        assert program(*show, named).json["path"] == place
    assert program(*show, "Refine [twice][1]").json == program(*show, "loop[1]").json
    model = ("-m", f"scripted:{write(tmp_path, drafts('Other.', 'Last.'), 'other.json')}")
    part = program("runs", "diff", f"{run_id}@Refine [twice][0]", "@loop[1]", "--node", "v1.2 Draft", "--json")
    assert part.json == program("runs", "diff", f"{run_id}@loop[0].draft", "@loop[1].draft", "--json").json
    fork = program("runs", "fork", run_id, "--at", "Refine [twice][1].v1.2 Draft", *model, "--json").json["run_id"]
    assert program("runs", "show", fork, "--json").json["forked_at"] == "loop[1].draft"
    answered = program("runs", "answer", run_id, "--node", "the check", "--approve", *model, "--json")
    assert (answered.code, answered.json["outputs"]["more"]) == (0, TEXTS[2])


@pytest.mark.parametrize(
    ("place", "parts"),
    [("Twice", "2 … exit, answer"), ("Drafd[0]", '"Drafd" … loop (Refine [twice])'), ("drafd", "nothing at drafd")],
)
def test_place_with_an_unknown_or_ambiguous_title_is_refused(program: Program, tmp_path: Path, place: str, parts: str):
    run_id = ran(program, tmp_path, titled(), code=3)
    refused = program("runs", "show", run_id, "--iteration", place)
    assert (refused.code, mentions(refused.err, parts)) == (2, True), refused.err


def test_a_loops_judge_is_found_whatever_other_nodes_are_called(program: Program, tmp_path: Path):
    source = refine(stop_when=[{"condition": "judge"}], judge={"criteria": "Good."}, max_iterations=1)
    source["nodes"] = [{**node, "title": "Judge" if node["id"] == "draft" else ""} for node in source["nodes"]]
    verdict = {"rules": [{"node": "judge", "replies": ["Done. 9"]}, *drafts("One.")["rules"]]}
    script = write(tmp_path, verdict, "verdict.json")
    run_id = program("run", write(tmp_path, source), "-m", f"scripted:{script}", "--json").json["run_id"]
    assert program("runs", "show", run_id, "--iteration", "loop[0].judge", "--json").json["path"] == "loop[0].judge"
    assert program("runs", "show", run_id, "--iteration", "loop[0].Judge", "--json").json["path"] == "loop[0].draft"
