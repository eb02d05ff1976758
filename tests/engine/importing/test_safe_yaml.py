"""YAML becomes plain values; a hostile file is refused quickly with a sentence."""

from __future__ import annotations

import contextlib
import io
import sys
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from engine.document.problems import DocumentError
from engine.importing.safe_yaml import MAX_YAML_BYTES, read_yaml


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: 1\nb: [x, 'y', \"z\"]", {"a": 1, "b": ["x", "y", "z"]}),
        ("yes", "yes"),
        (
            "[true, False, null, ~, '', 1.5, 1e3, 0x1F, 0o17, -4]",
            [True, False, None, None, "", 1.5, 1000.0, 31, 15, -4],
        ),
        ("1: a\ntrue: b\nnull: c", {"1": "a", "true": "b", "null": "c"}),
        ("t: |\n  one\n  two\n", {"t": "one\ntwo\n"}),
        ("a: &x {k: 1}\nb: *x", {"a": {"k": 1}, "b": {"k": 1}}),
        ("a: &x {k: 1, l: 2}\nb: {<<: *x, l: 3}", {"a": {"k": 1, "l": 2}, "b": {"k": 1, "l": 3}}),
        ("a: &x {k: 1}\nb: &y {l: 2}\nc: {<<: [*x, *y]}", {"a": {"k": 1}, "b": {"l": 2}, "c": {"k": 1, "l": 2}}),
        ("!!str 3", "3"),
        ("2024-01-01", "2024-01-01"),
        ("1e999", "1e999"),
        ("", None),
    ],
)
def test_plain_values(text: str, value: Any) -> None:
    assert read_yaml(text, "file") == value


_BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12)
)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (_BOMB, "more than 20,000 values"),
        ("[" * 250_000, "more than 60 levels deep"),
        ("{a: " * 60_000, "more than 60 levels deep"),
        ("- " * 100_000, "more than 60 levels deep"),
        ("\n".join(" " * depth + f"k{depth}:" for depth in range(700)), "more than 60 levels deep"),
        ("-\n" * 100_000, "more than 20,000 values"),
        ("x" * (MAX_YAML_BYTES + 1), "larger than 300 kB"),
        ("ä" * (MAX_YAML_BYTES // 2 + 1), "larger than 300 kB"),
        ("a: !!python/object/apply:os.system ['true']", 'the tag "tag:yaml.org,2002:python/object/apply:os.system"'),
        ("a: !ours {k: 1}", 'the tag "!ours"'),
        ("a: !!binary aGk=", 'the tag "tag:yaml.org,2002:binary"'),
        ("a: !!set {x, y}", 'the tag "tag:yaml.org,2002:set"'),
        ("&a [*a]", 'the alias "*a" is not defined'),
        ("a: *nobody", 'the alias "*nobody" is not defined'),
        ("a: 1\na: 2", 'the key "a" is repeated'),
        ("? [a]\n: 1", "a key is an object"),
        ("a: {<<: 3}", 'the value of "<<"'),
        ("a: 1\n---\nb: 2", "several documents"),
        ("a: b: c", "not valid YAML: line 1, column 5"),
        ("a: 'open", "not valid YAML: line 1"),
        ("a: \x00", "not valid YAML: "),
    ],
)
def test_unsafe_yaml_is_refused(text: str, why: str) -> None:
    with pytest.raises(DocumentError) as refused:
        read_yaml(text, "file")
    assert why in refused.value.message
    assert refused.value.message.startswith("file: ")
    assert len(refused.value.message) < 300


_TEXTS = st.text("abxyz 0123.-_+eE~#'\"äß{}[]\n", max_size=12)  # except for values that the library writes incorrectly
_SCALARS = st.none() | st.booleans() | st.integers(-(10**9), 10**9) | _TEXTS
_VALUES = st.recursive(_SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_TEXTS, inner, max_size=4))


def _loads(yaml: YAML, text: str) -> bool:
    try:
        yaml.load(text)  # pyright: ignore[reportUnknownMemberType]
    except YAMLError:
        return False
    return True


@given(_VALUES)
def test_output_of_a_yaml_library_is_read_correctly(value: Any) -> None:
    stream = io.StringIO()
    yaml = YAML(typ="safe", pure=True)
    yaml.dump(value, stream)
    assume(_loads(yaml, stream.getvalue()))  # the emitter writes a few texts that no parser can read
    assert read_yaml(stream.getvalue(), "file") == value


@given(st.text(max_size=200) | st.text("[]{}:&*!?-|>'\"#, \nab1", max_size=200))
def test_any_text_is_a_value_or_a_sentence(text: str) -> None:
    with contextlib.suppress(DocumentError):
        read_yaml(text, "file")


def test_the_library_constructs_no_objects() -> None:
    read_yaml("a: 1", "file")
    loaded = sys.modules["ruamel.yaml.constructor"].SafeConstructor.construct_document
    sys.modules["ruamel.yaml.constructor"].SafeConstructor.construct_document = None
    try:
        assert read_yaml("a: [1, {b: 2}]", "file") == {"a": [1, {"b": 2}]}
    finally:
        sys.modules["ruamel.yaml.constructor"].SafeConstructor.construct_document = loaded
