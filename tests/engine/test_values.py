"""Values as people read them."""

from __future__ import annotations

import pytest

from engine.values import nesting, short_number, value_of_json


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (14 / 3, "4.67"),
        (10.0, "10"),
        (7.5, "7.5"),
        (0, "0"),
        (0.00123, "0.0012"),
        (-2.005, "-2"),
        (123456.789, "123456.79"),
        (100, "100"),
    ],
)
def test_a_number_is_shown_with_two_places_at_the_most(number: float, text: str) -> None:
    assert short_number(number) == text


@pytest.mark.parametrize("text", ["", "{", "NaN", "[-Infinity]", "1e999", '{"a": -1e400}', "'a'", b"\xff"])
def test_what_json_cannot_say_again_is_no_json(text: str | bytes) -> None:
    with pytest.raises(ValueError):
        value_of_json(text)


def test_json_is_read_as_it_says_whatever_its_depth() -> None:
    assert value_of_json('{"a": [1, 2.5, true, null, "\\ud800"]}') == {"a": [1, 2.5, True, None, "\ud800"]}
    assert value_of_json('"é"'.encode()) == "é"
    assert nesting(value_of_json("[" * 700 + "]" * 700)) == 700


def test_json_too_deep_for_python_is_refused_in_words() -> None:
    with pytest.raises(ValueError, match="too deep inside one another"):
        value_of_json("[" * 200_000 + "]" * 200_000)
