from __future__ import annotations

from typing import Any

import pytest

from app.window.problems_panel import quick_fixes
from engine.document.builder import Builder
from engine.document.files import loads
from engine.document.model import Edge, Node, Workflow
from engine.plan.structure import analyse
from engine.plan.validation import validate_structure


def looped(**loop: Any) -> Builder:
    flow = Builder("Looped")
    flow.add("input", id="text", default="x")
    flow.add("loop", id="loop", config=loop)
    flow.add("transform", id="step", template="{{input}}!")
    flow.add("exit", id="exit", config={"loop": "loop"})
    flow.add("output", id="out")
    for source, target in (
        ("text.value", "loop.input"),
        ("loop.body", "step.input"),
        ("step.output", "exit.input"),
        ("exit.output", "out.value"),
    ):
        flow.connect(source, target)
    return flow


def codes(workflow: Workflow) -> list[str]:
    return [problem.code for problem in validate_structure(analyse(workflow))]


def fixed(workflow: Workflow, code: str, choice: int = 0) -> tuple[str, Workflow]:
    """The title of a fix for the first problem of that code, and the document after it."""
    structure = analyse(workflow)
    problem = next(problem for problem in validate_structure(structure) if problem.code == code)
    fix = quick_fixes(problem, structure)[choice]
    after, back = fix.operation.apply(workflow)
    assert back.apply(after)[0] == workflow
    return fix.title, after


def without(workflow: Workflow, node: str) -> Workflow:
    from engine.document.operations import RemoveNodes

    return RemoveNodes((node,)).apply(workflow)[0]


def with_edge(workflow: Workflow, source: str, target: str) -> Workflow:
    edge = Edge.model_validate({"from": source, "to": target}, by_alias=True, by_name=False)
    return workflow.model_copy(update={"edges": (*workflow.edges, edge)})


def with_config(workflow: Workflow, node: str, **config: Any) -> Workflow:
    nodes = tuple(
        there.model_copy(update={"config": {**there.config, **config}}) if there.id == node else there
        for there in workflow.nodes
    )
    return workflow.model_copy(update={"nodes": nodes})


def test_missing_exit_is_added_beside_its_loop() -> None:
    workflow = without(looped().build(), "exit").model_copy(update={"layout": {"nodes": {"loop": {"x": 10, "y": 20}}}})

    title, after = fixed(workflow, "missing-exit")

    assert title == "Add the missing exit"
    assert after.node("exit").config == {"loop": "loop"}
    assert after.layout["nodes"]["exit"] == {"x": 570.0, "y": 20}
    assert "missing-exit" not in codes(after)


def test_missing_exit_is_added_without_a_layout() -> None:
    _, after = fixed(without(looped().build(), "exit"), "missing-exit")

    assert "exit" in after.nodes_by_id
    assert after.layout == {}


def test_exit_without_a_loop_is_removed() -> None:
    workflow = with_config(without(looped().build(), "loop"), "exit", loop="")

    title, after = fixed(workflow, "exit-without-loop")

    assert title == "Remove the exit"
    assert "exit" not in after.nodes_by_id


def test_exit_without_a_loop_name_gets_the_open_loop() -> None:
    title, after = fixed(with_config(looped().build(), "exit", loop="gone"), "unknown-loop")

    assert title == "End “Loop”"
    assert after.node("exit").config == {"loop": "loop"}


@pytest.mark.parametrize(
    ("source", "target", "code"),
    [
        ("ghost.output", "step.input", "unknown-node"),
        ("text.nothing", "step.input", "unknown-port"),
        ("step.output", "exit.input", "duplicate-edge"),
        ("step.output", "out.value", "edge-out-of-body"),
        ("loop.count", "step.more", "unknown-port"),
        ("loop.output", "exit.input", "loop-result-in-body"),
    ],
)
def test_invalid_edge_is_removed(source: str, target: str, code: str) -> None:
    workflow = with_edge(looped().build(), source, target)

    title, after = fixed(workflow, code)

    assert title == "Remove edge"
    assert code not in codes(after)
    assert len(after.edges) == len(workflow.edges) - 1


def test_duplicate_id_is_renamed() -> None:
    workflow = looped().build()
    doubled = workflow.model_copy(update={"nodes": (*workflow.nodes, Node(id="out", type="output"))})

    _, after = fixed(doubled, "duplicate-id")

    assert "duplicate-id" not in codes(after)
    assert [node.id for node in after.nodes if node.type == "output"] == ["out_2", "out"]


def test_invalid_id_is_renamed() -> None:
    text = '{"format": "loopwright.workflow", "version": 1, "nodes": [{"id": "Über x", "type": "output"}], "edges": []}'

    _, after = fixed(loads(text), "bad-id")

    assert after.nodes[0].id == "uber_x"


def test_duplicate_input_name_is_renamed() -> None:
    flow = looped()
    flow.add("input", id="other", name="text", default="y")

    title, after = fixed(flow.build(), "duplicate-input")

    assert title == "Rename to “text_2”"
    assert after.node("other").config["name"] == "text_2"


def test_unknown_settings_are_removed() -> None:
    workflow = with_config(looped().build(), "step", colour="red")
    _, after = fixed(workflow, "unknown-config-key")
    assert "colour" not in after.node("step").config

    workflow = looped().build().model_copy(update={"settings": {"colour": "red"}})
    _, after = fixed(workflow, "unknown-key")
    assert after.settings == {}


@pytest.mark.parametrize(
    ("config", "code"),
    [
        ({"max_iterations": "many"}, "bad-config"),
        ({"on_max_iterations": "return_best", "exit_condition": "stable_output"}, "no-score"),
        ({"on_max_iterations": "fail"}, "no-effect"),
    ],
)
def test_invalid_node_setting_is_reset(config: dict[str, Any], code: str) -> None:
    title, after = fixed(looped(**config).build(), code)

    assert title == "Use default"
    assert code not in codes(after)


def test_invalid_workflow_setting_is_reset() -> None:
    workflow = looped().build().model_copy(update={"settings": {"budget_usd": -1}})

    _, after = fixed(workflow, "bad-setting")

    assert after.settings == {}


@pytest.mark.parametrize(("wish", "given"), [(900, 50), (0, 1)])
def test_max_iterations_is_clamped(wish: int, given: int) -> None:
    title, after = fixed(looped(max_iterations=wish).build(), "iterations-clamped")

    assert title == f"Use {given}"
    assert after.node("loop").config["max_iterations"] == given


def judged() -> Builder:
    """A loop with two routers that could both control it."""
    flow = looped(exit_condition="evaluator")
    for name in ("first", "second"):
        flow.add("router", id=name, criteria="Good?")
        flow.connect("step.output", f"{name}.input")
        flow.connect(f"{name}.done", "exit.input")
    return flow


def test_each_possible_evaluator_is_offered() -> None:
    assert fixed(judged().build(), "several-evaluators", 0)[0] == "Use “Router”"
    title, after = fixed(judged().build(), "several-evaluators", 1)

    assert title == "Use “Router 2”"
    assert after.node("loop").config["evaluator"] == "second"
    assert "several-evaluators" not in codes(after)


def test_each_feedback_end_is_offered() -> None:
    flow = looped(exit_condition="evaluator")
    flow.add("router", id="check", criteria="Good?")
    flow.connect("step.output", "check.input")
    flow.connect("check.done", "exit.input")
    for name in ("shorter", "longer"):
        flow.add("transform", id=name, template="{{input}}?")
        flow.connect("check.continue", f"{name}.input")

    title, after = fixed(flow.build(), "two-feedback-ends", 1)

    assert title == "Feed back “Transform 3”"
    assert "two-feedback-ends" not in codes(after)


def test_missing_output_is_connected_to_the_only_end() -> None:
    flow = Builder()
    flow.add("input", id="text", default="x")
    flow.add("transform", id="step", template="{{input}}")
    flow.connect("text.value", "step.input")
    workflow = flow.build().model_copy(update={"layout": {"nodes": {"step": {"x": 0, "y": 5}}}})

    _, after = fixed(workflow, "no-output")

    assert "step.output -> result.value" in [str(edge) for edge in after.edges]
    assert after.layout["nodes"]["result"] == {"x": 280.0, "y": 5}
    assert codes(after) == []


def test_missing_output_is_unconnected_with_several_ends() -> None:
    flow = Builder()
    flow.add("input", id="one", default="x")
    flow.add("input", id="two", default="x")

    _, after = fixed(flow.build(), "no-output")

    assert after.edges == ()


def test_problems_without_an_obvious_solution_have_no_fix() -> None:
    structure = analyse(Workflow())

    assert [quick_fixes(problem, structure) for problem in validate_structure(structure)] == [()]
