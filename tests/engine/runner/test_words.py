from __future__ import annotations

import pytest

from engine.models.base import Usage
from engine.runner.words import money, seconds, stop_sentence, tokens, written


@pytest.mark.parametrize(
    ("cost", "text"),
    [(None, "$?"), (0.0, "$0"), (0.00001, "under $0.0001"), (0.0123, "$0.0123"), (1234.5, "$1,234.50")],
)
def test_a_price_in_words(cost: float | None, text: str):
    assert money(cost) == text


def test_estimated_tokens_are_called_so():
    assert tokens(Usage(1000, 234)) == "1,234 tokens"
    assert tokens(Usage(1, 0)) == "1 token"
    assert tokens(Usage(1, 1, exact=False)) == "about 2 tokens"


def test_a_duration_in_words():
    assert seconds(3.21) == "3.2 s"
    assert seconds(245) == "4 min 05 s"


def test_a_value_that_is_no_text_is_shown_as_json():
    assert written("a\nb") == "a\nb"
    assert written({"é": [1, None]}) == '{\n  "é": [\n    1,\n    null\n  ]\n}'


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("max_iterations", "the count was reached"),
        ("evaluator_done", "the evaluator chose 'done'"),
        ("stable_output", "the result no longer changed"),
        ("until", "its 'until' expression became true"),
        ("budget", "the budget was spent"),
        ("timeout", "its time was up"),
        ("cancelled", "it was cancelled"),
        ("error", "an error ended it"),
        ("something_new", "something_new"),
    ],
)
def test_why_a_loop_stopped_in_words(reason: str, words: str):
    assert stop_sentence(reason, 3, 3) == f"Stopped after 3 of 3: {words}."


def test_a_loop_of_one_and_a_loop_of_none():
    assert stop_sentence("max_iterations", 1, 1) == "Stopped after 1 of 1: the count was reached."
    assert stop_sentence("condition", 0, None) == "Ran no iteration: its condition was not met."
