from __future__ import annotations

import codecs
import csv
import errno
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import inputs_of_table, read_table
from engine.batch.results_file import ResultsFile
from engine.batch.rows import BatchRow, RowResult
from engine.batch.table import TableError
from engine.safe_file_io import replace_file
from tests.engine.semantics.documents import entry, flow, result

NAMES = ["out.csv", "out.jsonl", "out.xlsx"]
TEXTS = ["out.csv", "out.jsonl"]


def made(number: int = 1, **fields: Any) -> RowResult:
    usual: dict[str, Any] = {
        "row": number,
        "key": f"key{number}",
        "run_id": f"run{number}",
        "status": "completed",
        "inputs": {"topic": f"topic {number}"},
        "outputs": {"out": f"text {number}"},
        "score": 0.5,
        "iterations": 3,
        "exit_reason": "judge_done",
        "tokens": 10,
        "cost_usd": 0.25,
        "duration_s": 1.5,
    }
    return RowResult(**{**usual, **fields})


def results(path: Path, batch: str = "batch") -> ResultsFile:
    return ResultsFile(path, batch, ["topic"], ["out"])


def done(path: Path) -> dict[str, RowResult]:
    file = results(path)
    found = file.open()
    file.close(())
    return found


def write(path: Path, *rows: RowResult, order: tuple[str, ...] = ()) -> None:
    file = results(path)
    file.open()
    for row in rows:
        file.write(row)
    file.close(order)


@pytest.mark.parametrize("name", NAMES)
def test_written_rows_are_completed_when_reopened(tmp_path: Path, name: str):
    write(tmp_path / name, made(1), made(2, status="failed", error="It failed."))
    assert done(tmp_path / name) == {"key1": made(1, is_reused=True)}


@pytest.mark.parametrize("name", NAMES)
def test_rows_are_in_table_order_and_a_failed_row_appears_once(tmp_path: Path, name: str):
    path = tmp_path / name
    write(path, made(2), made(1, status="failed"), made(3))
    write(path, made(1), order=("key1", "key2"))
    assert [row["key"] for row in read_table(path).rows] == ["key1", "key2", "key3"]


@pytest.mark.parametrize("name", NAMES)
def test_results_can_be_the_table_of_a_batch(tmp_path: Path, name: str):
    file = ResultsFile(tmp_path / name, "batch", ["topic"], ["out"], ["topic", "status", "place"])
    file.open()
    file.write(made(1, extra={"topic": "other", "status": "open", "place": "Rome"}))
    file.close(())
    document = flow(entry("topic"), result(), edges="topic -> out")
    (row,) = inputs_of_table(document, read_table(tmp_path / name))
    assert row == {"topic": "topic 1"}
    extra = {"topic": "other", "table.status": "open", "place": "Rome", "output.out": "text 1", "status": "completed"}
    assert row.extra | extra == row.extra


@pytest.mark.parametrize("name", NAMES)
def test_each_row_is_on_disk_after_write(tmp_path: Path, name: str):
    file = results(tmp_path / name)
    file.open()
    file.write(made(1))
    assert set(done(tmp_path / name)) == {"key1"}
    file.close(())


@pytest.mark.parametrize("name", TEXTS)
@given(cut=st.integers(1, 400))
def test_truncated_file_gives_whole_rows(tmp_path_factory: pytest.TempPathFactory, name: str, cut: int):
    path = tmp_path_factory.mktemp("cut") / name
    write(path, made(1, outputs={"out": 'two\nlines, "quoted"'}), made(2))
    whole = path.read_bytes()
    path.write_bytes(whole[: max(len(whole) - cut, 0)])
    first_line_is_whole = name == "out.jsonl" or b"\n" in path.read_bytes()
    if path.stat().st_size and first_line_is_whole:
        found = done(path)
        assert set(found) in [set(), {"key1"}, {"key1", "key2"}]
        assert all(row.outputs == {"out": 'two\nlines, "quoted"'} for key, row in found.items() if key == "key1")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "text", ["=1+1", "+1", "-1", "@x", "'quoted", "'=x", "\ttab", 'a,b\n"c"\r\nd', "", "\ud800 half", "日本"]
)
def test_any_text_is_read_back(tmp_path: Path, name: str, text: str):
    write(tmp_path / name, made(1, outputs={"out": text}))
    (row,) = done(tmp_path / name).values()
    assert row.outputs["out"] in {text, text.encode("utf-8", "backslashreplace").decode()}


def test_no_cell_is_a_formula(tmp_path: Path):
    path = tmp_path / "out.csv"
    write(path, made(1, outputs={"out": "=HYPERLINK(1)"}, error="@sum", inputs={"topic": "+1"}, score=-1.0))
    assert path.read_bytes().startswith(codecs.BOM_UTF8)
    with path.open(newline="", encoding="utf-8-sig") as file:
        (row,) = csv.DictReader(file)
    assert (row["output.out"], row["error"], row["input.topic"], row["score"]) == (
        "'=HYPERLINK(1)",
        "'@sum",
        "'+1",
        "-1.0",
    )


def test_json_lines_keep_values(tmp_path: Path):
    path = tmp_path / "out.jsonl"
    write(path, made(1, outputs={"out": {"a": [1, None]}}, cost_usd=None))
    line = json.loads(path.read_text())
    assert (line["outputs"], line["cost_usd"], line["batch"]) == ({"out": {"a": [1, None]}}, None, "batch")


@pytest.mark.parametrize("name", NAMES)
def test_file_of_another_batch_is_unchanged(tmp_path: Path, name: str):
    path = tmp_path / name
    write(path, made(1))
    before = path.read_bytes()
    with pytest.raises(TableError, match="another batch"):
        results(path, "another").open()
    assert path.read_bytes() == before


@pytest.mark.parametrize(("name", "text"), [("out.csv", "a,b\n1,2\n"), ("out.jsonl", '{"a": 1}\n')])
def test_other_file_is_unchanged(tmp_path: Path, name: str, text: str):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(TableError, match="not a results file"):
        results(path).open()
    assert path.read_text() == text


def test_unwritable_path_is_reported(tmp_path: Path):
    with pytest.raises(TableError, match="cannot be written"):
        results(tmp_path / "none" / "out.csv").open()
    with pytest.raises(TableError, match="cannot be written"):
        results(tmp_path / "none" / "out.xlsx").open()


def extra(path: Path, columns: list[str], *rows: RowResult) -> dict[str, RowResult]:
    file = ResultsFile(path, "batch", ["topic"], ["out"], columns)
    found = file.open()
    for row in rows:
        file.write(row)
    file.close([row.key for row in rows])
    return found


@pytest.mark.parametrize("name", NAMES)
def test_extra_columns_are_copied_under_unique_names(tmp_path: Path, name: str):
    cells = {"id": "007", "score": "=1", "table.score": "'x", "input.topic": "b", "': odd;name": "c", "key": "mine"}
    extra(tmp_path / name, list(cells), made(1, extra=cells))
    (row,) = read_table(tmp_path / name).rows
    if name == "out.jsonl":
        assert json.loads((tmp_path / name).read_text())["extra"] == cells
        assert list(cells.values()) == list(row.values())[-len(cells) :]
    else:
        assert list(row)[2:8] == [
            "id",
            "table.score",
            "table.table.score",
            "table.input.topic",
            "': odd;name",
            "table.key",
        ]
        assert [*list(row.values())[2:8], row["score"], row["key"]] == [
            *cells.values(),
            *list(row.values())[-10:-9],
            "key1",
        ]
    assert extra(tmp_path / name, list(cells))["key1"].extra == cells


def other_columns(row: dict[str, Any]) -> dict[str, Any]:
    return row.get("extra", row)


@pytest.mark.parametrize("name", NAMES)
def test_columns_may_change_when_a_batch_resumes(tmp_path: Path, name: str):
    extra(tmp_path / name, ["id", "old"], made(1, extra={"id": 1, "old": "x"}), made(2, extra={"id": 2, "old": "y"}))
    found = extra(tmp_path / name, ["id", "new"], made(3, extra={"id": 3, "new": "z"}))
    assert set(found) == {"key1", "key2"}
    rows = read_table(tmp_path / name).rows
    assert [row["key"] for row in rows] == ["key3", "key1", "key2"]
    others = [other_columns(row) for row in rows]
    assert [str(cells["id"]) for cells in others] == ["3", "1", "2"]
    assert others[0]["new"] == "z"


@pytest.mark.parametrize("name", NAMES)
def test_moved_row_gets_its_new_place_and_cells(tmp_path: Path, name: str):
    extra(tmp_path / name, ["id"], made(1, extra={"id": "a"}))
    file = ResultsFile(tmp_path / name, "batch", ["topic"], ["out"], ["id"])
    file.open()
    file.move(BatchRow(7, {}, "key1", {"id": "b"}))
    file.close(["key1"])
    (row,) = read_table(tmp_path / name).rows
    assert (str(row["row"]), other_columns(row)["id"]) == ("7", "b")


@pytest.mark.parametrize("name", NAMES)
def test_extra_columns_of_another_results_file_are_no_outputs(tmp_path: Path, name: str):
    cells = {"output.answer": "a", "input.id": "b", "status": "failed"}
    extra(tmp_path / name, list(cells), made(1, extra=cells))
    for _ in range(2):
        found = extra(tmp_path / name, list(cells))["key1"]
        assert (found.inputs, found.outputs, found.extra) == ({"topic": "topic 1"}, {"out": "text 1"}, cells)


def test_results_saved_by_a_spreadsheet_program_are_read(tmp_path: Path):
    path = tmp_path / "out.csv"
    write(path, made(1, outputs={"out": "Größe; =1, 'x'"}), made(2))
    table = read_table(path)
    lines = [list(table.columns), *(list(row.values()) for row in table.rows)]
    text = "\r\n".join(";".join(f'"{cell}"' for cell in line) for line in lines) + "\r\n"
    path.write_bytes(text.encode("cp1252"))
    assert done(path)["key1"].outputs == {"out": "Größe; =1, 'x'"}


def test_results_of_an_earlier_version_are_read(tmp_path: Path):
    path = tmp_path / "out.csv"
    path.write_text("row,status,input.topic,output.out,batch,key\n1,completed,a,b,batch,key1\n", encoding="utf-8")
    assert done(path)["key1"].outputs == {"out": "b"}
    lines = tmp_path / "out.jsonl"
    lines.write_text('{"row": 1, "status": "completed", "outputs": {"out": "b"}, "batch": "batch", "key": "key1"}\n')
    assert done(lines)["key1"].outputs == {"out": "b"}


def test_results_workbook_has_numbers_and_one_sheet(tmp_path: Path):
    write(tmp_path / "out.xlsx", made(1, outputs={"out": 5}, score=-1.5, cost_usd=None))
    (row,) = read_table(tmp_path / "out.xlsx").rows
    assert (row["row"], row["score"], row["iterations"], row["cost_usd"], row["output.out"]) == (1, -1.5, 3, "", 5)
    assert [path.name for path in tmp_path.iterdir()] == ["out.xlsx"]


def test_killed_batch_loses_no_row_of_a_workbook(tmp_path: Path):
    path = tmp_path / "out.xlsx"
    write(path, made(1))
    long = "x" * 50_000
    killed = results(path)
    killed.open()
    killed.write(made(2, outputs={"out": long}))
    journal = tmp_path / "out.xlsx.jsonl"
    journal.write_bytes(journal.read_bytes() + b'{"row": 3, "sta')  # a power failure
    file = results(path)
    found = file.open()
    assert (set(found), found["key2"].outputs) == ({"key1", "key2"}, {"out": long})
    file.write(made(3))
    (note,) = file.close(())
    assert ("out.xlsx" in note, "1 text was" in note) == (True, True)
    assert set(done(path)) == {"key1", "key2", "key3"}
    assert not journal.exists()
    killed._file.close()  # pyright: ignore[reportPrivateUsage, reportOptionalMemberAccess] - as the killed process would


def test_locked_workbook_is_reported_and_its_rows_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "out.xlsx"
    file = results(path)
    file.open()
    file.write(made(1))

    def refuse(target: Path, _content: bytes) -> None:
        raise PermissionError(13, "Permission denied", str(target))

    with monkeypatch.context() as patch:
        patch.setattr("engine.batch.results_file.replace_file", refuse)
        with pytest.raises(TableError, match=r"out\.xlsx: .*Permission denied.*out\.xlsx\.jsonl.*Close the file"):
            file.close(())
    assert set(done(path)) == {"key1"}


def test_many_rows_are_sorted_in_one_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    sizes: list[int] = []

    def replace_and_count(path: Path, content: bytes) -> None:
        sizes.append(len(content))
        replace_file(path, content)

    monkeypatch.setattr("engine.batch.results_file.os.fsync", lambda _descriptor: None)
    monkeypatch.setattr("engine.batch.results_file.replace_file", replace_and_count)
    file, count = results(tmp_path / "out.jsonl"), 2_000
    file.open()
    for number in range(count):
        file.write(made(number))
    sizes.clear()
    file.close(f"key{number}" for number in reversed(range(1, count)))
    assert sizes == [(tmp_path / "out.jsonl").stat().st_size]
    lines = (tmp_path / "out.jsonl").read_text().splitlines()
    assert [json.loads(line)["row"] for line in lines] == [*reversed(range(1, count)), 0]


@pytest.mark.skipif(sys.platform == "win32", reason="the limit on files is POSIX's")
@pytest.mark.parametrize("name", NAMES)
def test_full_disk_is_reported_and_earlier_results_stay(tmp_path: Path, name: str) -> None:
    import resource

    path = tmp_path / name
    file = results(path)
    file.open()
    file.write(made(1))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    growing = path.with_name("out.xlsx.jsonl") if name == "out.xlsx" else path
    resource.setrlimit(resource.RLIMIT_FSIZE, (growing.stat().st_size + 20, hard))
    try:
        with pytest.raises(TableError, match="The results cannot be written"):
            file.write(made(2))
        with pytest.raises(TableError, match="The results cannot be written"):
            file.close(["key1", "key2"])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert set(done(path)) == {"key1"}


@pytest.mark.parametrize(("number", "remedy"), [(errno.ENOSPC, "Free some space"), (errno.EACCES, "Close the file")])
def test_remedy_fits_the_reason(tmp_path: Path, number: int, remedy: str, monkeypatch: pytest.MonkeyPatch):
    def fail(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("engine.batch.results_file.replace_file", fail)
    with pytest.raises(TableError) as caught:
        results(tmp_path / "out.csv").open()
    assert caught.value.remedy.startswith(remedy)


@pytest.mark.parametrize("name", ["out.xls", "out.xlsm", "out.ods", "out.XLS"])
def test_unsupported_workbook_suffix_is_refused(tmp_path: Path, name: str):
    with pytest.raises(TableError, match=r"\.xlsx, \.csv or \.jsonl"):
        results(tmp_path / name).open()
    assert list(tmp_path.iterdir()) == []
