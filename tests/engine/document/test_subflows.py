"""Copies of other workflows in a document are refreshed from their files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from engine import Workflow, dumps, load, save
from engine.document import subflows
from engine.document.subflows import refresh_subflows, with_moved_files
from tests.engine.semantics.documents import entry, flow, part, result, transform


def plain(template: str = "{{input}}") -> Workflow:
    return flow(entry("given"), transform("made", template), result("out"), edges="given -> made -> out")


def outer(file: str, **config: Any) -> Workflow:
    parts = (entry(), part("part", "subflow", file=file, **config), result())
    return flow(*parts, edges="text -> part.given\npart.out -> out")


def put(folder: Path, name: str, workflow: Workflow) -> Path:
    save(workflow, folder / name)
    return folder / name


def copy_in(workflow: Workflow, *ids: str) -> Any:
    node = workflow.node(ids[0])
    for node_id in ids[1:]:
        node = Workflow.model_validate(node.config["workflow"]).node(node_id)
    return node.config.get("workflow")


def test_copy_is_the_file_without_layout_and_follows_it(tmp_path: Path) -> None:
    inner = plain().model_copy(update={"layout": {"made": [1, 2]}})
    put(tmp_path, "inner.loopwright", inner)
    path = put(tmp_path, "outer.loopwright", outer("inner.loopwright"))
    first, problems = refresh_subflows(load(path), path)
    assert problems == []
    assert copy_in(first, "part") == {key: value for key, value in inner.to_json().items() if key != "layout"}
    again, _ = refresh_subflows(first, path)
    assert again is first

    put(tmp_path, "inner.loopwright", plain("{{input}}!"))
    changed, _ = refresh_subflows(first, path)
    assert copy_in(changed, "part")["nodes"][1]["config"] == {"template": "{{input}}!"}


def test_subflow_files_are_relative_to_their_document(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    put(tmp_path / "parts", "deep.loop.json", plain())
    put(tmp_path / "parts", "middle.loop.json", outer("deep.loop.json"))
    path = put(tmp_path, "outer.loop.json", outer("parts/middle.loop.json"))
    workflow, problems = refresh_subflows(load(path), path)
    assert problems == []
    assert copy_in(workflow, "part", "part")["name"] == "test"


def test_path_with_the_separators_of_windows_leads_to_the_same_file(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    put(tmp_path / "parts", "inner.loop.json", plain())
    path = put(tmp_path, "outer.loop.json", outer("parts\\inner.loop.json"))
    workflow, problems = refresh_subflows(load(path), path)
    assert (problems, copy_in(workflow, "part")["name"]) == ([], "test")


def test_missing_file_is_an_error_without_a_copy_and_a_warning_with_one(tmp_path: Path) -> None:
    path = tmp_path / "outer.loop.json"
    bare = outer("gone.loop.json")
    same, (problem,) = refresh_subflows(bare, path)
    assert same is bare
    assert (problem.severity, problem.node, problem.field) == ("error", "part", "file")
    assert "gone.loop.json: The file cannot be opened" in problem.message

    kept = outer("gone.loop.json", workflow=plain().to_json())
    same, (problem,) = refresh_subflows(kept, path)
    assert same is kept
    assert problem.severity == "warning"
    assert problem.message.endswith("this document is used.")


def test_missing_file_of_a_disabled_subflow_is_a_warning(tmp_path: Path) -> None:
    bare = outer("gone.loop.json")
    off = bare.model_copy(update={"nodes": tuple(n.model_copy(update={"enabled": n.id != "part"}) for n in bare.nodes)})

    _, (problem,) = refresh_subflows(off, tmp_path / "outer.loop.json")

    assert (problem.severity, problem.node) == ("warning", "part")


def test_error_in_a_subflow_file_is_reported_before_a_warning(tmp_path: Path) -> None:
    kept = part("kept", "subflow", file="gone.loop.json", workflow=plain().to_json())
    bare = part("bare", "subflow", file="lost.loop.json")
    inner = flow(entry("given"), kept, bare, result("out"), edges="given -> kept.given\ngiven -> out")
    put(tmp_path, "inner.loop.json", inner)

    _, (problem,) = refresh_subflows(outer("inner.loop.json"), tmp_path / "outer.loop.json")

    assert (problem.severity, "lost.loop.json" in problem.message) == ("error", True)


def test_workflow_that_contains_itself_is_an_error(tmp_path: Path) -> None:
    path = put(tmp_path, "self.loop.json", outer("self.loop.json"))
    _, (problem,) = refresh_subflows(load(path), path)
    assert (problem.code, problem.severity) == ("contains-itself", "error")
    assert problem.message == 'The workflow "self.loop.json" contains itself.'

    put(tmp_path, "a.loop.json", outer("b.loop.json"))
    put(tmp_path, "b.loop.json", outer("a.loop.json"))
    _, (problem,) = refresh_subflows(load(tmp_path / "a.loop.json"), tmp_path / "a.loop.json")
    assert (problem.code, problem.severity, problem.node) == ("contains-itself", "error", "part")
    assert problem.message == 'In "b.loop.json": The workflow "a.loop.json" contains itself.'


@pytest.mark.parametrize("file", ["/etc/passwd", "\\\\host\\x.loop.json", "C:\\x.loop.json", "//host/x.loop.json"])
def test_file_on_another_drive_or_machine_is_not_opened(tmp_path: Path, file: str) -> None:
    _, (problem,) = refresh_subflows(outer(file), tmp_path / "outer.loop.json")
    assert (problem.code, problem.severity) == ("subflow-elsewhere", "error")


def test_file_that_is_no_workflow_is_reported(tmp_path: Path) -> None:
    (tmp_path / "odd.loop.json").write_text(json.dumps([1]), encoding="utf-8")
    _, (problem,) = refresh_subflows(outer("odd.loop.json"), tmp_path / "outer.loop.json")
    assert "The document is a list, not a JSON object." in problem.message


@pytest.mark.parametrize("file", ["a\0b.loop.json", "\ud800.loop.json", "round.loop.json"])
def test_invalid_names_and_circular_links_are_reported(tmp_path: Path, file: str) -> None:
    (tmp_path / "round.loop.json").symlink_to("round.loop.json")
    same, (problem,) = refresh_subflows(outer(file), tmp_path / "outer.loop.json")
    assert copy_in(same, "part") is None
    assert (problem.code, problem.severity) == ("subflow-not-read", "error")
    assert "The file cannot be opened" in problem.message


def test_files_with_many_references_are_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    many = [part(f"part_{number}", "subflow", file="NEXT") for number in range(4)]
    for level in range(5):
        inner = flow(entry("given"), *many, result("out"), edges="given -> out")
        text = dumps(inner).replace("NEXT", f"level_{level + 1}.loop.json")
        (tmp_path / f"level_{level}.loop.json").write_text(text, encoding="utf-8")
    put(tmp_path, "level_5.loop.json", plain())
    read: list[str] = []
    monkeypatch.setattr(subflows, "load", lambda file: read.append(file.name) or load(file))

    path = tmp_path / "level_0.loop.json"
    now, problems = refresh_subflows(load(path), path)

    assert problems == []
    assert read == [f"level_{level}.loop.json" for level in range(1, 6)]
    assert copy_in(now, "part_3", "part_2", "part_1", "part_0", "part_3")["nodes"][1]["id"] == "made"


@pytest.mark.parametrize(
    ("file", "new", "expected"),
    [
        ("inner.loop.json", "b/outer.loop.json", "../a/inner.loop.json"),
        ("parts/inner.loop.json", "outer.loop.json", "a/parts/inner.loop.json"),
        ("../b/inner.loop.json", "b/outer.loop.json", "inner.loop.json"),
        ("inner.loop.json", "a/renamed.loop.json", None),
        ("/elsewhere/inner.loop.json", "b/outer.loop.json", None),
        ("//host/share/inner.loop.json", "b/outer.loop.json", None),
        (" ", "b/outer.loop.json", None),
    ],
)
def test_paths_of_a_moved_document_lead_to_the_same_files(
    tmp_path: Path, file: str, new: str, expected: str | None
) -> None:
    workflow = outer(file)
    moved = with_moved_files(workflow, tmp_path / "a" / "outer.loop.json", tmp_path / new)
    assert moved.node("part").config["file"] == (file if expected is None else expected)
    assert (moved is workflow) == (expected is None)


def embedded(inner: Workflow) -> Workflow:
    """A workflow with a subflow `around` that has no file."""
    parts = (entry(), part("around", "subflow", workflow=json.loads(dumps(inner))), result())
    return flow(*parts, edges="text -> around.text\naround.out -> out")


def test_file_in_a_subflow_without_a_file_is_relative_to_the_document(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    put(tmp_path / "parts", "inner.loop.json", plain())
    path = put(tmp_path, "outer.loop.json", embedded(outer("parts/inner.loop.json")))
    first, problems = refresh_subflows(load(path), path)
    assert problems == []
    assert copy_in(first, "around", "part")["nodes"][1]["config"]["template"] == "{{input}}"
    put(tmp_path / "parts", "inner.loop.json", plain("{{input}}!"))
    again, _ = refresh_subflows(first, path)
    assert copy_in(again, "around", "part")["nodes"][1]["config"]["template"] == "{{input}}!"
    assert refresh_subflows(again, path)[0] is again
    _, (problem,) = refresh_subflows(embedded(outer("none.loop.json")), path)
    assert (problem.code, problem.node, problem.severity) == ("subflow-not-read", "around", "error")
    assert "none.loop.json" in problem.message


def test_paths_in_a_subflow_without_a_file_move_with_the_document(tmp_path: Path) -> None:
    workflow = embedded(embedded(outer("parts/inner.loop.json")))
    moved = with_moved_files(workflow, tmp_path / "outer.loop.json", tmp_path / "b" / "outer.loop.json")
    nested = Workflow.model_validate(copy_in(moved, "around", "around"))
    assert nested.node("part").config["file"] == "../parts/inner.loop.json"
    assert with_moved_files(workflow, tmp_path / "a.loop.json", tmp_path / "b.loop.json") is workflow
