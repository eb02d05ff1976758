"""The input of the next iteration, by feedback mode."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.nodes.loop import LoopConfig
from engine.nodes.spec import NodeError
from engine.runner.feedback import SEPARATOR, next_input
from engine.values import Value
from tests.wording import mentions


def config(mode: str, window: int = 3) -> LoopConfig:
    return LoopConfig.model_validate({"feedback_mode": mode, "append_window": window})


@pytest.mark.parametrize("feedback", ["text", "", None, 5, {"a": 1}, ["a"]])
def test_replace_uses_the_last_feedback_of_any_type(feedback: Value) -> None:
    assert next_input(config("replace"), "first", "so far", ["old", feedback]) == feedback


@pytest.mark.parametrize(
    ("mode", "window", "started_from"),
    [
        ("append", 3, "so far\n---\nc"),
        ("append_window", 1, "first\n---\nc"),
        ("append_window", 2, "first\n---\nb\n---\nc"),
        ("append_window", 3, "first\n---\na\n---\nb\n---\nc"),
        ("append_window", 1000, "first\n---\na\n---\nb\n---\nc"),
    ],
)
def test_append_adds_the_feedback_below(mode: str, window: int, started_from: str) -> None:
    assert next_input(config(mode, window), "first", "so far", ["a", "b", "c"]) == started_from


def test_null_is_appended_as_empty_text() -> None:
    assert next_input(config("append"), None, None, [None]) == "\n---\n"
    assert next_input(config("append_window"), "first", "x", [None]) == "first\n---\n"


@pytest.mark.parametrize("mode", ["append", "append_window"])
@pytest.mark.parametrize(
    ("value", "kind"), [({"a": 1}, 'JSON: {"a":1}'), ([1], "a list: [1]"), (5, "JSON: 5"), (True, "JSON: true")]
)
@pytest.mark.parametrize("place", ["start", "feedback"])
def test_only_text_can_be_appended(mode: str, value: Any, kind: str, place: str) -> None:
    before, feedback = (value, "text") if place == "start" else ("text", value)

    with pytest.raises(NodeError) as caught:
        next_input(config(mode), before, before, [feedback])

    assert mentions(caught.value.message, f"Only text … feedback is {kind}.")
    assert '"replace"' in caught.value.remedy
    assert not caught.value.retryable


def test_a_large_value_is_truncated_in_the_error() -> None:
    with pytest.raises(NodeError) as caught:
        next_input(config("append"), "a", "a", [["x" * 1_000_000]])

    assert len(caught.value.message) < 200


@given(st.text(max_size=10), st.lists(st.text(max_size=10), min_size=1, max_size=8))
def test_append_equals_a_window_as_long_as_the_loop(first: str, feedbacks: list[str]) -> None:
    current: Value = first
    for count in range(1, len(feedbacks) + 1):
        current = next_input(config("append"), first, current, feedbacks[:count])

    assert current == next_input(config("append_window", 1000), first, "unused", feedbacks)
    assert current == SEPARATOR.join([first, *feedbacks])
