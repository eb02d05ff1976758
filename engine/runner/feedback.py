"""What the next iteration of a loop starts from."""

from __future__ import annotations

from typing import Final

from engine.nodes.loop_config import LoopConfig
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
