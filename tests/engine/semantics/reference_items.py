"""A minimal reference interpreter of nested iterators and loops, written from docs/semantics.md only.

A body is a chain of steps. Values are texts; an iterator splits its value into items and joins the results again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias


@dataclass(frozen=True)
class Mark:
    """Appends a letter to the text."""

    letter: str


@dataclass(frozen=True)
class Refuse:
    """Fails if the text ends with that letter."""

    letter: str


@dataclass(frozen=True)
class Repeat:
    """A loop with a number of iterations."""

    times: int
    body: tuple[Step, ...]


@dataclass(frozen=True)
class Each:
    """An iterator over the text with each of several letters appended."""

    letters: str
    on_item_error: Literal["fail", "skip", "collect"]
    mode: Literal["join", "first", "vote"]
    at_once: int
    body: tuple[Step, ...]


Step: TypeAlias = "Mark | Refuse | Repeat | Each"


class Failed(Exception):  # noqa: N818 - nothing of the engine's
    """A step failed."""


def interpret(steps: tuple[Step, ...], text: str) -> str:
    """The resulting text; raises `Failed`."""
    for step in steps:
        match step:
            case Mark():
                text += step.letter
            case Refuse():
                if text.endswith(step.letter):
                    raise Failed
            case Repeat():
                for _ in range(step.times):
                    text = interpret(step.body, text)
            case Each():
                text = _together(step, [_item(step, text + letter) for letter in step.letters])
    return text


def _item(step: Each, text: str) -> str | None:
    try:
        return interpret(step.body, text)
    except Failed:
        if step.on_item_error == "fail":
            raise
        return None


def _together(step: Each, results: list[str | None]) -> str:
    there = [result for result in results if result is not None]
    if step.mode == "join":
        results_in_order = there if step.on_item_error == "skip" else [result or "" for result in results]
        return "-".join(results_in_order)
    if not there:
        return ""
    return there[0] if step.mode == "first" else max(there, key=there.count)
