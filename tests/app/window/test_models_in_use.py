from __future__ import annotations

from typing import Any

from app.runs.run_status import models_in_use
from engine.document.model import Node, Workflow
from engine.plan.structure import analyse


def in_use(*nodes: Node, **settings: Any) -> tuple[str, ...]:
    """The models in use, with the default `usual`."""
    return models_in_use(analyse(Workflow(nodes=nodes, settings=settings)), "usual")


def test_models_are_in_document_order_with_the_default_for_nodes_without_one() -> None:
    nodes = [
        Node(id="a", type="llm", config={"model": "second"}),
        Node(id="b", type="transform", config={"model": "none"}),
        Node(id="c", type="agent"),
        Node(id="d", type="router", config={"mode": "expression", "model": "none"}),
        Node(id="e", type="router", config={"model": "first"}),
        Node(id="f", type="llm", config={"model": ["invalid"]}),
        Node(id="g", type="unknown", config={"model": "none"}),
    ]
    assert in_use(*nodes) == ("second", "usual", "first")
    assert in_use(*nodes, model="own") == ("second", "own", "first")
    assert in_use() == ("usual",)


def test_fallback_models_count() -> None:
    nodes = (
        Node(id="a", type="llm", config={"model": "first", "fallback_models": ["second", "third"]}),
        Node(id="b", type="agent", config={"fallback_models": ["second"]}),
        Node(id="c", type="transform", config={"fallback_models": ["none"]}),
        Node(id="d", type="llm", config={"model": "invalid", "fallback_models": "invalid"}),
    )
    assert in_use(*nodes) == ("first", "second", "third", "usual")


def test_the_judge_of_a_loop_has_its_own_model() -> None:
    judge = {"criteria": "Short?", "model": "recorded:abc", "fallback_models": ["second"]}
    nodes = (
        Node(id="a", type="llm", config={"model": "first"}),
        Node(id="b", type="loop", config={"judge": judge}),
        Node(id="c", type="loop", config={"judge": {"model": "unused"}}),
        Node(id="d", type="loop", config={"judge": "odd"}),
    )
    assert in_use(*nodes) == ("first", "recorded:abc", "second")


def test_models_of_subflows_count_and_those_of_nodes_that_call_none_do_not() -> None:
    inner = Workflow(nodes=(Node(id="in", type="llm", config={"model": "inside"}),)).to_json()
    nodes = (
        Node(id="a", type="llm", config={"model": "pinned"}, pinned={"output": "text"}),
        Node(id="b", type="llm", config={"model": "disabled"}, enabled=False),
        Node(id="c", type="subflow", config={"file": "inner.loop.json", "workflow": inner}),
    )
    assert in_use(*nodes) == ("inside",)
