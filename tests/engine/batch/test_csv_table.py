"""CSV of other programs (separators, quotes, line ends), and exported tables read back."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import read_table
from engine.batch.table import Table, TableError
from engine.store.export_csv import BYTE_ORDER_MARK, csv_line


def read(folder: Path, text: str, name: str = "t.csv") -> Table:
    file = folder / name
    file.write_bytes(text.encode())
    return read_table(file)


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize(
    "cells",
    [
        [["topic", "price"], ["rain", "1.5"], ["snow", "2.75"]],
        [["a", "b", "c"], ["", "x", ""], ["y", "", "z"]],
        [["topic, or not; maybe | so", "n"], ["rain, snow; hail | sleet", "1"], ["tab\there", "2"]],
        [
            ["text", "id"],
            ['He said "no", twice', "1"],
            ["two\nlines; each, with | marks", "2"],
            ["'single' quotes", "3"],
        ],
    ],
)
def test_the_separator_is_found(tmp_path: Path, separator: str, end: str, cells: list[list[str]]):
    def quoted(cell: str) -> str:
        is_plain = not any(sign in cell for sign in f'{separator}"\n')
        return cell if is_plain else '"' + cell.replace('"', '""') + '"'

    text = "".join(separator.join(map(quoted, row)) + end for row in cells)
    table = read(tmp_path, text)
    assert [list(table.columns), *(list(row.values()) for row in table.rows)] == cells


def test_decimal_commas_stay_in_their_cells_as_text(tmp_path: Path):
    assert read(tmp_path, "name;price\nA;1,5\nB;2,75\n").rows[0] == {"name": "A", "price": "1,5"}
    assert read(tmp_path, 'name,price\nA,"1,5"\n').rows == ({"name": "A", "price": "1,5"},)
    assert read(tmp_path, "name\tprice, net\nA\t1,5\n").rows == ({"name": "A", "price, net": "1,5"},)


@pytest.mark.parametrize("mark", [";", ",", "|", "\t", ":", "~"])
@pytest.mark.parametrize("line", ["sep={}", '"sep={}"', "SEP={}"])
def test_a_first_line_may_name_the_separator(tmp_path: Path, mark: str, line: str):
    table = read(tmp_path, f"{line.format(mark)}\r\nname{mark}n\r\na{mark}1\r\n")
    assert (table.rows, table.lines) == (({"name": "a", "n": "1"},), (3,))


@pytest.mark.parametrize(
    "lines",
    [
        ["topic", "rain, snow", "sun; moon | stars", "one\ttwo"],
        ["url", "http://a.b/c,d", "https://e.f/g;h"],
        ["day", "2024-01-05", "2024-01-06"],
        ["Question", "What is 1,5 times 2?", "Why?"],
    ],
)
def test_a_single_column_needs_no_separator(tmp_path: Path, lines: list[str]):
    table = read(tmp_path, "\n".join(lines))
    assert [*table.columns, *(row[lines[0]] for row in table.rows)] == lines


@pytest.mark.parametrize(
    ("line", "cell"),
    [
        ('"x" y,1', "x y"),
        (r'"say \"hi\" now",1', 'say "hi" now'),
        ('5" pipe,1', '5" pipe'),
        ('a "b" c,1', 'a "b" c'),
    ],
)
def test_unbalanced_quotes_in_a_cell_are_text(tmp_path: Path, line: str, cell: str):
    table = read(tmp_path, f"text,id\nfirst,0\n{line}\nlast,2\n")
    assert [row["text"] for row in table.rows] == ["first", cell, "last"]


@pytest.mark.parametrize(("text", "line"), [('a,b\n1,2\n"open,3\n4,5\n', 3), ('a\n"x\ny" z"\n', 2), ('"a\nb\n', 1)])
def test_unclosed_quote_is_reported_with_its_line(tmp_path: Path, text: str, line: int):
    with pytest.raises(TableError, match=rf"t\.csv, line {line}: .* not valid CSV"):
        read(tmp_path, text)


_CELL = st.text(st.sampled_from("=+-@\t\r\n'\",;|aé日\uff1d 5."), max_size=6)


@given(cells=st.lists(_CELL, min_size=1, max_size=4))
def test_written_csv_is_read_back(tmp_path_factory: pytest.TempPathFactory, cells: list[str]):
    head = [*(f"c{place}" for place in range(len(cells))), "batch", "key"]
    text = BYTE_ORDER_MARK + csv_line(head) + csv_line([*cells, "b", "k"])
    (row,) = read(tmp_path_factory.mktemp("own"), text).rows
    assert list(row.values()) == [*cells, "b", "k"]


def test_apostrophes_of_other_programs_are_kept(tmp_path: Path):
    assert read(tmp_path, "text,id\n'tis,1\n'=x,2\n").rows[1]["text"] == "'=x"


@pytest.mark.parametrize("start", ["=", "+", "@", "-x", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20", "'"])
def test_no_cell_that_is_written_is_a_formula(start: str):
    assert csv_line([f"{start}1+1|cmd"]).lstrip('"').startswith("'")


@pytest.mark.parametrize("cell", ["-5", "-0,5", "-12.25", 7, -1.5, None])
def test_negative_number_is_not_escaped(cell: Any):
    assert csv_line([cell]).strip().strip('"') == ("" if cell is None else str(cell))


def test_separator_of_a_long_table_is_detected_from_a_sample(tmp_path: Path):
    rows = "".join(f'{number};"a, b; {number}";1,5\n' for number in range(30_000))
    table = read(tmp_path, f"id;text, long;n\n{rows}")
    assert (len(table.rows), table.rows[-1]["text, long"], table.rows[-1]["n"]) == (30_000, "a, b; 29999", "1,5")


def test_rows_decide_between_two_separators_in_the_header(tmp_path: Path):
    for real, other in itertools.permutations(",;\t|", 2):
        text = f"one{real}two{other} more{real}three\n" + "".join(f"a{n}{real}b{n}{real}{n}\n" for n in range(5))
        assert read(tmp_path, text).columns == ("one", f"two{other} more", "three"), (real, other)
