"""JSON values."""

from __future__ import annotations

import pytest

from engine.values import nesting, value_of_json


@pytest.mark.parametrize("text", ["", "{", "NaN", "[-Infinity]", "1e999", '{"a": -1e400}', "'a'", b"\xff"])
def test_values_that_json_cannot_represent_are_refused(text: str | bytes) -> None:
    with pytest.raises(ValueError):
        value_of_json(text)


def test_json_of_any_depth_is_parsed() -> None:
    assert value_of_json('{"a": [1, 2.5, true, null, "\\ud800"]}') == {"a": [1, 2.5, True, None, "\ud800"]}
    assert value_of_json('"é"'.encode()) == "é"
    assert nesting(value_of_json("[" * 700 + "]" * 700)) == 700


def test_json_too_deep_for_python_is_refused_with_a_message() -> None:
    with pytest.raises(ValueError, match="too deep"):
        value_of_json("[" * 200_000 + "]" * 200_000)
