"""`loopwright run` and `loopwright validate` in this process, with scripted models."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from engine.bundled import templates_folder
from engine.cli.document_commands import expand_patterns
from tests.engine.cli.kit import Program, document, drafts, echo, refine, write
from tests.wording import mentions

USAGE = {"usage": {"input_tokens": 10, "output_tokens": 5}}


@pytest.fixture(autouse=True)
def no_model_of_the_users_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LOOPWRIGHT_MODEL", raising=False)


def replies(*texts: str) -> list[dict[str, Any]]:
    return [{"text": text, **USAGE} for text in texts]


def scripted(folder: Path, *texts: str) -> str:
    return f"scripted:{write(folder, drafts(*replies(*texts)), 'script.json')}"


def test_run_shows_iterations_exit_reason_and_result(program: Program, tmp_path: Path):
    model = scripted(tmp_path, "One.", "Two.", "Three.")
    ended = program("run", write(tmp_path, refine()), "--model", model)
    assert (ended.code, ended.err) == (0, "")
    lines = ended.out.splitlines()
    assert lines[0].startswith(f"Running Sample with {model} (scripted: ")
    assert [line.partition("): ")[2] for line in lines if line.startswith("loop ")] == ["One.", "Two.", "Three."]
    assert [line[:9] for line in lines if line.startswith("loop ")] == ["loop 1/3 ", "loop 2/3 ", "loop 3/3 "]
    assert "loop: Stopped after 3 of 3: max iterations reached." in lines
    assert lines[-6:-3] == ["", "answer:", "Three."]
    assert lines[-2].startswith("Done: ")
    assert lines[-2].endswith(", 45 tokens, $0.")
    assert re.fullmatch(r"Stored as [0-9a-f]{12}: see 'loopwright runs show [0-9a-f]{12}'\.", lines[-1])


def test_pinned_nodes_are_named_and_cost_nothing(program: Program, tmp_path: Path):
    workflow, history = refine(2), tmp_path / "history"
    workflow["nodes"][2]["pinned"] = {"output": "By hand."}
    ended = program("run", write(tmp_path, workflow), "--store", history)
    assert ended.code == 0
    lines = ended.out.splitlines()
    assert lines[0] == "Running Sample."
    assert mentions(lines[1], "1 node is pinned … : draft."), lines[1]
    assert "loop[0].draft: pinned" in lines
    assert lines[-6:-3] == ["", "answer:", "By hand."]
    run_id = lines[-1].split()[2].rstrip(":")
    shown = program("runs", "--store", history, "show", run_id, "--iteration", "loop[1].draft", "--json").json
    assert (shown["state"], shown["pinned"], shown["cost_usd"]) == ("completed", True, 0.0)


def test_json_is_the_only_output_on_standard_output(program: Program, tmp_path: Path):
    model = scripted(tmp_path, "One.", "Two é\x1b[2J.")
    ended = program("run", write(tmp_path, refine(2)), "--model", model, "--json")
    assert ended.code == 0
    assert ended.out.count("\n") == 1
    assert ended.out.isascii()
    assert "loop 2/2" in ended.err
    assert "\x1b" not in ended.err
    result = ended.json
    assert {"status", "outputs", "loops", "usage", "cost_usd", "run_id", "error"} <= set(result)
    assert result["status"] == "completed"
    assert result["outputs"] == {"answer": "Two é\x1b[2J."}
    loop = result["loops"]["loop"]
    assert (loop["iterations_run"], loop["exit_reason"], loop["cost_usd"]) == (2, "max_iterations", 0.0)
    assert [(each["index"], each["result"]) for each in loop["iterations"]] == [(0, "One."), (1, "Two é\x1b[2J.")]
    assert {"index", "input", "result", "feedback", "branch", "similarity"} <= set(loop["iterations"][0])
    assert (result["usage"]["input_tokens"], result["usage"]["output_tokens"]) == (20, 10)


def test_lone_surrogates_survive_in_json_and_are_escaped_for_people(program: Program, tmp_path: Path):
    file = write(tmp_path, echo("text", "half \ud83d"))
    assert program("run", file, "--json").json["outputs"] == {"result": "half \ud83d"}
    assert "result:\nhalf \\ud83d\n" in program("run", file).out


def test_events_are_one_object_per_line_and_nothing_else(program: Program, tmp_path: Path):
    model = scripted(tmp_path, "One.")
    ended = program("run", write(tmp_path, refine(1)), "--model", model, "--events")
    assert (ended.code, ended.err) == (0, "")
    events = [json.loads(line) for line in ended.out.splitlines()]
    assert [event["seq"] for event in events] == list(range(len(events)))
    assert (events[0]["type"], events[-1]["type"]) == ("run.started", "run.completed")


def test_events_and_json_together_end_with_the_result(program: Program, tmp_path: Path):
    model = scripted(tmp_path, "One.")
    ended = program("run", write(tmp_path, refine(1)), "--model", model, "--events", "--json")
    *events, result = [json.loads(line) for line in ended.out.splitlines()]
    assert events[-1]["type"] == "run.completed"
    assert result["outputs"] == {"answer": "One."}


def test_failed_run_is_exit_code_1_and_one_sentence(program: Program, tmp_path: Path):
    error = {"error": {"kind": "authentication", "message": "The key was refused."}}
    script = write(tmp_path, drafts({"text": "One.", **USAGE}, error), "script.json")
    ended = program("run", write(tmp_path, refine()), "--model", f"scripted:{script}", "--json")
    assert ended.code == 1
    assert "The run failed at loop[1].draft: " in ended.err
    assert "The key was refused." in ended.err
    result = ended.json
    assert (result["status"], result["node"]) == ("failed", "loop[1].draft")
    assert "The key was refused." in result["error"]
    assert [each["result"] for each in result["loops"]["loop"]["iterations"]] == ["One."]


def test_failed_run_shows_time_tokens_and_cost(program: Program, tmp_path: Path):
    script = write(tmp_path, drafts({"text": "One.", **USAGE}), "script.json")
    ended = program("run", write(tmp_path, refine()), "--model", f"scripted:{script}")
    assert ended.code == 1
    assert ended.out.splitlines()[-2].startswith("Failed after ")
    assert "loop: Stopped after 1 of 3: an error occurred." in ended.out


@pytest.mark.parametrize(
    ("kind", "option", "value"),
    [
        ("number", "value=4.5", 4.5),
        ("list", "value=[1]", [1]),
        ("boolean", "value=true", True),
        ("text", "value=4", "4"),
    ],
)
def test_inputs_have_the_declared_type(program: Program, tmp_path: Path, kind: str, option: str, value: Any):
    ended = program("run", write(tmp_path, echo(kind)), "-i", option, "--json")
    assert ended.json["outputs"] == {"result": value}


def test_result_that_is_not_text_is_shown_as_json(program: Program, tmp_path: Path):
    assert 'result:\n{\n  "a": 1\n}\n' in program("run", write(tmp_path, echo("json")), "-i", 'value={"a":1}').out


@pytest.mark.parametrize(
    ("given", "parts"),
    [
        ([], 'No value … "value" … -i value=VALUE … value (number, required)'),
        (["-i", "v=1"], 'no input "v" … value (number, required)'),
        (["-i", "value=x"], '"value" takes a number, not "x" … 42 … 0.5'),
        (["-i", "value=1", "-i", "value=2"], '"value" is given twice'),
    ],
)
def test_bad_inputs_are_exit_code_2(program: Program, tmp_path: Path, given: list[str], parts: str):
    file = write(tmp_path, echo("number"))
    ended = program("run", file, *given)
    assert (ended.code, ended.out) == (2, "")
    assert mentions(ended.err, parts), ended.err
    refused = program("run", file, *given, "--json")
    assert (refused.code, refused.json["status"]) == (2, "refused")
    assert f"{refused.json['error']} {refused.json['remedy']}\n" == ended.err


def test_an_unknown_model_is_exit_code_2_with_a_hint(program: Program, tmp_path: Path):
    ended = program("run", write(tmp_path, echo("text", "x")), "--model", "gpt-4o")
    assert (ended.code, ended.out) == (2, "")
    assert mentions(ended.err, "no model 'gpt-4o' … mean openai/gpt-4o?"), ended.err


def test_unknown_model_in_the_document_is_exit_code_2(program: Program, tmp_path: Path):
    ended = program("run", write(tmp_path, {**refine(), "settings": {"model": "nonsense"}}))
    assert ended.code == 2
    assert "There is no model 'nonsense'." in ended.err


def test_a_missing_script_is_exit_code_2(program: Program, tmp_path: Path):
    ended = program("run", write(tmp_path, refine()), "--model", f"scripted:{tmp_path}/none.json")
    assert ended.code == 2
    assert "none.json" in ended.err


def test_a_document_with_problems_is_exit_code_2_with_all_of_them(program: Program, tmp_path: Path):
    source = refine()
    source["nodes"][2]["type"] = "llmm"
    source["nodes"][1]["config"]["max_iterations"] = "many"
    file = write(tmp_path, source)
    ended = program("run", file, "--json")
    assert ended.code == 2
    places = {(problem["node"], problem["field"]) for problem in ended.json["problems"]}
    assert {("draft", "type"), ("loop", "max_iterations")} <= places
    assert ended.err.count("error: ") == len(ended.json["problems"])
    assert ended.err.splitlines()[-1].startswith(f"{file} cannot run: {len(ended.json['problems'])} errors.")


def test_warnings_of_a_document_are_shown_and_it_runs(program: Program, tmp_path: Path):
    model = scripted(tmp_path, "One.")
    source = refine(1)
    source["nodes"][2]["config"]["colour"] = "red"
    ended = program("run", write(tmp_path, source), "--model", model)
    assert ended.code == 0
    assert 'warning: node "draft", field "colour"' in ended.err


def test_the_cap_of_iterations_is_an_option(program: Program, tmp_path: Path):
    model = scripted(tmp_path, *(["x"] * 60))
    file = write(tmp_path, refine(60))
    assert program("run", file, "-m", model, "--json").json["loops"]["loop"]["iterations_run"] == 50
    raised = program("run", file, "-m", model, "--json", "--max-iterations-cap", 60)
    assert raised.json["loops"]["loop"]["iterations_run"] == 60
    assert program("validate", file, "--max-iterations-cap", 60).out == f"{file}: no problems\n"


def test_the_budget_of_tokens_is_an_option(program: Program, tmp_path: Path):
    source = refine()
    source["nodes"][2]["config"]["max_tokens"] = 5
    model = scripted(tmp_path, "One.", "Two.", "Three.")
    result = program("run", write(tmp_path, source), "-m", model, "--budget-tokens", 30, "--json").json
    assert result["loops"]["loop"]["exit_reason"] == "budget"


def test_the_budget_in_dollars_and_a_model_of_unknown_price(program: Program, tmp_path: Path):
    script = {**drafts(*replies("One.")), "price": "unknown"}
    model = f"scripted:{write(tmp_path, script, 'script.json')}"
    file = write(tmp_path, refine(1))
    refused = program("run", file, "-m", model, "--budget-usd", 1)
    assert refused.code == 1
    assert "the price of the model" in refused.err
    allowed = program("run", file, "-m", model, "--budget-usd", 1, "--allow-unknown-price")
    assert allowed.code == 0
    assert allowed.out.splitlines()[-2].endswith(", 15 tokens, $?.")


def reader(path: str) -> dict[str, Any]:
    return document(
        [
            {"id": "read", "type": "tool", "config": {"tool": "read_file", "arguments": {"path": path}}},
            {"id": "result", "type": "output"},
        ],
        ["read.output > result.value"],
    )


def test_file_tools_need_the_folder_option(program: Program, tmp_path: Path):
    (tmp_path / "note.txt").write_text("hello")
    ended = program("run", write(tmp_path, reader("note.txt")), "--allow")
    assert ended.code == 1
    assert "--folder" in ended.err
    assert "hello" not in ended.out


def test_file_tools_read_the_given_folder(program: Program, tmp_path: Path):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "note.txt").write_text("there")
    (tmp_path / "note.txt").write_text("here")
    file = write(tmp_path, reader("note.txt"))
    assert program("run", file, "--allow", "--json", "--folder", tmp_path / "other").json["outputs"] == {
        "result": "there"
    }


def test_code_runs_only_if_allowed(program: Program, tmp_path: Path):
    code = {"id": "code", "type": "tool", "config": {"tool": "python", "arguments": {"code": "print(6 * 7)"}}}
    file = write(tmp_path, document([code, {"id": "result", "type": "output"}], ["code.output > result.value"]))
    refused = program("run", file, "--allow")
    assert refused.code == 2
    assert mentions(refused.err, '"Tool" may call … "python", which runs code'), refused.err
    allowed = program("run", file, "--json", "--allow-code")
    assert allowed.json["outputs"] == {"result": {"exit_code": 0, "stdout": "42\n", "stderr": ""}}


@pytest.mark.parametrize("template", sorted(file.name for file in templates_folder().glob("*.loop.json")))
def test_every_bundled_template_is_found_by_its_name_and_has_no_problems(program: Program, template: str):
    name = template.removesuffix(".loop.json")
    assert program("validate", name, template).out == f"{name}: no problems\n{template}: no problems\n"


def test_file_with_the_single_suffix_runs(program: Program, tmp_path: Path):
    file = write(tmp_path, echo("text", "mine"), "mine.loopwright")
    assert program("run", file, "--json").json["outputs"] == {"result": "mine"}


def test_file_takes_precedence_over_a_template(program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path, echo("text", "mine"), "self-refine")
    assert program("run", "self-refine", "--json").json["outputs"] == {"result": "mine"}


def test_a_name_that_is_neither_file_nor_template_is_exit_code_2(program: Program):
    ended = program("run", "self-refin")
    assert (ended.code, ended.out) == (2, "")
    assert mentions(ended.err, 'no file … template "self-refin"'), ended.err


def test_missing_path_is_reported_as_a_file(program: Program):
    ended = program("run", "no/such.loop.json")
    assert ended.code == 2
    assert mentions(ended.err, "no/such.loop.json: … cannot be opened: … no such file"), ended.err


@pytest.mark.parametrize("name", ["a\0b", "x" * 5000, ".", "/dev/null", ""])
def test_path_that_is_not_a_workflow_is_one_sentence(program: Program, name: str):
    ended = program("run", name)
    assert ended.code == 2
    assert ended.err.count("\n") == 1
    assert "fault" not in ended.err


def test_validate_lists_every_problem_of_every_file(program: Program, tmp_path: Path):
    good = write(tmp_path, refine(), "good.loop.json")
    source = refine(99)
    source["edges"].append({"from": "draft.output", "to": "answer.value"})
    source["nodes"][0]["config"]["colour"] = "red"
    bad = write(tmp_path, source, "bad.loop.json")
    broken = tmp_path / "broken.loop.json"
    broken.write_text("{")
    ended = program("validate", good, bad, broken)
    assert ended.code == 2
    lines = ended.out.splitlines()
    assert lines[0] == f"{good}: no problems"
    assert any(line.startswith(f"{bad}: error: ") and "draft.output -> answer.value" in line for line in lines)
    assert any(line.startswith(f"{bad}: warning: ") and 'field "colour"' in line for line in lines)
    assert any(line.startswith(f"{bad}: warning: ") and 'field "max_iterations"' in line for line in lines)
    assert lines[-1] == f"{broken}: 1 error"
    validated = program("validate", good, bad, broken, "--json")
    assert validated.code == 2
    assert validated.json["ok"] is False
    assert [Path(each["file"]).name for each in validated.json["files"]] == [
        "good.loop.json",
        "bad.loop.json",
        "broken.loop.json",
    ]
    assert {problem["place"] for problem in validated.json["files"][1]["problems"]} >= {
        'node "task", field "colour"',
        'node "loop", field "max_iterations"',
    }


def test_validate_accepts_a_file_with_only_warnings(program: Program, tmp_path: Path):
    ended = program("validate", write(tmp_path, refine(99)))
    assert ended.code == 0
    assert ended.out.endswith(": 1 warning\n")


def test_validate_reports_a_missing_file(program: Program):
    ended = program("validate", "no/such.loop.json", "--json")
    assert ended.code == 2
    (problem,) = ended.json["files"][0]["problems"]
    assert problem["code"] == "cannot-open"
    assert "there is no such file" in problem["message"]


def test_patterns_are_replaced_by_files_where_no_shell_does_that(tmp_path: Path):
    for name in ("b.loop.json", "a.loop.json", "c.txt"):
        write(tmp_path, {}, name)
    pattern, other = str(tmp_path / "*.loop.json"), "self-refine"
    files = [str(tmp_path / "a.loop.json"), str(tmp_path / "b.loop.json")]
    assert expand_patterns([pattern, other], on_windows=True) == [*files, other]
    assert expand_patterns([pattern, other], on_windows=False) == [pattern, other]


def test_validate_names_a_file_that_cannot_be_opened_once(program: Program):
    first, last = program("validate", "such.loop.json").out.splitlines()
    assert first.count("such.loop.json") == last.count("such.loop.json") == 1


def test_model_text_is_never_markup(program: Program, tmp_path: Path):
    model = scripted(tmp_path, "[red]x[/red] [/] \x1b]0;title\x07 :smile:")
    ended = program("run", write(tmp_path, refine(1)), "-m", model)
    assert ended.code == 0
    assert "[red]x[/red] [/] \\x1b]0;title\\x07 :smile:" in ended.out
    assert "\x1b" not in ended.out


def test_warnings_are_repeated_at_the_end(program: Program, tmp_path: Path):
    model = scripted(tmp_path, "One.", "Two.")
    flagged = refine(2, until="size(output) > 1000", on_max_iterations="return_with_flag")
    ended = program("run", write(tmp_path, flagged), "-m", model)
    assert (ended.code, ended.err.count("\n")) == (0, 1)
    assert mentions(ended.err, "Warning: loop: … not converge … 2 iterations"), ended.err


def chain(folder: Path, **draft: Any) -> Path:
    """A workflow of two model nodes: task -> plan -> draft -> answer."""
    nodes = [
        {"id": "task", "type": "input"},
        {"id": "plan", "type": "llm", "config": {"prompt": "Plan: {{input}}", "retries": 0}},
        {"id": "draft", "type": "llm", "config": {"prompt": "Draft: {{input}}", "retries": 0, **draft}},
        {"id": "answer", "type": "output"},
    ]
    return write(
        folder, document(nodes, ["task.value > plan.input", "plan.output > draft.input", "draft.output > answer.value"])
    )


def echo_model(folder: Path) -> str:
    """A model that names the node in its reply."""
    rules = [{"node": "plan", "replies": ["The plan."]}, {"node": "draft", "replies": ["The draft."]}]
    return f"scripted:{write(folder, {'rules': rules}, 'script.json')}"


PARTS = [("from", "draft"), ("only", "draft"), ("until", "plan")]


def test_a_part_of_a_workflow_runs_with_values_of_the_last_run(program: Program, tmp_path: Path):
    run = ("run", chain(tmp_path), "--model", echo_model(tmp_path), "--store", tmp_path / "history")
    first = program(*run, "-i", "task=x", "--until", "plan")
    assert (first.code, first.err) == (0, "")
    assert "Running Sample up to plan" in first.out
    assert "\noutput:\nThe plan.\n" in first.out
    assert "answer:" not in first.out
    second = program(*run, "--only", "draft", "--json")
    assert second.code == 0
    assert "are used for: task, plan." in second.err
    assert second.json["part"] == {"extent": "only", "node": "draft", "outputs": second.json["part"]["outputs"]}
    assert second.json["part"]["outputs"]["output"] == "The draft."
    assert second.json["outputs"] == {}
    third = program(*run, "--from", "draft", "--json")
    assert third.json["outputs"] == {"answer": "The draft."}

    stored = ("--store", tmp_path / "history")
    runs = program("runs", "--json", *stored).json["runs"]
    assert [run["part"] for run in runs] == [{"extent": extent, "node": node} for extent, node in PARTS]
    assert [line for line in program("runs", *stored).out.splitlines() if "Sample, only draft" in line]
    shown = program("runs", "show", second.json["run_id"], *stored).out.splitlines()
    assert f"Only draft, with outputs of {runs[2]['run_id']}." in shown
    assert [line for line in shown if line.startswith("Partial run from draft: ")]


def test_the_output_of_a_part_is_shown_exported_and_compared(program: Program, tmp_path: Path):
    run = ("run", chain(tmp_path), "--model", echo_model(tmp_path), "--store", tmp_path / "history")
    plan = program(*run, "-i", "task=x", "--until", "plan", "--json").json["run_id"]
    draft = program(*run, "--only", "draft", "--json").json["run_id"]
    stored = ("--store", tmp_path / "history")
    assert "\noutput:\nThe draft.\n" in program("runs", "show", draft, *stored).out
    assert program("runs", "show", draft, "--json", *stored).json["part"]["outputs"]["output"] == "The draft."
    page = program("runs", "export", draft, "--to", "markdown", *stored).out
    assert "## Results\n\n### output\n\n```text\nThe draft.\n```" in page
    assert "{+draft+}" in program("runs", "diff", plan, draft, *stored).out


@pytest.mark.parametrize("node", ["loop", "draft", "exit"])
def test_a_node_of_a_loop_has_the_output_of_the_loop(program: Program, tmp_path: Path, node: str):
    script = write(tmp_path, drafts("One.", "Two.", "Three."), "script.json")
    run = ("run", write(tmp_path, refine(2)), "-m", f"scripted:{script}", "--store", tmp_path / "history")
    ended = program(*run, "-i", "task=x", "--until", node, "--json")
    assert (ended.json["outputs"], ended.json["part"]["outputs"]["output"]) == ({}, "Two.")
    shown = program("runs", "show", ended.json["run_id"], "--store", tmp_path / "history").out
    assert shown.endswith("output:\nTwo.\n")


def test_missing_values_are_refused_with_the_way_to_get_them(program: Program, tmp_path: Path):
    run = ("run", chain(tmp_path), "--model", echo_model(tmp_path), "--store", tmp_path / "history")
    ended = program(*run, "-i", "task=x", "--only", "draft")
    assert ended.code == 2
    assert "plan" in ended.err
    assert "--until" in ended.err
    several = program(*run, "--only", "draft", "--from", "draft")
    assert (several.code, "--only" in several.err) == (2, True)
    assert "Missing: plan." in ended.err
    nowhere = program(*run, "--until", "nowhere")
    assert (nowhere.code, "nowhere" in nowhere.err) == (2, True)


def test_a_node_is_named_by_its_title(program: Program, tmp_path: Path):
    model = {"type": "llm", "config": {"prompt": "{{input}}", "retries": 0}}
    nodes = [{"id": "task", "type": "input"}, {"id": "a", "title": "Two words", **model}]
    nodes += [{"id": "b", "title": "Twice", **model}, {"id": "c", "title": "Twice", **model}]
    file = write(tmp_path, document(nodes, ["task.value > a.input", "a.output > b.input", "b.output > c.input"]))
    run = ("run", file, "--model", scripted(tmp_path, "One."), "--store", tmp_path / "history", "-i", "task=x")
    assert program(*run, "--until", "two words", "--json").json["part"]["node"] == "a"
    twice = program(*run, "--until", "Twice")
    assert (twice.code, "b, c" in twice.err) == (2, True)
    assert program(*run, "--until", "Twicer").code == 2


def test_a_part_runs_although_other_nodes_have_errors(program: Program, tmp_path: Path):
    run = ("run", chain(tmp_path, temperature="warm"), "--model", echo_model(tmp_path), "--store", tmp_path / "history")
    assert program(*run, "-i", "task=x", "--until", "plan").code == 0
    assert program(*run, "-i", "task=x", "--until", "draft").code == 2
