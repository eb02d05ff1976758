"""A document with more iterations than the cap: every view of the run shows the clamped count."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.cli.document_commands import flowchart
from engine.events import LoopIterationStarted
from engine.exits import MAX_ITERATIONS_CAP, clamped, set_shown_cap
from engine.nodes.loop import SPEC, LoopConfig
from engine.store.exit_explanation import describe_conditions, loop_config
from engine.store.export_markdown import run_to_markdown
from engine.store.run_sections import state_of
from tests.engine.cli.kit import Program, drafts, refine, write
from tests.engine.semantics.documents import around, formula, llm
from tests.engine.semantics.kit import play
from tests.engine.store.memory_store import MemoryStore

ASKED = 500


def names_what_was_asked(text: str) -> bool:
    """Whether a text has the document's count, except to say that it was clamped."""
    return any(str(ASKED) in line and "is outside" not in line for line in text.splitlines())


@pytest.fixture(autouse=True)
def usual_cap() -> Iterator[None]:
    yield
    set_shown_cap(MAX_ITERATIONS_CAP)


def asking_for_too_many(**config: Any) -> Any:
    edges = "loop -> draft -> exit"
    return around(llm("draft", "{{loop.max_iterations}}"), edges=edges, max_iterations=ASKED, until="false", **config)


async def test_run_and_history_show_the_clamped_count() -> None:
    store, workflow = MemoryStore(), asking_for_too_many()

    played = await play(workflow, "x", store=store, max_iterations_cap=3)

    assert {event.total for event in played.of(LoopIterationStarted)} == {3}
    assert all(call.prompt.startswith("3\n") for call in played.model.calls)
    run_id = played.result.run_id
    state = state_of(store, run_id)
    config = loop_config(workflow, "loop", state.loops["loop"].cap)
    assert describe_conditions(config, state.loops["loop"].iterations, 1)[-1] == "iteration 2 of at most 3"
    page = "".join(run_to_markdown(store.find(run_id), store.document(run_id), state))
    assert "of at most 3" in page
    assert not names_what_was_asked(page)
    assert any("at most 3 iterations" in warning for warning in played.loop.warnings)


async def test_prompt_note_and_expressions_use_the_clamped_count() -> None:
    body = (llm("draft", "x"), formula("share", "string(loop.max_iterations) + input"))
    workflow = around(*body, edges="loop -> draft -> share -> exit", max_iterations=ASKED, inject_feedback=True)

    played = await play(workflow, "x", max_iterations_cap=2)

    assert played.out == "2x"
    assert all(str(ASKED) not in message.text for call in played.model.calls for message in call.request.messages)


def test_command_line_shows_the_clamped_count(program: Program, tmp_path: Path) -> None:
    script = write(tmp_path, drafts("One.", "Two.", "Three."), "script.json")
    file = write(tmp_path, refine(ASKED))

    ended = program("run", file, "-m", f"scripted:{script}", "--max-iterations-cap", "3")

    assert "3/3" in ended.out
    assert not names_what_was_asked(ended.out)
    run_id = next(run["run_id"] for run in program("runs", "--json").json["runs"])
    for more in ((), ("--iteration", "loop[1]")):
        shown = program("runs", "show", run_id, *more).out
        assert not names_what_was_asked(shown)
    assert "of at most 3" in program("runs", "show", run_id, "--iteration", "loop[1]").out


@pytest.mark.parametrize(("cap", "asked", "shown"), [(50, 500, 50), (120, 500, 120), (120, 100, 100), (50, 0, 1)])
def test_card_shows_the_clamped_count(cap: int, asked: int, shown: int) -> None:
    set_shown_cap(cap)

    assert SPEC.summary(LoopConfig(max_iterations=asked)) == f"at most {shown}"
    assert clamped(asked, cap) == shown


def test_flowchart_has_no_count_above_the_cap() -> None:
    assert str(ASKED) not in flowchart(asking_for_too_many())
