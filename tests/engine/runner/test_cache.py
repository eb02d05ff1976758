"""The setting `cache`: which replies are reused, what a cache hit costs, and how it is reported."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from engine import Workflow, loads
from engine.events import NodeCalled, NodeCalling, NodeCompleted
from engine.models.protocol import Message, ModelChoice, Request, Usage
from engine.runner.run_storage import request_key, tool_key
from engine.store import open_store
from tests.engine.cli.kit import document, refine
from tests.engine.semantics.kit import Played, play
from tests.engine.semantics.models import DOLLAR_A_TOKEN_OUT, FunctionModel
from tests.engine.store.memory_store import MemoryStore


def drafting(iterations: int = 1, **config: Any) -> Workflow:
    source = refine(iterations)
    source["nodes"][2]["config"] |= config
    return loads(json.dumps(source))


def numbered() -> FunctionModel:
    """A model that never says the same twice, and costs five dollars a call."""
    count = iter(range(100))
    return FunctionModel(lambda _call: f"Reply {next(count)}.", price=DOLLAR_A_TOKEN_OUT)


async def twice(workflow: Workflow, store: Any, **options: Any) -> tuple[Played, Played, FunctionModel]:
    model = numbered()
    first = await play(workflow, model, store=store)
    return first, await play(workflow, model, store=store, **options), model


@pytest.mark.parametrize(
    ("config", "calls"),
    [
        ({}, 2),
        ({"temperature": 0}, 2),
        ({"cache": "repeatable"}, 2),
        ({"cache": "repeatable", "temperature": 0.7}, 2),
        ({"cache": "repeatable", "temperature": 0}, 1),
        ({"cache": "always"}, 1),
        ({"cache": "always", "temperature": 0.7}, 1),
    ],
)
async def test_which_settings_reuse_a_reply(config: dict[str, Any], calls: int):
    first, second, model = await twice(drafting(**config), MemoryStore())
    assert len(model.calls) == calls
    assert (first.result.outputs, second.result.outputs) == (
        {"answer": "Reply 0."},
        {"answer": f"Reply {calls - 1}."},
    )
    assert [event.cached for event in second.of(NodeCompleted, "loop[0].draft")] == [calls == 1]
    assert first.of(NodeCompleted, "loop[0].draft")[0].cached is False


async def test_a_cache_hit_costs_nothing_and_needs_no_budget():
    _, second, model = await twice(drafting(cache="always"), MemoryStore(), budget_usd=0.0, budget_tokens=0)
    assert len(model.calls) == 1
    assert (second.result.usage, second.result.cost_usd) == (Usage(), 0.0)
    (draft,) = second.of(NodeCompleted, "loop[0].draft")
    assert (draft.cost_usd, draft.usage, draft.calls[0].reply.text) == (0.0, Usage(), "Reply 0.")
    assert second.of(NodeCalling) == []
    assert [event.call for event in second.of(NodeCalled)] == list(draft.calls)


async def test_iterations_with_the_same_request_share_a_reply():
    source = refine(3, inject_feedback=False)
    source["nodes"][2]["config"] |= {"cache": "always", "prompt": "Say something, {{input == '' ? 'a' : 'b'}}."}
    model = numbered()
    played = await play(loads(json.dumps(source)), model, store=MemoryStore())
    assert played.results == ["Reply 0."] * 3
    assert len(model.calls) == 1


async def test_another_request_is_another_call():
    store, model = MemoryStore(), numbered()
    for prompt in ("One? {{input}}", "Two? {{input}}"):
        await play(drafting(cache="always", prompt=prompt), model, store=store)
    assert len(model.calls) == 2


async def test_without_a_store_nothing_is_cached():
    _, _, model = await twice(drafting(cache="always"), None)
    assert len(model.calls) == 2


async def test_a_cached_reply_is_deleted_with_its_run():
    store, model = MemoryStore(), numbered()
    first = await play(drafting(cache="always"), model, store=store)
    store.delete([first.result.run_id])
    await play(drafting(cache="always"), model, store=store)
    assert len(model.calls) == 2


async def test_a_stored_history_keeps_cached_replies(tmp_path: Path):
    model = numbered()
    for _ in range(2):
        store = open_store(tmp_path / "history.sqlite3")
        played = await play(drafting(cache="always"), model, store=store)
        store.close()
    assert len(model.calls) == 1
    assert played.result.outputs == {"answer": "Reply 0."}


def reading(cache: str) -> Workflow:
    nodes = [
        {"id": "read", "type": "tool", "config": {"tool": "read_file", "arguments": {"path": "a.txt"}, "cache": cache}},
        {"id": "result", "type": "output"},
    ]
    return loads(json.dumps(document(nodes, ["read.output > result.value"])))


@pytest.mark.parametrize(("cache", "second"), [("off", "new"), ("repeatable", "old"), ("always", "old")])
async def test_a_cached_tool_result_is_reused_if_the_settings_allow_it(tmp_path: Path, cache: str, second: str):
    store, file = MemoryStore(), tmp_path / "a.txt"
    played = []
    for text in ("old", "new"):
        file.write_text(text)
        played.append(await play(reading(cache), folder=tmp_path, store=store))
    assert [each.result.outputs["result"] for each in played] == ["old", second]
    assert played[1].of(NodeCompleted, "read")[0].cached is (second == "old")


async def test_the_folder_is_part_of_a_tools_cache_key(tmp_path: Path):
    store = MemoryStore()
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.txt").write_text(name)
        played = await play(reading("always"), folder=tmp_path / name, store=store)
        assert played.result.outputs["result"] == name


def test_a_cache_key_consists_of_the_whole_request_and_nothing_else():
    request = Request((Message("user", "half \ud83d"),), 0.0, 10, {"type": "object"}, 1, "loop[0].draft")
    usual = request_key("llm", ModelChoice("m", None), "openai/x", request)
    elsewhere = Request(request.messages, 0.0, 10, {"type": "object"}, 1, "other")
    assert request_key("llm", ModelChoice(None, None), "openai/x", elsewhere) == usual
    others = {
        request_key("router", ModelChoice(), "openai/x", request),
        request_key("llm", ModelChoice(None, "http://localhost/v1"), "openai/x", request),
        request_key("llm", ModelChoice(), "openai/y", request),
        request_key("llm", ModelChoice(), "openai/x", Request(request.messages, 0.5, 10, {"type": "object"}, 1)),
        request_key("llm", ModelChoice(), "openai/x", Request(request.messages, 0.0, 11, {"type": "object"}, 1)),
        request_key("llm", ModelChoice(), "openai/x", Request(request.messages, 0.0, 10, None, 1)),
        request_key("llm", ModelChoice(), "openai/x", Request(request.messages, 0.0, 10, {"type": "object"}, 2)),
        request_key("llm", ModelChoice(), "openai/x", Request((), 0.0, 10, {"type": "object"}, 1)),
        tool_key("read_file", {"path": "a"}, None),
        tool_key("read_file", {"path": "b"}, None),
        tool_key("write_file", {"path": "b"}, None),
        usual,
    }
    assert len(others) == 12
    assert all(key is not None and len(key) == 64 for key in others)


def test_a_value_nested_too_deeply_has_no_cache_key():
    deep: Any = []
    for _ in range(600):
        deep = [deep]
    assert tool_key("x", {"a": deep}, None) is None
