"""Values as people read them."""

from __future__ import annotations

import pytest

from engine.values import short_number


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
