"""The text of a document equals that of the standard encoder, written in small steps."""

from __future__ import annotations

import json
import re
from enum import IntEnum, StrEnum
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.document.files import RulesBrokenError, TextWriter, dumps, save
from engine.document.model import Edge, Node, Workflow
from engine.document.problems import faults
from tests.engine.document.strategies import texts, values, workflows
from tests.examples import examples


class Size(IntEnum):
    LARGE = 3


class Colour(StrEnum):
    RED = "red"


class Share(float):
    """A number that shows itself as something else."""

    def __repr__(self) -> str:
        return f"{float(self):.0%}"


def standard(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False)


def text(value: object) -> str:
    return TextWriter(lambda: None).text(value)


def as_dumped(part: Node | Edge | Workflow) -> dict[str, Any]:
    """What pydantic makes of a part of a document, without what is usual."""
    dumped = part.model_dump(by_alias=True)
    if isinstance(part, Node) and part.enabled:
        del dumped["enabled"]
    if isinstance(part, Node) and not part.pinned:
        del dumped["pinned"]
    return dumped


@examples(50)
@given(workflows())
def test_document_text_equals_the_standard_encoder(workflow: Workflow) -> None:
    parts = {
        "nodes": [as_dumped(node) for node in workflow.nodes],
        "edges": [as_dumped(edge) for edge in workflow.edges],
    }
    whole = standard(as_dumped(workflow) | parts) + "\n"
    assert dumps(workflow) == re.sub("[\ud800-\udfff]", lambda found: f"\\u{ord(found[0]):04x}", whole)


@examples(200)
@given(values())
def test_value_text_equals_the_standard_encoder(value: Any) -> None:
    assert text(value) == standard(value)


RARE = [{}, [], {"a": {}}, [[]], True, None, -0.0, 1e16, 1e-7, 10**599, '\x00\x1f\x7f\u2028"\\\ud800']
SUBCLASSED = [Size.LARGE, Colour.RED, Share(0.5), {Colour.RED: [Size.LARGE]}]


@pytest.mark.parametrize("value", [*RARE, *SUBCLASSED])
def test_rare_values_are_written_like_the_standard_encoder(value: object) -> None:
    assert text(value) == standard(value)


ODD = st.recursive(
    st.sampled_from([float("nan"), -float("inf"), 10**600, -(10**600), (1,), {1}, b"", 1j]) | texts() | st.integers(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "\ud800", 1, None]), inner, max_size=3)
    ),
    max_leaves=5,
)


@examples(300)
@given(ODD)
def test_serializer_refuses_exactly_what_breaks_the_rules(value: object) -> None:
    if list(faults(value)):
        with pytest.raises(RulesBrokenError):
            text(value)
    else:
        assert text(value) == standard(value)


@pytest.mark.parametrize("innermost", ["x", {}, []])
def test_serializer_refuses_the_same_depth_as_the_rules(innermost: object) -> None:
    value = innermost
    for _ in range(200 if isinstance(innermost, str) else 199):
        value = [value]
    assert text(value) == standard(value)
    assert not list(faults(value))

    assert list(faults([value]))
    with pytest.raises(RulesBrokenError):
        text([value])


def test_large_document_is_serialized_in_many_steps(tmp_path: Path) -> None:
    nodes = tuple(Node(id=f"n{number}", type="llm", config={"prompt": "Go on."}) for number in range(1000))
    workflow = Workflow(nodes=nodes, layout={"nodes": {node.id: {"x": 0.0, "y": 0.0} for node in nodes}})
    path, there = tmp_path / "a.loop.json", list[bool]()

    save(workflow, path, lambda: there.append(path.exists()))

    assert len(there) > 40  # 3,000 objects
    assert not any(there)
    assert path.read_text(encoding="utf-8") == dumps(workflow)
