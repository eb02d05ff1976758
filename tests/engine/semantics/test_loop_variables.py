"""What templates and expressions in a body may name: `loop.…`; and what they may name after an iteration."""

from __future__ import annotations

from typing import Any

import pytest

from tests.engine.semantics.documents import (
    around,
    formula,
    judge,
    llm,
    rules,
    transform,
)
from tests.engine.semantics.kit import play
from tests.engine.semantics.models import by_node, numbered, verdict


def _shown(template: str, **config: Any) -> Any:
    """A body of a model and, after it, a node that shows what its template gives: `draft` then `show`."""
    return around(
        llm("draft"),
        transform("show", f"{{{{input}}}}|{template}"),
        edges="loop -> draft -> show -> exit",
        **{"max_iterations": 3, **config},
    )


@pytest.mark.parametrize(
    ("template", "shown"),
    [
        ("{{loop.index}}", ["0", "1", "2"]),
        ("{{loop.iteration}}", ["1", "2", "3"]),
        ("{{loop.max_iterations}}", ["3", "3", "3"]),
        ("{{loop.iteration}} of {{loop.max_iterations}}", ["1 of 3", "2 of 3", "3 of 3"]),
        ("{{loop.input}}", ["seed", "seed", "seed"]),
        ("{{loop.last.draft}}", ["", "draft 0", "draft 1"]),
        ("{{loop.index + 10}}", ["10", "11", "12"]),
        ("{{loop.previous == null ? 'none' : 'some'}}", ["none", "some", "some"]),
        ("{{loop.last.draft == null}}", ["true", "false", "false"]),
        ("{{size(loop.history)}}", ["0", "1", "2"]),
    ],
)
async def test_a_template_in_a_body_may_name_what_the_loop_knows(template: str, shown: list[str]) -> None:
    played = await play(_shown(template), numbered)

    assert [str(value).split("|", 1)[1] for value in played.results] == shown


async def test_the_result_before_is_null_and_empty_text_in_the_first_iteration() -> None:
    played = await play(
        around(transform("show", "<{{loop.previous}}>"), edges="loop -> show -> exit", max_iterations=3)
    )

    assert played.results == ["<>", "<<>>", "<<<>>>"]


async def test_the_original_input_stays_what_it_was_in_every_feedback_mode() -> None:
    played = await play(_shown("{{loop.input}}", feedback_mode="append"), numbered)

    assert {str(value).split("|", 1)[1] for value in played.results} == {"seed"}


async def test_a_clamped_count_is_what_the_body_is_told() -> None:
    played = await play(_shown("{{loop.max_iterations}}", max_iterations=0), numbered)

    assert played.out == "draft 0|1"


async def test_the_history_tells_every_iteration_so_far() -> None:
    workflow = around(
        formula("seen", "loop.history.map(one, [one.index, one.result == null ? 0 : size(one.result)])"),
        edges="loop -> seen -> exit",
        max_iterations=3,
    )

    played = await play(workflow)

    assert played.results == [[], [[0, 0]], [[0, 0], [1, 1]]]


async def test_what_a_node_gave_in_the_iteration_before_can_be_named_by_a_node_before_it() -> None:
    workflow = around(
        llm("draft", "{{input}}, critique: {{loop.last.critique}}."),
        llm("critique"),
        edges="loop -> draft -> exit\ndraft -> critique -> exit.feedback",
        max_iterations=3,
    )

    played = await play(workflow, numbered)

    assert played.model.prompts("draft") == [
        "seed, critique: .",
        "critique 0, critique: critique 0.",
        "critique 1, critique: critique 1.",
    ]


async def test_a_router_gave_its_branch_value_and_reason() -> None:
    workflow = around(
        llm("draft", "{{input}} {{loop.last.check}}"),
        judge(),
        edges="loop -> draft -> check\ncheck.done -> exit",
        exit_condition="evaluator",
        max_iterations=2,
    )

    played = await play(workflow, by_node(draft="text", check=verdict("continue", "too short")))

    assert played.model.prompts("draft")[1] == (
        'text {"reason":"too short","selected_branch":"continue","value":"text"}'
    )


async def test_a_member_of_what_a_node_gave_is_null_in_the_first_iteration() -> None:
    workflow = around(
        judge(),
        llm("draft", "{{input}}, said: {{loop.last.check.reason}}."),
        edges="loop -> draft -> check\ncheck.done -> exit",
        exit_condition="evaluator",
        max_iterations=2,
    )

    played = await play(workflow, by_node(draft="text", check=verdict("continue", "too short")))

    assert played.model.prompts("draft") == ["seed, said: .", "text, said: too short."]


async def test_nothing_stale_is_seen_of_a_node_that_was_skipped_in_the_iteration_before() -> None:
    workflow = around(
        rules("pick", {"first": "loop.index % 2 == 0", "second": "else"}),
        transform("a", "a{{loop.index}}"),
        transform("b", "b{{loop.index}}"),
        transform("show", "{{input}} after [{{loop.last.a}}|{{loop.last.b}}]"),
        edges="loop -> pick\npick.first -> a -> show\npick.second -> b -> show\nshow -> exit",
        max_iterations=4,
    )

    played = await play(workflow)

    assert played.results == ["a0 after [|]", "b1 after [a0|]", "a2 after [|b1]", "b3 after [a2|]"]


async def test_nothing_stale_reaches_the_exit_from_a_node_that_ran_in_the_iteration_before() -> None:
    workflow = around(
        rules("pick", {"done": "loop.index == 1", "continue": "else"}),
        transform("more", "{{input}}+"),
        transform("note", "noted {{loop.index}}"),
        rules("every", {"even": "loop.index % 2 == 0", "odd": "else"}),
        edges="loop -> pick\npick.done -> exit\npick.continue -> more\n"
        "loop -> every\nevery.even -> note -> exit.feedback",
        exit_condition="evaluator",
        evaluator="pick",
    )

    played = await play(workflow)

    assert played.starts == ["seed", "noted 0"]
    assert played.results == ["seed", "noted 0"]
    assert played.out == "noted 0"
