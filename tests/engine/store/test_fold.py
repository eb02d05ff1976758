"""What a run under way has spent, as a list of runs tells it."""

from __future__ import annotations

from typing import Any

import pytest

from engine.models.base import Usage
from engine.store.fold import RunFold
from tests.engine.cli.kit import Events


@pytest.mark.parametrize("node_type", ["loop", "iterator"])
def test_what_a_loop_spent_was_spent_by_its_nodes_and_counts_once(node_type: str) -> None:
    event = Events()
    ended: dict[str, Any] = {"error": "No.", "remedy": "Do.", "duration_s": 1.0}
    fold = RunFold()

    for told in (
        event("RunStarted", workflow="Sample", inputs={}, models=()),
        event.node("loop[0].draft", Usage(3, 4), 0.5),
        event.node("loop", Usage(3, 4), 0.5, node_type=node_type),
        event("NodeFailed", "other", node_type=node_type, usage=Usage(1, 1), cost_usd=None, **ended),
    ):
        fold.take(told)

    assert (fold.tokens, fold.cost_usd) == (7, 0.5)
