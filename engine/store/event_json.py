"""An event from the JSON object that `Event.to_json` makes of it, whoever wrote that: nothing in it is trusted.

The fields' annotations say what may stand in them. How a store writes events for itself is not known here.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import re
import sys
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, Final, Literal, cast, get_args, get_origin

from engine.events import AnyEvent
from engine.store.base import StoreError
from engine.text_sanitizing import shown

_KINDS: Final[dict[str, type[AnyEvent]]] = {kind.type: kind for kind in get_args(AnyEvent)}


_BARS: Final = re.compile(r" \| (?![^\[]*\])")
"""Between the alternatives of an annotation, not inside its brackets."""


class _MisfitError(Exception):
    """Something in an event is not what its field takes; the text says what it takes, `field` names it."""

    def __init__(self, takes: str, field: str = "") -> None:
        super().__init__(takes)
        self.field = field


def event_from_json(data: object) -> AnyEvent:
    """The event that a JSON object stands for.

    Fields that it lacks have their usual values where they have one; others than today's are passed over.

    Raises:
        StoreError: It is no event, or one of its fields does not fit.
    """
    entries = cast("dict[str, Any]", data) if isinstance(data, dict) else {}
    kind = _KINDS.get(str(entries.get("type")))
    if kind is None:
        raise StoreError(f"There is no event of the type “{shown(entries.get('type'), 40)}”.")
    try:
        return _made(kind, entries)
    except _MisfitError as misfit:
        raise StoreError(f"The field “{misfit.field}” of an event “{kind.type}” takes {misfit}.") from None


def _made(kind: Any, entries: Mapping[str, Any]) -> Any:
    """An instance of a dataclass, each field read as its annotation says."""
    values: dict[str, Any] = {}
    for field in dataclasses.fields(kind):
        if field.name in entries:
            try:
                values[field.name] = _reader(kind.__module__, cast(str, field.type))(entries[field.name])
            except _MisfitError as misfit:
                raise _MisfitError(str(misfit), f"{field.name}.{misfit.field}".rstrip(".")) from None
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise _MisfitError("a value, and has none", field.name)
    return kind(**values)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise _MisfitError("a text")
    return value


def _whole(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise _MisfitError("a whole number")
    return value


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise _MisfitError("a number")
    return value


def _truth(value: object) -> bool:
    if not isinstance(value, bool):
        raise _MisfitError("true or false")
    return value


def _value(value: object) -> Any:
    return value


def _ports(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _MisfitError("an object")
    return cast("dict[str, Any]", value)


@functools.cache
def _reader(module: str, annotation: str) -> Callable[[object], Any]:
    """What reads a field of a dataclass of that module, by the text of its annotation."""
    alternatives = _BARS.split(annotation)
    if len(alternatives) > 1:
        return _first_of(*(_reader(module, alternative) for alternative in alternatives))
    if annotation.startswith("tuple["):
        return _tuple(_reader(module, annotation.removeprefix("tuple[").removesuffix(", ...]")))
    if annotation.startswith("dict[") or annotation == "Outputs":
        return _ports
    if annotation.startswith("Literal["):
        return _one_of(*ast.literal_eval(f"[{annotation.removeprefix('Literal[')}"))
    plain = _PLAIN.get(annotation)
    return plain if plain is not None else _named(getattr(sys.modules[module], annotation))


def _named(kind: Any) -> Callable[[object], Any]:
    """What reads a value of a type that has a name of ours."""
    if get_origin(kind) is Literal:
        return _one_of(*get_args(kind))
    if issubclass(kind, StrEnum):
        choice = _one_of(*kind)
        return lambda value: kind(choice(value))
    assert dataclasses.is_dataclass(kind), "events are made of nothing else"
    return lambda value: _made(kind, _ports(value))


def _tuple(reader: Callable[[object], Any]) -> Callable[[object], tuple[Any, ...]]:
    def read(value: object) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise _MisfitError("a list")
        return tuple(reader(item) for item in cast("list[object]", value))

    return read


def _first_of(*readers: Callable[[object], Any]) -> Callable[[object], Any]:
    def read(value: object) -> Any:
        takes: list[str] = []
        for reader in readers:
            try:
                return reader(value)
            except _MisfitError as misfit:
                if misfit.field:
                    raise
                takes.append(str(misfit))
        raise _MisfitError(" or ".join(takes))

    return read


def _nothing(value: object) -> None:
    if value is not None:
        raise _MisfitError("null")


def _one_of(*choices: str) -> Callable[[object], str]:
    def read(value: object) -> str:
        if value not in choices:
            raise _MisfitError(f"one of {', '.join(choices)}")
        return cast(str, value)

    return read


_PLAIN: Final[dict[str, Callable[[object], Any]]] = {
    "str": _text,
    "int": _whole,
    "float": _number,
    "bool": _truth,
    "Value": _value,
    "None": _nothing,
}
