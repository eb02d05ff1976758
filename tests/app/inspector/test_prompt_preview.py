"""Preview of a prompt with the values of a real run."""

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
def test_preview_shows_values_of_the_selected_iteration(ran: Bench, text: str, filled: str) -> None:
    assert preview(ran, text, loop=1) == filled


def test_history_records_contain_node_outputs(ran: Bench) -> None:
    before = preview(ran, "{{loop.last.draft}}", loop=1)
    assert preview(ran, "{{loop.history[0].nodes.draft}}", loop=1) == before != ""


def test_first_iteration_has_no_previous_values(ran: Bench) -> None:
    assert preview(ran, "[{{loop.previous}}][{{loop.last.draft}}]", loop=0) == "[][]"


def test_preview_defaults_to_the_latest_iteration(ran: Bench) -> None:
    assert preview(ran, "{{draft}}") == "three"


def test_nonexistent_iteration_falls_back_to_the_latest(ran: Bench) -> None:
    assert preview(ran, "{{draft}}", loop=9) == "three"


def test_node_that_did_not_run_has_no_values(ran: Bench) -> None:
    assert preview(ran, "{{input}}", node_id="unknown") == "—"
