"""An exit condition: the loop stops as soon as its result has so many words.

A loop lists it as {"condition": "plugin", "plugin_condition": "at_least", "plugin_settings": {"words": 100}}.
"""

from __future__ import annotations

from collections.abc import Mapping

from engine.errors import EngineError
from engine.exits.base import EndedIteration, ExitCondition
from engine.extensions import ExitConditionType
from engine.values import Value, to_text


class AtLeast(ExitCondition):
    """Stops when the result has at least so many words. A loop makes its own for every run, so it may keep state."""

    name = "at_least"

    def __init__(self, words: int) -> None:
        self._words = words

    def reason(self, iteration: EndedIteration) -> str | None:
        """`at_least`, which becomes the loop's `exit_reason`."""
        return self.name if self._count(iteration) >= self._words else None

    def tested(self, iteration: EndedIteration) -> Value:
        """How many words there were: it stands in the history of the iteration."""
        return self._count(iteration)

    def _count(self, iteration: EndedIteration) -> int:
        return len(to_text(iteration.result).split())


def _make(settings: Mapping[str, Value]) -> AtLeast:
    words = settings.get("words")
    if not isinstance(words, int) or isinstance(words, bool) or words < 1:
        # Told as a problem of the document, before anything runs.
        raise EngineError("`at_least` needs a number of words.", 'Write {"words": 100} into its settings.')
    return AtLeast(words)


AT_LEAST = ExitConditionType("at_least", "So many words", "Stops when the result has at least so many words.", _make)
