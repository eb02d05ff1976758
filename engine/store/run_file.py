"""A run as one JSON file: complete, so that it can be taken in again elsewhere, and readable by any JSON tool.

The file is written and read as pure data: whoever made it, nothing in it is executed. Everything outside of ASCII is
escaped, so that each text survives any encoding, half characters too.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, cast

from engine.events import AnyEvent, NodeAnswered, NodeCompleted, NodeFailed, NodeToolCalled, RunStarted
from engine.formatting import format_json
from engine.models.model_names import RECORDED_PREFIX, SCRIPTED_PREFIX
from engine.plan.secrets import text_without_secrets
from engine.runner.journal import RunHead
from engine.safe_file_io import read_text_file
from engine.store.base import Store, StoreError
from engine.store.event_json import event_from_json
from engine.text_sanitizing import shown
from engine.values import MAX_NESTING, Value, nesting, value_of_json

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
