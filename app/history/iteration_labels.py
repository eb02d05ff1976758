"""An iteration in words: the cells of the table, the line over its details, the beginning of a value. No Qt here."""

from __future__ import annotations

import json
from typing import Final

from app.inspector.text_widgets import from_utf16_units
from engine.events import LoopIterationCompleted
from engine.formatting import format_count, format_duration, format_money, format_percent, format_score, format_tokens
from engine.models.base import Usage
from engine.values import Value

MOST: Final = 200
"""The most characters of a value that a cell is made of."""


def beginning(value: Value, most: int = MOST) -> str:
    """The first words of a value on one line. Of a value of any size only so many characters are looked at."""
    text = value[: most + 1] if isinstance(value, str) else _json(value, most + 1)
    line = from_utf16_units(" ".join(text.split()))
    return f"{line[:most].rstrip()}…" if len(text) > most else line


def _json(value: Value, most: int) -> str:
    """The beginning of a value as JSON: at least so many characters where it has as many."""
    if value is None:
        return ""
    pieces: list[str] = []
    # What is still to be written, the next at the end: texts to write as they are, and values.
    waiting: list[tuple[bool, Value]] = [(False, value)]
    length = 0
    while waiting and length < most:
        is_written, item = waiting.pop()
        if is_written:
            piece = str(item)
        elif isinstance(item, list):
            piece = "["
            waiting.append((True, "]"))
            shown = item[:most]
            for place in range(len(shown) - 1, -1, -1):
                waiting.append((False, shown[place]))
                if place:
                    waiting.append((True, ", "))
        elif isinstance(item, dict):
            piece = "{"
            waiting.append((True, "}"))
            names = [name for name, _ in zip(item, range(most), strict=False)]
            for place in range(len(names) - 1, -1, -1):
                waiting.append((False, item[names[place]]))
                waiting.append(
                    (True, f"{', ' if place else ''}{json.dumps(names[place][:most], ensure_ascii=False)}: ")
                )
        else:
            cut = item[:most] if isinstance(item, str) else item
            piece = json.dumps(cut, ensure_ascii=False)
        pieces.append(piece)
        length += len(piece)
    return "".join(pieces)


def token_count(usage: Usage) -> str:
    """Tokens in and out together, `~` before an estimate; empty where no model was called."""
    return format_count(usage.total_tokens, exact=usage.exact) if usage.total_tokens else ""


def cost(iteration: LoopIterationCompleted) -> str:
    """What it cost; empty where no model was called."""
    is_free = not iteration.usage.total_tokens and not iteration.cost_usd
    return "" if is_free else format_money(iteration.cost_usd)


def verdict(iteration: LoopIterationCompleted) -> str:
    """What was decided about it, and why, in one line."""
    reason = beginning(iteration.reason) if iteration.reason else ""
    return " · ".join(part for part in (iteration.branch or "", reason) if part)


def facts(iteration: LoopIterationCompleted, similarity: float | None) -> str:
    """What is to be known of an iteration in one line, without its verdict's reason."""
    parts: list[str] = []
    if iteration.branch:
        parts.append(iteration.branch)
    if iteration.score is not None:
        parts.append(f"score {format_score(iteration.score)}")
    if similarity is not None:
        parts.append(f"{format_percent(similarity)} similar")
    if iteration.usage.total_tokens:
        parts.append(format_tokens(iteration.usage))
    if cost(iteration):
        parts.append(cost(iteration))
    parts.append(format_duration(iteration.duration_s))
    if iteration.warnings:
        parts.append(format_count(len(iteration.warnings), "warning"))
    return " · ".join(parts)
