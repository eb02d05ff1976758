"""Setting one value deep inside a JSON value without changing the old one: everything beside the path is shared."""

from __future__ import annotations

from enum import Enum
from typing import Final, cast

from engine.document.json_rules import JsonPath
from engine.document.operation import OperationError, require_json
from engine.document.wording import shown
from engine.values import Value


class Unset(Enum):
    """The kind of `UNSET`."""

    UNSET = "unset"


UNSET: Final = Unset.UNSET
"""In place of a value: that there shall be none, which is something else than null."""


def set_in(
    container: dict[str, Value], path: JsonPath, value: Value | Unset, what: str, *, depth: int
) -> dict[str, Value]:
    """An object with one value set or taken out.

    Objects and lists that are missing on the way are made. An index one behind the end of a list adds to it. To take
    out what is not there changes nothing.

    Args:
        container: The object.
        path: Keys and list indices that lead to the place.
        value: What shall stand there.
        what: What to call the object in messages.
        depth: How many objects and lists of the document stand around it.

    Raises:
        OperationError: The path is empty, leads through something that is no object or list, or behind a list's end; or
            the value is not JSON.
    """
    try:
        if not path:
            raise LookupError("the path is empty")
        changed = cast("dict[str, Value]", _with_value(container, path, value))
    except LookupError as error:
        message = f'{what} cannot be changed at "{shown(".".join(map(str, path)))}": {error.args[0]}.'
        raise OperationError(message, "Choose a place that is there.") from error
    # Only what is new: a large layout is not gone through for every node that is moved in it.
    require_json(dict.fromkeys(key for key in path if isinstance(key, str)), what, depth)
    if not isinstance(value, Unset):
        require_json(value, what, depth + len(path), path)
    return changed


def _with_value(container: Value, path: JsonPath, value: Value | Unset) -> Value:
    key, rest = path[0], path[1:]
    if isinstance(container, dict) and isinstance(key, str):
        return _in_object(container, key, rest, value)
    if isinstance(container, list) and isinstance(key, int):
        return _in_list(container, key, rest, value)
    kind = "an object" if isinstance(key, str) else "a list"
    raise LookupError(f'"{shown(key)}" would have to stand in {kind}')


def _in_object(container: dict[str, Value], key: str, rest: JsonPath, value: Value | Unset) -> Value:
    if value is UNSET and key not in container:
        return container
    if not rest and value is UNSET:
        return {name: kept for name, kept in container.items() if name != key}
    return {**container, key: _deeper(container.get(key, UNSET), rest, value)}


def _in_list(container: list[Value], index: int, rest: JsonPath, value: Value | Unset) -> Value:
    if not 0 <= index <= len(container):
        raise LookupError(f"the list has {len(container)} entries and no place {index}")
    if value is UNSET and index == len(container):
        return container
    if not rest and value is UNSET:
        return container[:index] + container[index + 1 :]
    old = container[index] if index < len(container) else UNSET
    return [*container[:index], _deeper(old, rest, value), *container[index + 1 :]]


def _deeper(old: Value | Unset, rest: JsonPath, value: Value | Unset) -> Value:
    if not rest:
        return cast("Value", value)
    if isinstance(old, Unset):
        old = {} if isinstance(rest[0], str) else []
    return _with_value(old, rest, value)
