"""Strategies for valid settings of node types, made from their declarations."""

from __future__ import annotations

from typing import Any, get_args

from hypothesis import strategies as st
from pydantic import ValidationError

from engine.nodes.router import Branch
from engine.nodes.spec import AnySpec, NodeConfig

TEXTS = (
    "",
    " ",
    "plain words",
    "two\nlines",
    "{{input}}",
    "{{ input.a.b }} and {{other}}",
    "{{loop.last.draft}}{{state.x}}{{nodes.a}}",
    "{{",
    "{{ 1 + }}",
    r"\{{literal}}",
    "{{'{{'}}",
    "size(input) < 500",
    "input",
    "else",
    "true",
    "1 / 0",
    "((((",
    "loop",
    "search_files",
    "http_get",
    "no_such_tool",
    "error",
    "reason",
    "<b>{input}</b>",
)

_json = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(-2, 2) | st.sampled_from(TEXTS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "type", "path"]), inner),
    max_leaves=5,
)
_schemas = st.sampled_from(
    [{}, {"type": "object"}, {"type": 5}, {"$ref": "#"}, {"$ref": "http://x.example/y"}, {"pattern": "("}]
)
_branches = st.lists(
    st.builds(
        lambda name, when, description: {"name": name, "when": when, "description": description},
        st.sampled_from(["done", "continue", "a", "b_2", "error", "reason"]),
        st.sampled_from(TEXTS),
        st.sampled_from(TEXTS),
    ),
    min_size=1,
    max_size=4,
)
_numbers = st.sampled_from([0, 1, 2, 3, 20, 50, 10**6, 0.5, 1.0, 0.25])


def _values(annotation: object) -> st.SearchStrategy[Any]:
    """Values for a field of a type; some are invalid, and the caller discards them."""
    literal = [value for value in get_args(annotation) if isinstance(value, str)]
    if literal:
        return st.sampled_from(literal)
    if annotation == list[Branch]:
        return _branches
    members = getattr(annotation, "__members__", None)
    if members:
        return st.sampled_from([str(member) for member in members.values()])
    return st.sampled_from(TEXTS) | _numbers | st.booleans() | _schemas | _json


@st.composite
def configs(draw: st.DrawFn, spec: AnySpec) -> NodeConfig:
    """Valid settings of a node type, with each field drawn or left at its default."""
    chosen: dict[str, Any] = {}
    for name, field in spec.config.model_fields.items():
        if draw(st.booleans()):
            value = draw(_values(field.annotation))
            try:
                spec.config.model_validate({name: value})
            except ValidationError:
                continue
            chosen[name] = value
    return spec.config.model_validate(chosen)
