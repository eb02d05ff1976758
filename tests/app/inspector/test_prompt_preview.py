"""Preview of a prompt with the values of a real run."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.inspector.template_variables import PreviewRun, render_preview
from engine.document.builder import Builder
from engine.document.model import Node
from engine.document.operations import AddNodes, Batch, Connect, SetConfig
from engine.runner.options import RunOptions
from tests.app.inspector.conftest import Bench, OpenInspector, refine


@pytest.fixture
def ran(open_inspector: OpenInspector, refine_script: Path) -> Bench:
    bench = open_inspector(refine())
    bench.run(refine_script, task="a note")
    return bench


def preview(bench: Bench, text: str, node_id: str = "merge", **chosen: int) -> str:
    session = bench.session
    view_model, workflow, parents = session.shown.view_model, session.shown.workflow, session.structure_now.parent
    assert view_model is not None
    assert workflow is not None
    return render_preview(text, node_id, PreviewRun(view_model, workflow, chosen, session.registry, parents))


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


def test_node_that_was_added_after_the_run_has_the_values_of_its_loop(ran: Bench) -> None:
    ran.session.do(AddNodes((Node(id="new", type="llm"),)))
    ran.session.do(
        Batch("Connect", (Connect.between("draft.output", "new.input"), Connect.between("new.output", "end.input")))
    )

    assert preview(ran, "{{loop.iteration}} {{loop.previous}} {{input}}", node_id="new", loop=1) == "2 one —"


def test_criteria_of_a_judge_have_the_values_of_the_iteration_that_ended(ran: Bench) -> None:
    text = "{{loop.iteration}} {{loop.previous}} {{output}} {{nodes.critique}}"

    assert preview(ran, text, node_id="loop", loop=1) == "2 one two shorter"


def test_criteria_of_a_judge_have_the_recorded_similarity(open_inspector: OpenInspector, refine_script: Path) -> None:
    bench = open_inspector(refine())
    bench.session.do(SetConfig(("stop_when",), {"loop": [{"condition": "stable_output"}]}))
    bench.run(refine_script, task="a note")
    assert bench.session.shown.view_model is not None
    records = bench.session.shown.view_model.loop("loop", {}).iterations
    assert records[1].similarity is not None

    assert preview(bench, "{{similarity}}", node_id="loop", loop=1) == f"{records[1].similarity}"


def test_iterator_in_a_loop_has_an_item_and_the_values_of_the_loop(open_inspector: OpenInspector) -> None:
    flow = Builder("Items")
    task, text = flow.add("input", id="task", name="task"), flow.add("output", id="text", name="text")
    loop, exit_ = flow.add("loop", id="loop", max_iterations=3), flow.add("exit", id="exit", loop="loop")
    each, all_ = flow.add("iterator", id="each"), flow.add("aggregator", id="all", iterator="each")
    step = flow.add("transform", id="step", template="{{input}}!")
    for source, target in (
        (task["value"], loop["input"]),
        (loop["body"], each["items"]),
        (each["item"], step["input"]),
        (step["output"], all_["input"]),
        (all_["output"], exit_["input"]),
        (exit_["output"], text["value"]),
    ):
        flow.connect(source, target)
    bench = open_inspector(flow.build())
    with bench.qtbot.waitSignal(bench.session.shown.ended):
        bench.session.start_run({"task": ["a", "b"]}, RunOptions())

    shown = preview(bench, "{{item}} {{index}} {{loop.iteration}}", node_id="step", loop=1, each=0)

    assert shown == "a! 0 2"
