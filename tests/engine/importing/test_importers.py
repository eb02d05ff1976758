"""The contract of importers: every registered one, and what follows from its declaration."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.reference_pages import pages
from engine import DocumentError, loads, validate
from engine.document.files import dumps
from engine.document.model import Workflow
from engine.document.problems import has_errors
from engine.importing import importers
from engine.importing.reader import import_file, import_text, looks_importable
from engine.importing.report import ImportReport, Outcome
from engine.importing.safe_yaml import read_yaml
from engine.importing.spec import ImporterSpec
from tests.engine.cli.kit import Program

EVERY = pytest.mark.parametrize("spec", importers.importers(), ids=lambda spec: spec.name)
VALUES: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["nodes", "edges", "steps", "data", "graph", "id", "x"]), inner, max_size=4)
    ),
)


@EVERY
def test_only_its_own_importer_recognizes_an_example(spec: ImporterSpec) -> None:
    value = read_yaml(spec.example, "example")
    assert [one.name for one in importers.importers() if one.recognize(value) is not None] == [spec.name]


@EVERY
def test_an_example_becomes_a_workflow_without_errors_that_can_be_saved(spec: ImporterSpec) -> None:
    imported = import_text(spec.example)
    assert imported.importer is spec
    assert not has_errors(validate(imported.workflow))
    assert loads(dumps(imported.workflow)) == imported.workflow
    assert imported.to_json()["form"] == spec.label


@pytest.fixture
def program(capsys: pytest.CaptureFixture[str]) -> Program:
    return Program(capsys)


@EVERY
def test_an_unknown_member_is_reported_as_left_out(spec: ImporterSpec) -> None:
    root: Any = read_yaml(spec.example, "example")
    entries = import_text(json.dumps({**root, "unheard_of": 1})).entries
    assert ("unheard_of", Outcome.LEFT_OUT) in [(entry.place, entry.outcome) for entry in entries]


@EVERY
def test_every_member_of_an_example_is_reported(spec: ImporterSpec) -> None:
    root: Any = read_yaml(spec.example, "example")
    entries = import_text(spec.example).entries
    assert all(entry.place and entry.message for entry in entries)
    containers = {"nodes", "edges", "steps", "agents", "options"}
    assert {key for key in root if key not in containers} <= {entry.place for entry in entries}


@EVERY
@given(value=VALUES)
def test_recognizing_never_fails(spec: ImporterSpec, value: Any) -> None:
    assert spec.recognize(value) is None or isinstance(spec.recognize(value), dict)


@EVERY
def test_files_with_its_suffixes_are_offered_for_import(spec: ImporterSpec, tmp_path: Path) -> None:
    for suffix in spec.suffixes:
        file = tmp_path / f"other{suffix}"
        content = spec.example if suffix != ".json" else json.dumps(read_yaml(spec.example, "example"))
        file.write_text(content, encoding="utf-8")
        assert looks_importable(file)
        assert import_file(file).importer is spec


@EVERY
def test_errors_help_and_reference_name_it(spec: ImporterSpec, program: Program, tmp_path: Path) -> None:
    with pytest.raises(DocumentError) as unknown:
        import_text("{}")
    assert spec.summary in unknown.value.remedy
    assert spec.label in " ".join(program("import", "--help").out.replace("│", " ").split())
    page = pages()["import-formats.md"]
    assert all(part in page for part in (f"## {spec.label}", spec.help, spec.review, spec.example))


def _convert(_root: dict[str, Any], _report: ImportReport, _source: str, name: str) -> Workflow:
    return Workflow(name=name)


def _spec(**changes: Any) -> ImporterSpec:
    settings: dict[str, Any] = {
        "name": "sample",
        "label": "sample file",
        "help": "A sample.",
        "suffixes": (".sample",),
        "recognize": lambda value: value if value == {"sample": True} else None,
        "convert": _convert,
        "review": "Check it.",
        "example": '{"sample": true}',
    }
    return ImporterSpec(**{**settings, **changes})


@pytest.fixture
def added(monkeypatch: pytest.MonkeyPatch) -> None:
    """Restore the registry after the test."""
    monkeypatch.setattr(importers, "_importers", dict(importers._importers))


@pytest.mark.usefixtures("added")
def test_an_added_importer_is_used_like_a_built_in_one(tmp_path: Path) -> None:
    importers.add_importer(_spec())
    file = tmp_path / "a.sample"
    file.write_text('{"sample": true}', encoding="utf-8")
    assert looks_importable(file)
    assert import_file(file).workflow.name == "a"
    with pytest.raises(DocumentError) as unknown:
        import_text("{}")
    assert "sample file (.sample)" in unknown.value.remedy


@pytest.mark.usefixtures("added")
def test_a_name_is_unique() -> None:
    importers.add_importer(_spec())
    with pytest.raises(ValueError, match="sample"):
        importers.add_importer(_spec(label="another"))


@pytest.mark.parametrize("suffixes", [(), ("json",), (".JSON",), ("*.json",)])
def test_a_suffix_is_a_dot_and_small_letters(suffixes: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="sample"):
        _spec(suffixes=suffixes)


@pytest.mark.usefixtures("added")
@pytest.mark.parametrize("failing", ["recognize", "convert"])
def test_an_added_importer_that_fails_is_an_error_of_its_plugin(failing: str) -> None:
    def fail(*_: object) -> Any:
        raise KeyError("secret")

    importers.add_importer(_spec(**{failing: fail}))
    with pytest.raises(DocumentError) as failed:
        import_text('{"sample": true}')
    assert 'importer "sample"' in failed.value.message
    assert "KeyError" in failed.value.message
    assert "secret" not in str(failed.value)


def test_a_fault_of_a_built_in_importer_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> Any:
        raise KeyError("nodes")

    monkeypatch.setattr("engine.importing.reactflow.convert_canvas", fail)
    with contextlib.suppress(DocumentError), pytest.raises(KeyError):
        import_text(importers.BUILT_IN[0].example)
