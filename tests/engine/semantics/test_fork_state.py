"""Named state in forks: a node that a fork runs again reads the state that it read in the original run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from engine import Workflow
from engine.events import AnyEvent, NodeCompleted, RunStarted, parse_place
from engine.runner.fork import events_before, fork_point, state_order
from engine.runner.named_state import State
from engine.runner.run import prepare
from tests.engine.semantics.documents import each, entry, flow, gather, llm, result, transform
from tests.engine.semantics.kit import Played, options
from tests.engine.semantics.models import FakeModels, FunctionModel
from tests.engine.semantics.test_resume import continue_run, play_stored

ITEMS: dict[str, Any] = {"source": "list", "items": ["a", "b", "c"], "max_concurrency": 1}


def echo() -> FakeModels:
    return FakeModels(FunctionModel(lambda call: call.prompt))


def chained() -> Workflow:
    """Each item appends itself to the named state; the transform after the iterator reads it."""
    return flow(
        each(**ITEMS),
        llm("draft"),
        transform("join", "{{state.x}}{{input}}", output_key="x"),
        gather(),
        transform("after", "{{state.x}} of {{input}}"),
        result(),
        edges="each -> draft -> join -> gather -> after -> out",
    )


def fork_of(workflow: Workflow, past: Sequence[AnyEvent], place: str) -> list[AnyEvent]:
    """The first events of a fork."""
    plan = prepare(workflow, {}, options(echo())).plan
    point = fork_point(plan, parse_place(place))
    order = state_order(past, plan, point)
    first = past[0]
    assert isinstance(first, RunStarted)
    first = replace(first, run_id="other", parent="parent", forked_at=place, state_order=order)
    return [first, *events_before(past, plan, point, "other")]


def joined(played: Played) -> list[tuple[str, Any]]:
    return [(event.path, event.outputs["output"]) for event in played.of(NodeCompleted) if event.path.endswith("join")]


async def test_an_item_reads_the_state_set_by_earlier_items_and_later_nodes_read_the_last() -> None:
    whole, past = await play_stored(chained(), echo())
    assert whole.out == 'abc of ["a","ab","abc"]'

    other = await continue_run(chained(), fork_of(chained(), past, "each[1]"), echo(), fork="other")

    assert joined(other)[-1] == ("each[1].join", "ab")
    assert other.out == whole.out


async def test_a_resumed_fork_reads_the_same_state() -> None:
    whole, past = await play_stored(chained(), echo())
    begun = fork_of(chained(), past, "each[0].draft")
    once = await continue_run(chained(), begun, echo(), fork="other")
    stored = [event for event in once.events if event.type != "node.streaming"]

    for cut in range(len(begun), len(stored)):
        again = await continue_run(chained(), stored[:cut], echo())

        assert again.out == whole.out, f"interrupted after {stored[cut - 1]}"


async def test_a_fork_of_a_fork_reads_the_same_state() -> None:
    whole, past = await play_stored(chained(), echo())
    once = await continue_run(chained(), fork_of(chained(), past, "each[1]"), echo(), fork="other")
    stored = [event for event in once.events if event.type != "node.streaming"]

    for place in ("each[0]", "each[1]", "each[2]", "each[1].join", "after"):
        other = await continue_run(chained(), fork_of(chained(), stored, place), echo(), fork="other")

        assert other.out == whole.out, place


async def test_a_value_changed_by_the_fork_reaches_the_nodes_it_runs_again() -> None:
    _, past = await play_stored(chained(), echo())
    begun = fork_of(chained(), past, "each[1]")
    begun[0] = replace(begun[0], edits={"each[1]": "B"})  # pyright: ignore[reportCallIssue] - it is a RunStarted

    other = await continue_run(chained(), begun, echo(), fork="other")

    assert joined(other)[-1] == ("each[1].join", "aB")
    assert other.out == 'abc of ["a","aB","abc"]'


async def test_a_branch_reads_the_original_state_and_not_what_a_parallel_branch_set_later() -> None:
    workflow = flow(
        entry(default="seed"),
        transform("early", "early", output_key="x"),
        llm("read", "{{state.x}}"),
        transform("wait", "{{input}}"),
        transform("late", "late", output_key="x"),
        transform("both", "{{input}} {{state.x}}"),
        result(),
        edges="text -> early -> read -> both -> out\nearly -> wait -> late -> both",
    )
    whole, past = await play_stored(workflow, echo())
    assert whole.model.prompts("read") == ["early\n\nearly"]

    other = await continue_run(workflow, fork_of(workflow, past, "read"), echo(), fork="other")

    assert other.model.prompts("read") == ["early\n\nearly"]
    assert other.out == whole.out


def test_nodes_the_original_run_did_not_reach_read_what_was_set_beside_them() -> None:
    state = State((">each[0].a", "=each[1].a", "=after"))
    for path in ("each[1].a", "after"):
        state.set(path, "x", {"output": path})

    assert state.at("each[0].a").member("x") is None
    assert state.at("each[0].other").member("x") is None
    state.set("each[0].other", "x", {"output": "new"})
    assert state.at("each[0].third").member("x") == "new"
    assert state.at("end").member("x") == "after"
