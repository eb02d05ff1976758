"""`-` stands for standard input where a command reads a file."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from engine.cli import arguments
from engine.document.files import load
from tests.engine.cli.kit import Program, document, echo, process, refine, write
from tests.engine.importing.samples import DEV_CYCLE
from tests.wording import mentions


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOOPWRIGHT_STORE", str(tmp_path / "history.sqlite3"))


@pytest.fixture
def pipe(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Puts content on standard input."""

    def put(content: bytes | str | dict[str, Any]) -> None:
        text = json.dumps(content) if isinstance(content, dict) else content
        raw = text.encode() if isinstance(text, str) else text
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(raw)))

    return put


@pytest.mark.parametrize("command", [("validate", "-"), ("run", "-")])
@pytest.mark.parametrize("content", ["", " \n"])
def test_empty_standard_input_is_called_so(program: Program, pipe: Any, command: tuple[str, ...], content: str) -> None:
    pipe(content)
    ended = program(*command)
    assert ended.code == 2
    assert ended.err.startswith("Standard input is empty. Pipe ")


def test_workflow_runs_and_is_stored_without_a_file(program: Program, pipe: Any) -> None:
    pipe(echo("text", "piped"))

    ended = program("run", "-", "--json")

    assert ended.json["outputs"] == {"result": "piped"}
    (run,) = program("runs", "--json").json["runs"]
    assert run["source"] == ""


def test_subflows_are_relative_to_the_current_folder(
    program: Program, pipe: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "parts").mkdir()
    write(tmp_path / "parts", echo("text", "inner"), "inner.loopwright")
    nodes = [
        {"id": "part", "type": "subflow", "config": {"file": "parts/inner.loopwright"}},
        {"id": "out", "type": "output"},
    ]
    pipe(document(nodes, ["part.result > out.value"]))

    assert program("run", "-", "--json", "--allow").json["outputs"] == {"out": "inner"}


@pytest.mark.parametrize("command", [["validate", "-"], ["graph", "-"], ["export", "-", "--to", "python"]])
def test_other_commands_read_a_workflow(program: Program, pipe: Any, command: list[str]) -> None:
    pipe(refine())

    assert program(*command).code == 0


def test_input_is_a_piped_text(program: Program, pipe: Any, tmp_path: Path) -> None:
    pipe("eine Zeile\r\nnoch eine: ü\n")

    outputs = program("run", write(tmp_path, echo()), "-i", "value=@-", "--json").json["outputs"]

    assert outputs == {"result": "eine Zeile\nnoch eine: ü\n"}


@pytest.mark.parametrize(
    "table",
    ["value\none\ntwo\n", "value;n\none;1\ntwo;2\n", '{"value": "one"}\n{"value": "two"}\n'],
    ids=["csv", "semicolons", "lines"],
)
def test_batch_reads_a_piped_table(program: Program, pipe: Any, tmp_path: Path, table: str) -> None:
    pipe(table)

    ended = program("batch", write(tmp_path, echo()), "-", "-o", tmp_path / "out.jsonl")

    assert ended.code == 0, ended.err
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [row["inputs"]["value"] for row in rows] == ["one", "two"]


def test_piped_file_of_another_program_is_imported(program: Program, pipe: Any, tmp_path: Path) -> None:
    pipe(DEV_CYCLE)

    assert program("import", "-", "-o", tmp_path / "b.loop.json").code == 0

    assert load(tmp_path / "b.loop.json").name == "build-until-fine"


def test_piped_run_is_imported(program: Program, pipe: Any, tmp_path: Path) -> None:
    run_id = program("run", write(tmp_path, echo("text", "mine")), "--json").json["run_id"]
    exported = program("runs", "export", run_id, "--to", "json").out
    program("runs", "delete", run_id, "--yes")
    pipe(exported)

    ended = program("runs", "import", "-")

    assert ended.out == f"Imported as {run_id}.\n"
    assert program("runs", "show", run_id).code == 0


@pytest.mark.parametrize(
    "command",
    [
        ["run", "-"],
        ["validate", "-"],
        ["run", "{file}", "-i", "value=@-"],
        ["batch", "{file}", "-"],
        ["import", "-", "-o", "{file}.out"],
        ["runs", "import", "-"],
    ],
)
def test_terminal_as_standard_input_is_refused(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    file = str(write(tmp_path, echo()))
    monkeypatch.setattr("sys.stdin", Terminal())

    ended = program(*(part.replace("{file}", file) for part in command))

    assert ended.code == 2
    assert "nothing is piped" in ended.err


def test_standard_input_is_used_once(program: Program, pipe: Any) -> None:
    pipe(echo())

    ended = program("run", "-", "-i", "value=@-")

    assert ended.code == 2
    assert "for two arguments" in ended.err


def test_batch_cannot_read_workflow_and_table_from_standard_input(program: Program, pipe: Any) -> None:
    pipe("value\none\n")

    ended = program("batch", "-", "-")

    assert ended.code == 2
    assert "for two arguments" in ended.err


@pytest.mark.parametrize(("table", "reason"), [("", "Standard input is empty"), ("value\n", "standard input: ")])
def test_batch_names_a_piped_table_without_rows(
    program: Program, pipe: Any, tmp_path: Path, table: str, reason: str
) -> None:
    pipe(table)

    ended = program("batch", write(tmp_path, echo()), "-")

    assert ended.code == 2
    assert ended.err.startswith(reason)


def test_too_large_and_invalid_content_is_refused(
    program: Program, pipe: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(tmp_path, echo())
    pipe(b"\xff\xfe\x00")
    assert '"-" for the input "value" cannot be read' in program("run", file, "-i", "value=@-").err
    pipe("{")
    assert mentions(program("run", "-").err, "standard input: … not JSON")
    monkeypatch.setattr(arguments, "MAX_BYTES", 1_000_000)
    pipe(" " * 1_000_001)
    assert "more than 1 MB" in program("run", "-").err


def test_import_from_standard_input_needs_a_name(program: Program, pipe: Any) -> None:
    pipe("{}")

    ended = program("import", "-")

    assert ended.code == 2
    assert "-o" in ended.err


def test_a_real_pipe_is_read(tmp_path: Path) -> None:
    done = process("run", "-", "--json", given=json.dumps(echo("text", "real")).encode(), cwd=tmp_path)

    assert json.loads(done.stdout)["outputs"] == {"result": "real"}
