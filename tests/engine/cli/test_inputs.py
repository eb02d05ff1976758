from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import InputError
from engine.cli.arguments import parse_inputs
from engine.document.files import to_workflow
from engine.nodes.input import InputConfig
from engine.runner.declared_inputs import MAX_FILE_BYTES, declared_inputs, read_parameters
from tests.engine.cli.kit import document, echo
from tests.wording import mentions


def workflow(kind: str = "text", default: Any = None) -> Any:
    return to_workflow(echo(kind, default), "w")


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("text", "42", "42"),
        ("text", "", ""),
        ("text", "a=b", "a=b"),
        ("any", "[1]", "[1]"),
        ("number", "-4.5e1", -45.0),
        ("number", "7", 7),
        ("boolean", "true", True),
        ("list", '["a", 1]', ["a", 1]),
        ("json", '{"a": null}', {"a": None}),
        ("json", '"text"', "text"),
    ],
)
def test_value_is_parsed_by_the_declared_type(kind: str, text: str, value: Any):
    assert parse_inputs(workflow(kind), [f"value={text}"]) == {"value": value}


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("number", "four"),
        ("number", "true"),
        ("number", "NaN"),
        ("number", "1e999"),
        ("number", "9" * 5000),
        ("boolean", "2"),
        ("boolean", "maybe"),
        ("list", '{"a": 1}'),
        ("list", "[" * 100_000),
        ("json", "plain text"),
        ("json", "[Infinity]"),
    ],
)
def test_value_of_the_wrong_type_is_refused_with_an_example(kind: str, text: str):
    with pytest.raises(InputError, match=r'The input "value" takes .*, not ".*"\. Write it like'):
        parse_inputs(workflow(kind), [f"value={text}"])


def test_a_value_comes_from_a_file(tmp_path: Path):
    file = tmp_path / "in.txt"
    file.write_bytes(b"\xef\xbb\xbfh\xc3\xa9llo\n")
    assert parse_inputs(workflow(), [f"value=@{file}"]) == {"value": "héllo\n"}


def test_file_is_parsed_by_the_declared_type(tmp_path: Path):
    file = tmp_path / "in.json"
    file.write_text("[1, 2]")
    assert parse_inputs(workflow("list"), [f"value=@{file}"]) == {"value": [1, 2]}


def test_double_at_sign_escapes_an_at_sign():
    assert parse_inputs(workflow(), ["value=@@home"]) == {"value": "@home"}


def test_a_missing_file_is_named():
    with pytest.raises(InputError, match=r'The file "no/such" for the input "value" cannot be read: No such file'):
        parse_inputs(workflow(), ["value=@no/such"])


def test_file_that_is_not_utf8_is_refused(tmp_path: Path):
    (tmp_path / "in").write_bytes(b"caf\xe9")
    with pytest.raises(InputError, match="it is not UTF-8 text"):
        parse_inputs(workflow(), [f"value=@{tmp_path / 'in'}"])


def test_too_large_file_is_refused(tmp_path: Path):
    with (tmp_path / "in").open("wb") as file:
        file.truncate(MAX_FILE_BYTES + 1)
    with pytest.raises(InputError, match="more than 10 MB"):
        parse_inputs(workflow(), [f"value=@{tmp_path / 'in'}"])


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_pipe_without_a_writer_is_refused_without_waiting(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="not an ordinary file"):
        parse_inputs(workflow(), [f"value=@{tmp_path / 'pipe'}"])


def test_folder_and_impossible_path_are_refused(tmp_path: Path):
    with pytest.raises(InputError, match="cannot be read"):
        parse_inputs(workflow(), [f"value=@{tmp_path}"])
    with pytest.raises(InputError, match="cannot be read"):
        parse_inputs(workflow(), ["value=@a\0b"])


def test_unknown_input_lists_the_inputs():
    with pytest.raises(InputError) as caught:
        parse_inputs(workflow("number", 5), ["valeu=1"])
    assert 'no input "valeu"' in caught.value.message
    assert caught.value.remedy == 'Inputs: value (number, default "5").'


@pytest.mark.parametrize("name", ["valeu", "VALUE"])
def test_unknown_input_of_a_run_is_answered_with_the_most_similar_one(name: str):
    with pytest.raises(InputError) as caught:
        read_parameters({"value": InputConfig(), "other": InputConfig()}, {name: "x", "other": "y"})
    assert '"value"?' in caught.value.remedy


def test_missing_value_lists_the_inputs():
    with pytest.raises(InputError) as caught:
        parse_inputs(workflow(), [])
    assert mentions(caught.value.message, 'No value … "value"')
    assert caught.value.remedy == "Add -i value=VALUE. Inputs: value (text, required)."


def test_a_workflow_without_inputs_says_so():
    empty = to_workflow(document([{"id": "r", "type": "output"}], []), "w")
    with pytest.raises(InputError, match="has no inputs"):
        parse_inputs(empty, ["a=1"])


def test_a_value_given_twice_is_refused():
    with pytest.raises(InputError, match='"value" is given twice'):
        parse_inputs(workflow(), ["value=1", "value=2"])


def test_option_without_an_equals_sign_is_refused():
    with pytest.raises(InputError, match='"-i value" has no value'):
        parse_inputs(workflow(), ["value"])


def test_a_default_makes_an_input_optional():
    assert parse_inputs(workflow("text", "hello"), []) == {}


def test_input_error_has_name_and_description():
    source = document(
        [{"id": "a", "type": "input", "config": {"name": "topic", "description": "What it is about."}}], []
    )
    (declared,) = declared_inputs(to_workflow(source, "w"))
    assert declared.to_json() == {
        "name": "topic",
        "type": "text",
        "required": True,
        "default": None,
        "description": "What it is about.",
    }


def test_input_with_invalid_settings_is_ignored():
    source = document([{"id": "a", "type": "input", "config": {"type": "colour"}}], [])
    assert declared_inputs(to_workflow(source, "w")) == []


@given(st.sampled_from(["text", "number", "boolean", "list", "json", "any"]), st.text(max_size=40))
def test_any_value_is_parsed_or_is_an_input_error(kind: str, text: str):
    given = [f"value={text.lstrip('@')}"]
    with contextlib.suppress(InputError):
        assert set(parse_inputs(workflow(kind), given)) == {"value"}
