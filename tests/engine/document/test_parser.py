"""Parsing the text of a document."""

from __future__ import annotations

import difflib
import json
import math

import pytest
from hypothesis import given

from engine.document.files import dumps, loads
from engine.document.migrate import is_newer
from engine.document.model import Node, Workflow
from engine.document.problems import DocumentError
from tests.engine.document.strategies import workflows
from tests.examples import examples
from tests.wording import mentions

CANONICAL = """\
{
  "format": "loopwright.workflow",
  "version": 2,
  "name": "Kürzen",
  "description": "",
  "settings": {
    "budget_usd": 1
  },
  "nodes": [
    {
      "id": "text",
      "type": "input",
      "title": "",
      "config": {
        "z": 1,
        "a": "\\ud800 half"
      },
      "enabled": false,
      "icon": "pen"
    },
    {
      "id": "out",
      "type": "output",
      "title": "Result",
      "config": {}
    }
  ],
  "edges": [
    {
      "from": "text.value",
      "to": "out.value",
      "colour": "red"
    }
  ],
  "layout": {},
  "author": "somebody"
}
"""


def document(**parts: object) -> str:
    return json.dumps({"format": "loopwright.workflow", "version": 2, **parts})


def failure(text: str | bytes) -> DocumentError:
    with pytest.raises(DocumentError) as caught:
        loads(text, source="a.loop.json")
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith("a.loop.json: ")
    return caught.value


@examples(150)
@given(workflows())
def test_serialized_document_is_parsed_unchanged(workflow: Workflow) -> None:
    text = dumps(workflow)
    assert loads(text) == workflow
    assert loads(text.encode()) == workflow
    assert dumps(loads(text)) == text


def test_canonical_text_is_unchanged_with_unknown_keys_and_lone_surrogates() -> None:
    workflow = loads(CANONICAL)
    assert dumps(workflow) == CANONICAL
    assert workflow.unknown_keys == ("author",)
    assert workflow.node("text").config["a"] == "\ud800 half"
    assert workflow.edges[0].source == ("text", "value")


def test_known_keys_are_written_in_order_before_unknown_ones() -> None:
    text = '{"zeta": 1, "edges": [], "alpha": 2, "name": "n", "version": 2, "format": "loopwright.workflow"}'
    written = json.loads(dumps(loads(text)))
    assert list(written) == [
        "format", "version", "name", "description", "settings", "nodes", "edges", "layout", "zeta", "alpha",
    ]  # fmt: skip


def test_one_changed_line_of_the_document_is_one_changed_line_of_the_file() -> None:
    old = loads(CANONICAL)
    new = old.model_copy(update={"nodes": (old.nodes[0], old.nodes[1].model_copy(update={"title": "Outcome"}))})
    lines = difflib.ndiff(dumps(old).splitlines(), dumps(new).splitlines())
    assert [line for line in lines if line[0] in "+-"] == ['-       "title": "Result",', '+       "title": "Outcome",']


def test_byte_order_mark_is_accepted_and_not_written() -> None:
    assert dumps(loads(b"\xef\xbb\xbf" + CANONICAL.encode())) == CANONICAL
    assert dumps(loads("\ufeff" + CANONICAL)) == CANONICAL


def test_newer_version_opens_and_keeps_number_and_keys() -> None:
    workflow = loads(document(version=99, wires=[1]))
    assert is_newer(workflow)
    assert not is_newer(Workflow())
    written = json.loads(dumps(workflow))
    assert (written["version"], written["wires"]) == (99, [1])


def test_malformed_newer_version_asks_for_an_update() -> None:
    error = failure(document(version=3, nodes={}))
    assert error.problems[0].field == "nodes"
    assert "newer version" in error.remedy


def test_document_with_malformed_id_and_edge_opens() -> None:
    workflow = loads(document(nodes=[{"id": "No id!", "type": "x"}], edges=[{"from": "a", "to": "b.c"}]))
    assert workflow.nodes[0].id == "No id!"
    assert workflow.edges[0].source == ("a", "")


def test_unknown_key_named_like_a_model_attribute_is_preserved() -> None:
    edge = {"from": "a.b", "to": "c.d", "from_": "e.f", "source": 1}
    assert json.loads(dumps(loads(document(edges=[edge]))))["edges"] == [edge]
    assert failure(document(edges=[{"from_": "a.b", "to": "c.d"}])).problems[0].code == "missing-key"


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", "empty"),
        (" \n\ufeff"[:2], "empty"),
        (b"\xef\xbb\xbf", "empty"),
        (b'{"a": "\xff"}', "UTF-8 … byte 8"),
        ('{\n  "a": 1,,\n}', "not JSON … line 2, column 10"),
        ("{'a': 1}", "not JSON … line 1, column 2"),
        ('{"a": 1} x', "not JSON … line 1, column 10"),
        ("[]", "a list … object"),
        ('"x"', "a text … object"),
        ("null", "null … object"),
        ("true", "true … object"),
        ("17", "17 … object"),
        ("{}", 'no "format"'),
        ('{"format": "other\\n"}', '"format" … "other\\n"'),
        ('{"format": "loopwright.workflow"}', "no version"),
        (document(version="1"), "version … a text … a whole number"),
        (document(version=True), "version … true … a whole number"),
        (document(version=1.5), "version … 1.5 … a whole number"),
        (document(version=None), "version … null … a whole number"),
        (document(version={}), "version … an object … a whole number"),
        (document(version=0), "version 0"),
        (document(version=-(10**500)), "version -1000000000"),
    ],
)
def test_text_that_is_no_document_is_refused_with_one_sentence(text: str | bytes, parts: str) -> None:
    error = failure(text)
    assert error.message.startswith("a.loop.json: ")
    assert mentions(error.message, parts)
    assert error.remedy
    assert error.problems == ()


@pytest.mark.parametrize("depth", [10_000, 1_000_000])
@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
def test_text_nested_beyond_the_stack_is_refused(depth: int, opening: str, closing: str) -> None:
    # Whether 10,000 levels fit on the stack of Python's parser depends on its version.
    text = document(layout="?").replace('"?"', f'{{"a":{opening * depth}0{closing * depth}}}')
    assert "more than 200 levels deep" in failure(text).message


def test_two_hundred_levels_are_accepted_and_one_more_is_refused() -> None:
    deepest = document(layout="?").replace('"?"', '{"a":' + "[" * 198 + "]" * 198 + "}")
    workflow = loads(deepest)
    assert loads(dumps(workflow)) == workflow

    deeper = deepest.replace("[]", "[[]]")
    error = failure(deeper)
    assert error.problems[0].code == "too-deep"
    assert error.problems[0].field == "layout.a.0"
    with pytest.raises(DocumentError, match="more than 200 levels deep"):
        dumps(Workflow(layout=json.loads(deeper)["layout"]))


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "9" * 601, "-" + "9" * 5000])
def test_invalid_number_is_refused_with_its_place(number: str) -> None:
    text = document(nodes=[{"id": "a", "type": "b", "config": {"limits": [1, "?"]}}]).replace('"?"', number)
    error = failure(text)
    assert mentions(error.message, 'a.loop.json … node "a", field "limits.1" … number')
    assert [(problem.node, problem.field) for problem in error.problems] == [("a", "limits.1")]


def test_number_of_six_hundred_digits_is_accepted() -> None:
    workflow = loads(document(layout={"n": int("9" * 600)}))
    assert loads(dumps(workflow)).layout == {"n": int("9" * 600)}


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 10**600])
def test_invalid_number_is_not_written(value: float) -> None:
    workflow = Workflow(nodes=(Node(id="a", type="b", config={"x": {"y": value}}),))
    with pytest.raises(DocumentError) as caught:
        dumps(workflow)
    assert caught.value.problems[0].place == 'node "a", field "x.y"'


@pytest.mark.parametrize("value", [(1, 2), {1, 2}, object(), b"bytes", {1: 2}, {"\ud800": 1}])
def test_value_that_is_not_json_is_not_written(value: object) -> None:
    with pytest.raises(DocumentError) as caught:
        dumps(Workflow(settings={"x": value}))
    assert caught.value.problems[0].field == "settings.x"
    assert caught.value.problems[0].code in {"not-json", "bad-key"}


def test_circular_value_is_not_written() -> None:
    endless: list[object] = []
    endless.append(endless)
    with pytest.raises(DocumentError, match="more than 200 levels deep") as caught:
        dumps(Workflow(settings={"x": endless, "y": endless}))
    assert [problem.field for problem in caught.value.problems] == ["settings.x.0"]


def test_repeated_keys_are_refused_with_their_places() -> None:
    nodes = '[{"id": "a", "type": "b", "config": {"x": 1, "x": 1, "y": 0, "y": 2}}]'
    error = failure(document(nodes="?").replace('"?"', nodes)[:-1] + ', "name": "n", "name": "m"}')
    expected = [("", '"name"'), ('node "a", field "config"', '"x"'), ('node "a", field "config"', '"y"')]
    assert [problem.place for problem in error.problems] == [place for place, _ in expected]
    assert all(mentions(found.message, key) for found, (_, key) in zip(error.problems, expected, strict=True))
    assert "3 problems" in error.message


def test_key_with_a_lone_surrogate_is_refused_with_its_place() -> None:
    error = failure(document(nodes=[{"id": "a", "type": "b", "\ud800": 1}]))
    (problem,) = error.problems
    assert (problem.code, problem.place) == ("bad-key", 'node "a"')
    assert mentions(problem.message, '"\\ud800" … surrogate')


def test_every_structural_error_has_a_place_and_plain_message() -> None:
    text = document(
        name=3,
        settings=[],
        nodes=[
            1,
            {"id": 1, "type": "x", "title": None},
            {"id": "b\n", "enabled": 1, "config": "no"},
            {"id": "c", "type": "x"},
        ],
        edges=[{"to": 1}, {"from": "a.b"}, {"from": "a.b", "to": "c.d"}],
        layout=None,
    )
    error = failure(text)
    expected = [
        ('field "name"', '"name" … 3 … a text'),
        ('field "settings"', '"settings" … a list … an object'),
        ('field "nodes.0"', "Entry 0 of nodes … 1 … an object"),
        ('field "nodes.1.id"', '"id" … 1 … a text'),
        ('field "nodes.1.title"', '"title" … null … a text'),
        ('node "b\\n", field "type"', '"type" … missing'),
        ('node "b\\n", field "config"', '"config" … a text … an object'),
        ('node "b\\n", field "enabled"', '"enabled" … 1 … true or false'),
        ('field "edges.0.from"', '"from" … missing'),
        ('field "edges.0.to"', '"to" … 1 … a text'),
        ('field "edges.1.to"', '"to" … missing'),
        ('field "layout"', '"layout" … null … an object'),
    ]
    assert [problem.place for problem in error.problems] == [place for place, _ in expected]
    for problem, (_, parts) in zip(error.problems, expected, strict=True):
        assert mentions(problem.message, parts)
    assert mentions(error.message, 'a.loop.json … 12 problems … field "name" … "name" … 3 … a text')


def test_nodes_and_edges_that_are_no_lists_are_refused() -> None:
    nodes, edges = failure(document(nodes={}, edges="x")).problems
    assert mentions(nodes.message, '"nodes" … an object … a list')
    assert mentions(edges.message, '"edges" … a text … a list')


def test_error_of_an_edge_is_placed_by_its_ends() -> None:
    text = document(edges=[{"from": "a.b", "to": "c.d", "width": "?"}]).replace('"?"', "NaN")
    assert failure(text).problems[0].place == 'field "width", edge "a.b -> c.d"'


def test_at_most_a_hundred_problems_are_reported() -> None:
    error = failure(document(nodes=[1] * 500))
    assert len(error.problems) == 100
    assert "100 or more problems" in error.message
    assert len(failure(document(layout={"x": ["?"] * 500}).replace('"?"', "NaN")).problems) == 100


@pytest.mark.parametrize("key", ["nodes", "edges"])
def test_too_many_nodes_or_edges_are_refused(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.document.files.MAX_PARTS", 3)
    assert f"has 4 {key}; the maximum is 3" in failure(document(**{key: [1] * 4})).message


def test_oversized_text_is_neither_read_nor_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.document.files.MAX_BYTES", 1_000_000)
    assert "larger than 1 MB" in failure("x" * 1_000_001).message
    assert "not JSON" in failure("x" * 1_000_000).message
    with pytest.raises(DocumentError, match="larger than 1 MB"):
        dumps(Workflow(name="ü" * 500_000))


def test_source_with_control_characters_stays_one_line() -> None:
    with pytest.raises(DocumentError) as caught:
        loads("", source="a\nb\x1b[31m\u2028\ud800" + "c" * 1000)
    message = caught.value.message
    assert message.startswith("a\\nb\\x1b[31m\\u2028\\ud800ccc")
    assert message.isprintable()
    assert len(message) < 300
