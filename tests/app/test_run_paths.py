"""Paths of a run: the node of the displayed document, and the label."""

from __future__ import annotations

import pytest

from app.runs.loop_status import place_label
from app.runs.run_view_model import node_of, steps_of


@pytest.mark.parametrize(
    ("path", "node", "inside", "words"),
    [
        ("", "", "", ""),
        ("draft", "draft", "", "draft"),
        ("loop[2].draft", "draft", "", "draft (iteration 3)"),
        ("outer[1].inner[0].draft", "draft", "", "draft (iteration 2.1)"),
        ("outer[1].inner", "inner", "", "inner (iteration 2)"),
        ("loop[2]", "loop", "", "loop (iteration 3)"),
        ("part.draft", "part", "draft", "First draft › draft"),
        ("loop[0].part.loop[1].draft", "part", "loop.draft", "First draft › loop.draft (iteration 1.2)"),
    ],
)
def test_path_names_its_node_in_the_document(path: str, node: str, inside: str, words: str) -> None:
    assert steps_of(path) == (node, inside)
    assert node_of(path) == node
    assert place_label(path, {"part": "First draft"}) == words
