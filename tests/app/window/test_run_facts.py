from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

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


def test_the_models_are_told_in_the_order_of_the_document_and_the_usual_one_where_a_node_names_none() -> None:
    nodes = [
        Node(id="a", type="llm", config={"model": "second"}),
        Node(id="b", type="transform", config={"model": "none"}),
        Node(id="c", type="agent"),
        Node(id="d", type="router", config={"mode": "expression", "model": "none"}),
        Node(id="e", type="router", config={"model": "first"}),
        Node(id="f", type="llm", config={"model": ["odd"]}),
    ]
    assert models_in_use(Workflow(nodes=tuple(nodes)), "usual") == ("second", "usual", "first")
    assert models_in_use(Workflow(nodes=tuple(nodes), settings={"model": "own"}), "usual") == ("second", "own", "first")
    assert models_in_use(Workflow(), "usual") == ("usual",)


def test_fallbacks_are_models_of_the_document_too() -> None:
    nodes = (
        Node(id="a", type="llm", config={"model": "first", "fallback_models": ["second", "third"]}),
        Node(id="b", type="agent", config={"fallback_models": ["second", 3]}),
        Node(id="c", type="transform", config={"fallback_models": ["none"]}),
        Node(id="d", type="llm", config={"fallback_models": "odd"}),
    )
    assert models_in_use(Workflow(nodes=nodes), "usual") == ("first", "second", "third", "usual")


def test_the_judge_of_a_loop_has_a_model_of_its_own() -> None:
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
def test_who_was_asked_before_tells_the_same_as_who_was_not(asked: list[tuple[list[Node], str, str]]) -> None:
    models = ModelsInUse()
    for nodes, own, usual in asked:
        workflow = Workflow(nodes=tuple(nodes), settings={"model": own})
        assert models.of(workflow, usual) == models_in_use(workflow, usual)


def test_a_letter_typed_into_a_node_looks_at_that_node_alone() -> None:
    class Watched(dict[str, object]):
        looks = 0

        def get(self, key: str, default: object = None) -> object:
            Watched.looks += key == "model"
            return super().get(key, default)

    nodes = tuple(Node.model_construct(id=f"n{at}", type="llm", config=Watched(model="a")) for at in range(100))
    workflow, models = Workflow(nodes=nodes), ModelsInUse()
    assert models.of(workflow, "usual") == ("a",)
    Watched.looks = 0

    typed = nodes[50].model_copy(update={"config": Watched(model="a", prompt="x")})
    assert models.of(workflow.model_copy(update={"nodes": (*nodes[:50], typed, *nodes[51:])}), "usual") == ("a",)

    assert Watched.looks == 2
