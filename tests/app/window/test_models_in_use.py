from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.runs import run_status
from app.runs.run_status import ModelsInUse, models_in_use
from engine.document.model import Node, Workflow
from tests.engine.document.strategies import examples

CONFIG_KEYS = ["model", "mode", "fallback_models", "judge"]
CONFIGS = st.dictionaries(
    st.sampled_from(CONFIG_KEYS), st.sampled_from(["", "a", "b", "model", "rules", 3, [], ["c"], {"criteria": "Good?"}])
)


def node(node_type: str, config: dict[str, Any]) -> Node:
    return Node(id="n", type=node_type, config=config)


NODES = st.builds(
    node,
    st.sampled_from(["llm", "agent", "router", "transform", "loop"]),
    CONFIGS,
)


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
    assert models_in_use(Workflow(nodes=tuple(nodes)), "usual") == ("second", "usual", "first")
    assert models_in_use(Workflow(nodes=tuple(nodes), settings={"model": "own"}), "usual") == ("second", "own", "first")
    assert models_in_use(Workflow(), "usual") == ("usual",)


def test_fallback_models_count() -> None:
    nodes = (
        Node(id="a", type="llm", config={"model": "first", "fallback_models": ["second", "third"]}),
        Node(id="b", type="agent", config={"fallback_models": ["second"]}),
        Node(id="c", type="transform", config={"fallback_models": ["none"]}),
        Node(id="d", type="llm", config={"model": "invalid", "fallback_models": "invalid"}),
    )
    assert models_in_use(Workflow(nodes=nodes), "usual") == ("first", "second", "third", "usual")


def test_the_judge_of_a_loop_has_its_own_model() -> None:
    judge = {"criteria": "Short?", "model": "recorded:abc", "fallback_models": ["second"]}
    nodes = (
        Node(id="a", type="llm", config={"model": "first"}),
        Node(id="b", type="loop", config={"judge": judge}),
        Node(id="c", type="loop", config={"judge": {"model": "unused"}}),
        Node(id="d", type="loop", config={"judge": "odd"}),
    )
    assert models_in_use(Workflow(nodes=nodes), "usual") == ("first", "recorded:abc", "second")


@examples(200)
@given(st.lists(st.tuples(st.lists(NODES, max_size=4), st.sampled_from(["", "own"]), st.sampled_from(["x", "a"]))))
def test_cached_models_equal_newly_computed_ones(asked: list[tuple[list[Node], str, str]]) -> None:
    models = ModelsInUse()
    for nodes, own, usual in asked:
        workflow = Workflow(nodes=tuple(nodes), settings={"model": own})
        assert models.of(workflow, usual) == models_in_use(workflow, usual)


def test_a_keystroke_examines_only_the_node_that_it_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = tuple(Node(id=f"n{at}", type="llm", config={"model": "a"}) for at in range(100))
    workflow, models = Workflow(nodes=nodes), ModelsInUse()
    assert models.of(workflow, "usual") == ("a",)
    examined: list[str] = []
    real = run_status._models_of_node
    monkeypatch.setattr(run_status, "_models_of_node", lambda node: examined.append(node.id) or real(node))
    typed = nodes[50].model_copy(update={"config": {"model": "a", "prompt": "x"}})
    assert models.of(workflow.model_copy(update={"nodes": (*nodes[:50], typed, *nodes[51:])}), "usual") == ("a",)
    assert examined == ["n50"]
