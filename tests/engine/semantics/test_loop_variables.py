"""Loop variables in templates and expressions of a body, and variables after an iteration."""

from __future__ import annotations

from typing import Any

import pytest

from tests.engine.semantics.documents import (
    around,
    entry,
    flow,
    for_each,
    formula,
    judge,
    leave,
    llm,
    loop,
    result,
    rules,
    transform,
)
from tests.engine.semantics.kit import play
from tests.engine.semantics.models import by_node, numbered, verdict


def _shown(template: str, **config: Any) -> Any:
    """A body with the model node `draft`, and the node `show` that outputs a template."""
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
async def test_a_template_in_a_body_can_use_the_loop_variables(template: str, shown: list[str]) -> None:
    played = await play(_shown(template), numbered)

    assert [str(value).split("|", 1)[1] for value in played.results] == shown


async def test_loop_previous_is_null_and_empty_text_in_the_first_iteration() -> None:
    played = await play(
        around(transform("show", "<{{loop.previous}}>"), edges="loop -> show -> exit", max_iterations=3)
    )

    assert played.results == ["<>", "<<>>", "<<<>>>"]


async def test_loop_input_stays_the_same_in_every_feedback_mode() -> None:
    played = await play(_shown("{{loop.input}}", feedback_mode="append"), numbered)

    assert {str(value).split("|", 1)[1] for value in played.results} == {"seed"}


async def test_loop_max_iterations_is_the_clamped_count() -> None:
    played = await play(_shown("{{loop.max_iterations}}", max_iterations=0), numbered)

    assert played.out == "draft 0|1"


async def test_loop_history_has_every_earlier_iteration() -> None:
    workflow = around(
        formula("seen", "loop.history.map(one, [one.index, one.result == null ? 0 : size(one.result)])"),
        edges="loop -> seen -> exit",
        max_iterations=3,
    )

    played = await play(workflow)

    assert played.results == [[], [[0, 0]], [[0, 0], [1, 1]]]


_CRITIC = (llm("draft", "{{input}} now {{loop.index}}"), llm("critic"))
_CRITIC_EDGES = "loop -> draft -> critic -> show.critic\ndraft -> show -> exit"


@pytest.mark.parametrize(
    ("template", "shown"),
    [
        ("{{loop.history[0].nodes.critic}}", ["", "critic 0", "critic 0"]),
        ("{{loop.history[1].result}}{{loop.history[1].nodes.draft}}", ["", "", "draft 1critic 1|draft 1"]),
        ("{{size(loop.history)}}{{loop.history[2].index == null}}", ["0true", "1true", "2true"]),
        ("{{loop.index == 0 ? '-' : loop.history[loop.index - 1].nodes.draft}}", ["-", "draft 0", "draft 1"]),
        ("{{loop.history.map(each, each.nodes.critic)}}", ["[]", '["critic 0"]', '["critic 0","critic 1"]']),
        ("{{loop.history.filter(e, e.nodes.critic == 'critic 1').size()}}", ["0", "0", "1"]),
        ("{{loop.history.all(e, has(e.nodes.critic) && has(e.nodes))}}", ["true", "true", "true"]),
        ("{{loop.index == 0 ? '-' : loop.history[0]['nodes']['critic']}}", ["-", "critic 0", "critic 0"]),
    ],
)
async def test_loop_history_has_the_output_of_each_node(template: str, shown: list[str]) -> None:
    body = (*_CRITIC, transform("show", f"{{{{input}}}}{{{{critic}}}}|{template}"))

    played = await play(around(*body, edges=_CRITIC_EDGES, max_iterations=3), numbered)

    assert [str(value).split("|", 1)[1] for value in played.results] == shown


@pytest.mark.parametrize("index", ["3", "-1", "0.5"])
async def test_a_history_index_that_can_never_exist_is_an_error(index: str) -> None:
    workflow = _shown(f"{{{{loop.history[{index}].result}}}}")

    played = await play(workflow, numbered, ends="failed")

    assert played.result.node == "loop[0].show"


async def test_expressions_about_an_iteration_read_the_outputs_of_earlier_ones() -> None:
    until = "loop.index > 1 && loop.history[0].nodes.critic == 'critic 0' && nodes.critic == 'critic 2'"
    score = "double(size(loop.history) == 0 ? '0' : loop.history[0].nodes.critic.substring(7))"
    body = (*_CRITIC, transform("show", "{{input}}{{critic}}"))

    played = await play(around(*body, edges=_CRITIC_EDGES, max_iterations=9, until=until, score=score), numbered)

    assert (played.loop.exit_reason, played.loop.iterations_run) == ("until", 3)


async def test_a_whole_record_in_a_text_does_not_repeat_the_outputs_of_all_nodes() -> None:
    body = (transform("show", "{{loop.history}}"), transform("two", "{{input}}"))

    played = await play(around(*body, edges="loop -> show -> two\nloop -> two.input\ntwo -> exit", max_iterations=3))

    assert '"nodes"' not in str(played.out)
    assert '"result"' in str(played.out)


async def test_every_record_has_the_outputs_of_its_nodes() -> None:
    body = (rules("way", {"done": "loop.index == 1", "continue": "else"}), llm("draft"), llm("other"))
    workflow = flow(
        entry(),
        loop(exit_condition="max_iterations", max_iterations=2),
        *body,
        leave(),
        result("records"),
        edges="""
            text -> loop -> way
            way.done -> draft -> exit
            way.continue -> other -> exit.feedback
            loop.iterations -> records
        """,
    )

    played = await play(workflow, numbered, {"text": "seed"})

    expected = [
        {
            "way": {"selected_branch": "continue", "value": "seed", "reason": "no other rule was true"},
            "draft": None,
            "other": "other 0",
        },
        {
            "way": {"selected_branch": "done", "value": "other 0", "reason": "the rule loop.index == 1 was true"},
            "draft": "draft 1",
            "other": None,
        },
    ]
    records: Any = played.result.outputs["records"]
    assert [record["nodes"] for record in records] == expected
    assert [record.nodes for record in played.loop.iterations] == expected
    assert [record["nodes"] for record in played.result.to_json()["loops"]["loop"]["iterations"]] == expected


async def test_iterator_records_have_the_outputs_of_their_nodes() -> None:
    workflow = for_each(llm("draft"), transform("show"), edges="each -> draft -> show -> gather", max_concurrency=1)

    played = await play(workflow, by_node(draft=["one", "two", "three"]), {})

    assert [record.nodes for record in played.result.loops["each"].iterations] == [
        {"draft": word, "show": word} for word in ("one", "two", "three")
    ]


async def test_loop_last_gives_an_earlier_node_a_later_nodes_previous_output() -> None:
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


async def test_loop_last_of_a_router_has_branch_value_and_reason() -> None:
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


async def test_a_member_of_loop_last_is_null_in_the_first_iteration() -> None:
    workflow = around(
        judge(),
        llm("draft", "{{input}}, said: {{loop.last.check.reason}}."),
        edges="loop -> draft -> check\ncheck.done -> exit",
        exit_condition="evaluator",
        max_iterations=2,
    )

    played = await play(workflow, by_node(draft="text", check=verdict("continue", "too short")))

    assert played.model.prompts("draft") == ["seed, said: .", "text, said: too short."]


async def test_loop_last_of_a_skipped_node_is_not_stale() -> None:
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


async def test_a_node_that_ran_in_the_previous_iteration_sends_nothing_stale_to_the_exit() -> None:
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

    assert played.iteration_inputs == ["seed", "noted 0"]
    assert played.results == ["seed", "noted 0"]
    assert played.out == "noted 0"
