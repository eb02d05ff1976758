"""Excel and OpenDocument workbooks as tables, and workbooks of results, all with real files."""

from __future__ import annotations

import datetime as dt
import io
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import python_calamine
import xlsxwriter

from engine import inputs_of_table, read_table
from engine.batch.table import TableError
from engine.batch.workbook import MAX_CELL_CHARS, TRUNCATION_MARK, write_workbook
from tests.engine.semantics.documents import entry, flow, result, transform

Fill = Callable[[Any, Any], object]


def workbook(folder: Path, *sheets: tuple[str, Fill], name: str = "t.xlsx") -> Path:
    book = xlsxwriter.Workbook(str(folder / name))
    for title, fill in sheets:
        page = book.add_worksheet(title)
        fill(page, book)
    book.close()
    return folder / name


def rows(*lines: list[Any]) -> Fill:
    def fill(page: Any, _book: Any) -> None:
        for place, line in enumerate(lines):
            page.write_row(place, 0, line)

    return fill


def asked(**types: str) -> Any:
    entries = [entry(name, type=kind, **({} if kind == "text" else {"default": None})) for name, kind in types.items()]
    edges = "".join(f"{name} -> made.{name}\n" for name in types)
    words = " ".join(f"{{{{{name}}}}}" for name in types)
    return flow(*entries, transform("made", words), result(), edges=f"{edges}made -> out")


def test_reading_needs_only_the_library_that_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def fill(page: Any, _book: Any) -> None:
        page.write_row(0, 0, ["a", *range(27)])
        page.write_formula(1, 27, "=1/0", None, "#DIV/0!")

    path = workbook(tmp_path, ("Data", fill))
    monkeypatch.setitem(sys.modules, "xlsxwriter.utility", None)
    assert read_table(path).rows[0]["26"] == "#DIV/0!"


def test_values_keep_their_type_and_dates_become_iso_texts(tmp_path: Path):
    def fill(page: Any, book: Any) -> None:
        def shown(pattern: str) -> Any:
            return book.add_format({"num_format": pattern})

        page.write_row(0, 0, ["whole", "part", "flag", "text", "day", "time", "moment", "long", "sum", "code"])
        page.write_row(1, 0, [5, 2.5, True, "a b"])
        page.write_datetime(1, 4, dt.date(2024, 1, 5), shown("d mmm yy"))
        page.write_datetime(1, 5, dt.time(13, 30), shown("hh:mm"))
        page.write_datetime(1, 6, dt.datetime(2024, 1, 5, 13, 30, 15), shown("yyyy-mm-dd hh:mm:ss"))  # noqa: DTZ001
        page.write_datetime(1, 7, dt.timedelta(hours=26, minutes=3), shown("[h]:mm:ss"))
        page.write_formula(1, 8, "=A2*2", None, 10)
        page.write_string(1, 9, "00042")

    table = read_table(workbook(tmp_path, ("Data", fill)))
    assert table.rows == (
        {
            "whole": 5,
            "part": 2.5,
            "flag": True,
            "text": "a b",
            "day": "2024-01-05",
            "time": "13:30:00",
            "moment": "2024-01-05T13:30:15",
            "long": "26:03:00",
            "sum": 10,
            "code": "00042",
        },
    )
    assert isinstance(table.rows[0]["whole"], int)


def test_cells_are_parsed_as_inputs(tmp_path: Path):
    workflow = asked(text="text", n="number", on="boolean", items="list", data="json")
    lines = [["text", "n", "on", "items", "data"], [7, "5", 1, '["a"]', 3], [True, 2, "Yes", "[]", '{"a": 1}']]
    found = inputs_of_table(workflow, read_table(workbook(tmp_path, ("A", rows(*lines)))))
    assert found == [
        {"text": "7", "n": 5, "on": True, "items": ["a"], "data": 3},
        {"text": "true", "n": 2, "on": True, "items": [], "data": {"a": 1}},
    ]
    assert isinstance(found[0]["text"], str)


def test_invalid_cell_is_reported_with_its_place(tmp_path: Path):
    lines = [[], ["", "n", "text"], ["", 1, "a"], ["", "many", "b"], [], ["", True, "c"]]
    found = inputs_of_table(asked(n="number", text="text"), read_table(workbook(tmp_path, ("My data", rows(*lines)))))
    assert [bool(row.error) for row in found] == [False, True, True]
    for expected in ('sheet "My data"', "cell B4", 'column "n"', '"many"', "a number"):
        assert expected in found[1].error
    assert "cell B6" in found[2].error


@pytest.mark.parametrize("shown", ["#N/A", "#REF!", "#DIV/0!", "#VALUE!", "#NAME?", "#NUM!", "#NULL!"])
def test_error_cell_fails_its_row(tmp_path: Path, shown: str):
    def fill(page: Any, _book: Any) -> None:
        page.write_row(0, 0, ["text", "n", "id"])
        page.write_row(1, 0, ["a", 1])
        page.write_formula(1, 2, "=1/0", None, shown)
        page.write_row(2, 0, ["b", 2])
        page.write_formula(3, 0, "=1/0", None, shown)
        page.write_row(4, 0, ["d"])
        page.write_formula(4, 1, "=1/0", None, shown)

    found = inputs_of_table(asked(text="text", n="number"), read_table(workbook(tmp_path, ("Data", fill))))
    assert [bool(row.error) for row in found] == [False, False, True, True]
    assert (found[0].extra, found[1].extra) == ({"id": shown}, {"id": ""})
    assert ("cell A4" in found[2].error, "cell B5" in found[3].error, shown in found[3].error) == (True, True, True)


def test_first_visible_sheet_with_rows_is_read_by_default(tmp_path: Path):
    def hidden(page: Any, _book: Any) -> None:
        page.write_row(0, 0, ["text"])
        page.write(1, 0, "secret")
        page.hide()

    path = workbook(
        tmp_path,
        ("Empty", rows()),
        ("Hidden", hidden),
        ("Title", rows(["My tasks"])),
        ("First", rows(["text"], ["one"])),
        ("Second", rows(["text"], ["two"])),
    )
    table = read_table(path)
    assert (table.rows, table.sheet, table.sheets) == (
        ({"text": "one"},),
        "First",
        ("Empty", "Title", "First", "Second"),
    )
    assert '"Second"' in table.notes[0]
    assert read_table(path, sheet="second").rows == ({"text": "two"},)
    assert read_table(path, sheet="Hidden").rows == ({"text": "secret"},)
    with pytest.raises(TableError, match=r'no sheet "Third".*"First", "Second"'):
        read_table(path, sheet="Third")
    (tmp_path / "t.csv").write_text("text\na\n")
    with pytest.raises(TableError, match="Only a workbook has sheets"):
        read_table(tmp_path / "t.csv", sheet="A")


def test_a_table_may_begin_anywhere_and_have_gaps(tmp_path: Path):
    def fill(page: Any, book: Any) -> None:
        page.merge_range(2, 1, 2, 2, "text", book.add_format())
        page.write(2, 3, "n")
        page.write_row(4, 1, ["a", "note", 1])
        page.write_row(6, 1, ["b", "", 2])
        page.write(7, 5, "beside")

    table = read_table(workbook(tmp_path, ("Data", fill)))
    assert table.columns == ("text", "column 3", "n", "column 6")
    assert table.lines == (5, 7, 8)
    assert table.rows[0] == {"text": "a", "column 3": "note", "n": 1, "column 6": ""}


@pytest.mark.parametrize(
    ("sheets", "expected"),
    [([rows()], "empty"), ([rows(["text"])], 'sheet ".+" has no rows'), ([rows([]), rows()], "empty")],
)
def test_workbook_without_rows_is_reported(tmp_path: Path, sheets: list[Fill], expected: str):
    path = workbook(tmp_path, *((f"S{place}", fill) for place, fill in enumerate(sheets)))
    with pytest.raises(TableError, match=f"t.xlsx: .*{expected}"):
        read_table(path)


def damaged(folder: Path) -> list[bytes]:
    whole = workbook(folder, ("A", rows(["text"], ["x" * 500]))).read_bytes()
    other = io.BytesIO()
    with zipfile.ZipFile(other, "w") as archive:
        archive.writestr("hello.txt", "hello")
    broken = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(whole)) as source, zipfile.ZipFile(broken, "w") as archive:
        for item in source.namelist():
            archive.writestr(item, b"<x" if item.endswith("sheet1.xml") else source.read(item))
    old = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600)
    return [
        whole[:900],
        whole[:-200],
        b"PK\x03\x04 nothing",
        other.getvalue(),
        broken.getvalue(),
        old,
        b"<html></html>",
        b"",
    ]


@pytest.mark.parametrize("place", range(8))
@pytest.mark.parametrize("name", ["t.xlsx", "t.xls", "t.ods"])
def test_damaged_workbook_is_one_sentence(tmp_path: Path, place: int, name: str):
    content = damaged(tmp_path)[place]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(TableError) as caught:
        read_table(tmp_path / name)
    assert str(caught.value).startswith(f"{name}: The workbook cannot be read")


def test_workbook_with_a_password_is_reported(tmp_path: Path):
    content = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(500) + "EncryptedPackage".encode("utf-16-le") + bytes(500)
    (tmp_path / "t.xlsx").write_bytes(content)
    with pytest.raises(TableError, match=r"t\.xlsx: .*password"):
        read_table(tmp_path / "t.xlsx")


def test_stray_cell_at_the_end_of_a_sheet_is_refused(tmp_path: Path):
    def fill(page: Any, _book: Any) -> None:
        page.write(0, 0, "text")
        page.write(1_048_575, 16_383, "stray")

    with pytest.raises(TableError, match="XFD1048576"):
        read_table(workbook(tmp_path, ("Data", fill)))


@pytest.mark.parametrize("name", ["t.csv", "t.txt", "table"])
def test_workbook_is_recognized_by_its_content(tmp_path: Path, name: str):
    path = workbook(tmp_path, ("A", rows(["text"], ["x"]))).rename(tmp_path / name)
    assert read_table(path).rows == ({"text": "x"},)


def test_text_table_with_the_suffix_xls_is_read(tmp_path: Path):
    (tmp_path / "t.xls").write_bytes("text\tn\r\nä\t1\r\n".encode("utf-16"))
    assert read_table(tmp_path / "t.xls").rows == ({"text": "ä", "n": "1"},)


def test_an_opendocument_sheet_is_read(tmp_path: Path):
    cells = '<table:table-cell office:value-type="string"><text:p>{}</text:p></table:table-cell>'
    number = '<table:table-cell office:value-type="float" office:value="{}"><text:p>{}</text:p></table:table-cell>'
    day = '<table:table-cell office:value-type="date" office:date-value="2024-01-05"/>'
    lines = [
        cells.format("text") + cells.format("n") + cells.format("day"),
        cells.format("ä") + number.format(5, 5) + day,
        '<table:table-cell table:number-columns-repeated="16384"/>',
    ]
    body = "".join(f"<table:table-row>{line}</table:table-row>" for line in lines)
    spaces = " ".join(
        f'xmlns:{short}="urn:oasis:names:tc:opendocument:xmlns:{full}:1.0"'
        for short, full in {"office": "office", "table": "table", "text": "text"}.items()
    )
    content = (
        f'<?xml version="1.0"?><office:document-content {spaces}><office:body><office:spreadsheet>'
        f'<table:table table:name="Blatt">{body}</table:table></office:spreadsheet></office:body>'
        "</office:document-content>"
    )
    with zipfile.ZipFile(tmp_path / "t.ods", "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        archive.writestr("META-INF/manifest.xml", "<manifest/>")
        archive.writestr("content.xml", content)
    table = read_table(tmp_path / "t.ods")
    assert table.rows == ({"text": "ä", "n": 5, "day": "2024-01-05"},)
    assert table.sheet == "Blatt"


def read_back(content: bytes) -> list[list[Any]]:
    with python_calamine.CalamineWorkbook.from_filelike(io.BytesIO(content)) as book:
        return book.get_sheet_by_index(0).to_python()


@pytest.mark.parametrize(
    "text",
    [
        "=1+1",
        "+1",
        "-1",
        "@x",
        "{=1}",
        "http://a.b",
        "mailto:a@b",
        "internal:A!A1",
        "2024-01-05",
        "00042",
        "TRUE",
        "#N/A",
        "a\x00\x0b\x1fb",
        "_x0041_",
        " lead\n\ttab ",
        "日本 😀",
        "x" * MAX_CELL_CHARS,
        "'quoted",
        "<b>&amp;",
    ],
)
def test_any_written_text_stays_text(text: str):
    content, cut = write_workbook([["head"], [text]], "Results")
    assert (read_back(content), cut) == ([["head"], [text]], 0)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        page = archive.read("xl/worksheets/sheet1.xml")
    assert (b"<f>" in page, b"hyperlink" in page) == (False, False)


def test_numbers_keep_their_type_and_all_digits():
    line = [5, -2.5, True, False, None, "", 10**15 - 1, 10**15, 2**70, {"a": [1]}, ["é"]]
    content, _ = write_workbook([["head"], line], "Results")
    texts = ["1000000000000000", str(2**70), '{"a":[1]}', '["é"]']
    assert read_back(content)[1] == [5.0, -2.5, True, False, "", "", 999999999999999.0, *texts]


@pytest.mark.parametrize("text", ["y" * (MAX_CELL_CHARS + 1), "😀" * 20_000, "y" * 1_000_000])
def test_too_long_text_is_truncated_and_counted(text: str):
    content, cut = write_workbook([["head"], [text, "short", text]], "Results")
    first, short, _ = read_back(content)[1]
    assert (cut, short, first.endswith(TRUNCATION_MARK), text.startswith(first.removesuffix(TRUNCATION_MARK))) == (
        2,
        "short",
        True,
        True,
    )
    assert MAX_CELL_CHARS - 1 <= len(first.encode("utf-16-le")) // 2 <= MAX_CELL_CHARS


def test_invalid_xml_characters_are_replaced():
    content, _ = write_workbook([["head"], ["\ud800 half", "\ufffe"]], "Results")
    assert read_back(content)[1] == ["\\ud800 half", "\ufffd"]
