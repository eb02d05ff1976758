"""A prompt filled in from a run that really took place."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.inspector.template_variables import PreviewRun, render_preview
from tests.app.inspector.conftest import Bench, OpenInspector, refine


@pytest.fixture
def ran(open_inspector: OpenInspector, refine_script: Path) -> Bench:
    bench = open_inspector(refine())
    bench.run(refine_script, task="a note")
    return bench


def preview(bench: Bench, text: str, node_id: str = "merge", **chosen: int) -> str:
    session = bench.session
    assert session.shown.view_model is not None
    assert session.shown.workflow is not None
    return render_preview(
        text, node_id, PreviewRun(session.shown.view_model, session.shown.workflow, chosen, session.registry)
    )


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("{{draft}}", "two"),
        ("{{loop.index}} {{loop.iteration}} {{loop.max_iterations}}", "1 2 3"),
        ("{{loop.input}}", "a note"),
        ("{{loop.previous}}", "one"),
        ("{{loop.last.critique}}", "longer"),
        ("{{loop.last.nobody}}", "—"),
        ("{{size(loop.history)}} {{loop.history[0].result}}", "1 one"),
        ("{{loop.parent.index}}", "—"),
        ("{{loop.nothing}}", "—"),
        ("{{draft + }}", "—"),
        ("{{draft", "{{draft"),
        (r"\{{draft}}", "{{draft}}"),
        ("no holes", "no holes"),
    ],
)
def test_each_name_has_its_value_of_the_chosen_iteration(ran: Bench, text: str, filled: str) -> None:
    assert preview(ran, text, loop=1) == filled


def test_the_records_of_earlier_iterations_have_the_outputs_of_their_nodes(ran: Bench) -> None:
    before = preview(ran, "{{loop.last.draft}}", loop=1)
    assert preview(ran, "{{loop.history[0].nodes.draft}}", loop=1) == before != ""


def test_in_the_first_iteration_there_is_nothing_before_it(ran: Bench) -> None:
    assert preview(ran, "[{{loop.previous}}][{{loop.last.draft}}]", loop=0) == "[][]"


def test_without_a_choice_the_latest_iteration_counts(ran: Bench) -> None:
    assert preview(ran, "{{draft}}") == "three"


def test_of_an_iteration_that_never_was_the_latest_counts(ran: Bench) -> None:
    assert preview(ran, "{{draft}}", loop=9) == "three"


def test_a_node_that_did_not_run_has_no_values(ran: Bench) -> None:
    assert preview(ran, "{{input}}", node_id="unknown") == "—"
