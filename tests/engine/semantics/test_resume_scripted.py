"""Retries and scripted replies after a resume: a run killed at any event ends as without the kill."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine import RunOptions, Workflow
from engine.document.files import dumps
from engine.events import AnyEvent, NodeCalling, NodeFailed, NodeRetrying, RunCompleted, RunFailed
from engine.models.catalog import Models
from engine.models.protocol import RemembersCalls
from engine.runner.run import start
from engine.runner.run_storage import RunHead
from engine.store.recorded_model import RecordedModel, recorded_models
from engine.store.resume import Changes, fork, plan_fork, resume
from engine.store.run_file import run_to_json
from tests.engine.semantics.agents import agent
from tests.engine.semantics.documents import each, entry, flow, gather, judge, leave, llm, loop, result, transform
from tests.engine.semantics.test_resume import without_times
from tests.engine.store.memory_store import MemoryStore

BUSY = {"error": {"kind": "server", "message": "Busy."}}
RETRIES: dict[str, Any] = {"retries": 2, "retry_delay_s": 0}


def scripted(folder: Path, *rules: dict[str, Any], name: str = "script.json") -> str:
    file = folder / name
    file.write_text(json.dumps({"rules": list(rules)}))
    return f"scripted:{file}"


def in_loop(*body: Any, edges: str, **config: Any) -> Workflow:
    return flow(entry(default="seed"), loop(max_iterations=3, **config), *body, leave(), result(), edges=edges)


ONE_NODE = flow(entry(default="seed"), llm("draft", **RETRIES), result(), edges="text -> draft -> out")
LOOP = in_loop(
    llm("draft", **RETRIES), llm("polish", **RETRIES), edges="text -> loop -> draft -> polish -> exit -> out"
)
RESTARTED = in_loop(llm("draft"), llm("polish"), edges="text -> loop -> draft -> polish -> exit -> out", **RETRIES)
JUDGED = in_loop(
    llm("draft", **RETRIES),
    judge("check", **RETRIES),
    edges="text -> loop -> draft -> check\ncheck.done -> exit.input\ncheck.continue -> exit.feedback\nexit -> out",
    exit_condition="evaluator",
)
SIDE_BY_SIDE = flow(
    entry(default="seed"),
    llm("left", **RETRIES),
    llm("right", **RETRIES),
    transform("both", "{{left}} {{right}}"),
    result(),
    edges="text -> left -> both.left\ntext -> right -> both.right\nboth -> out",
)
ITEMS = flow(
    entry(type="list", default=["a", "b", "c"]),
    each(max_concurrency=1),
    llm("draft", **RETRIES),
    gather(),
    result(),
    edges="text -> each -> draft -> gather -> out",
)
AGENT = flow(entry(default="seed"), agent(**RETRIES), result(), edges="text -> agent -> out")

REPLIES = {"replies": [BUSY, "One", "Two", BUSY, BUSY, "Three", "Four", "Five", "Six", "Seven"]}
CASES: dict[str, tuple[Workflow, list[dict[str, Any]]]] = {
    "a node that fails twice": (ONE_NODE, [{"replies": [BUSY, BUSY, "One", "Two"]}]),
    "a node that fails for good": (ONE_NODE, [{"replies": [BUSY, BUSY, BUSY, "One"]}]),
    "fail_times": (ONE_NODE, [{"reply": {"text": "One", **BUSY, "fail_times": 2}}]),
    "fail_times of too few retries": (ONE_NODE, [{"reply": {"text": "One", **BUSY, "fail_times": 3}}]),
    "a list for two nodes of a loop": (LOOP, [REPLIES]),
    "a list by node": (LOOP, [{"node": "polish", "replies": ["p1", BUSY, "p2", "p3"]}, REPLIES]),
    "a list by pattern": (LOOP, [{"pattern": "One", "replies": ["after one", BUSY]}, REPLIES]),
    "a loop that starts over": (RESTARTED, [REPLIES]),
    "a judge": (JUDGED, [{"node": "check", "replies": [BUSY, '{"branch":"continue","reason":"r"}', "nonsense",
                                                      '{"branch":"continue","reason":"r"}',
                                                      '{"branch":"done","reason":"r"}']}, REPLIES]),
    "side by side": (SIDE_BY_SIDE, [REPLIES]),
    "items": (ITEMS, [REPLIES]),
    "an agent": (AGENT, [{"replies": [{"tool_calls": [{"name": "none"}]}, BUSY, {"text": ""}, BUSY, "Done"]}]),
}  # fmt: skip


async def whole_run(workflow: Workflow, model: str | None = None) -> tuple[Any, MemoryStore, str]:
    store = MemoryStore()
    run = start(workflow, {}, RunOptions(models=Models(), model=model, store=store))
    return without_times(await run.result()), store, run.run_id


def killed(store: MemoryStore, run_id: str, cut: int) -> MemoryStore:
    """A history with only the first events of the run."""
    other = MemoryStore()
    head = RunHead(run_id, store.document(run_id), store.options(run_id))
    assert other.import_run(head, list(store.events(run_id))[:cut]) == run_id
    return other


async def resumed(store: MemoryStore, run_id: str, model: Any = None) -> Any:
    run = resume(store, run_id, RunOptions(models=model or Models()), retry_in_flight=True)
    return without_times(await run.result())


@pytest.mark.parametrize("case", CASES)
async def test_a_run_killed_at_any_event_ends_the_same(tmp_path: Path, case: str) -> None:
    workflow, rules = CASES[case]
    model = scripted(tmp_path, *rules)
    whole, store, run_id = await whole_run(workflow, model)
    events = list(store.events(run_id))

    assert any(isinstance(event, NodeRetrying) for event in events)
    for cut in cuts(events):
        assert await resumed(killed(store, run_id, cut), run_id) == whole, f"killed after {events[cut - 1]}"


@pytest.mark.parametrize("case", ["a list for two nodes of a loop", "fail_times", "a judge", "items"])
async def test_a_run_killed_twice_ends_the_same(tmp_path: Path, case: str) -> None:
    workflow, rules = CASES[case]
    whole, store, run_id = await whole_run(workflow, scripted(tmp_path, *rules))
    for first in list(cuts(list(store.events(run_id))))[::3]:
        once = killed(store, run_id, first)
        await resumed(once, run_id)
        for second in list(cuts(list(once.events(run_id)), first + 1))[::2]:
            assert await resumed(killed(once, run_id, second), run_id) == whole, f"killed at {first} and {second}"


def cuts(events: list[AnyEvent], first: int = 1) -> Iterator[int]:
    """The numbers of events after which a kill makes no difference: not after a failed node, which a resume retries."""
    failed: set[str] = set()
    for number, event in enumerate(events[:-1], 1):
        if isinstance(event, NodeFailed):
            failed.add(event.path)
        elif isinstance(event, NodeRetrying):
            failed = {path for path in failed if not path.startswith(f"{event.path}[")}
        if number >= first and not failed:
            yield number


async def test_a_node_that_failed_twice_of_three_attempts_has_one_left(tmp_path: Path) -> None:
    model = scripted(tmp_path, {"reply": BUSY})
    whole, store, run_id = await whole_run(ONE_NODE, model)
    assert whole["status"] == "failed"
    events = list(store.events(run_id))
    second = [place for place, event in enumerate(events) if isinstance(event, NodeRetrying)][1]
    left = killed(store, run_id, second + 1)
    await resumed(left, run_id)
    after = list(left.events(run_id))[second + 1 :]
    assert [event.number for event in after if isinstance(event, NodeCalling)] == [0]
    assert [type(event) for event in after if isinstance(event, NodeRetrying)] == []
    assert isinstance(after[-1], RunFailed)


async def test_a_node_that_failed_for_good_has_all_attempts_again_and_the_next_reply(tmp_path: Path) -> None:
    model = scripted(tmp_path, {"replies": [BUSY, BUSY, BUSY, BUSY, "One"]})
    _, store, run_id = await whole_run(ONE_NODE, model)
    assert (await resumed(store, run_id))["outputs"] == {"out": "One"}


@pytest.mark.parametrize("kind", [llm, agent])
async def test_a_node_continues_with_the_fallback_model_it_had_switched_to(tmp_path: Path, kind: Any) -> None:
    first = scripted(tmp_path, {"replies": [{"tool_calls": [{"name": "none"}]}, BUSY, BUSY, "One"]}, name="first.json")
    if kind is llm:
        first = scripted(tmp_path, {"replies": [BUSY, BUSY, "One"]}, name="first.json")
    second = scripted(tmp_path, {"replies": [BUSY, BUSY, "Two"]}, name="second.json")
    third = scripted(tmp_path, {"replies": [BUSY, "Three"]}, name="third.json")
    models = {"model": first, "fallback_models": [second, third]}
    node = kind("draft", retries=1, retry_delay_s=0, **models)
    workflow = flow(entry(default="seed"), node, result(), edges="text -> draft -> out")
    whole, store, run_id = await whole_run(workflow)

    assert whole["outputs"] == {"out": "Three"}
    for cut in cuts(list(store.events(run_id))):
        again = await resumed(killed(store, run_id, cut), run_id)
        for data in (again, whole):
            data.pop("warnings", None)  # they name only the fallbacks that this process used
        assert again == whole, f"killed at {cut}"


async def test_parallel_calls_in_flight_get_their_own_replies_again(tmp_path: Path) -> None:
    replies = [{"text": "slow", "delay_s": 3600}, "fast"]
    model = scripted(tmp_path, {"replies": replies})
    store, events = MemoryStore(), list[AnyEvent]()
    run = start(SIDE_BY_SIDE, {}, RunOptions(models=Models(), model=model, store=store))
    async for event in run.events():
        if event.type == "node.completed" and event.path == "right":
            events = list(store.events(run.run_id))
            run.cancel()
    await run.result()
    scripted(tmp_path, {"replies": ["slow", "fast"]})
    left = MemoryStore()
    left.import_run(RunHead(run.run_id, dumps(SIDE_BY_SIDE), store.options(run.run_id)), events)
    assert (await resumed(left, run.run_id))["outputs"] == {"out": "slow fast"}


async def test_a_recorded_run_that_is_killed_ends_the_same(tmp_path: Path) -> None:
    workflow, rules = CASES["a judge"]
    _, first, first_id = await whole_run(workflow, scripted(tmp_path, *rules))
    file = tmp_path / "run.json"
    head = RunHead(first_id, first.document(first_id), first.options(first_id))
    file.write_text("".join(run_to_json(head, first.events(first_id))))

    def models() -> Models:
        return Models(recorded=recorded_models(_no_history))

    store = MemoryStore()
    run = start(workflow, {}, RunOptions(models=models(), model=f"recorded:{file}", store=store))
    whole = without_times(await run.result())
    events = list(store.events(run.run_id))
    assert isinstance(events[-1], RunCompleted)
    for cut in range(1, len(events)):
        assert await resumed(killed(store, run.run_id, cut), run.run_id, models()) == whole, f"killed at {cut}"


def _no_history() -> Any:
    raise AssertionError("it is a file")


async def test_a_fork_without_changes_gets_the_replies_from_its_starting_point(tmp_path: Path) -> None:
    workflow, rules = CASES["a list for two nodes of a loop"]
    whole, store, run_id = await whole_run(workflow, scripted(tmp_path, *rules))
    for place in ("loop[0]", "loop[1]", "loop[2]", "loop[1].polish"):
        plan = plan_fork(store, run_id, place, Changes())
        other = await fork(store, plan, RunOptions(models=Models())).result()
        assert other.outputs == whole["outputs"], place


def test_which_models_remember_their_calls(tmp_path: Path) -> None:
    assert isinstance(Models().get(scripted(tmp_path)), RemembersCalls)
    assert isinstance(RecordedModel("recorded:x", {}), RemembersCalls)
    assert not isinstance(Models().get("openai/gpt-4o-mini"), RemembersCalls)
