"""Lone surrogates and NUL are in no request, event or history, with any kind of model."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import pytest

from engine import Builder, RunOptions, Workflow, start
from engine.models import catalog
from engine.models.catalog import Models
from engine.models.protocol import Model, OnText, Price, Reply, Request, ToolCall
from engine.store import open_store
from tests.engine.wire.server import WireServer
from tests.engine.wire_runs.run_helpers import warm_client

__all__ = ["warm_client"]

UNCLEAN = "a \ud83d b \0 c"
CLEAN = "a \ufffd b \ufffd c"
FORBIDDEN = re.compile("[\x00\ud800-\udfff]|\\\\u0000|\\\\u[dD][89a-fA-F]")


class EchoModel:
    """A plugin's model that replies with invalid characters."""

    name = "echo:x"
    note = ""

    def __init__(self) -> None:
        self.requests: list[Request] = []

    async def price(self) -> Price | None:
        return Price(0.0, 0.0)

    async def complete(self, request: Request, on_text: OnText | None = None) -> Reply:
        self.requests.append(request)
        if on_text is not None:
            on_text(UNCLEAN)
        call = ToolCall(UNCLEAN, UNCLEAN, {UNCLEAN: [UNCLEAN]})
        return Reply(UNCLEAN, model=UNCLEAN, tool_calls=(call,), reasoning=UNCLEAN)

    async def close(self) -> None:
        return


def _script(folder: Path) -> str:
    text = UNCLEAN.replace("\ud83d", "\ufffd")  # a script is JSON in UTF-8, which has only NUL
    reply = {"text": text, "reasoning": text, "tool_calls": [{"name": "look", "arguments": {"text": text}}]}
    (folder / "script.json").write_text(json.dumps({"rules": [{"reply": reply}]}))
    return f"scripted:{folder / 'script.json'}"


def _workflow(model: str, wire: WireServer) -> Workflow:
    builder = Builder("unclean")
    builder.add("input", id="text")
    config = {
        "model": model,
        "api_base": wire.base_url,
        "system": f"Be {UNCLEAN}.",
        "prompt": "{{input}}",
        "retries": 0,
    }
    node = builder.add("llm", id="draft", config=config)
    builder.connect("text.value", node["input"])
    builder.connect(node["output"], builder.add("output", id="out")["value"])
    return builder.build()


@pytest.mark.parametrize("kind", ["server", "scripted", "plugin"])
async def test_invalid_characters_pass_in_neither_direction(
    wire: WireServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    plugin = EchoModel()
    make: Callable[[str], Model] = lambda _name: plugin  # noqa: E731
    monkeypatch.setitem(cast("Any", catalog)._MAKERS, "echo", make)
    name = {"server": "openai/unclean", "scripted": _script(tmp_path), "plugin": "echo:x"}[kind]
    models = Models()
    with closing(open_store(tmp_path / "history.db")) as store:
        run = start(_workflow(name, wire), {"text": UNCLEAN}, RunOptions(models=models, store=store))
        received: list[Any] = [event async for event in run.events()]
        result = await run.result()
        await models.close()
        of_model = [
            json.dumps(event.to_json(), ensure_ascii=False)
            for event in [*received, *store.events(result.run_id)]
            if event.type in {"node.called", "node.calling", "node.streaming"}
        ]

    assert result.outputs == {"out": CLEAN}
    assert len(of_model) >= 4
    assert [text for text in of_model if FORBIDDEN.search(text)] == []
    asked = [repr(request.body["messages"]) for request in wire.requests] + [
        repr(one.messages) for one in plugin.requests
    ]
    assert all(CLEAN in text and FORBIDDEN.search(text) is None for text in asked)
    assert len(asked) == (0 if kind == "scripted" else 1)
