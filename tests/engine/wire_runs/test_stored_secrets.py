"""A key that is used is in no part of the history: store, exports, logs, documents."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import keyring
import pytest

from engine import RunOptions, RunResult, Workflow, save, start
from engine.models.catalog import Models
from engine.models.keys import Keys
from engine.store import Store, open_store
from engine.store.export_csv import run_to_csv
from engine.store.export_markdown import run_to_markdown
from engine.store.run_file import head_of, run_to_json
from engine.store.run_sections import state_of
from tests.engine.models.test_keys import MemoryKeyring
from tests.engine.wire.server import WireServer
from tests.engine.wire_runs.run_helpers import GIVEN, asking, warm_client

__all__ = ["warm_client"]

CANARY = "sk-canary-2b91c4fe7d0a4c55"


@pytest.fixture(params=["environment", "keyring"])
def server(request: pytest.FixtureRequest, wire: WireServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[WireServer]:
    """The user's environment sends OpenAI's requests to the wire server; the key has one of two sources."""
    before = keyring.get_keyring()
    ring = MemoryKeyring()
    keyring.set_keyring(ring)
    monkeypatch.setenv("OPENAI_API_BASE", wire.base_url)
    if request.param == "keyring":
        Keys().set("openai", CANARY)
    else:
        monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    yield wire
    keyring.set_keyring(before)


async def run_stored(workflow: Workflow, store: Store, source: Path) -> RunResult:
    models = Models()
    try:
        options = RunOptions(models=models, store=store, source=str(source))
        return await start(workflow, {"text": GIVEN}, options).result()
    finally:
        await models.close()


def exported(store: Store, run_id: str) -> str:
    state = state_of(store, run_id)
    pieces = [
        *run_to_json(head_of(store, run_id), store.events(run_id)),
        *run_to_markdown(store.find(run_id), store.document(run_id), state),
        *run_to_csv(state, store.document(run_id)),
        json.dumps(store.options(run_id)),
        repr(store.find(run_id)),
        repr(list(store.events(run_id))),
    ]
    return "".join(pieces)


def read_files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("behavior", ["plain", "echo-key", "unauthorized", "bad-request"])
async def test_key_is_stored_nowhere(
    server: WireServer, behavior: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    workflow, file = asking(server, behavior, api_base=None), tmp_path / "w.loop.json"
    save(workflow, file)
    store = open_store(tmp_path / "history.sqlite3")

    result = await run_stored(workflow, store, file)
    export = exported(store, result.run_id)
    store.close()

    assert {request.headers["authorization"] for request in server.requests} == {f"Bearer {CANARY}"}
    assert GIVEN in export
    assert CANARY not in export + caplog.text + json.dumps(result.to_json())
    contents = read_files(tmp_path)
    assert {"w.loop.json", "history.sqlite3"} <= set(contents)
    assert [name for name, content in contents.items() if CANARY.encode() in content] == []
