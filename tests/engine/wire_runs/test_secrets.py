"""A key that is used appears in no event, result, message, log record, output or saved document."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from engine import Workflow, dumps, run, save
from engine.errors import EngineError
from tests.engine.wire.server import WireServer
from tests.engine.wire_runs.run_helpers import GIVEN, Ended, asking, deciding, ended, looping, warm_client

__all__ = ["warm_client"]

CANARY = "sk-canary-7f3e9a51c2d84b60"


def _everything_told(outcome: Ended, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]) -> str:
    printed = capfd.readouterr()
    reported = [
        *(json.dumps(event.to_json(), ensure_ascii=False) for event in outcome.events),
        *map(repr, outcome.events),
        json.dumps(outcome.result.to_json()),
        repr(outcome.result),
        *(record.getMessage() for record in caplog.records),
        caplog.text,
        printed.out,
        printed.err,
    ]
    return "\n".join(reported)


@pytest.fixture
def key_for_the_server(wire: WireServer, monkeypatch: pytest.MonkeyPatch) -> WireServer:
    """The user's environment sends OpenAI's requests, and with them its key, to the wire server."""
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    monkeypatch.setenv("OPENAI_API_BASE", wire.base_url)
    return wire


@pytest.mark.parametrize(
    "behavior",
    [
        "plain",
        "structured",
        "echo-key",
        "unauthorized",
        "bad-request",
        "briefly-limited",
        "server-error",
        "not-json",
        "cut",
        "reset",
    ],
)
async def test_key_appears_nowhere_but_in_the_request(
    key_for_the_server: WireServer,
    behavior: str,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level(logging.DEBUG)
    workflow = asking(key_for_the_server, behavior, api_base=None, retries=1)
    save(workflow, tmp_path / "saved.loop.json")

    outcome = await ended(workflow)

    sent = [request.headers["authorization"] for request in key_for_the_server.requests]
    assert set(sent) == {f"Bearer {CANARY}"}
    assert CANARY not in _everything_told(outcome, caplog, capfd)
    assert CANARY not in (tmp_path / "saved.loop.json").read_text() + dumps(workflow)


async def test_error_of_a_failed_run_contains_no_key(key_for_the_server: WireServer) -> None:
    with pytest.raises(EngineError) as caught:
        await run(asking(key_for_the_server, "unauthorized", api_base=None), {"text": GIVEN})

    chain: list[BaseException] = [caught.value]
    while (inside := chain[-1].__cause__ or chain[-1].__context__) is not None:
        chain.append(inside)
    assert CANARY not in "\n".join(f"{error} {error!r} {vars(error)}" for error in chain)
    assert caught.value.message.endswith("refused the key: Incorrect API key provided: Bearer ….")


@pytest.mark.parametrize("make", [asking, deciding, looping])
async def test_document_cannot_send_a_key_to_its_own_address(
    wire: WireServer, monkeypatch: pytest.MonkeyPatch, make: Callable[..., Workflow]
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)

    await ended(make(wire, "structured"))

    assert wire.requests
    assert CANARY not in repr([(request.headers, request.body) for request in wire.requests])
