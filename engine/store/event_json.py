"""An event from the JSON object that `Event.to_json` makes of it, whoever wrote that: nothing in it is trusted.

The fields' annotations say what may stand in them. How a store writes events for itself is not known here.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, Final, cast, get_args

from engine.document.wording import shown
from engine.models.base import Finish, Message, Reply, Request, Usage
from engine.nodes.context import QuestionKind
from engine.nodes.spec import ModelCall
from engine.runner.events import AnyEvent
from engine.store.base import StoreError

_KINDS: Final[dict[str, type[AnyEvent]]] = {kind.type: kind for kind in get_args(AnyEvent)}


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


def _made(kind: type[Any], entries: Mapping[str, Any]) -> Any:
    """An instance of a dataclass, each field read as its annotation says."""
    values: dict[str, Any] = {}
    for field in dataclasses.fields(kind):
        if field.name in entries:
            try:
                values[field.name] = _READERS[cast(str, field.type)](entries[field.name])
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


def _object(kind: type[Any]) -> Callable[[object], Any]:
    return lambda value: _made(kind, _ports(value))


def _tuple(reader: Callable[[object], Any]) -> Callable[[object], tuple[Any, ...]]:
    def read(value: object) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise _MisfitError("a list")
        return tuple(reader(item) for item in cast("list[object]", value))

    return read


def _optional(reader: Callable[[object], Any]) -> Callable[[object], Any]:
    return lambda value: None if value is None else reader(value)


def _one_of(*choices: str) -> Callable[[object], str]:
    def read(value: object) -> str:
        if value not in choices:
            raise _MisfitError(f"one of {', '.join(choices)}")
        return cast(str, value)

    return read


_finish = _one_of(*Finish)
# By annotation; a test makes one of each type of event, so that none is missing.
_READERS: Final[dict[str, Callable[[object], Any]]] = {
    "str": _text,
    "int": _whole,
    "float": _number,
    "bool": _truth,
    "str | None": _optional(_text),
    "int | None": _optional(_whole),
    "float | None": _optional(_number),
    "Value": _value,
    "dict[str, Value]": _ports,
    "dict[str, Value] | None": _optional(_ports),
    "Outputs": _ports,
    "tuple[str, ...]": _tuple(_text),
    "Usage": _object(Usage),
    "Usage | None": _optional(_object(Usage)),
    "Finish": lambda value: Finish(_finish(value)),
    "QuestionKind": _one_of(*get_args(QuestionKind)),
    "Literal['system', 'user', 'assistant', 'tool']": _one_of("system", "user", "assistant", "tool"),
    "tuple[Message, ...]": _tuple(_object(Message)),
    "Request": _object(Request),
    "Reply": _object(Reply),
    "ModelCall": _object(ModelCall),
    "tuple[ModelCall, ...]": _tuple(_object(ModelCall)),
}
