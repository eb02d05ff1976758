from __future__ import annotations

from dataclasses import replace

import pytest

from engine import validate
from engine.document.model import Node, Workflow
from engine.nodes.node_registry import Registry, builtin_registry


def test_built_in_types_are_in_the_order_of_the_palette() -> None:
    types = [spec.type for spec in builtin_registry()]

    plain = ["input", "output", "llm", "agent", "router", "transform", "validator", "approval", "tool"]
    assert types == [*plain, "loop", "exit", "iterator", "aggregator", "subflow"]


def test_a_type_is_found_by_its_name_alone() -> None:
    registry = builtin_registry()

    assert {spec.type: registry.find(spec.type) is spec for spec in registry} == dict.fromkeys(
        [spec.type for spec in registry], True
    )
    assert registry.find("LLM") is None
    assert registry.find("") is None


@pytest.mark.parametrize(
    ("written", "meant"),
    [("lop", "loop"), ("rooter", "router"), ("LLM", "llm"), ("llms", "llm"), ("zzzzzz", None), ("", None)],
)
def test_a_problem_suggests_the_type_with_the_most_similar_name(written: str, meant: str | None) -> None:
    (problem,) = (one for one in validate(Workflow(nodes=(Node(id="n", type=written),))) if one.code == "unknown-type")
    assert problem.remedy.startswith(f'Did you mean "{meant}"? ' if meant else "If ")


def test_added_types_follow_and_replace_types_of_the_same_name() -> None:
    built_in = builtin_registry()
    found = built_in.find("transform")
    assert found is not None
    other, better = replace(found, type="shout"), replace(found, title="Better")

    extended = built_in.with_types([other, better])

    assert [spec.type for spec in extended] == [*(spec.type for spec in built_in), "shout"]
    assert extended.find("shout") is other
    assert extended.find("transform") is better
    assert built_in.find("transform") is found


def test_a_registry_may_be_empty() -> None:
    assert list(Registry([])) == []
