"""A run as one JSON file: complete, so that it can be taken in again elsewhere, and readable by any JSON tool.

The file is written and read as pure data: whoever made it, nothing in it is executed. Everything outside of ASCII is
escaped, so that each text survives any encoding, half characters too.
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

from engine.events import AnyEvent, NodeAnswered, NodeCompleted, NodeFailed, NodeToolCalled, RunStarted
from engine.formatting import format_json
from engine.models.protocol import RECORDED_PREFIX, SCRIPTED_PREFIX
from engine.plan.secrets import text_without_secrets
from engine.runner.run_storage import RunHead
from engine.safe_file_io import read_text_file
from engine.store.store_protocol import Store, StoreError
from engine.text_sanitizing import shown
from engine.values import MAX_NESTING, Value, nesting, value_of_json

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


FORMAT: Final = "loopwright.run"
VERSION: Final = 1
MAX_BYTES: Final = 1_000_000_000
"""The largest file that is read."""

_AROUND_A_VALUE: Final = 10
"""How many objects and lists of our own stand around a value, at the most."""
_LATEST: Final = 250_000_000_000.0
"""Seconds since the epoch up to which every system and time zone has a date: the year 9892."""
_HEAD_TEXTS: Final = ("run_id", "document", "source", "parent", "forked_at")
_IMPORTED: Final = "imported"
"""The option that marks a run from a file, and every fork of it."""
_READING_MODELS: Final = (RECORDED_PREFIX, SCRIPTED_PREFIX)
_REMEDY: Final = "Export the run once more, or choose another file."


def is_imported(store: Store, run_id: str) -> bool:
    """Whether a run, or the one that it was forked from, came from a file: then what it did may be made up."""
    return store.options(run_id).get(_IMPORTED) is True


def mark_imported(options: Mapping[str, Value], *, imported: bool) -> dict[str, Value]:
    """The options of a run with the mark of one that came from a file, if it did."""
    return {**options, _IMPORTED: True} if imported else dict(options)


def head_of(store: Store, run_id: str) -> RunHead:
    """What a store knows of a run before its first event.

    Raises:
        StoreError: There is no such run, or the store cannot be read.
    """
    summary = store.find(run_id)
    document, options = store.document(summary.run_id), store.options(summary.run_id)
    return RunHead(summary.run_id, document, options, summary.source, summary.parent, summary.forked_at)


def run_to_json(head: RunHead, events: Iterable[AnyEvent]) -> Iterator[str]:
    """The file in pieces, an event at a time: together one JSON object, with each event on a line of its own."""
    run = {
        "run_id": head.run_id,
        "document": shareable(head.document),
        "options": head.options,
        "source": head.source,
        "parent": head.parent,
        "forked_at": head.forked_at,
    }
    yield f'{{"format": {_json(FORMAT)}, "version": {VERSION},\n"run": {_json(run)},\n"events": ['
    separator = "\n"
    for event in events:
        yield f"{separator}{_json(event.to_json())}"
        separator = ",\n"
    yield "\n]}\n"


def shareable(document: str) -> str:
    """The text of a document without secrets, which runs of older versions may hold; unchanged where there are none."""
    try:
        whole = value_of_json(document)
    except ValueError:
        return document
    without = text_without_secrets(whole)
    return document if without == whole else format_json(without) + "\n"


def read_run_file(path: Path) -> tuple[RunHead, list[AnyEvent]]:
    """Read a run that was exported.

    Raises:
        StoreError: There is no such file, or it holds no run.
    """
    name = shown(path)
    try:
        content = read_text_file(path, MAX_BYTES)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise StoreError(f"{name}: The file cannot be opened: {shown(reason)}.", "Check the path.") from error
    return run_from_json(content, name)


def import_run_file(store: Store, path: Path) -> tuple[str, str]:
    """Import a run from a file into a store.

    The file may be anyone's: what it allows the run counts for nothing, and answers in it that nothing has acted on
    yet are asked for again. Both are up to the person who resumes the run. Secrets in its document are not stored.

    Returns:
        The run's id in the file, and in the store.

    Raises:
        StoreError: The file holds no run, or the store cannot take it.
    """
    head, events = read_run_file(path)
    return head.run_id, store.import_run(_without_permissions(head), _without_pending_answers(events))


def _without_permissions(head: RunHead) -> RunHead:
    """The run without what only the person who resumes it may decide; limits of spending stay, since they only limit.

    Its `source` goes too: tools are offered the folder of that file. So do models that read this machine's history or
    files.
    """
    options = {
        name: model
        for name in ("model", "default_model")
        if isinstance(model := head.options.get(name), str) and not model.startswith(_READING_MODELS)
    }
    budgets = {name: _lowest(head, name) for name in ("budget_usd", "budget_tokens")}
    limited = mark_imported({**options, **budgets}, imported=True)
    return replace(head, source="", document=shareable(head.document), options=limited)


def _lowest(head: RunHead, budget: str) -> Value:
    """The lower of a run's budget and its document's."""
    try:
        document = value_of_json(head.document)
    except ValueError:
        document = None
    settings = document.get("settings") if isinstance(document, dict) else None
    stated = (head.options.get(budget), settings.get(budget) if isinstance(settings, dict) else None)
    limits = [limit for limit in stated if isinstance(limit, (int, float)) and not isinstance(limit, bool)]
    return min(limits, default=None)


def _without_pending_answers(events: Iterable[AnyEvent]) -> list[AnyEvent]:
    kept = list(events)
    pending: dict[str, list[int]] = {}
    for number, event in enumerate(kept):
        if isinstance(event, NodeAnswered):
            pending.setdefault(event.path, []).append(number)
        elif isinstance(event, (NodeToolCalled, NodeCompleted, NodeFailed)):
            pending.pop(event.path, None)
    dropped = {number for numbers in pending.values() for number in numbers}
    return [event for number, event in enumerate(kept) if number not in dropped]


def run_from_json(text: str | bytes, source: str) -> tuple[RunHead, list[AnyEvent]]:
    """The run that such a file holds.

    Args:
        text: What stands in the file.
        source: What to call it in messages.

    Raises:
        StoreError: It holds no run.
    """
    try:
        data = value_of_json(text)
    except ValueError:
        raise StoreError(f"{source}: The file is no JSON text.", _REMEDY) from None
    if not isinstance(data, dict) or cast("dict[str, Any]", data).get("format") != FORMAT:
        raise StoreError(f"{source}: The file is no run that was exported.", _REMEDY)
    parts = cast("dict[str, Any]", data)
    if nesting(parts) > MAX_NESTING + _AROUND_A_VALUE:
        raise StoreError(f"{source}: Values in the file stand too deep inside one another.", _REMEDY)
    version = parts.get("version")
    if version != VERSION:
        raise StoreError(
            f"{source}: The run is written in version {shown(version, 20)} of the format, and this program reads "
            f"version {VERSION}.",
            "Use the program that wrote it, or a newer one.",
        )
    head = _head(parts.get("run"), source)
    return head, _events(parts.get("events"), head, source)


def _head(data: object, source: str) -> RunHead:
    entries = cast("dict[str, Any]", data) if isinstance(data, dict) else {}
    texts = {name: entries.get(name, "") for name in _HEAD_TEXTS}
    options: Any = entries.get("options", {})
    run_id = texts["run_id"]
    fits = all(isinstance(text, str) for text in texts.values()) and isinstance(options, dict)
    if not fits or not (0 < len(run_id) <= 64 and run_id.isascii() and run_id.isalnum()):
        raise StoreError(f"{source}: What the file says of the run itself does not fit.", _REMEDY)
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
            raise StoreError(f"{source}: Event {number} has a time that no calendar has.", _REMEDY)
        if event.run_id != head.run_id or (events and event.seq <= events[-1].seq):
            raise StoreError(f"{source}: Event {number} is not of this run, or not in its order.", _REMEDY)
        events.append(event)
    if not events or not isinstance(events[0], RunStarted):
        raise StoreError(f"{source}: The run has no beginning.", _REMEDY)
    return events


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=True, allow_nan=False)
