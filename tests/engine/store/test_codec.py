"""Codec of events as JSON arrays."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given

from engine import events
from engine.events import AnyEvent
from engine.store.codec import KIND_CODES, KINDS, decode_event, encode_fields
from tests.engine.store import strategies
from tests.engine.store.run_samples import started


def _same(value: Any, _place: Any = None) -> Any:
    return value


@given(event=strategies.events())
def test_every_event_survives_the_codec(event: AnyEvent):
    array = encode_fields(event, _same)
    assert decode_event(type(event), event.run_id, event.seq, event.time, event.path, array, _same) == event


def test_encoded_event_is_json():
    array = encode_fields(started("a", inputs={"task": ["x", 1]}), _same)
    assert json.loads(json.dumps(array))[:5] == ["Refine", ["task", ["x", 1]], ["m"], "", ""]


def test_shorter_array_of_an_older_version_gets_defaults():
    event = decode_event(events.RunStarted, "a", 0, 1.0, "", ["Refine", [], ["m"]], _same)
    assert event == events.RunStarted("a", 0, 1.0, "", "Refine", {}, ("m",))


def test_every_event_type_has_its_own_number():
    assert sorted(KIND_CODES.values()) == list(range(1, len(KIND_CODES) + 1))
    assert {KIND_CODES[kind]: kind for kind in KIND_CODES} == KINDS
