"""Any input gives a workflow or a `DocumentError`, and nothing else."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from engine.document.files import dumps, loads
from engine.document.model import Workflow
from engine.document.problems import DocumentError
from tests.engine.document.strategies import workflows
from tests.examples import examples

PARTS = ("name", "description", "settings", "nodes", "edges", "layout", "version")
DEBRIS = (b'{"a":', b"[[[[", b'"', b",", b"1e999", b"\\ud800")


def read(text: str | bytes) -> Workflow | DocumentError:
    try:
        return loads(text)
    except DocumentError as error:
        return error


def check(text: str | bytes) -> None:
    outcome = read(text)
    if isinstance(outcome, DocumentError):
        assert str(outcome).isprintable()
        assert all(str(problem).isprintable() for problem in outcome.problems)
    else:
        assert loads(dumps(outcome)) == outcome


@examples(200)
@given(st.binary() | st.text(st.characters(exclude_categories=[])))
def test_random_bytes_and_texts_are_handled(text: str | bytes) -> None:
    check(text)


WILD = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from([10**700, 10**400, "nodes", "from", "loopwright.workflow", "\ud800", "a.b"])
    | st.text(st.characters(exclude_categories=[]), max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3) | st.just("id"), inner, max_size=4),
    max_leaves=8,
)


@examples(200)
@given(WILD)
def test_random_json_is_handled(value: Any) -> None:
    check(json.dumps(value))


@examples(200)
@given(st.dictionaries(st.sampled_from(PARTS), WILD))
def test_random_json_under_known_keys_is_handled(parts: dict[str, Any]) -> None:
    check(json.dumps({"format": "loopwright.workflow", "version": 1, **parts}))


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every container of a value with each of its keys or indices."""
    found: list[tuple[Any, Any]] = []
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in steps:
        found += [(value, key), *places(inner)]
    return found


@examples(200)
@given(workflows(max_nodes=2), st.data())
def test_documents_with_random_damage_are_handled(workflow: Workflow, data: st.DataObject) -> None:
    document = json.loads(dumps(workflow))
    for _ in range(data.draw(st.integers(1, 3))):
        container, key = data.draw(st.sampled_from(places(document)))
        match data.draw(st.sampled_from(["delete", "replace", "nest", "repeat", "huge"])):
            case "delete":
                del container[key]
            case "nest":
                container[key] = {"nodes": [container[key]]}
            case "repeat" if isinstance(container, list):
                container.append(container[key])
            case "huge":
                container[key] = data.draw(st.sampled_from([10**700, float("inf"), float("nan"), -1, 1e308]))
            case _:
                container[key] = data.draw(WILD)
        if not document:
            break
    check(json.dumps(document))


@examples(200)
@given(workflows(max_nodes=1), st.data())
def test_texts_with_lost_or_changed_bytes_are_handled(workflow: Workflow, data: st.DataObject) -> None:
    text = bytearray(dumps(workflow).encode())
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start, min(len(text), start + 20)))
    text[start:end] = data.draw(st.binary(max_size=4) | st.sampled_from(DEBRIS))
    check(bytes(text))
