"""What people call nodes: titles, else the labels of types, numbered if there are several."""

from __future__ import annotations

import pytest

from engine.document.builder import Builder
from engine.document.model import Workflow
from engine.errors import EngineError
from engine.nodes.node_names import find_node, node_name, node_names
from engine.nodes.node_registry import builtin_registry

LABEL = str(getattr(builtin_registry().find("llm"), "title", ""))


def named() -> Workflow:
    flow = Builder("Names")
    flow.add("llm", id="a", title="Draft")
    flow.add("llm", id="b")
    flow.add("llm", id="c", title=f"{LABEL} 2")
    flow.add("llm", id="d")
    flow.add("llm", id="e", title="Draft")
    flow.add("output", id="f")
    return flow.build()


def test_untitled_nodes_have_the_label_of_their_type_and_a_number_if_it_is_taken() -> None:
    names = node_names(named())
    assert [names[node] for node in "abcdef"] == ["Draft", LABEL, f"{LABEL} 2", f"{LABEL} 3", "Draft", "Output"]
    assert [node_name(named(), node) for node in ("d", "nowhere")] == [f"{LABEL} 3", "nowhere"]


@pytest.mark.parametrize(("text", "node"), [("a", "a"), (f"{LABEL} 3", "d"), ("output", "f"), (LABEL.upper(), "b")])
def test_a_node_is_found_by_its_id_or_its_name(text: str, node: str) -> None:
    assert find_node(named(), text) == node


def test_an_ambiguous_name_lists_the_ids() -> None:
    with pytest.raises(EngineError) as caught:
        find_node(named(), "Draft")
    assert '"Draft"' in caught.value.message
    assert "a, e" in caught.value.remedy


def test_an_unknown_name_lists_the_nodes_and_suggests_one() -> None:
    with pytest.raises(EngineError) as caught:
        find_node(named(), "Drift")
    assert '"Drift"' in caught.value.message
    assert '"Draft"' in caught.value.remedy
    assert "f (Output)" in caught.value.remedy


def test_names_are_found_whatever_their_spaces_and_form_of_unicode() -> None:
    flow = Builder("Names")
    flow.add("llm", id="a", title=" U\u0308berblick\n1 ")
    flow.add("llm", id="b", title=" ")
    assert find_node(flow.build(), "überblick 1") == "a"
    with pytest.raises(EngineError):
        find_node(flow.build(), "")


def test_suggested_titles_are_escaped() -> None:
    flow = Builder("Names")
    flow.add("llm", id="a", title="The first draft\x1b[31m\n")
    with pytest.raises(EngineError) as caught:
        find_node(flow.build(), "The first draft x")
    assert "Did you mean" in caught.value.remedy
    assert not {"\x1b", "\n"} & set(caught.value.remedy)


def test_of_many_nodes_some_are_listed() -> None:
    flow = Builder("Names")
    for index in range(1_240):
        flow.add("llm", id=f"n{index}")
    with pytest.raises(EngineError) as caught:
        find_node(flow.build(), "zz")
    assert "1,200 more" in caught.value.remedy


def test_names_are_one_line() -> None:
    flow = Builder("Names")
    flow.add("llm", id="a", title=" First\n draft ")
    flow.add("llm", id="b", title=" \n")
    assert list(node_names(flow.build()).values()) == ["First draft", LABEL]
    assert [node_name(flow.build(), node) for node in "ab"] == ["First draft", LABEL]
