from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from engine.events import AnyEvent, LoopIterationStarted, NodeAnswered
from engine.run_state.reducer import reduce_events
from engine.runner.options import RunOptions, options_with_stored
from engine.store.resume import resume
from engine.store.run_file import (
    event_from_json,
    head_of,
    import_run_file,
    is_imported,
    read_run_file,
    run_from_json,
    run_to_json,
)
from engine.store.store_protocol import StoreError
from tests.engine.cli.kit import Events
from tests.engine.semantics.documents import around, llm
from tests.engine.semantics.kit import begin
from tests.engine.semantics.models import FakeModels, FunctionModel
from tests.engine.store.event_samples import head, one_of_each
from tests.engine.store.memory_store import MemoryStore
from tests.engine.store.strategies import events
from tests.wording import mentions


def exported() -> str:
    return "".join(run_to_json(head(), one_of_each()))


def changed(**parts: Any) -> str:
    return json.dumps({**json.loads(exported()), **parts})


def event_with(number: int, **fields: Any) -> str:
    events = json.loads(exported())["events"]
    events[number] |= fields
    return changed(events=events)


@given(events())
def test_every_event_survives_json(event: AnyEvent):
    assert event_from_json(event.to_json()) == event


def test_every_event_survives_json_text():
    log = one_of_each()
    assert [event_from_json(json.loads(json.dumps(event.to_json()))) for event in log] == log


def test_run_survives_an_ascii_file():
    text = exported()
    assert text.isascii()
    assert run_from_json(text, "x") == (head(), one_of_each())
    assert run_from_json(text.encode(), "x") == (head(), one_of_each())


def test_run_file_has_a_line_for_each_event():
    lines = exported().splitlines()
    assert len(lines) == 3 + len(one_of_each()) + 1
    assert json.loads(lines[3].rstrip(",")) == one_of_each()[0].to_json()


def test_run_is_exported_and_imported_into_another_store(tmp_path: Path):
    first, second = MemoryStore(), MemoryStore()
    first.import_run(head(), one_of_each())
    file = tmp_path / "run.json"
    file.write_text("".join(run_to_json(head_of(first, "r"), first.events("r"))))
    second.import_run(*read_run_file(file))
    assert list(second.events("r")) == one_of_each()
    assert (second.document("r"), second.options("r")) == (head().document, head().options)
    assert dataclasses.replace(second.find("r"), size=0) == dataclasses.replace(first.find("r"), size=0)


def test_event_of_an_older_version_gets_defaults_for_new_fields():
    entries = one_of_each()[0].to_json()
    del entries["parent"]
    assert event_from_json({**entries, "unknown": 1}).parent == ""  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        ("[NaN]", "not JSON"),
        ("[1e999]", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "not an exported run"),
        ('{"format": "loopwright.workflow"}', "not an exported run"),
        (changed(version=2), "version 2 … version 1"),
        (changed(run=None), '"run" … invalid'),
        (changed(run={"run_id": "../x"}), '"run" … invalid'),
        (changed(run={"run_id": "r", "document": 1}), '"run" … invalid'),
        (changed(run={"run_id": "other"}), "Event 1 … another run"),
        (changed(events={}), "list of events"),
        (changed(events=[]), "start event"),
        (changed(events=[1]), "1 … “None”"),
        (changed(events=json.loads(exported())["events"][1:]), "start event"),
        (event_with(3, seq=1), "Event 4 … out of order"),
        (event_with(1, type="os.system"), "2 … “os.system”"),
        (
            event_with(1, time="now"),
            "2 … “time” … “node.started” … a number",
        ),
        (event_with(1, time=1e18), "Event 2 … invalid time"),
        (event_with(1, time=-1), "Event 2 … invalid time"),
        (event_with(1, inputs=[]), "“inputs” … “node.started” … an object"),
        (event_with(5, call={}), "“call.model” … “node.called”"),
        (event_with(6, kind="x"), "“kind” … “node.waiting”"),
        (
            event_with(9, usage={"input_tokens": True}),
            "“usage.input_tokens” … “node.completed”",
        ),
    ],
)
def test_invalid_run_file_is_refused_with_one_sentence(text: str, sentence: str):
    with pytest.raises(StoreError) as raised:
        run_from_json(text, "x.json")
    assert raised.value.message.startswith("x.json: ")
    assert mentions(raised.value.message, sentence)
    assert raised.value.remedy


def test_values_nested_too_deeply_are_refused():
    deep: Any = []
    for _ in range(600):
        deep = [deep]
    with pytest.raises(StoreError, match="nested too deeply"):
        run_from_json(event_with(1, inputs={"input": deep}), "x")


def test_missing_or_invalid_file_is_refused(tmp_path: Path):
    with pytest.raises(StoreError, match=r"none\.json: .* cannot be opened: No such file"):
        read_run_file(tmp_path / "none.json")
    with pytest.raises(StoreError, match="cannot be opened: "):
        read_run_file(tmp_path)


def imported(tmp_path: Path, events: list[AnyEvent] | None = None, **fields: Any) -> tuple[MemoryStore, str]:
    """A run as a store has it after it was imported from a file."""
    file, store = tmp_path / "run.json", MemoryStore()
    log = one_of_each() if events is None else events
    file.write_text("".join(run_to_json(head(**fields), log)))
    return store, import_run_file(store, file)[1]


@pytest.mark.parametrize(
    "options",
    [
        {"max_iterations_cap": 10_000},
        {"allow_unknown_price": True},
        {"allow_code": True},
        {"folder": "/"},
        {"allow_private_addresses": True},
        {"model": "recorded:ab12"},
        {"default_model": "scripted:/etc/passwd"},
        {"model": "gguf:/etc/passwd"},
        {"model": ["x"], "max_iterations_cap": 1e9, "anything": {"else": 1}},
    ],
)
def test_imported_run_gets_no_permissions_from_its_file(tmp_path: Path, options: dict[str, Any]):
    store, run_id = imported(tmp_path, options=options)

    stored = store.options(run_id)
    assert options_with_stored(RunOptions(), stored) == RunOptions()
    assert set(stored) <= {"model", "default_model", "budget_usd", "budget_tokens", "imported"}
    assert is_imported(store, run_id)
    assert store.find(run_id).source == "", "tools would be offered its folder"


@pytest.mark.parametrize(
    "node",
    [
        {"id": "a", "type": "llm", "config": {"api_key": "plain-secret"}},
        {
            "id": "a",
            "type": "llm",
            "config": {"extra_parameters": {"headers": {"X-Api-Key": "plain-secret"}}},
        },
        {"id": "a", "type": "tool", "config": {"tool": "x", "arguments": {"deep": [{"password": "plain-secret"}]}}},
        {"id": "a", "type": "llm", "config": {"api_base": "https://me:plain-secret@example.org/v1"}},
    ],
)
def test_secrets_of_an_imported_document_are_not_stored(tmp_path: Path, node: dict[str, Any]):
    file, store = tmp_path / "run.json", MemoryStore()
    whole = json.loads("".join(run_to_json(head(), one_of_each())))
    whole["run"]["document"] = json.dumps({"nodes": [node], "edges": []})  # another program may have written it
    file.write_text(json.dumps(whole))

    _, run_id = import_run_file(store, file)

    assert "plain-secret" not in store.document(run_id)
    assert json.loads(store.document(run_id))["nodes"][0]["id"] == "a"


def test_iterations_cap_of_the_user_applies_to_an_imported_run(tmp_path: Path):
    store, run_id = imported(tmp_path, options={"max_iterations_cap": 10_000})

    own = options_with_stored(RunOptions(max_iterations_cap=70), store.options(run_id))
    assert own.max_iterations_cap == 70


@pytest.mark.parametrize(
    ("given", "document", "stored"),
    [(2.0, None, 2.0), (2.0, 5.0, 2.0), (100.0, 5.0, 5.0), (None, 5.0, 5.0), ("x", True, None), (None, None, None)],
)
def test_lower_budget_of_a_run_file_counts(tmp_path: Path, given: Any, document: Any, stored: float | None):
    settings = json.dumps({"settings": {"budget_usd": document}})
    store, run_id = imported(tmp_path, options={"budget_usd": given}, document=settings)

    assert store.options(run_id)["budget_usd"] == stored


def test_ordinary_model_of_an_imported_run_stays(tmp_path: Path):
    store, run_id = imported(tmp_path, options={"model": "openai/x", "default_model": "openai/y"})

    assert options_with_stored(RunOptions(), store.options(run_id)) == RunOptions(
        model="openai/x", default_model="openai/y"
    )


def test_unused_answer_of_an_imported_run_is_asked_for_again(tmp_path: Path):
    event = Events()
    asks: dict[str, Any] = {"node_type": "agent", "kind": "approval", "message": "?", "value": {"command": "rm x"}}
    asks["choices"] = ("approve", "reject")
    yes: dict[str, Any] = {"choice": "approve", "value": None, "comment": ""}
    called: dict[str, Any] = {"number": 0, "tool": "shell", "arguments": {}, "result": "", "error": "", "duration_s": 1}
    log = [
        event("RunStarted", workflow="Sample", inputs={}, models=()),
        event("NodeWaiting", "agent", **asks),
        event("NodeAnswered", "agent", **yes),
        event("NodeToolCalled", "agent", **called),
        event("NodeWaiting", "agent", **asks),
        event("NodeWaiting", "other", **asks),
        event("NodeAnswered", "agent", **yes),
        event("NodeAnswered", "other", **yes),
    ]
    log = [dataclasses.replace(each, run_id="r") for each in log]

    store, run_id = imported(tmp_path, log)

    assert [(each.path, each.seq) for each in store.events(run_id) if isinstance(each, NodeAnswered)] == [("agent", 2)]
    assert list(reduce_events(store.events(run_id)).questions) == ["agent", "other"]


async def test_imported_run_has_no_more_iterations_than_the_user_allows(tmp_path: Path):
    workflow = around(llm("draft"), edges="loop -> draft -> exit", max_iterations=500)
    first = MemoryStore()
    run, _ = begin(workflow, store=first, max_iterations_cap=500)
    async for each in run.events():
        if isinstance(each, LoopIterationStarted) and each.index == 3:
            run.suspend()
            break
    await run.result()
    file, second = tmp_path / "run.json", MemoryStore()
    file.write_text("".join(run_to_json(head_of(first, run.run_id), first.events(run.run_id))))
    _, run_id = import_run_file(second, file)

    models = FakeModels(FunctionModel("x"))
    resumed = await resume(
        second, run_id, RunOptions(models=models, max_iterations_cap=6), retry_in_flight=True
    ).result()

    assert resumed.loops["loop"].iterations_run == 6
    assert resumed.loops["loop"].exit_reason == "max_iterations"
