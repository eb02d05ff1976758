from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from engine import RunOptions, loads, start
from engine.models.catalog import Models
from engine.models.keys import Keys
from engine.models.protocol import Finish, Message, ModelCall, ModelError, ModelErrorKind, Reply, Request, Usage
from engine.run_state.result import RunResult
from engine.store.recorded_model import RECORDED_NOTE, recorded_models
from engine.store.run_file import head_of, run_to_json
from tests.engine.cli.kit import Events, drafts, refine, write
from tests.engine.store.event_samples import head
from tests.engine.store.memory_store import MemoryStore
from tests.wording import mentions

COSTLY = {"price": {"input_usd_per_million_tokens": 1e6, "output_usd_per_million_tokens": 1e6}}


def catalog(store: MemoryStore) -> Models:
    return Models(Keys({}), recorded_models(lambda: nullcontext(store)))


async def run(store: MemoryStore, model: str, document: dict[str, Any] | None = None, **options: Any) -> RunResult:
    models = catalog(store)
    try:
        workflow = loads(json.dumps(document or refine(2)))
        return await start(workflow, None, RunOptions(model=model, models=models, store=store, **options)).result()
    finally:
        await models.close()


async def recorded(store: MemoryStore, folder: Path) -> RunResult:
    replies = [{"text": text, "usage": {"input_tokens": 3, "output_tokens": 4}} for text in ("One.", "Two.")]
    return await run(store, f"scripted:{write(folder, {**drafts(*replies), **COSTLY}, 'script.json')}")


async def test_recorded_model_replays_replies_with_usage_at_no_cost(tmp_path: Path):
    store = MemoryStore()
    first = await recorded(store, tmp_path)
    assert first.cost_usd == 14
    second = await run(store, f"recorded:{first.run_id[:6]}")
    assert second.outputs == first.outputs == {"answer": "Two."}
    assert [each.result for each in second.loops["loop"].iterations] == ["One.", "Two."]
    assert (second.usage, second.cost_usd) == (Usage(6, 8), 0)


async def test_recorded_model_replays_tool_calls_of_agents(tmp_path: Path):
    document = {
        "format": "loopwright.workflow",
        "version": 1,
        "nodes": [
            {"id": "agent", "type": "agent", "config": {"prompt": "Go.", "tools": ["ask_person"], "retries": 0}},
            {"id": "answer", "type": "output"},
        ],
        "edges": [{"from": "agent.output", "to": "answer.value"}],
    }
    script = {"default": {"tool_calls": [{"name": "finish", "arguments": {"answer": "done"}}]}}
    store = MemoryStore()
    first = await run(store, f"scripted:{write(tmp_path, script, 'script.json')}", document)

    second = await run(store, f"recorded:{first.run_id}", document)

    assert second.outputs == first.outputs == {"answer": "done"}


async def test_recorded_model_reads_a_run_file_without_a_history(tmp_path: Path):
    store = MemoryStore()
    first = await recorded(store, tmp_path)
    file = tmp_path / "run.json"
    file.write_text("".join(run_to_json(head_of(store, first.run_id), store.events(first.run_id))))
    second = await run(MemoryStore(), f"recorded:{file}")
    assert second.outputs == first.outputs


async def test_recorded_model_runs_with_a_budget_of_zero(tmp_path: Path):
    store = MemoryStore()
    first = await recorded(store, tmp_path)
    assert (await run(store, f"recorded:{first.run_id}", budget_usd=0.0)).outputs == first.outputs


async def test_call_without_a_recorded_reply_fails_with_one_sentence(tmp_path: Path):
    store = MemoryStore()
    first = await recorded(store, tmp_path)
    longer = await run(store, f"recorded:{first.run_id}", refine(3))
    assert longer.status == "failed"
    assert longer.node == "loop[2].draft"
    assert longer.error.endswith(f"The recorded run '{first.run_id}' has no reply at loop[2].draft.")
    assert mentions(longer.remedy, "same document … inputs")


async def test_replies_are_replayed_in_order_without_those_of_voided_attempts():
    event, store = Events(), MemoryStore()

    def answered(*texts: str) -> Any:
        calls = tuple(ModelCall("m", Request(()), Reply(text, Finish.LENGTH), 1.0, 0.1) for text in texts)
        return event.node("loop[0].draft", Usage(), calls=calls)

    begun = {"index": 0, "total": 2, "input_preview": ""}
    events = [
        event("RunStarted", workflow="", inputs={}, models=()),
        event("LoopIterationStarted", "loop", **begun),
        answered("stale", "stale", "stale"),
        event("LoopIterationStarted", "loop", **begun),
        answered("one", "two"),
    ]
    store.import_run(head(), events)
    model = catalog(store).get("recorded:r")
    received: list[str] = []
    request = Request((Message("user", "?"),), path="loop[0].draft")
    replies = [await model.complete(request, received.append) for _ in range(2)]
    assert [(reply.text, reply.finish, reply.cost_usd) for reply in replies] == [
        ("one", Finish.LENGTH, 0.0),
        ("two", Finish.LENGTH, 0.0),
    ]
    assert received == ["one", "two"]
    assert (model.name, model.note) == ("recorded:r", RECORDED_NOTE)
    with pytest.raises(ModelError, match=r"has only 2 replies at loop\[0\]\.draft") as raised:
        await model.complete(request)
    assert raised.value.kind is ModelErrorKind.NOT_FOUND


@pytest.mark.parametrize("name", ["recorded:none", "recorded:no/such.json", "recorded:"])
def test_recorded_model_of_a_missing_run_is_a_missing_model(name: str):
    with pytest.raises(ModelError) as raised:
        catalog(MemoryStore()).get(name)
    assert raised.value.kind is ModelErrorKind.NOT_FOUND


def test_recorded_model_needs_a_history():
    with pytest.raises(ModelError, match="there is no history"):
        Models(Keys({})).get("recorded:abc")
