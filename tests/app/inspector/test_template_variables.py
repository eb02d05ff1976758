"""Which variables a text may use."""

from __future__ import annotations

import pytest

from app.inspector.template_variables import LOOP_HELP, RECORD_HELP, Variable, named_text, variable_for, variables_at
from engine.document.builder import Builder
from engine.document.model import Workflow
from engine.document.operations import SetConfig
from engine.nodes.node_registry import builtin_registry
from engine.nodes.spec import TextKind
from engine.plan.structure import analyse
from engine.plan.validation import LOOP_MEMBERS, RECORD_MEMBERS, validate_structure
from tests.app.inspector.conftest import refine


def names(workflow: Workflow, node_id: str, field: str, kind: TextKind = TextKind.TEMPLATE) -> dict[str, Variable]:
    node = workflow.node(node_id)
    spec = builtin_registry().find(node.type)
    assert spec is not None
    text = named_text(spec, node.config, (field,), kind)
    return {name.text: name for name in variables_at(analyse(workflow), node, text)}


def nested() -> Workflow:
    flow = Builder()
    start = flow.add("input", id="start")
    outer = flow.add("loop", id="outer")
    inner = flow.add("loop", id="inner", title="Inner")
    work = flow.add("llm", id="work")
    inner_end, outer_end = (
        flow.add("exit", id="inner_end", loop="inner"),
        flow.add("exit", id="outer_end", loop="outer"),
    )
    result = flow.add("output", id="result")
    flow.connect(start["value"], outer["input"])
    flow.connect(outer["body"], inner["input"])
    flow.connect(inner["body"], work["input"])
    flow.connect(work["output"], inner_end["input"])
    flow.connect(inner_end["output"], outer_end["input"])
    flow.connect(outer_end["output"], result["value"])
    return flow.build()


def test_help_covers_every_loop_variable() -> None:
    assert {*LOOP_HELP, "last", "parent"} == LOOP_MEMBERS
    assert (*RECORD_HELP, "nodes") == RECORD_MEMBERS


def test_ports_come_first_with_the_titles_of_their_sources() -> None:
    found = names(refine(), "merge", "template")
    assert list(found)[:2] == ["draft", "critique"]
    assert found["draft"].help == "From Draft."
    assert found["loop.last.critique"].help == "Output of Critique in the previous iteration."
    assert "loop.parent.index" not in found


def test_unconnected_port_is_marked() -> None:
    flow, _ = SetConfig(("template",), {"merge": "{{nobody}}"}).apply(refine())
    found = names(flow, "merge", "template")
    assert not found["nobody"].connected
    assert found["draft"].connected, "its edge is there, though the text names it no more"


def test_history_records_offer_the_output_of_each_node() -> None:
    found = names(refine(), "merge", "template")
    assert found["loop.history[0].nodes.critique"].help == "Output of Critique in the first iteration."
    assert found["loop.history[0].result"].help == "Result of the first iteration."
    assert "loop.parent.history[0].nodes.inner" in names(nested(), "work", "prompt")
    assert "loop.history[0].nodes.draft" in names(refine(), "loop", "score", TextKind.EXPRESSION)


def test_no_loop_variables_outside_a_loop() -> None:
    assert list(names(refine(), "text", "name")) == ["value"]


def test_nested_loop_offers_its_parent() -> None:
    found = names(nested(), "work", "prompt")
    assert "loop.parent.iteration" in found
    assert "loop.parent.last.inner" in found
    assert "loop.parent.parent.index" not in found


def test_loop_expression_knows_the_ended_iteration() -> None:
    found = names(refine(), "loop", "score", TextKind.EXPRESSION)
    assert list(found)[:4] == ["output", "similarity", "cost_usd", "elapsed_s"]
    assert found["nodes.draft"].help == "Output of Draft in this iteration."
    assert "input" not in found
    assert "input" in names(refine(), "loop", "condition", TextKind.EXPRESSION)


@pytest.mark.parametrize(
    ("workflow", "node_id", "field", "kind"),
    [
        (refine(), "draft", "prompt", TextKind.TEMPLATE),
        (refine(), "merge", "template", TextKind.TEMPLATE),
        (refine(), "loop", "score", TextKind.EXPRESSION),
        (refine(), "loop", "condition", TextKind.EXPRESSION),
        (nested(), "work", "system", TextKind.TEMPLATE),
    ],
)
def test_every_offered_variable_passes_the_plan_check(
    workflow: Workflow, node_id: str, field: str, kind: TextKind
) -> None:
    for text in names(workflow, node_id, field, kind):
        before = workflow.node(node_id).config.get(field, "")  # its names keep the node in its loop
        written = f"{before} {{{{{text}}}}}" if kind is TextKind.TEMPLATE else f"{text} == {text}"
        flow, _ = SetConfig((field,), {node_id: written}).apply(workflow)
        codes = {problem.code for problem in validate_structure(analyse(flow)) if problem.field == field}
        assert "unknown-name" not in codes, text


def test_path_is_matched_by_its_first_part() -> None:
    known = [
        Variable(("draft",), ""),
        Variable(("loop", "index"), "", is_leaf=True),
        Variable(("loop", "last", "a"), ""),
    ]
    assert variable_for(("draft", "title"), known) is known[0]
    assert variable_for(("loop", "index"), known) is known[1]
    assert variable_for(("loop", "index", "x"), known) is None
    assert variable_for(("loop", "last"), known) is None
    assert variable_for(("loop", "last", "b"), known) is None


def test_invalid_config_offers_the_default_variables() -> None:
    spec = builtin_registry().find("llm")
    assert spec is not None
    text = named_text(spec, {"temperature": "hot"}, ("prompt",), TextKind.TEMPLATE)
    assert (text.ports, text.namespaces) == (True, frozenset({"loop"}))
