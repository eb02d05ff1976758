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


def test_a_csv_table_gives_typed_inputs(tmp_path: Path):
    text = '\ufefftopic,words\r\n"rain,\nsnow",5\r\nsun,\r\n'
    assert read(tmp_path, text) == [{"topic": "rain,\nsnow", "words": 5}, {"topic": "sun"}]


@pytest.mark.parametrize("mark", [";", "\t"])
def test_semicolons_and_tabs_divide_cells_too(tmp_path: Path, mark: str):
    assert read(tmp_path, f"topic{mark}words\nrain, snow{mark}2.5\n") == [{"topic": "rain, snow", "words": 2.5}]


def test_json_lines_give_their_values(tmp_path: Path):
    lines = [{"topic": "a\u2028b", "words": 3}, {"topic": "c"}]
    text = "\n".join(json.dumps(line, ensure_ascii=False) for line in lines) + "\n\n"
    assert read(tmp_path, text, "t.jsonl") == lines


def test_columns_can_be_named_and_others_ignored(tmp_path: Path):
    rows = read(tmp_path, "Subject,id\nrain,7\n", columns={"topic": "Subject"}, ignore_others=True)
    assert rows == [{"topic": "rain"}]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "t.csv: The table is empty."),
        ("topic\n", "t.csv: The table has no rows."),
        ("words\n3\n", 't.csv: There is no column for the input "topic". Its columns are: words.'),
        ("topic,wrds\nrain,3\n", 't.csv: The column "wrds" is no input of the workflow. Did you mean "words"?'),
        ("topic,topic\na,b\n", 't.csv: Two columns are called "topic".'),
        ("topic,\na,b\n", "t.csv: A column has no name."),
        ("topic,words\na\n", "t.csv, line 2: The row has 1 cells, and there are 2 columns."),
        ("topic,words\na,1\nb,many\n", 't.csv, row 2: The input "words" takes a number, not "many".'),
        ('topic\n"open\n', "t.csv: The table is no CSV"),
    ],
)
def test_a_table_that_does_not_fit_is_refused_in_a_sentence(tmp_path: Path, text: str, said: str):
    with pytest.raises(TableError) as caught:
        read(tmp_path, text)
    assert str(caught.value).startswith(said)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("line", ["nonsense", "[1]", '{"topic": NaN}', '{"topic": 1e999}', "[" * 5000])
def test_a_line_that_is_no_json_object_is_refused(tmp_path: Path, line: str):
    with pytest.raises(TableError, match=r"t\.jsonl, line 2: The line is no JSON"):
        read_table(table(tmp_path, f'{{"topic": "a"}}\n{line}\n', "t.jsonl"))


def test_what_cannot_be_opened_is_told(tmp_path: Path):
    with pytest.raises(TableError, match="cannot be opened"):
        read_table(tmp_path / "none.csv")
    with pytest.raises(TableError, match="cannot be opened"):
        read_table(tmp_path)
    with pytest.raises(TableError, match="no UTF-8"):
        read_table(table(tmp_path, b"topic\n\xff\xfe\n"))


def test_unknown_names_of_columns_are_told(tmp_path: Path):
    with pytest.raises(TableError, match='The workflow has no input "theme"'):
        read(tmp_path, "topic\na\n", columns={"theme": "topic"})
    with pytest.raises(TableError, match='There is no column "Subject"'):
        read(tmp_path, "topic\na\n", columns={"topic": "Subject"})


_ROWS = st.lists(st.fixed_dictionaries({"topic": st.sampled_from(["a", "b", "c"])}), min_size=1, max_size=8)


@given(rows=_ROWS, moved=st.randoms(use_true_random=False))
def test_rows_are_found_again_wherever_they_have_moved(rows: list[dict[str, Any]], moved: Any):
    shuffled = list(rows)
    moved.shuffle(shuffled)
    before, after = make_rows("batch", rows), make_rows("batch", shuffled)
    assert {row.key for row in before} == {row.key for row in after}
    assert len({row.run_id for row in before}) == len(rows)
    assert make_rows("other", rows)[0].key != before[0].key


def test_a_batch_is_its_document_model_and_name_and_not_its_layout():
    one = workflow()
    moved = one.model_copy(update={"layout": {"nodes": {"made": {"x": 1, "y": 2}}}, "description": "Other words."})
    assert batch_id(one) == batch_id(moved)
    others = {batch_id(workflow(default="x")), batch_id(one, "fake/model"), batch_id(one, name="again")}
    assert len(others | {batch_id(one)}) == 4
