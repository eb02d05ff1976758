"""`loopwright import`: converting files of other programs, with a report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.document.files import load
from tests.engine.cli.kit import Program, write
from tests.engine.importing.samples import DEV_CYCLE, evaluated
from tests.wording import mentions


@pytest.fixture
def canvas_file(tmp_path: Path) -> Path:
    file = tmp_path / "refine.json"
    file.write_text(evaluated(maxIterations=99), encoding="utf-8")
    return file


def test_imported_canvas_is_saved_beside_the_file_and_runs(program: Program, canvas_file: Path, tmp_path: Path) -> None:
    ended = program("import", canvas_file)
    assert ended.code == 0
    target = tmp_path / "refine.loop.json"
    assert "changed: node loop-1, maxIterations: max_iterations: 50.\n" in ended.out
    assert ended.err.startswith(f"{target}: React Flow canvas: ")
    assert ended.err.endswith("No problems.\n")
    replies = [{"branch": "continue", "reason": "dull"}, {"branch": "done", "reason": "fine"}]
    script = write(
        tmp_path,
        {
            "rules": [
                {"node": "draft", "replies": ["one", "two"]},
                {"node": "judge", "replies": [{"json": reply} for reply in replies]},
            ]
        },
        "replies.json",
    )
    run = program("run", target, "-i", "topic=tea", "--model", f"scripted:{script}", "--json")
    assert run.json["outputs"] == {"Text": "two", "Rounds": 2}


def test_import_report_as_json(program: Program, canvas_file: Path, tmp_path: Path) -> None:
    messages = program("import", canvas_file, "-o", tmp_path / "x.loop.json", "--json").json
    assert messages["file"] == str(tmp_path / "x.loop.json")
    assert messages["problems"] == []
    assert {"fate", "place", "message"} == set(messages["report"][0])


def test_imported_yaml_is_saved_to_the_output_option(program: Program, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(DEV_CYCLE, encoding="utf-8")
    assert program("import", tmp_path / "a.yaml", "-o", tmp_path / "b.loop.json").code == 0
    assert load(tmp_path / "b.loop.json").name == "build-until-fine"


def test_existing_file_is_replaced_only_with_force(program: Program, canvas_file: Path, tmp_path: Path) -> None:
    target = tmp_path / "refine.loop.json"
    target.write_text("mine", encoding="utf-8")
    ended = program("import", canvas_file)
    assert (ended.code, ended.out) == (2, "")
    assert "--force" in ended.err
    assert target.read_text(encoding="utf-8") == "mine"
    assert program("import", canvas_file, "--force").code == 0
    assert json.loads(target.read_text(encoding="utf-8"))["format"] == "loopwright.workflow"


def test_malicious_file_is_refused_in_one_sentence_and_leaves_no_file(program: Program, tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("a: !!python/object/apply:os.system ['true']", encoding="utf-8")
    ended = program("import", tmp_path / "bad.yaml")
    assert ended.code == 2
    assert ended.err.count("\n") == 1
    assert "python/object" in ended.err
    assert [file.name for file in tmp_path.iterdir()] == ["bad.yaml"]


def test_problems_of_the_imported_workflow_are_listed(program: Program, tmp_path: Path) -> None:
    text = {"nodes": [{"id": "x", "type": "quantum"}], "edges": []}
    ended = program("import", write(tmp_path, text, "odd.json"))
    assert ended.code == 0
    assert 'left out: node x: The node type "quantum" does not exist here' in ended.out
    assert "1 error" in ended.err


@pytest.mark.parametrize("file", [".", "/", ""])
def test_folder_cannot_be_imported(program: Program, file: str) -> None:
    ended = program("import", file)
    assert ended.code == 2
    assert "This is a folder" in ended.err


def test_impossible_file_name_is_one_sentence(program: Program, canvas_file: Path, tmp_path: Path) -> None:
    ended = program("import", canvas_file, "-o", tmp_path / ("n" * 300))
    assert ended.code == 2
    assert mentions(ended.err, "cannot be saved: … too long"), ended.err
