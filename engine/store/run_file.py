"""A run as one JSON file that can be imported elsewhere and read by any JSON tool.

The file is pure data: nothing in it is executed. Everything outside of ASCII is escaped, so that each text survives any
encoding, lone surrogates too.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, Literal, cast, get_args, get_origin

from engine.errors import reason_of
from engine.events import AnyEvent, NodeAnswered, NodeCompleted, NodeFailed, NodeToolCalled, RunStarted
from engine.formatting import format_json
from engine.models.protocol import reads_this_machine
from engine.plan.secrets import text_without_secrets
from engine.runner.run_storage import RunHead
from engine.safe_file_io import read_text_file
from engine.store.store_protocol import Store, StoreError
from engine.text_sanitizing import shown
from engine.values import MAX_NESTING, Value, as_object, nesting, value_of_json

_KINDS: Final[dict[str, type[AnyEvent]]] = {kind.type: kind for kind in get_args(AnyEvent)}

_Reader = Callable[[object], Any]
"""Reads a field of an event from its JSON."""
_UNION: Final = re.compile(r" \| (?![^\[]*\])")
"""Separates the alternatives of an annotation, but not inside brackets."""


class _InvalidFieldError(Exception):
    """A field has an invalid value. The text says what it takes."""

    def __init__(self, takes: str, field: str = "") -> None:
        super().__init__(takes)
        self.field = field


def event_from_json(data: object) -> AnyEvent:
    """Convert a JSON object to an event.

    Missing fields get their defaults; unknown fields are ignored.

    Raises:
        StoreError: It is not an event, or a field is invalid.
    """
    entries = as_object(data)
    kind = _KINDS.get(str(entries.get("type")))
    if kind is None:
        raise StoreError(f"There is no event type “{shown(entries.get('type'), 40)}”.")
    try:
        return _create(kind, entries)
    except _InvalidFieldError as invalid:
        raise StoreError(f"The field “{invalid.field}” of an event “{kind.type}” must be {invalid}.") from None


def _create(kind: Any, entries: Mapping[str, Any]) -> Any:
    """Create an instance of a dataclass; annotations say how fields are read."""
    values: dict[str, Any] = {}
    for field in dataclasses.fields(kind):
        if field.name in entries:
            try:
                values[field.name] = _reader(kind.__module__, cast(str, field.type))(entries[field.name])
            except _InvalidFieldError as invalid:
                raise _InvalidFieldError(str(invalid), f"{field.name}.{invalid.field}".rstrip(".")) from None
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise _InvalidFieldError("present", field.name)
    return kind(**values)


def _typed(takes: str, *types: type) -> _Reader:
    def read(value: object) -> Any:
        if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
            raise _InvalidFieldError(takes)
        return value

    return read


_OBJECT: Final = _typed("an object", dict)
_PLAIN: Final[dict[str, _Reader]] = {
    "str": _typed("a text", str),
    "int": _typed("a whole number", int),
    "float": _typed("a number", int, float),
    "bool": _typed("true or false", bool),
    "None": _typed("null", type(None)),
    "Value": lambda value: value,
}


@functools.cache
def _reader(module: str, annotation: str) -> _Reader:
    """Return the reader of a field of a dataclass in this module, from the text of its annotation."""
    alternatives = _UNION.split(annotation)
    if len(alternatives) > 1:
        return _first_of(*(_reader(module, alternative) for alternative in alternatives))
    if annotation.startswith("tuple["):
        return _tuple(_reader(module, annotation.removeprefix("tuple[").removesuffix(", ...]")))
    if annotation.startswith("dict[") or annotation == "Outputs":
        return _OBJECT
    if annotation.startswith("Literal["):
        return _one_of(*ast.literal_eval(f"[{annotation.removeprefix('Literal[')}"))
    plain = _PLAIN.get(annotation)
    return plain if plain is not None else _named(getattr(sys.modules[module], annotation))


def _named(kind: Any) -> _Reader:
    """Return the reader of an alias, enum or dataclass."""
    if get_origin(kind) is Literal:
        return _one_of(*get_args(kind))
    if issubclass(kind, StrEnum):
        choice = _one_of(*kind)
        return lambda value: kind(choice(value))
    assert dataclasses.is_dataclass(kind), "events are made of nothing else"
    return lambda value: _create(kind, _OBJECT(value))


def _tuple(reader: _Reader) -> _Reader:
    def read(value: object) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise _InvalidFieldError("a list")
        return tuple(reader(item) for item in cast("list[object]", value))

    return read


def _first_of(*readers: _Reader) -> _Reader:
    def read(value: object) -> Any:
        takes: list[str] = []
        for reader in readers:
            try:
                return reader(value)
            except _InvalidFieldError as invalid:
                if invalid.field:
                    raise
                takes.append(str(invalid))
        raise _InvalidFieldError(" or ".join(takes))

    return read


def _one_of(*choices: str) -> _Reader:
    def read(value: object) -> str:
        if value not in choices:
            raise _InvalidFieldError(f"one of {', '.join(choices)}")
        return cast(str, value)

    return read


FORMAT: Final = "loopwright.run"
VERSION: Final = 1
MAX_BYTES: Final = 1_000_000_000
"""Maximum size of a file."""
_WRAPPER_NESTING: Final = 10
"""Maximum number of objects and lists of the format around a value."""
_LATEST: Final = 250_000_000_000.0
"""Maximum time in seconds since the epoch for which every system and time zone has a date: the year 9892."""
_HEAD_TEXTS: Final = ("run_id", "document", "source", "parent", "forked_at")
_IMPORTED: Final = "imported"
"""The option that marks an imported run, and every fork of it."""
_REMEDY: Final = "Export the run again, or choose another file."


def is_imported(store: Store, run_id: str) -> bool:
    """Return whether a run or its parent was imported, so its stored results may be forged."""
    return store.options(run_id).get(_IMPORTED) is True


def mark_imported(options: Mapping[str, Value], *, imported: bool) -> dict[str, Value]:
    """Return the options of a run, marked if it was imported."""
    return {**options, _IMPORTED: True} if imported else dict(options)


def head_of(store: Store, run_id: str) -> RunHead:
    """Return the head of a stored run.

    Raises:
        StoreError: There is no such run, or the store cannot be read.
    """
    summary = store.find(run_id)
    document, options = store.document(summary.run_id), store.options(summary.run_id)
    return RunHead(summary.run_id, document, options, summary.source, summary.parent, summary.forked_at)


def run_to_json(head: RunHead, events: Iterable[AnyEvent]) -> Iterator[str]:
    """Yield the file in pieces: one JSON object with a line for each event."""
    run = dataclasses.asdict(replace(head, document=without_secrets(head.document)))
    yield f'{{"format": {_json(FORMAT)}, "version": {VERSION},\n"run": {_json(run)},\n"events": ['
    separator = "\n"
    for event in events:
        yield f"{separator}{_json(event.to_json())}"
        separator = ",\n"
    yield "\n]}\n"


def without_secrets(document: str) -> str:
    """Remove secrets from a document, which runs of older versions may contain."""
    try:
        whole = value_of_json(document)
    except ValueError:
        return document
    without = text_without_secrets(whole)
    return document if without == whole else format_json(without) + "\n"


def read_run_file(path: Path) -> tuple[RunHead, list[AnyEvent]]:
    """Read an exported run.

    Raises:
        StoreError: The file cannot be read, or is not an exported run.
    """
    name = shown(path)
    try:
        content = read_text_file(path, MAX_BYTES)
    except (OSError, ValueError) as error:
        raise StoreError(f"{name}: The file cannot be opened: {shown(reason_of(error))}.", "Check the path.") from error
    return run_from_json(content, name)


def import_run_file(store: Store, path: Path) -> tuple[str, str]:
    """Import a run from a file into a store.

    The file may be from anybody. Its permissions are dropped, and so are answers that nothing has used yet: both are up
    to the user who resumes the run. Secrets in its document are not stored.

    Returns:
        The run's id in the file, and in the store.

    Raises:
        StoreError: The file is not an exported run, or it cannot be stored.
    """
    return _import(store, *read_run_file(path))


def import_run_text(store: Store, text: str | bytes, name: str) -> tuple[str, str]:
    """Import a run from a text into a store, as `import_run_file` does.

    Args:
        store: The store.
        text: The content of the file.
        name: Its name for error messages.
    """
    return _import(store, *run_from_json(text, name))


def _import(store: Store, head: RunHead, events: list[AnyEvent]) -> tuple[str, str]:
    return head.run_id, store.import_run(_without_permissions(head), _without_pending_answers(events))


def _without_permissions(head: RunHead) -> RunHead:
    """Drop what only the user who resumes the run may decide. Budgets stay, because they only limit.

    `source` is dropped because tools may access the folder of that file, and models that read this computer's history
    or files are dropped too.
    """
    options = {
        name: model
        for name in ("model", "default_model")
        if isinstance(model := head.options.get(name), str) and not reads_this_machine(model)
    }
    budgets = {name: _lowest(head, name) for name in ("budget_usd", "budget_tokens")}
    limited = mark_imported({**options, **budgets}, imported=True)
    return replace(head, source="", document=without_secrets(head.document), options=limited)


def _lowest(head: RunHead, budget: str) -> Value:
    try:
        document = value_of_json(head.document)
    except ValueError:
        document = None
    stated = (head.options.get(budget), as_object(as_object(document).get("settings")).get(budget))
    limits = [limit for limit in stated if isinstance(limit, (int, float)) and not isinstance(limit, bool)]
    return min(limits, default=None)


def _without_pending_answers(events: Iterable[AnyEvent]) -> list[AnyEvent]:
    listed = list(events)
    pending: dict[str, list[int]] = {}
    for number, event in enumerate(listed):
        if isinstance(event, NodeAnswered):
            pending.setdefault(event.path, []).append(number)
        elif isinstance(event, (NodeToolCalled, NodeCompleted, NodeFailed)):
            pending.pop(event.path, None)
    dropped = {number for numbers in pending.values() for number in numbers}
    return [event for number, event in enumerate(listed) if number not in dropped]


def run_from_json(text: str | bytes, source: str) -> tuple[RunHead, list[AnyEvent]]:
    """Parse an exported run.

    Args:
        text: Content of the file.
        source: Name of the file for messages.

    Raises:
        StoreError: It is not an exported run.
    """
    try:
        data = value_of_json(text)
    except ValueError:
        raise StoreError(f"{source}: The file is not JSON.", _REMEDY) from None
    parts = as_object(data)
    if parts.get("format") != FORMAT:
        raise StoreError(f"{source}: The file is not an exported run.", _REMEDY)
    if nesting(parts) > MAX_NESTING + _WRAPPER_NESTING:
        raise StoreError(f"{source}: Values in the file are nested too deeply.", _REMEDY)
    version = parts.get("version")
    if version != VERSION:
        raise StoreError(
            f"{source}: The file has version {shown(version, 20)} of the format; this program reads version {VERSION}.",
            "Use the version of the program that wrote it, or a newer one.",
        )
    head = _head(parts.get("run"), source)
    return head, _events(parts.get("events"), head, source)


def _head(data: object, source: str) -> RunHead:
    entries = as_object(data)
    texts = {name: entries.get(name, "") for name in _HEAD_TEXTS}
    options: Any = entries.get("options", {})
    run_id = texts["run_id"]
    fits = all(isinstance(text, str) for text in texts.values()) and isinstance(options, dict)
    if not fits or not (0 < len(run_id) <= 64 and run_id.isascii() and run_id.isalnum()):
        raise StoreError(f'{source}: The entry "run" of the file is invalid.', _REMEDY)
    return RunHead(
        run_id, texts["document"], cast("dict[str, Any]", options), texts["source"], texts["parent"], texts["forked_at"]
    )


def _events(data: object, head: RunHead, source: str) -> list[AnyEvent]:
    if not isinstance(data, list):
        raise StoreError(f"{source}: The file has no list of events.", _REMEDY)
    events: list[AnyEvent] = []
    for number, item in enumerate(cast("list[object]", data), 1):
        try:
            event = event_from_json(item)
        except StoreError as error:
            raise StoreError(f"{source}: Event {number} cannot be read: {error.message}", _REMEDY) from None
        if not 0 <= event.time < _LATEST:
            raise StoreError(f"{source}: Event {number} has an invalid time.", _REMEDY)
        if event.run_id != head.run_id or (events and event.seq <= events[-1].seq):
            raise StoreError(f"{source}: Event {number} belongs to another run, or is out of order.", _REMEDY)
        events.append(event)
    if not events or not isinstance(events[0], RunStarted):
        raise StoreError(f"{source}: The run has no start event.", _REMEDY)
    return events


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=True, allow_nan=False)
