from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import inputs_of_table, read_table
from engine.batch.rows import batch_id, make_rows
from engine.batch.table import TableError
from tests.engine.semantics.documents import entry, flow, result, transform
from tests.wording import mentions


def table(folder: Path, text: str | bytes, name: str = "t.csv") -> Path:
    file = folder / name
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return file


def workflow(**topic: Any) -> Any:
    return flow(
        entry("topic", **topic),
        entry("words", type="number", default=10),
        transform("made", "{{topic}} {{words}}"),
        result(),
        edges="topic -> made.topic\nwords -> made.words\nmade -> out",
    )


def read(folder: Path, text: str, name: str = "t.csv", **how: Any) -> Any:
    return inputs_of_table(workflow(), read_table(table(folder, text, name)), **how)


def test_csv_cells_are_parsed_as_inputs(tmp_path: Path):
    text = '\ufefftopic,words\r\n"rain,\nsnow",5\r\nsun,\r\n'
    assert read(tmp_path, text) == [{"topic": "rain,\nsnow", "words": 5}, {"topic": "sun"}]


@pytest.mark.parametrize("mark", [";", "\t"])
def test_semicolons_and_tabs_are_separators(tmp_path: Path, mark: str):
    assert read(tmp_path, f"topic{mark}words\nrain, snow{mark}2.5\n") == [{"topic": "rain, snow", "words": 2.5}]


def test_json_lines_keep_their_values(tmp_path: Path):
    lines = [{"topic": "a\u2028b", "words": 3}, {"topic": "c"}]
    text = "\n".join(json.dumps(line, ensure_ascii=False) for line in lines) + "\n\n"
    assert read(tmp_path, text, "t.jsonl") == lines


def test_columns_can_be_chosen_and_others_omitted(tmp_path: Path):
    rows = read(tmp_path, "Subject,id\nrain,7\n", columns={"topic": "Subject"}, extra_columns=False)
    assert rows == [{"topic": "rain"}]
    assert rows[0].extra == {}


def test_input_can_use_its_default_despite_a_matching_column(tmp_path: Path):
    rows = read(tmp_path, "topic,words\nrain,7\n", columns={"words": None})
    assert rows == [{"topic": "rain"}]
    assert rows[0].extra == {"words": "7"}
    with pytest.raises(TableError, match='no column for the input "topic"'):
        read(tmp_path, "topic,words\nrain,7\n", columns={"topic": None})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "t.csv: … empty"),
        ("topic\n", "t.csv: … no rows"),
        ("words\n3\n", 't.csv: … no column … "topic" … : words.'),
        ("topic,wrds\nrain,3\n", 't.csv: … "wrds" is not an input … mean "words"?'),
        ("topic,WRDS\nrain,3\n", 't.csv: … "WRDS" is not an input … mean "words"?'),
        ("topic,topic\na,b\n", 't.csv: Two columns … "topic"'),
        ('topic\na\n"open\nb\n', "t.csv, line 3: … not valid CSV"),
    ],
)
def test_table_that_does_not_match_is_refused_in_one_sentence(tmp_path: Path, text: str, expected: str):
    with pytest.raises(TableError) as caught:
        read(tmp_path, text)
    assert mentions(str(caught.value), expected), caught.value
    assert "\n" not in str(caught.value)


def test_a_misspelled_column_is_refused_whatever_the_case_of_its_input(tmp_path: Path):
    document = flow(entry("topic"), entry("subject", name="SUBJECT", default="x"), result(), edges="topic -> out")
    with pytest.raises(TableError, match='"SUBJECT"'):
        inputs_of_table(document, read_table(table(tmp_path, "topic,subjct\nrain,sun\n")))


@pytest.mark.parametrize("columns", ["tpoic,wrods", "id"])
def test_table_without_a_column_for_any_input_is_refused(tmp_path: Path, columns: str):
    document = flow(entry("topic", default="rain"), result(), edges="topic -> out")
    content = read_table(table(tmp_path, f"{columns}\nsun,1\n" if "," in columns else f"{columns}\n1\n"))
    with pytest.raises(TableError, match="topic"):
        inputs_of_table(document, content)
    assert inputs_of_table(document, content, {"topic": None}) == [{}]
    assert inputs_of_table(flow(result(), edges=""), content) == [{}]


def test_results_file_is_a_table_with_the_inputs_of_its_rows(tmp_path: Path):
    assert read(tmp_path, "row,input.topic,output.out,words\n1,rain,a,3\n") == [{"topic": "rain", "words": 3}]
    assert read(tmp_path, "Input.topic,Topic\nrain,sun\n") == [{"topic": "sun"}]
    assert read(tmp_path, "topic,input.topic,batch,key\nextra,rain,b,k\n") == [{"topic": "rain"}]
    assert read(tmp_path, "topic,batch,key\nrain,b,k\n") == [{"topic": "rain"}]


@pytest.mark.parametrize("line", ["nonsense", "[1]", '{"topic": NaN}', '{"topic": 1e999}', "[" * 5000])
def test_line_that_is_not_a_json_object_fails_its_row(tmp_path: Path, line: str):
    rows = read(tmp_path, f'{{"topic": "a"}}\n\n{line}\n{{"topic": "b"}}\n', "t.jsonl")
    assert [dict(row) for row in rows] == [{"topic": "a"}, {}, {"topic": "b"}]
    assert [row.error.partition(":")[0] for row in rows] == ["", "t.jsonl, line 3", ""]
    with pytest.raises(TableError, match=r"t\.jsonl, line 1: .* not a valid JSON"):
        read_table(table(tmp_path, f"{line}\n", "t.jsonl"))


def test_unreadable_file_is_reported(tmp_path: Path):
    with pytest.raises(TableError, match="cannot be opened"):
        read_table(tmp_path / "none.csv")
    with pytest.raises(TableError, match="cannot be opened"):
        read_table(tmp_path)
    with pytest.raises(TableError, match="not UTF-8"):
        read_table(table(tmp_path, b"topic\n\xff\xfe\n"))


def test_invalid_cell_fails_only_its_row(tmp_path: Path):
    rows = read(tmp_path, "topic,words,id\na,1,x\n\nb,many,y\nc,3,z\n")
    assert [row.error for row in rows][::2] == ["", ""]
    for expected in ("t.csv, line 4", 'column "words"', '"many"', "a number", "42 or 0.5"):
        assert expected in rows[1].error
    assert (dict(rows[1]), rows[1].extra) == ({"topic": "b", "words": "many"}, {"id": "y"})


@pytest.mark.parametrize(
    ("line", "row"),
    [
        ("a", {"topic": "a"}),
        ("a,", {"topic": "a"}),
        ("a,2,,", {"topic": "a", "words": 2}),
        ("a,2", {"topic": "a", "words": 2}),
    ],
)
def test_missing_and_surplus_empty_cells_are_accepted(tmp_path: Path, line: str, row: dict[str, Any]):
    (only,) = read(tmp_path, f"topic,words\n{line}\n")
    assert (only, only.error) == (row, "")


@pytest.mark.parametrize(
    ("head", "line", "expected"),
    [
        ("topic,words", "a,2,b", "3 cells, and there are 2 columns"),
        ("words,topic", "2", 'The cell for the input "topic" is missing'),
        ("topic,words", "#N/A,1", "#N/A"),
        ("topic,words", "a,#DIV/0!", "#DIV/0!"),
    ],
)
def test_row_with_surplus_cells_fails_with_its_line(tmp_path: Path, head: str, line: str, expected: str):
    rows = read(tmp_path, f"{head}\n{line}\n{'b,1' if head.startswith('topic') else '1,b'}\n")
    assert expected in rows[0].error
    assert "line 2" in rows[0].error
    assert (rows[1], rows[1].error) == ({"topic": "b", "words": 1}, "")


def test_empty_rows_are_skipped_and_line_numbers_stay(tmp_path: Path):
    rows = read(tmp_path, '\n,\ntopic,words\n,\n"a\nb",1\n , \t\n\nc,x\n,,\n\n')
    assert [row["topic"] for row in rows] == ["a\nb", "c"]
    assert "line 9" in rows[1].error


def test_unnamed_columns_are_dropped_or_named_by_place(tmp_path: Path):
    (row,) = read(tmp_path, ",topic,,\n7,a,,\n")
    assert (row, row.extra) == ({"topic": "a"}, {"column 1": "7"})


def test_columns_are_matched_ignoring_case(tmp_path: Path):
    assert read(tmp_path, "Topic, WORDS\na,1\n") == [{"topic": "a", "words": 1}]
    assert read(tmp_path, "TOPIC,topic\na,b\n")[0] == {"topic": "b"}


@pytest.mark.parametrize("value", ["many", [1], True, {"a": 1}, ""])
def test_invalid_json_lines_value_fails_its_row(tmp_path: Path, value: Any):
    lines = [{"topic": "a", "words": 1}, {"topic": "b", "words": value}, {"topic": "c"}]
    rows = read(tmp_path, "\n".join(map(json.dumps, lines)), "t.jsonl")
    assert [bool(row.error) for row in rows] == [False, True, False]
    for expected in ("t.jsonl, line 2", 'column "words"', json.dumps(value, separators=(",", ":")), "42 or 0.5"):
        assert expected in rows[1].error
    assert rows[1]["words"] == value


def test_null_in_json_lines_uses_the_default(tmp_path: Path):
    assert read(tmp_path, '{"topic": "a", "words": null}\n{"topic": null}\n', "t.jsonl") == [
        {"topic": "a"},
        {"topic": None},
    ]


@pytest.mark.parametrize("text", ["5", " 5 ", "+5", "05", "5.", "5.0", "5e0", "\u00a05"])
def test_number_formats_are_parsed(tmp_path: Path, text: str):
    assert read(tmp_path, f"topic;words\na;{text}\n") == [{"topic": "a", "words": 5}]


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1 000", 1000),
        ("1\u00a0234\u202f567.5", 1234567.5),
        ("\u22125", -5),
        (".5", 0.5),
        ("-0.25", -0.25),
        ("1e3", 1000),
    ],
)
def test_numbers_may_have_groups_and_signs(tmp_path: Path, text: str, number: float):
    assert read(tmp_path, f"topic;words\na;{text}\n") == [{"topic": "a", "words": number}]


@pytest.mark.parametrize("text", ["1,5", "1.234,5", "five", "5 %", "$5", "1 00", "0x1", "--5", ".", "1e999"])
def test_invalid_number_fails_its_row(tmp_path: Path, text: str):
    (row,) = read(tmp_path, f"topic;words\na;{text}\n")
    assert (row["words"], text in row.error) == (text, True)


@pytest.mark.parametrize("is_true", [True, False])
def test_boolean_words_are_parsed_in_any_case(tmp_path: Path, is_true: bool):
    asked = flow(entry("on", type="boolean"), transform("made", "{{on}}"), result(), edges="on -> made.on\nmade -> out")
    words = ["TRUE", "true", "Yes", "y", "T", "1", "ON", " yes "] if is_true else ["FALSE", "no", "N", "f", "0", "Off"]
    rows = inputs_of_table(asked, read_table(table(tmp_path, "\n".join(["on", *words, "maybe"]))))
    assert [row["on"] for row in rows[:-1]] == [is_true] * len(words)
    assert '"maybe"' in rows[-1].error


def test_unknown_columns_are_reported(tmp_path: Path):
    with pytest.raises(TableError, match='no input "theme"'):
        read(tmp_path, "topic\na\n", columns={"theme": "topic"})
    with pytest.raises(TableError, match='no column "Subject"'):
        read(tmp_path, "topic\na\n", columns={"topic": "Subject"})


_ROWS = st.lists(st.fixed_dictionaries({"topic": st.sampled_from(["a", "b", "c"])}), min_size=1, max_size=8)


@given(rows=_ROWS, moved=st.randoms(use_true_random=False))
def test_moved_rows_keep_their_keys(rows: list[dict[str, Any]], moved: Any):
    shuffled = list(rows)
    moved.shuffle(shuffled)
    before, after = make_rows("batch", rows), make_rows("batch", shuffled)
    assert {row.key for row in before} == {row.key for row in after}
    assert len({row.run_id for row in before}) == len(rows)
    assert make_rows("other", rows)[0].key != before[0].key


def test_batch_id_depends_on_document_model_and_name_but_not_layout():
    one = workflow()
    moved = one.model_copy(update={"layout": {"nodes": {"made": {"x": 1, "y": 2}}}, "description": "Other words."})
    assert batch_id(one) == batch_id(moved)
    others = {batch_id(workflow(default="x")), batch_id(one, "fake/model"), batch_id(one, name="again")}
    assert len(others | {batch_id(one)}) == 4
