"""What is shown of one iteration: its parts by name, and the nodes of its body. No Qt here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from app.inspector.result_text import Part
from app.runs.executions import LoopPicture
from engine.document.model import Workflow
from engine.nodes.pairs import PAIR_BY_END

RESULT: Final = "result"


@dataclass(frozen=True, slots=True)
class Tab:
    """One tab.

    Attributes:
        key: Says which it is, the same for all iterations.
        title: What it says.
        node_id: The node of the body that it is about; empty for the iteration itself.
    """

    key: str
    title: str
    node_id: str = ""


def body_tabs(workflow: Workflow, parents: Mapping[str, str], loop_id: str) -> list[Tab]:
    """A tab for each node of a loop's body, in the order of the document; what closes it tells nothing of its own."""
    return [
        Tab(f"node:{node.id}", node.title or node.id, node.id)
        for node in workflow.nodes
        if node.type not in PAIR_BY_END and parents.get(node.id) == loop_id
    ]


def iteration_parts(
    loop: LoopPicture, index: int, was_tested: str, *, is_over: bool, unit: str = "iteration"
) -> dict[str, Part]:
    """What there is of the iteration itself, by the key of its tab.

    Args:
        loop: The run of the loop.
        index: The iteration, which has begun.
        was_tested: What was tested after it, for people.
        is_over: Whether nothing more can come.
        unit: What it is called: an `item` of an iterator feeds nothing back, and nothing is tested after it.
    """
    iteration = loop.ended(index)
    if iteration is None:
        words = "It was not finished." if is_over else "It is under way."
        parts = {RESULT: Part("under way", "Result", f"{words} What its nodes did so far stands under their names.")}
        if loop.input_preview and index == loop.current:
            parts["start"] = Part("start preview", "Started from (its beginning)", loop.input_preview)
        return parts
    parts = {RESULT: Part("result", "Result", iteration.result)}
    if unit == "item":
        if iteration.result is None and iteration.reason:
            parts[RESULT] = Part("no result", "No result", iteration.reason)
        parts["start"] = Part("start", "The item", iteration.input)
        notes = [
            *([iteration.reason] if iteration.reason else []),
            *(f"Warning: {note}" for note in iteration.warnings),
        ]
        if notes:
            parts["verdict"] = Part("verdict", "What became of it", "\n\n".join(notes))
        return parts
    if iteration.feedback != iteration.result:
        parts["feedback"] = Part("feedback", "Feedback: what the next iteration starts from", iteration.feedback)
    parts["start"] = Part("start", "Started from", iteration.input)
    warnings = "".join(f"\n\nWarning: {warning}" for warning in iteration.warnings)
    parts["verdict"] = Part("verdict", "What was tested after it", was_tested + warnings)
    return parts


TITLES: Final = {RESULT: "Result", "feedback": "Feedback", "start": "Started from", "verdict": "Verdict"}
ITEM_TITLES: Final = {**TITLES, "start": "Item", "verdict": "Outcome"}
