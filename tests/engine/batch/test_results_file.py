from __future__ import annotations

import csv
import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.batch.result import RowResult
from engine.batch.results_file import ResultsFile
from engine.batch.table import TableError

NAMES = ["out.csv", "out.jsonl"]


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
def test_what_was_written_is_done_when_it_is_opened_again(tmp_path: Path, name: str):
    write(tmp_path / name, made(1), made(2, status="failed", error="It failed."))
    assert done(tmp_path / name) == {"key1": made(1, is_reused=True)}


@pytest.mark.parametrize("name", NAMES)
def test_rows_stand_in_the_tables_order_and_a_row_that_failed_before_once(tmp_path: Path, name: str):
    path = tmp_path / name
    write(path, made(2), made(1, status="failed"), made(3))
    write(path, made(1), order=("key1", "key2"))
    lines = path.read_text().splitlines()[name == "out.csv" :]
    assert [("key1" in line, "key2" in line, "key3" in line) for line in lines] == [
        (True, False, False),
        (False, True, False),
        (False, False, True),
    ]


@pytest.mark.parametrize("name", NAMES)
def test_every_row_is_on_the_disk_as_soon_as_it_is_written(tmp_path: Path, name: str):
    file = results(tmp_path / name)
    file.open()
    file.write(made(1))
    assert set(done(tmp_path / name)) == {"key1"}
    file.close(())


@pytest.mark.parametrize("name", NAMES)
@given(cut=st.integers(1, 400))
def test_a_file_cut_anywhere_gives_whole_rows(tmp_path_factory: pytest.TempPathFactory, name: str, cut: int):
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
def test_any_text_comes_back(tmp_path: Path, name: str, text: str):
    write(tmp_path / name, made(1, outputs={"out": text}))
    (row,) = done(tmp_path / name).values()
    assert row.outputs["out"] in {text, text.encode("utf-8", "backslashreplace").decode()}


def test_no_cell_is_a_formula(tmp_path: Path):
    path = tmp_path / "out.csv"
    write(path, made(1, outputs={"out": "=HYPERLINK(1)"}, error="@sum", inputs={"topic": "+1"}, score=-1.0))
    with path.open(newline="") as file:
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
def test_a_file_of_another_batch_is_left_as_it_is(tmp_path: Path, name: str):
    path = tmp_path / name
    write(path, made(1))
    before = path.read_bytes()
    with pytest.raises(TableError, match="another batch"):
        results(path, "another").open()
    assert path.read_bytes() == before


@pytest.mark.parametrize(("name", "text"), [("out.csv", "a,b\n1,2\n"), ("out.jsonl", '{"a": 1}\n')])
def test_a_file_that_is_something_else_is_left_as_it_is(tmp_path: Path, name: str, text: str):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(TableError, match="holds no results of a batch"):
        results(path).open()
    assert path.read_text() == text


def test_a_place_where_nothing_can_be_written_is_told(tmp_path: Path):
    with pytest.raises(TableError, match="cannot be written"):
        results(tmp_path / "none" / "out.csv").open()


def test_a_file_of_many_rows_is_put_in_order_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("engine.batch.results_file.os.fsync", lambda _descriptor: None)
    file, count = results(tmp_path / "out.jsonl"), 8_000
    file.open()
    for number in range(count):
        file.write(made(number))
    began = time.perf_counter()
    file.close(f"key{number}" for number in reversed(range(1, count)))
    assert time.perf_counter() - began < 1.0
    lines = (tmp_path / "out.jsonl").read_text().splitlines()
    assert [json.loads(line)["row"] for line in lines] == [*reversed(range(1, count)), 0]


@pytest.mark.skipif(sys.platform == "win32", reason="the limit on files is POSIX's")
@pytest.mark.parametrize("name", NAMES)
def test_a_disk_that_is_full_is_told_of_the_results_and_what_was_kept_stays(tmp_path: Path, name: str) -> None:
    import resource

    path = tmp_path / name
    file = results(path)
    file.open()
    file.write(made(1))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 20, hard))
    try:
        with pytest.raises(TableError, match="The results cannot be written"):
            file.write(made(2))
        with pytest.raises(TableError, match="The results cannot be written"):
            file.close(["key1", "key2"])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert set(done(path)) == {"key1"}
