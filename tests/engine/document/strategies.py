"""Hypothesis strategies of valid documents, with unknown keys and texts of every kind."""

from __future__ import annotations

from functools import cache
from typing import Any

from hypothesis import strategies as st

from engine.document.model import VERSION, Edge, Node, Workflow

NODE_FIELDS = frozenset({"id", "type", "title", "config", "enabled", "pinned"})
EDGE_FIELDS = frozenset({"from", "to"})
WORKFLOW_FIELDS = frozenset({"format", "version", "name", "description", "settings", "nodes", "edges", "layout"})
NODE_TYPES = ("input", "output", "llm", "router", "transform", "loop", "exit", "not_yet_invented")


def _joined_pairs(text: str) -> str:
    # Two halves of a surrogate pair side by side are one character as soon as they have been through JSON.
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


@cache
def keys() -> st.SearchStrategy[str]:
    """Keys of JSON objects: any text that UTF-8 can hold."""
    return st.text(st.characters(exclude_categories=["Cs"]), max_size=5)


@cache
def texts() -> st.SearchStrategy[str]:
    """Texts as a model may write them, lone surrogates and control characters included."""
    return st.text(st.characters(exclude_categories=[]), max_size=10).map(_joined_pairs)


@cache
def values() -> st.SearchStrategy[Any]:
    """JSON values that a document may hold."""
    plain = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts()
    return st.recursive(
        plain, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys(), inner, max_size=2), max_leaves=4
    )


@cache
def ids() -> st.SearchStrategy[str]:
    """Ids of nodes."""
    return st.builds(str.__add__, st.sampled_from("abz"), st.text("ab_7", max_size=4))


@cache
def configs(names: tuple[str, ...] = ()) -> st.SearchStrategy[dict[str, Any]]:
    """Configs of nodes, some of which name other nodes in texts and fields."""
    free = st.dictionaries(keys(), values(), max_size=2)
    if not names:
        return free
    name = st.sampled_from(names)
    naming = st.fixed_dictionaries(
        {},
        optional={
            "loop": name,
            "evaluator": name,
            "prompt": name.map(lambda chosen: f"Look at {{{{loop.last.{chosen}}}}} and \\{{{{nodes.{chosen}}}}}."),
            "until": name.map(lambda chosen: f"nodes.{chosen}.score > 3 && loop.parent.last.{chosen} != null"),
        },
    )
    return st.builds(lambda first, second: {**first, **second}, free, naming)


@cache
def _unknown(known: frozenset[str]) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(keys().filter(lambda key: key not in known), values(), max_size=2)


@st.composite
def workflows(draw: st.DrawFn, max_nodes: int = 5) -> Workflow:
    """Well-formed documents: ids are unique and every edge joins two nodes, whatever they mean."""
    names = tuple(draw(st.lists(ids(), unique=True, max_size=max_nodes)))
    nodes = [
        Node.model_validate(
            {
                "id": name,
                "type": draw(st.sampled_from(NODE_TYPES)),
                "title": draw(texts()),
                "config": draw(configs(names)),
                "enabled": draw(st.booleans()),
                "pinned": draw(st.dictionaries(keys(), values(), max_size=2)),
                **draw(_unknown(NODE_FIELDS)),
            }
        )
        for name in names
    ]
    ends = st.builds(lambda name, port: f"{name}.{port}", st.sampled_from(names), ids()) if names else st.nothing()
    pairs = draw(st.lists(st.tuples(ends, ends), unique=True, max_size=6)) if names else []
    edges = [
        Edge.model_validate({"from": start, "to": end, **draw(_unknown(EDGE_FIELDS))}, by_alias=True, by_name=False)
        for start, end in pairs
    ]
    places = {
        name: draw(st.fixed_dictionaries({"x": st.floats(-1e4, 1e4), "y": st.integers(-99, 99)})) for name in names
    }
    return Workflow.model_validate(
        {
            "version": draw(st.integers(VERSION, VERSION + 2)),
            "name": draw(texts()),
            "description": draw(texts()),
            "settings": draw(st.dictionaries(keys(), values(), max_size=2)),
            "nodes": nodes,
            "edges": edges,
            "layout": {**draw(st.dictionaries(keys(), values(), max_size=2)), "nodes": places},
            **draw(_unknown(WORKFLOW_FIELDS)),
        }
    )
