"""The feedback for the next iteration, and the iteration note for the model."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from engine.events import LoopIterationStarted
from engine.nodes.llm import SPEC as LLM_SPEC
from engine.nodes.node_registry import builtin_registry
from tests.engine.semantics.documents import (
    around,
    entry,
    flow,
    formula,
    leave,
    llm,
    loop,
    off,
    part,
    result,
    transform,
)
from tests.engine.semantics.kit import play
from tests.engine.semantics.models import by_node, numbered

_DRAFTS = "loop -> draft -> exit"


def _drafts(**config: Any) -> Any:
    return around(llm("draft"), edges=_DRAFTS, **config)


async def test_replace_starts_from_the_result_only() -> None:
    played = await play(_drafts(max_iterations=3, feedback_mode="replace"), numbered)

    assert played.model.prompts("draft") == ["seed", "draft 0", "draft 1"]


async def test_append_adds_the_feedback_below_the_previous_input() -> None:
    played = await play(_drafts(max_iterations=3, feedback_mode="append"), numbered)

    assert played.iteration_inputs == ["seed", "seed\n---\ndraft 0", "seed\n---\ndraft 0\n---\ndraft 1"]
    assert played.out == "draft 2"
    assert [record.feedback for record in played.loop.iterations[:2]] == ["draft 0", "draft 1"]


@pytest.mark.parametrize(
    ("window", "last"), [(1, ["d2"]), (2, ["d1", "d2"]), (3, ["d0", "d1", "d2"]), (9, ["d0", "d1", "d2"])]
)
async def test_append_window_keeps_the_original_input_and_the_latest_feedback(window: int, last: list[str]) -> None:
    workflow = _drafts(max_iterations=4, feedback_mode="append_window", append_window=window)

    played = await play(workflow, by_node(draft=["d0", "d1", "d2", "d3"]))

    assert played.iteration_inputs[1] == "seed\n---\nd0"
    assert played.iteration_inputs[3] == "\n---\n".join(["seed", *last])


async def test_a_window_counts_feedback_entries_and_not_lines_between_dashes() -> None:
    workflow = _drafts(max_iterations=3, feedback_mode="append_window", append_window=1)

    played = await play(workflow, by_node(draft=["one\n---\ntwo", "three"]), {"text": "a\n---\nb"})

    assert played.iteration_inputs == ["a\n---\nb", "a\n---\nb\n---\none\n---\ntwo", "a\n---\nb\n---\nthree"]


@pytest.mark.parametrize("mode", ["append", "append_window"])
async def test_json_cannot_be_appended_and_the_error_says_so(mode: str) -> None:
    workflow = around(formula("pair", "{'a': input}"), edges="loop -> pair -> exit", feedback_mode=mode)

    played = await play(workflow, ends="failed")

    assert played.loop.exit_reason == "error"
    assert played.result.node == "loop"
    assert "text" in played.result.error
    assert played.result.remedy


@pytest.mark.parametrize("mode", ["append", "append_window"])
async def test_nothing_can_be_appended_to_json(mode: str) -> None:
    workflow = flow(
        entry(type="json"),
        loop(max_iterations=2, feedback_mode=mode),
        llm("draft"),
        leave(),
        result(),
        edges=f"text -> loop\n{_DRAFTS}\nexit -> out",
    )

    played = await play(workflow, "x", {"text": {"a": 1}}, ends="failed")

    assert played.result.node == "loop"


@pytest.mark.parametrize("mode", ["append", "append_window"])
async def test_json_feedback_of_the_last_iteration_need_not_be_appended(mode: str) -> None:
    workflow = around(
        formula("pair", "{'a': input}"), edges="loop -> pair -> exit", feedback_mode=mode, max_iterations=1
    )

    assert (await play(workflow)).out == {"a": "seed"}


async def test_a_value_at_the_exits_feedback_is_the_next_iteration_input() -> None:
    workflow = around(
        llm("draft"),
        llm("critique"),
        edges="loop -> draft -> exit\ndraft -> critique -> exit.feedback",
        max_iterations=3,
    )

    played = await play(workflow, numbered)

    assert played.iteration_inputs == ["seed", "critique 0", "critique 1"]
    assert played.results == ["draft 0", "draft 1", "draft 2"]
    assert [record.feedback for record in played.loop.iterations[:2]] == ["critique 0", "critique 1"]
    assert played.out == "draft 2"


async def test_feedback_separate_from_the_result_is_appended() -> None:
    workflow = around(
        llm("draft"),
        llm("critique"),
        edges="loop -> draft -> exit\ndraft -> critique -> exit.feedback",
        max_iterations=2,
        feedback_mode="append",
    )

    played = await play(workflow, numbered)

    assert played.iteration_inputs == ["seed", "seed\n---\ncritique 0"]


async def test_json_passes_through_replace_mode_unchanged() -> None:
    workflow = around(formula("next", "loop.index == 0 ? {'n': 1} : {'n': input.n * 2}"), edges="loop -> next -> exit")

    played = await play(workflow)

    assert played.out == {"n": 16}


async def test_an_empty_result_is_the_next_iteration_input() -> None:
    workflow = around(llm("draft", allow_empty=True), edges=_DRAFTS, max_iterations=2)

    played = await play(workflow, by_node(draft=["", "x"]))

    assert played.iteration_inputs == ["seed", ""]
    assert len(played.model.calls) == 2


async def test_text_that_looks_like_a_template_is_fed_back_unchanged() -> None:
    played = await play(_drafts(max_iterations=2, feedback_mode="append"), "{{loop.index}} \\{{input}}")

    assert played.model.prompts("draft")[1] == "seed\n---\n{{loop.index}} \\{{input}}"


async def test_the_first_model_node_gets_the_iteration_note() -> None:
    workflow = around(
        transform("pass"),
        llm("draft"),
        llm("polish"),
        edges="loop -> pass -> draft -> polish -> exit",
        max_iterations=3,
        inject_feedback=True,
    )

    played = await play(workflow, numbered)

    first, second, third = played.model.prompts("draft")
    assert re.search(r"\b1 of 3\b", first.removeprefix("seed"))
    assert re.search(r"\b2 of 3\b", second.removeprefix("polish 0"))
    assert re.search(r"\b3 of 3\b", third.removeprefix("polish 1"))
    assert played.model.prompts("polish") == ["draft 0", "draft 1", "draft 2"]


async def test_a_plugin_node_type_gets_the_iteration_note_by_its_declaration() -> None:
    registry = builtin_registry().with_types([replace(LLM_SPEC, type="writer")])
    workflow = around(
        part("draft", "writer", prompt="{{input}}"),
        llm("polish"),
        edges="loop -> draft -> polish -> exit",
        max_iterations=2,
        inject_feedback=True,
    )

    played = await play(workflow, numbered, registry=registry)

    first, second = played.model.prompts("draft")
    assert re.search(r"\b1 of 2\b", first.removeprefix("seed"))
    assert re.search(r"\b2 of 2\b", second.removeprefix("polish 0"))
    assert played.model.prompts("polish") == ["draft 0", "draft 1"]


@pytest.mark.parametrize(
    "prompt",
    ["{{input}}", "Go on.", "Iteration {{loop.iteration}}", "{{loop.input}}"],
    ids=["in", "below", "no", "original"],
)
async def test_the_iteration_note_contains_the_last_result_whatever_the_prompt_shows(prompt: str) -> None:
    workflow = around(
        transform("start", "{{loop.input}}"),
        llm("draft", prompt),
        edges="loop -> start -> draft -> exit",
        max_iterations=2,
        inject_feedback=True,
    )

    played = await play(workflow, "the first attempt")

    assert "the first attempt" in played.model.prompts("draft")[1]


async def test_the_iteration_note_contains_the_result_where_the_feedback_differs() -> None:
    workflow = around(
        llm("draft"),
        llm("critique"),
        edges="loop -> draft -> exit\ndraft -> critique -> exit.feedback",
        max_iterations=2,
        inject_feedback=True,
    )

    played = await play(workflow, numbered)

    assert "draft 0" in played.model.prompts("draft")[1]
    assert "critique 0" in played.model.prompts("draft")[1]


async def test_inject_feedback_off_adds_no_note() -> None:
    played = await play(_drafts(max_iterations=2, inject_feedback=False), numbered)

    assert played.model.prompts("draft") == ["seed", "draft 0"]


async def test_the_iteration_note_is_not_expanded() -> None:
    played = await play(_drafts(max_iterations=2, inject_feedback=True), "{{loop.index}} {{input}}")

    assert "{{loop.index}} {{input}}" in played.model.prompts("draft")[1]


async def test_a_long_iteration_input_is_previewed_truncated() -> None:
    played = await play(_drafts(max_iterations=2), by_node(draft=["y" * 100_000, "z"]))

    first, second = played.of(LoopIterationStarted)
    assert first.input_preview == "seed"
    assert second.input_preview.startswith("yyy")
    assert len(second.input_preview) < 2_000


async def test_a_disabled_model_node_does_not_pass_the_note_to_the_next() -> None:
    workflow = around(
        off(llm("plan")),
        llm("draft"),
        edges="loop -> plan -> draft -> exit",
        max_iterations=2,
        inject_feedback=True,
    )

    played = await play(workflow, numbered)

    assert all("2" in prompt for prompt in played.model.prompts("draft"))
