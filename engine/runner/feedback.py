"""What the next iteration of a loop starts from, and what its first model node is told."""

from __future__ import annotations

from typing import Final

from engine.nodes.loop import LoopConfig
from engine.nodes.spec import NodeError
from engine.values import Value, to_text

SEPARATOR: Final = "\n---\n"


def next_input(config: LoopConfig, original: Value, current: Value, feedbacks: list[Value]) -> Value:
    """What the next iteration starts from.

    Args:
        config: The loop's settings.
        original: What the loop started from.
        current: What the iteration that has ended started from.
        feedbacks: The feedback of each iteration so far; at least one.

    Raises:
        NodeError: Something that is no text is to be appended.
    """
    if config.feedback_mode == "replace":
        return feedbacks[-1]
    if config.feedback_mode == "append":
        return SEPARATOR.join((_text(current), _text(feedbacks[-1])))
    kept = feedbacks[-config.append_window :]
    return SEPARATOR.join((_text(original), *map(_text, kept)))


def _text(value: Value) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    kind = "a list" if isinstance(value, list) else "JSON"
    raise NodeError(
        f"Only text can be appended for the next iteration, and this is {kind}: {to_text(value)[:60]}.",
        'Choose the feedback mode "replace", or make text of it in a Transform.',
    )


def note_for(index: int, total: int, previous: Value, body_input: Value) -> str:
    """What the first model node of a body is told: which iteration this is, of how many, and what the last one gave."""
    place = f"This is iteration {index + 1} of {total}."
    if index == 0:
        return place
    given = to_text(previous)
    if given and given in to_text(body_input):
        return f"{place} What the iteration before gave stands above; improve on it."
    return f"{place} The iteration before gave:\n{given}\n\nImprove on it."
