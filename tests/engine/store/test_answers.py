"""Answers from another process: the owner of the run accepts them, and the first answer wins."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from engine import EngineError, Run, RunOptions, start
from engine.events import NodeAnswered, NodeWaiting
from engine.nodes.context import Answer
from engine.runner.human_input import POLL_INTERVAL_S
from engine.store import open_store
from engine.store.answers import find_question, give_answer
from engine.store.resume import resume
from engine.store.store_protocol import RunStatus, Store, StoreError
from tests.engine.semantics.documents import entry, flow, part, result
from tests.engine.semantics.kit import options
from tests.engine.semantics.models import FakeModels, FunctionModel

ASKING = flow(
    entry(),
    part("check", "approval"),
    result(),
    result("said"),
    edges="text -> check\ncheck.approved -> out\ncheck.comment -> said",
)


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Store]:
    """The history in the process that owns the run."""
    with closing(open_store(tmp_path / "h.sqlite3")) as store:
        yield store


@pytest.fixture
def elsewhere(tmp_path: Path, here: Store) -> Iterator[Store]:
    """The same file, opened again like in another process."""
    with closing(open_store(tmp_path / "h.sqlite3")) as store:
        yield store


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.runner.human_input.POLL_INTERVAL_S", POLL_INTERVAL_S / 25)


async def asking(store: Store) -> tuple[Run, NodeWaiting]:
    """A running run with a question, and the stored question."""
    run = start(ASKING, {"text": "seed"}, options(FakeModels(FunctionModel("")), store=store))
    async for event in run.events():
        if isinstance(event, NodeWaiting):
            break
    return run, find_question(store, run.run_id)


async def outputs(run: Run) -> Any:
    return (await asyncio.wait_for(run.result(), 30)).outputs


async def test_owner_accepts_an_answer_from_another_process(here: Store, elsewhere: Store):
    run, asked = await asking(here)
    answer = Answer("approve", None, "From \ud83d afar.")
    assert await asyncio.to_thread(give_answer, elsewhere, asked, answer) is True
    assert await outputs(run) == {"out": "seed", "said": "From \ud83d afar."}
    assert here.pending_answers(run.run_id) == []
    (answered,) = (event for event in here.events(run.run_id) if isinstance(event, NodeAnswered))
    assert (answered.value, answered.comment) == ("seed", answer.comment)


async def test_answer_after_an_answer_at_the_owner_is_refused(here: Store, elsewhere: Store):
    run, asked = await asking(here)
    run.answer("check", Answer("approve", "mine", ""))
    with pytest.raises(StoreError, match='"check" was already answered'):
        await asyncio.to_thread(give_answer, elsewhere, asked, Answer("reject", "other", ""))
    assert (await outputs(run))["out"] == "mine"
    assert here.find(run.run_id).status is RunStatus.COMPLETED
    assert elsewhere.pending_answers(run.run_id) == []


async def test_first_of_two_answers_from_other_processes_wins(here: Store, elsewhere: Store):
    run, asked = await asking(here)
    answers = [Answer("approve", text, "") for text in ("one", "two")]
    given = (asyncio.to_thread(give_answer, elsewhere, asked, answer) for answer in answers)
    outcomes = await asyncio.gather(*given, return_exceptions=True)
    winner = outcomes.index(True)
    assert isinstance(outcomes[1 - winner], StoreError)
    assert (await outputs(run))["out"] == answers[winner].value


async def test_owner_that_does_not_accept_the_answer_is_reported_and_the_answer_withdrawn(
    here: Store, elsewhere: Store, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("engine.runner.human_input.POLL_INTERVAL_S", 1_000.0)
    monkeypatch.setattr("engine.store.answers.ACCEPT_TIMEOUT_S", 0.2)
    run, asked = await asking(here)
    with pytest.raises(StoreError, match="does not accept the answer"):
        await asyncio.to_thread(give_answer, elsewhere, asked, Answer("approve"))
    assert elsewhere.pending_answers(run.run_id) == []
    run.answer("check", Answer("approve"))
    await outputs(run)


async def test_owner_that_ends_before_accepting_leaves_the_answer_in_the_history(
    here: Store, elsewhere: Store, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("engine.runner.human_input.POLL_INTERVAL_S", 1_000.0)
    run, asked = await asking(here)
    left, loop = asyncio.Event(), asyncio.get_running_loop()
    post_answer = elsewhere.post_answer

    def leave(*given: Any) -> None:
        post_answer(*given)
        loop.call_soon_threadsafe(left.set)

    monkeypatch.setattr(elsewhere, "post_answer", leave)
    given = asyncio.create_task(asyncio.to_thread(give_answer, elsewhere, asked, Answer("approve", "late", "")))
    await left.wait()
    run.suspend()
    await run.result()
    assert await given is False
    assert [event.value for event in here.events(run.run_id, kinds=[NodeAnswered])] == ["late"]  # type: ignore[union-attr]
    assert here.pending_answers(run.run_id) == []


async def test_answered_question_cannot_be_answered_again(here: Store, elsewhere: Store):
    run, asked = await asking(here)
    run.suspend()
    await run.result()
    assert give_answer(elsewhere, asked, Answer("approve", "one", "")) is False
    with pytest.raises(StoreError, match="was already answered"):
        give_answer(here, asked, Answer("approve", "two", ""))


LISTED = flow(
    entry(type="json"),
    part("check", "approval"),
    result(),
    edges="text -> check\ncheck.approved -> out",
)


async def suspend(store: Store, value: Any) -> NodeWaiting:
    """A run that asks about a value and waits in the history."""
    run = start(LISTED, {"text": value}, options(FakeModels(FunctionModel("")), store=store))
    async for event in run.events():
        if isinstance(event, NodeWaiting):
            run.suspend()
            break
    await run.result()
    return find_question(store, run.run_id)


@pytest.mark.parametrize("misfit", [["x"], "x", 1, False])
async def test_invalid_answer_is_refused_and_the_question_stays_open(here: Store, misfit: Any):
    asked = await suspend(here, {"a": 1})
    with pytest.raises(EngineError, match='"check" does not fit'):
        give_answer(here, asked, Answer("approve", misfit))
    assert find_question(here, asked.run_id) == asked
    assert give_answer(here, asked, Answer("approve", {"b": 2})) is False
    run = resume(here, asked.run_id, RunOptions(models=FakeModels(FunctionModel(""))))
    assert await outputs(run) == {"out": {"b": 2}}


async def test_invalid_answer_of_an_older_version_is_asked_for_again(here: Store):
    asked = await suspend(here, {"a": 1})
    journal = here.reopen(asked.run_id)
    journal.write(NodeAnswered(asked.run_id, asked.seq + 1, asked.time, asked.path, "approve", ["x"], ""))
    journal.close()
    run = resume(here, asked.run_id, RunOptions(models=FakeModels(FunctionModel(""))))
    async for event in run.events():
        if isinstance(event, NodeWaiting) and event.seq > asked.seq + 1:
            run.answer(event.path, Answer("approve", {"c": 3}))
    assert await outputs(run) == {"out": {"c": 3}}
