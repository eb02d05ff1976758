"""Nested iterators and loops, also interrupted, resumed and forked."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from engine import Workflow, validate
from engine.events import LoopIterationCompleted, LoopIterationStarted, parse_place
from engine.models.protocol import ModelError, ModelErrorKind
from engine.runner.fork import events_before, fork_point
from engine.runner.run import prepare
from engine.values import Value
from tests.engine.semantics.agents import wants
from tests.engine.semantics.documents import (
    Part,
    around,
    each,
    entry,
    flow,
    for_each,
    formula,
    gather,
    leave,
    llm,
    loop,
    result,
    transform,
)
from tests.engine.semantics.kit import options, play
from tests.engine.semantics.models import Call, FakeModels, FunctionModel, Said
from tests.engine.semantics.test_resume import continue_run, play_stored, without_times
from tests.wording import mentions

IN_EACH: tuple[Part, ...] = (loop(max_iterations=2), transform("a", "{{input}}{{item}}{{loop.iteration}}"), leave())
LOOP_IN_EACH = for_each(*IN_EACH, edges="each -> loop -> a -> exit -> gather")


def items(*values: Value) -> dict[str, Value]:
    return {"items": list(values)}


async def test_a_loop_in_an_iterator_runs_for_each_item_and_its_templates_see_the_item() -> None:
    played = await play(LOOP_IN_EACH, inputs=items("x", "y"))

    assert played.out == ["xx1x2", "yy1y2"]
    assert played.output_of("each[1].loop[1].a") == "yy1y2"
    assert played.result.loops["each[1].loop"].iterations_run == 2


async def test_an_iterator_in_a_loop_runs_in_each_iteration_and_its_templates_see_the_loop() -> None:
    body = (each(), transform("a", "{{item}}{{loop.iteration}}"), gather())
    edges = "loop -> each -> a -> gather -> exit"

    played = await play(around(*body, edges=edges, max_iterations=2), inputs={"text": '["x", "y"]'})

    assert played.out == ["x12", "y12"]
    assert played.output_of("loop[1].each[0].a") == "x12"
    assert played.result.loops["loop[0].each"].exit_reason == "all_items"


async def test_a_nested_iterator_uses_the_inner_item() -> None:
    inner = (each("inner"), transform("a", "{{item}}{{index}}"), gather("inner_end", of="inner", mode="join"))
    workflow = for_each(*inner, edges="each -> inner -> a -> inner_end -> gather")

    played = await play(workflow, inputs=items(["p", "q"], ["r"]))

    assert played.out == ["p0\n\nq1", "r0"]


async def test_conditions_and_expressions_of_a_loop_see_the_item_around_it() -> None:
    body = (loop(max_iterations=5, until="size(output) >= item.size"), transform("a", "{{input}}!"), leave())
    start = formula("start", "input.text")
    workflow = for_each(start, *body, edges="each -> start -> loop -> a -> exit -> gather")

    played = await play(workflow, inputs=items({"text": "a", "size": 3}, {"text": "b", "size": 5}))

    assert played.out == ["a!!", "b!!!!"]


async def test_exit_loop_called_for_one_item_ends_the_outer_loop_after_all_items() -> None:
    def answer(call: Call) -> Said:
        wanted = call.indices == (1, 0) and call.request.messages[-1].role != "tool"
        return wants(("exit_loop", {}), text="enough") if wanted else f"said {call.indices}"

    body = (each(), llm("ask", may_exit_loop=True), gather())
    workflow = around(*body, edges="loop -> each -> ask -> gather -> exit", max_iterations=5)

    played = await play(workflow, answer, {"text": '["x", "y"]'})

    assert played.loop.exit_reason == "exit_loop"
    assert played.loop.iterations_run == 2
    assert len([call for call in played.model.calls if call.indices == (1, 1)]) == 1


_WRONG: dict[str, tuple[Workflow, str, tuple[str, str | None], str]] = {
    "an item outside": (
        flow(entry(), transform("a", "{{item}}{{input}}"), result(), edges="text -> a -> out"),
        "unknown-name",
        ("a", "template"),
        "`item` … between … Iterator … Aggregator",
    ),
    "a loop outside": (
        for_each(transform("a", "{{loop.iteration}}{{input}}"), edges="each -> a -> gather"),
        "unknown-name",
        ("a", "template"),
        "`loop` … between … Loop … Exit",
    ),
    "an edge out of it": (
        for_each(transform("a"), result("other"), edges="each -> a -> gather\na -> other"),
        "edge-out-of-body",
        ("a", "output"),
        '"Transform" leaves … "Iterator"',
    ),
    "an item led out of it": (
        for_each(transform("a"), result("other"), edges="each -> a -> gather\neach.index -> other"),
        "edge-out-of-body",
        ("each", "index"),
        '"Iterator" leaves … "Iterator"',
    ),
    "its count inside": (
        for_each(transform("a", "{{input}}{{n}}"), edges="each -> a -> gather\neach.count -> a.n"),
        "loop-result-in-body",
        ("each", "count"),
        '"count" … "Iterator" … only after',
    ),
    "nothing between": (
        for_each(edges="each -> gather"),
        "empty-body",
        ("each", None),
        'Nothing … "Iterator" … "Aggregator"',
    ),
    "a missing aggregator": (
        flow(entry("items", type="json"), each(), transform("a"), result(), edges="items -> each -> a -> out"),
        "missing-exit",
        ("each", None),
        '"Iterator" has no aggregator',
    ),
    "an overlap": (
        flow(
            entry("items", type="json"),
            each(),
            loop(),
            transform("a"),
            transform("b"),
            gather(),
            leave(),
            result(),
            edges="items -> each -> loop -> a -> gather\na -> b -> exit -> out\ngather -> out",
        ),
        "overlapping-loops",
        ("loop", None),
        '"Loop" … "Iterator" overlap',
    ),
}


@pytest.mark.parametrize("name", list(_WRONG))
def test_invalid_nesting_is_a_problem(name: str) -> None:
    workflow, code, place, parts = _WRONG[name]

    found = [problem for problem in validate(workflow) if problem.code == code]

    assert [(problem.node, problem.port or problem.field) for problem in found] == [place], validate(workflow)
    assert mentions(found[0].message, parts), found[0].message


def test_an_aggregator_need_not_name_its_iterator() -> None:
    inner = (each("inner"), transform("a"), gather("inner_end", of=""))
    workflow = flow(
        entry("items", type="json"),
        each(),
        *inner,
        gather(of=""),
        result(),
        edges="items -> each -> inner -> a -> inner_end -> gather -> out",
    )

    assert validate(workflow) == []


def bad_fails(call: Call) -> Said:
    refused = ModelError(ModelErrorKind.AUTHENTICATION, "The key is wrong.", "Check it.")
    return refused if "bad" in call.prompt else call.prompt.upper()


def models() -> FakeModels:
    return FakeModels(FunctionModel(bad_fails))


def kept_run(**config: Any) -> Workflow:
    body = (llm("ask"), transform("a", "{{input}}!"))
    listed = each(source="list", items=["x", "bad", "y", "z"], max_concurrency=2, **config)
    return flow(listed, *body, gather(), result(), edges="each -> ask -> a -> gather -> out")


@pytest.mark.parametrize("on_item_error", ["skip", "collect"])
async def test_a_failed_item_stays_failed_after_a_resume(on_item_error: str) -> None:
    workflow = kept_run(on_item_error=on_item_error)
    whole, past = await play_stored(workflow, models())
    ended = next(
        place
        for place, event in enumerate(past)
        if isinstance(event, LoopIterationCompleted) and event.branch == "failed"
    )

    for cut in range(ended + 1, len(past)):
        again = await continue_run(workflow, past[:cut], models())

        assert without_times(again.result) == without_times(whole.result)
        assert "each[1].ask" not in again.model.paths


@pytest.mark.parametrize("place", ["each[0]", "each[2]", "each[2].a", "each[1].ask"])
async def test_a_fork_at_an_item_runs_only_that_item_again(place: str) -> None:
    workflow = kept_run(on_item_error="collect")
    whole, past = await play_stored(workflow, models())
    point = fork_point(workflow_plan(workflow), parse_place(place))
    first = replace(past[0], run_id="other", parent="parent", forked_at=place)

    other = await continue_run(
        workflow, [first, *events_before(past, workflow_plan(workflow), point, "other")], models()
    )

    index = int(place[5])
    assert other.out == whole.out
    assert {call.indices for call in other.model.calls} <= {(index,)}
    started = [event for event in other.events if isinstance(event, LoopIterationStarted)]
    assert [event.index for event in started] == [0, 1, 2, 3]


async def test_a_fork_can_start_an_item_with_another_value() -> None:
    workflow = kept_run(on_item_error="collect")
    _, past = await play_stored(workflow, models())
    point = fork_point(workflow_plan(workflow), parse_place("each[1]"))
    first = replace(past[0], run_id="other", parent="parent", forked_at="each[1]", edits={"each[1]": "good"})

    other = await continue_run(
        workflow, [first, *events_before(past, workflow_plan(workflow), point, "other")], models()
    )

    assert other.out == ["X!", "GOOD!", "Y!", "Z!"]
    assert other.model.paths == ["each[1].ask"]


def workflow_plan(workflow: Workflow) -> Any:
    return prepare(workflow, {}, options(models())).plan


async def test_a_result_with_items_can_be_written_as_json() -> None:
    whole, _ = await play_stored(kept_run(on_item_error="skip"), models())

    data = json.loads(json.dumps(whole.result.to_json()))
    assert [record["index"] for record in data["loops"]["each"]["iterations"]] == [0, 1, 2, 3]
