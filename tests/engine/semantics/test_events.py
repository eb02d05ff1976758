"""The events of a run: types, order and readers."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from engine import start
from engine.events import (
    AnyEvent,
    LoopCompleted,
    LoopIterationCompleted,
    LoopIterationStarted,
    LoopStarted,
    NodeCompleted,
    NodeFailed,
    NodeStarted,
    NodeStreaming,
    RunCompleted,
    RunFailed,
    RunStarted,
)
from engine.models.protocol import ModelError, ModelErrorKind, Usage
from engine.store.resume import resume
from tests.engine.semantics.documents import around, entry, flow, for_each, formula, judge, llm, result, transform
from tests.engine.semantics.kit import begin, finish, options, play
from tests.engine.semantics.models import FREE, Call, FakeModels, FunctionModel, by_node, numbered, verdict
from tests.engine.store.memory_store import MemoryStore

_SMALL = flow(entry(), llm("draft"), result(), edges="text -> draft -> out")


async def test_a_run_starts_with_inputs_and_models_and_ends_with_outputs() -> None:
    workflow = flow(
        entry(), llm("a", model="m/one"), llm("b"), result(), edges="text -> a -> b -> out", settings={"model": "m/two"}
    )

    one, two = FunctionModel("x", name="m/one"), FunctionModel("x", name="m/two")

    played = await play(workflow, FakeModels(two, **{"m/one": one}))

    first, last = played.events[0], played.events[-1]
    assert isinstance(first, RunStarted)
    assert (first.workflow, first.inputs, set(first.models)) == ("test", {"text": "seed"}, {"m/one", "m/two"})
    assert isinstance(last, RunCompleted)
    assert (last.outputs, last.usage, last.cost_usd) == ({"out": "x"}, Usage(20, 10), 0.0)
    assert {event.path for event in (first, last)} == {""}


async def test_every_event_has_a_type_a_number_a_time_and_a_path() -> None:
    before = time.time()
    played = await play(around(llm("draft"), edges="loop -> draft -> exit", max_iterations=2), numbered)
    after = time.time()

    for number, event in enumerate(played.events):
        data = event.to_json()
        assert (data["type"], data["run_id"], data["seq"]) == (type(event).type, played.result.run_id, number)
        assert before <= data["time"] <= after
    assert [event.time for event in played.events] == sorted(event.time for event in played.events)


async def test_the_events_of_a_loop_are_in_order() -> None:
    workflow = around(llm("draft"), edges="loop -> draft -> exit", max_iterations=2)

    played = await play(workflow, numbered)

    about_the_loop = [
        (type(event), event.path, getattr(event, "index", None))
        for event in played.events
        if event.path.startswith("loop") and not isinstance(event, NodeStreaming)
    ]
    in_the_body = [
        (LoopIterationStarted, "loop", 0),
        (NodeStarted, "loop[0].draft", None),
        (NodeCompleted, "loop[0].draft", None),
        (LoopIterationCompleted, "loop", 0),
        (LoopIterationStarted, "loop", 1),
        (NodeStarted, "loop[1].draft", None),
        (NodeCompleted, "loop[1].draft", None),
        (LoopIterationCompleted, "loop", 1),
        (LoopCompleted, "loop", None),
    ]
    assert [data for data in about_the_loop if data in in_the_body] == in_the_body
    assert set(about_the_loop) - set(in_the_body) == {
        (NodeStarted, "loop", None),
        (LoopStarted, "loop", None),
        (NodeCompleted, "loop", None),
    }


async def test_a_node_emits_its_inputs_and_its_outputs() -> None:
    played = await play(_SMALL, "a reply")

    (started,), (completed,) = played.of(NodeStarted, "draft"), played.of(NodeCompleted, "draft")
    assert (started.node_type, started.inputs) == ("llm", {"input": "seed"})
    assert completed.outputs["output"] == "a reply"
    assert (completed.usage, completed.cost_usd, completed.cached, completed.error) == (Usage(10, 5), 0.0, False, "")
    assert completed.duration_s >= 0
    (call,) = completed.calls
    assert (call.request, call.reply.text) == (played.model.calls[0].request, "a reply")


async def test_a_node_without_model_calls_reports_no_usage() -> None:
    played = await play(flow(entry(), transform("t"), result(), edges="text -> t -> out"))

    (event,) = played.of(NodeCompleted, "t")
    assert (event.usage, event.cost_usd, event.calls) == (None, 0.0, ())


async def test_reply_chunks_are_emitted_as_they_arrive() -> None:
    model = FunctionModel("one two three", pieces=lambda text: [word + " " for word in text.split()])

    played = await play(_SMALL, model)

    pieces = played.of(NodeStreaming, "draft")
    assert "".join(piece.text for piece in pieces) == "one two three "
    assert [piece.tokens for piece in pieces] == [1, 2, 3]
    (started,), (completed,) = played.of(NodeStarted, "draft"), played.of(NodeCompleted, "draft")
    assert all(started.seq < piece.seq < completed.seq for piece in pieces)


async def test_an_iteration_emits_its_input_and_its_result() -> None:
    workflow = around(
        llm("draft"),
        judge(),
        edges="loop -> draft -> check\ncheck.done -> exit",
        exit_condition="evaluator",
        score="size(output)",
        until="similarity == 2.0",
    )

    played = await play(
        workflow, by_node(draft=["abcd", "abcdef"], check=[verdict("continue", "c"), verdict("done", "d")])
    )

    first, second = played.of(LoopIterationCompleted)
    assert (first.path, first.index, first.input, first.result, first.feedback) == ("loop", 0, "seed", "abcd", "abcd")
    assert (first.branch, first.reason, first.score, first.similarity) == ("continue", "c", 4, None)
    assert (second.index, second.input, second.result, second.branch) == (1, "abcd", "abcdef", "done")
    assert (second.score, second.similarity) == (6, pytest.approx(4 / 6))
    assert (second.usage, second.cost_usd) == (Usage(20, 10), 0.0)
    (ended,) = played.of(LoopCompleted)
    assert (ended.iterations_run, ended.exit_reason, ended.converged, ended.returned) == (2, "evaluator_done", True, 1)


async def test_a_failure_event_says_where_why_and_what_to_do() -> None:
    workflow = around(formula("bad", "input.nothing"), edges="loop -> bad -> exit")

    played = await play(workflow, ends="failed")

    assert "loop[0].bad" in {event.path for event in played.of(NodeFailed)}
    (ended,) = played.of(RunFailed)
    assert ended.node == "loop[0].bad"
    assert played.of(LoopCompleted)[0].exit_reason == "error"


async def test_several_readers_can_read_events_and_again_after_the_end() -> None:
    run, models = begin(_SMALL, "x")

    async def read() -> list[AnyEvent]:
        return [event async for event in run.events()]

    at_once = await asyncio.gather(read(), read())
    played = await finish(run, models)

    assert at_once[0] == at_once[1] == played.events


async def test_events_can_be_read_while_the_run_continues() -> None:
    gate = asyncio.Event()

    async def answer(_call: Call) -> str:
        await gate.wait()
        return "x"

    run, models = begin(_SMALL, answer)
    async with asyncio.timeout(30):
        async for event in run.events():
            if isinstance(event, NodeStarted) and event.path == "draft":
                gate.set()

    assert (await finish(run, models)).out == "x"


async def test_a_reader_that_leaves_early_stops_nothing() -> None:
    run, models = begin(_SMALL, "x")
    async for _event in run.events():
        break

    assert (await finish(run, models)).out == "x"


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("lone \ud800 surrogate", "lone \ufffd surrogate"),
        ("nul \x00 and \x1b[31m escape", "nul \ufffd and \x1b[31m escape"),
        ("𝄞 \u2028 \u202e", "𝄞 \u2028 \u202e"),
    ],
    ids=["surrogate", "nul", "unusual"],
)
async def test_model_text_is_sanitized_in_events(text: str, stored: str) -> None:
    played = await play(around(llm("draft"), edges="loop -> draft -> exit", max_iterations=2), text)

    assert played.out == stored
    assert played.results == [stored, stored]


async def test_the_result_can_be_reduced_from_the_events() -> None:
    workflow = around(llm("draft"), edges="loop -> draft -> exit", max_iterations=2)

    played = await play(workflow, FunctionModel(numbered, price=FREE))

    data: dict[str, Any] = played.result.to_json()
    assert data["status"] == "completed"
    assert data["outputs"] == {"out": "draft 1"}
    loop = data["loops"]["loop"]
    assert (loop["iterations_run"], loop["exit_reason"], loop["cost_usd"]) == (2, "max_iterations", 0.0)
    assert [(it["index"], it["input"], it["result"], it["feedback"]) for it in loop["iterations"]] == [
        (0, "seed", "draft 0", "draft 0"),
        (1, "draft 0", "draft 1", "draft 1"),
    ]
    assert {"branch", "reason", "score", "similarity", "cost_usd", "duration_s"} <= set(loop["iterations"][0])


async def test_a_callback_that_raises_neither_stops_nor_changes_the_run() -> None:
    seen: list[int] = []

    def on_event(event: AnyEvent) -> None:
        seen.append(event.seq)
        raise RuntimeError("a subscriber's own fault")

    run = start(_SMALL, {"text": "seed"}, options(FunctionModel("x")), on_event=on_event)

    outcome = await run.result()
    events = [event.seq async for event in run.events()]
    await run.delivered()

    assert outcome.outputs == {"out": "x"}
    assert seen == events


async def test_each_attempt_of_a_loop_reports_its_start_with_its_limits() -> None:
    limits = {"max_iterations": 4, "timeout_s": 60, "budget_usd": 2}
    workflow = around(llm("draft"), edges="loop -> draft -> exit", retries=1, retry_delay_s=0, **limits)
    replies = iter(["one", ModelError(ModelErrorKind.AUTHENTICATION, "No."), *["two"] * 4])

    played = await play(workflow, lambda _call: next(replies))

    first, second = played.of(LoopStarted)
    assert (first.path, first.attempt, first.max_iterations, first.timeout_s, first.budget_usd) == ("loop", 1, 4, 60, 2)
    assert (second.path, second.attempt) == ("loop", 2)
    started = [event.index for event in played.of(LoopIterationStarted) if event.seq > second.seq]
    assert started == [0, 1, 2, 3]
    assert [event.index for event in played.of(LoopIterationStarted) if event.seq < second.seq] == [0, 1]


async def test_a_loop_that_runs_no_iteration_reports_its_start_and_its_end() -> None:
    workflow = around(llm("draft"), edges="loop -> draft -> exit", max_iterations=2, condition="false")

    played = await play(workflow, numbered)

    (start,), (end,) = played.of(LoopStarted), played.of(LoopCompleted)
    assert start.seq < end.seq
    assert end.iterations_run == 0


async def test_an_iterator_reports_its_start_with_the_number_of_its_items() -> None:
    played = await play(for_each(llm("draft"), edges="each -> draft -> gather"), numbered)

    (start,) = played.of(LoopStarted)
    assert (start.path, start.attempt, start.max_iterations) == ("each", 1, len(played.of(LoopIterationStarted)))


async def test_a_resumed_run_continues_an_attempt_and_does_not_report_its_start_again() -> None:
    store = MemoryStore()
    workflow = around(llm("draft"), edges="loop -> draft -> exit", max_iterations=3)
    run, _ = begin(workflow, numbered, store=store)
    async for event in run.events():
        if isinstance(event, LoopIterationCompleted):
            run.suspend()
            break
    await run.result()

    resumed = await resume(store, run.run_id, options(FunctionModel(numbered)), retry_in_flight=True).result()

    assert resumed.loops["loop"].iterations_run == 3
    assert len([event for event in store.events(run.run_id) if isinstance(event, LoopStarted)]) == 1
