"""Loop variables in nested bodies: the inner loop, and `loop.parent`."""

from __future__ import annotations

from typing import Any

from tests.engine.semantics.documents import (
    Part,
    entry,
    flow,
    formula,
    leave,
    loop,
    result,
    transform,
)
from tests.engine.semantics.kit import play


def _nested(*body: Part, edges: str, outer: int = 2, inner: int = 2) -> Any:
    return flow(
        entry(),
        loop("outer", max_iterations=outer),
        transform("before", "{{input}}"),
        loop("inner", max_iterations=inner),
        *body,
        leave("inner_exit", "inner"),
        leave("outer_exit", "outer"),
        result(),
        edges=f"text -> outer -> before -> inner\n{edges}\ninner_exit -> outer_exit -> out",
    )


async def test_a_nested_body_sees_its_own_loop_and_its_parent() -> None:
    template = "{{loop.parent.index}}.{{loop.index}} {{loop.parent.iteration}}/{{loop.parent.max_iterations}}"

    played = await play(_nested(transform("show", template), edges="inner -> show -> inner_exit", outer=2, inner=3))

    shown = [played.output_of(f"outer[{i}].inner[{j}].show") for i in range(2) for j in range(3)]
    assert shown == [f"{i}.{j} {i + 1}/2" for i in range(2) for j in range(3)]


async def test_a_nested_body_sees_input_and_result_of_the_parent_loop() -> None:
    template = "{{loop.parent.input}} {{loop.parent.previous}} {{loop.parent.last.before}}|"

    played = await play(_nested(transform("show", template), edges="inner -> show -> inner_exit", inner=1))

    assert played.output_of("outer[0].inner[0].show") == "seed  |"
    assert played.output_of("outer[1].inner[0].show") == "seed seed  | seed|"


async def test_an_inner_loop_starts_without_values_of_its_previous_run() -> None:
    body = transform("show", "[{{loop.previous}}{{loop.last.show}}{{loop.input}}{{loop.history}}]")

    played = await play(_nested(body, edges="inner -> show -> inner_exit", inner=1))

    assert played.output_of("outer[0].inner[0].show") == "[seed[]]"
    assert played.output_of("outer[1].inner[0].show") == "[[seed[]][]]"


async def test_the_output_of_an_inner_loop_can_be_named_in_the_outer_body() -> None:
    workflow = flow(
        entry(),
        loop("outer", max_iterations=2),
        transform("note", "{{input}} [{{loop.last.inner_exit}}]"),
        loop("inner", max_iterations=1),
        transform("show", "shown {{loop.parent.index}}"),
        leave("inner_exit", "inner"),
        leave("outer_exit", "outer"),
        result(),
        edges="text -> outer -> note -> inner -> show -> inner_exit -> outer_exit -> out",
    )

    played = await play(workflow)

    assert played.output_of("outer[0].note") == "seed []"
    assert played.output_of("outer[1].note") == "shown 0 [shown 0]"


async def test_three_levels_are_reachable_through_parent_of_parent() -> None:
    workflow = flow(
        entry(),
        *(loop(name, max_iterations=2) for name in "abc"),
        formula("show", "[loop.parent.parent.index, loop.parent.index, loop.index]"),
        *(leave(f"{name}_exit", name) for name in "abc"),
        result(),
        edges="text -> a -> b -> c\nc -> show -> c_exit -> b_exit -> a_exit -> out",
    )

    played = await play(workflow)

    assert played.output_of("a[1].b[0].c[1].show") == [1, 0, 1]
    assert played.out == [1, 1, 1]
