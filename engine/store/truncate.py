"""Values cut short for lists and charts: the start of a text, or of the JSON of a list or object."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, TypeGuard

from engine.events import AnyEvent
from engine.store.codec import decode_event, encode_fields

Opener = Callable[[Any], Any]
"""Makes of what is stored for a value the value itself: at least the start of a text, one level of a list or object."""


def cut_text(text: str, limit: int) -> str:
    """The text, or its first `limit` characters and "…"."""
    return text if len(text) <= limit else text[:limit] + "…"


def cut_value(value: Any, limit: int) -> Any:
    """The value; a long text cut, a list or object with long JSON as the cut text of it."""
    if isinstance(value, str):
        return cut_text(value, limit)
    if is_container(value):
        start = json_start(value, limit + 1, _as_it_is)
        return value if len(start) <= limit else cut_text(start, limit)
    return value


def cut_event(event: AnyEvent, limit: int) -> AnyEvent:
    """The event with all values in it cut."""
    fields = encode_fields(event, lambda value, _place: value)
    return decode_event(
        type(event), event.run_id, event.seq, event.time, event.path, fields, lambda value: cut_value(value, limit)
    )


def json_start(value: Any, length: int, opener: Opener) -> str:
    """The first `length` characters of the compact JSON, keys sorted; no more of the value is looked at than needed."""
    pieces: list[str] = []
    written = 0
    for piece in _json_pieces(value, opener):
        pieces.append(piece)
        written += len(piece)
        if written >= length:
            break
    return "".join(pieces)[:length]


def is_container(value: Any) -> TypeGuard[list[Any] | dict[str, Any]]:
    """Whether it is a list or an object."""
    return isinstance(value, (list, dict))


def _as_it_is(value: Any) -> Any:
    return value


def _json_pieces(root: Any, opener: Opener) -> Iterator[str]:
    """The JSON in pieces; nesting is kept on a stack of its own, because values may be nested deeply."""
    value = opener(root)
    if not is_container(value):
        yield _scalar(value)
        return
    stack = [_Level(value)]
    yield stack[0].opening
    while stack:
        level = stack[-1]
        for label, item in level.items:
            yield label
            child = opener(item)
            if is_container(child):
                stack.append(_Level(child))
                yield stack[-1].opening
                break
            yield _scalar(child)
        else:
            yield level.closing
            stack.pop()


class _Level:
    """A list or object that is being written: what is still to come, each with what stands before it."""

    def __init__(self, value: list[Any] | dict[str, Any]) -> None:
        if isinstance(value, list):
            self.opening, self.closing, self.items = "[", "]", _list_items(value)
        else:
            self.opening, self.closing, self.items = "{", "}", _object_items(value)


def _list_items(value: list[Any]) -> Iterator[tuple[str, Any]]:
    for number, item in enumerate(value):
        yield "," if number else "", item


def _object_items(value: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for number, key in enumerate(sorted(value)):
        yield f"{',' if number else ''}{_scalar(key)}:", value[key]


def _scalar(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
