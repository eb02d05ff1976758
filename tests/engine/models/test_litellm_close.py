"""Canceled calls, closed models, and the resources that they release."""

from __future__ import annotations

import asyncio
import gc
from pathlib import Path

import pytest

from engine.models.keys import Keys
from engine.models.litellm_adapter import LiteLLMModel, load_litellm
from engine.models.protocol import ModelErrorKind
from tests.engine.models.litellm_fixtures import QUESTION, SECRET, MakeModel, failure_of, make_model_fixture
from tests.engine.wire.behaviors import REPLY
from tests.engine.wire.server import WireServer

__all__ = ["make_model_fixture"]


@pytest.mark.parametrize("behavior", ["silent", "stalled", "drip"])
async def test_canceling_a_stream_closes_its_connection(wire: WireServer, make_model: MakeModel, behavior: str) -> None:
    first_piece = asyncio.Event()
    call = asyncio.create_task(make_model(behavior).complete(QUESTION, lambda _text: first_piece.set()))
    await (wire.request_arrived() if behavior == "silent" else first_piece.wait())

    call.cancel()

    with pytest.raises(asyncio.CancelledError):
        await call
    await wire.call_abandoned()


async def test_canceling_a_plain_call_closes_its_connection(wire: WireServer, make_model: MakeModel) -> None:
    call = asyncio.create_task(make_model("silent").complete(QUESTION))
    await wire.request_arrived()

    call.cancel()

    with pytest.raises(asyncio.CancelledError):
        await call
    await wire.call_abandoned()


@pytest.mark.parametrize("behavior", ["silent", "stalled", "drip"])
async def test_deadline_ends_an_endless_call(wire: WireServer, make_model: MakeModel, behavior: str) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await make_model(behavior).complete(QUESTION, lambda _text: None)

    await wire.call_abandoned()


async def test_model_can_be_called_after_a_canceled_call(wire: WireServer, make_model: MakeModel) -> None:
    model = make_model("drip")
    first_piece = asyncio.Event()
    call = asyncio.create_task(model.complete(QUESTION, lambda _text: first_piece.set()))
    await first_piece.wait()
    call.cancel()
    await asyncio.wait([call])

    assert (await make_model("plain").complete(QUESTION)).text == REPLY


async def test_exception_in_on_text_closes_the_connection(wire: WireServer, make_model: MakeModel) -> None:
    def fail(_text: str) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await make_model("drip").complete(QUESTION, fail)

    await wire.call_abandoned()


async def test_concurrent_calls_do_not_interfere(wire: WireServer, make_model: MakeModel) -> None:
    model = make_model("stream")
    wire.reply = lambda body: body["messages"][-1]["content"]
    pieces: dict[int, list[str]] = {number: [] for number in range(10)}

    replies = await asyncio.gather(*(model.complete(QUESTION, pieces[number].append) for number in range(10)))

    assert [reply.text for reply in replies] == ["What is up?"] * 10
    assert all("".join(parts) == "What is up?" for parts in pieces.values())


def _open_descriptors() -> int:
    gc.collect()
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="counts the descriptors of this process in /proc")
def test_closed_model_leaves_no_descriptor_open(wire: WireServer) -> None:
    environment = {"OPENAI_API_KEY": SECRET, "OPENAI_API_BASE": wire.base_url}

    async def one_of_each() -> set[asyncio.Task[object]]:
        await load_litellm()
        for behavior in ("plain", "stream", "server-error", "cut"):
            model = LiteLLMModel(f"openai/{behavior}", keys=Keys(environment), environment=environment)
            if behavior in {"plain", "stream"}:
                await model.complete(QUESTION, (lambda _text: None) if behavior == "stream" else None)
            else:
                await failure_of(model, stream=behavior == "cut")
            await model.close()
            await model.close()
        return asyncio.all_tasks() - {asyncio.current_task()}  # type: ignore[arg-type]

    asyncio.run(one_of_each())
    before = _open_descriptors()
    left_over = [asyncio.run(one_of_each()) for _ in range(5)]

    assert _open_descriptors() <= before
    assert all(not any("worker" in repr(task).lower() for task in tasks) for tasks in left_over)


async def test_canceled_first_call_does_not_affect_others(wire: WireServer, make_model: MakeModel) -> None:
    doomed = asyncio.create_task(make_model("silent").complete(QUESTION))
    await wire.request_arrived()
    others = [make_model("plain").complete(QUESTION) for _ in range(3)]
    doomed.cancel()

    assert [reply.text for reply in await asyncio.gather(*others)] == [REPLY] * 3
    assert ModelErrorKind.AUTHENTICATION is (await failure_of(make_model("unauthorized"))).kind
