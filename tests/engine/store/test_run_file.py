from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from engine.runner.events import AnyEvent
from engine.store.base import StoreError
from engine.store.event_json import event_from_json
from engine.store.memory import MemoryStore
from engine.store.run_file import head_of, read_run_file, run_from_json, run_to_json
from tests.engine.store.strategies import events
from tests.engine.store.told import head, one_of_each


def exported() -> str:
    return "".join(run_to_json(head(), one_of_each()))


def changed(**parts: Any) -> str:
    return json.dumps({**json.loads(exported()), **parts})


def event_with(number: int, **fields: Any) -> str:
    events = json.loads(exported())["events"]
    events[number] |= fields
    return changed(events=events)


@given(events())
def test_every_event_comes_back_as_it_was(event: AnyEvent):
    assert event_from_json(event.to_json()) == event


def test_every_event_comes_back_through_a_text():
    told = one_of_each()
    assert [event_from_json(json.loads(json.dumps(event.to_json()))) for event in told] == told


def test_a_run_comes_back_as_it_was_through_ascii_alone():
    text = exported()
    assert text.isascii()
    assert run_from_json(text, "x") == (head(), one_of_each())
    assert run_from_json(text.encode(), "x") == (head(), one_of_each())


def test_each_event_stands_on_a_line_of_its_own():
    lines = exported().splitlines()
    assert len(lines) == 3 + len(one_of_each()) + 1
    assert json.loads(lines[3].rstrip(",")) == one_of_each()[0].to_json()


def test_a_run_of_a_store_goes_through_a_file_into_another_store(tmp_path: Path):
    first, second = MemoryStore(), MemoryStore()
    first.import_run(head(), one_of_each())
    file = tmp_path / "run.json"
    file.write_text("".join(run_to_json(head_of(first, "r"), first.events("r"))))
    second.import_run(*read_run_file(file))
    assert list(second.events("r")) == one_of_each()
    assert (second.document("r"), second.options("r")) == (head().document, head().options)
    assert dataclasses.replace(second.find("r"), size=0) == dataclasses.replace(first.find("r"), size=0)


def test_an_event_of_an_older_program_has_the_usual_values_in_new_fields():
    entries = one_of_each()[0].to_json()
    del entries["parent"]
    assert event_from_json({**entries, "unknown": 1}).parent == ""  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "The file is no JSON text."),
        ("{", "The file is no JSON text."),
        ("[NaN]", "The file is no JSON text."),
        ("[1e999]", "The file is no JSON text."),
        ("[" * 100_000, "The file is no JSON text."),
        ("[]", "The file is no run that was exported."),
        ('{"format": "loopwright.workflow"}', "The file is no run that was exported."),
        (changed(version=2), "The run is written in version 2 of the format, and this program reads version 1."),
        (changed(run=None), "What the file says of the run itself does not fit."),
        (changed(run={"run_id": "../x"}), "What the file says of the run itself does not fit."),
        (changed(run={"run_id": "r", "document": 1}), "What the file says of the run itself does not fit."),
        (changed(run={"run_id": "other"}), "Event 1 is not of this run, or not in its order."),
        (changed(events={}), "The file has no list of events."),
        (changed(events=[]), "The run has no beginning."),
        (changed(events=[1]), "Event 1 cannot be read: There is no event of the type “None”."),
        (changed(events=json.loads(exported())["events"][1:]), "The run has no beginning."),
        (event_with(3, seq=1), "Event 4 is not of this run, or not in its order."),
        (event_with(1, type="os.system"), "Event 2 cannot be read: There is no event of the type “os.system”."),
        (
            event_with(1, time="now"),
            "Event 2 cannot be read: The field “time” of an event “node.started” takes a number.",
        ),
        (event_with(1, time=1e18), "Event 2 has a time that no calendar has."),
        (event_with(1, time=-1), "Event 2 has a time that no calendar has."),
        (event_with(1, inputs=[]), "The field “inputs” of an event “node.started” takes an object."),
        (event_with(4, call={}), "The field “call.model” of an event “node.called” takes a value, and has none."),
        (event_with(5, kind="x"), "The field “kind” of an event “node.waiting” takes one of approval, question."),
        (
            event_with(8, usage={"input_tokens": True}),
            "The field “usage.input_tokens” of an event “node.completed” takes",
        ),
    ],
)
def test_what_is_no_run_is_one_sentence(text: str, sentence: str):
    with pytest.raises(StoreError) as raised:
        run_from_json(text, "x.json")
    assert raised.value.message.startswith("x.json: ")
    assert sentence in raised.value.message
    assert raised.value.remedy


def test_values_deeper_than_any_run_makes_them_are_refused():
    deep: Any = []
    for _ in range(600):
        deep = [deep]
    with pytest.raises(StoreError, match="too deep inside one another"):
        run_from_json(event_with(1, inputs={"input": deep}), "x")


def test_a_file_that_is_not_there_and_one_that_is_none(tmp_path: Path):
    with pytest.raises(StoreError, match=r"none\.json: The file cannot be opened: No such file or directory\."):
        read_run_file(tmp_path / "none.json")
    with pytest.raises(StoreError, match="The file cannot be opened: "):
        read_run_file(tmp_path)
