"""The words of the list of runs."""

from __future__ import annotations

import pytest

from app.history.runs_words import reason_words
from engine.runner.words import EXIT_REASONS


@pytest.mark.parametrize("reason", EXIT_REASONS)
def test_every_exit_reason_has_words(reason: str) -> None:
    assert reason_words(reason) != reason or reason == "cancelled"


def test_several_reasons_are_joined() -> None:
    assert reason_words("plateau+budget") == "score no longer rose and budget spent"
    assert reason_words("") == ""
