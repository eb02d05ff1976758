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
from engine.document.problems import DocumentError, Problem
from tests.engine.document.strategies import workflows
from tests.examples import examples

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
    ("text", "message"),
    [
        ("", "The document is empty."),
        (" \n\ufeff"[:2], "The document is empty."),
        (b"\xef\xbb\xbf", "The document is empty."),
        (b'{"a": "\xff"}', "The document cannot be read: it is not UTF-8 text: byte 8 does not fit."),
        ('{\n  "a": 1,,\n}', "The document is not JSON: line 2, column 10: expecting property name"),
        ("{'a': 1}", "The document is not JSON: line 1, column 2: expecting property name"),
        ('{"a": 1} x', "The document is not JSON: line 1, column 10: extra data"),
        ("[]", "The document is a list, not a JSON object."),
        ('"x"', "The document is a text, not a JSON object."),
        ("null", "The document is null, not a JSON object."),
        ("true", "The document is true, not a JSON object."),
        ("17", "The document is the number 17, not a JSON object."),
        ("{}", 'This is not a workflow: it has no "format".'),
        ('{"format": "other\\n"}', 'This is not a workflow: its "format" is "other\\n".'),
        ('{"format": "loopwright.workflow"}', "The document has no version."),
        (document(version="1"), "The version is a text, not a whole number."),
        (document(version=True), "The version is true, not a whole number."),
        (document(version=1.5), "The version is the number 1.5, not a whole number."),
        (document(version=None), "The version is null, not a whole number."),
        (document(version={}), "The version is an object, not a whole number."),
        (document(version=0), "There is no version 0 of the file format."),
        (document(version=-(10**500)), "There is no version -1000000000"),
    ],
)
def test_text_that_is_no_document_is_refused_with_one_sentence(text: str | bytes, message: str) -> None:
    error = failure(text)
    assert error.message.removeprefix("a.loop.json: ").startswith(message)
    assert error.remedy
    assert error.problems == ()


@pytest.mark.parametrize("depth", [10_000, 1_000_000])
@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_text_nested_beyond_the_stack_is_refused(depth: int, opening: str) -> None:
    assert "more than 200 levels deep" in failure(opening * depth).message


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
    assert error.message == ('a.loop.json: node "a", field "limits.1": The number is infinite or too long.')
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
    assert [(problem.place, problem.message) for problem in error.problems] == [
        ("", 'The key "name" is repeated in the same object.'),
        ('node "a", field "config"', 'The key "x" is repeated in the same object.'),
        ('node "a", field "config"', 'The key "y" is repeated in the same object.'),
    ]
    assert "3 problems" in error.message


def test_key_with_a_lone_surrogate_is_refused_with_its_place() -> None:
    error = failure(document(nodes=[{"id": "a", "type": "b", "\ud800": 1}]))
    assert error.problems == (
        Problem(
            "bad-key",
            'The key "\\ud800" contains half of a surrogate pair.',
            "Use complete characters in the key.",
            node="a",
        ),
    )


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
    assert [(problem.place, problem.message) for problem in error.problems] == [
        ('field "name"', '"name" is the number 3, not a text.'),
        ('field "settings"', '"settings" is a list, not an object.'),
        ('field "nodes.0"', "Entry 0 of nodes is the number 1, not an object."),
        ('field "nodes.1.id"', '"id" is the number 1, not a text.'),
        ('field "nodes.1.title"', '"title" is null, not a text.'),
        ('node "b\\n", field "type"', '"type" is missing.'),
        ('node "b\\n", field "config"', '"config" is a text, not an object.'),
        ('node "b\\n", field "enabled"', '"enabled" is the number 1, not true or false.'),
        ('field "edges.0.from"', '"from" is missing.'),
        ('field "edges.0.to"', '"to" is the number 1, not a text.'),
        ('field "edges.1.to"', '"to" is missing.'),
        ('field "layout"', '"layout" is null, not an object.'),
    ]
    assert error.message == (
        'a.loop.json: The document has 12 problems; the first: field "name": "name" is the number 3, not a text.'
    )


def test_nodes_and_edges_that_are_no_lists_are_refused() -> None:
    places = [problem.message for problem in failure(document(nodes={}, edges="x")).problems]
    assert places == ['"nodes" is an object, not a list.', '"edges" is a text, not a list.']


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
