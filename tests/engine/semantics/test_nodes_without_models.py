"""The node types that call no model: `router` by rules, `transform`, `validator`, `tool`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from engine.events import NodeCompleted
from tests.engine.semantics.documents import Part, entry, flow, formula, part, result, rules, transform
from tests.engine.semantics.kit import play

_SIZES = {"short": "size(input) < 3", "middling": "size(input) < 6", "long": "else"}


@pytest.mark.parametrize(("text", "branch"), [("ab", "short"), ("abcd", "middling"), ("abcdefgh", "long")])
async def test_the_first_true_rule_decides(text: str, branch: str) -> None:
    workflow = flow(
        entry(),
        rules("pick", _SIZES),
        *(result(name) for name in _SIZES),
        edges="text -> pick\n" + "\n".join(f"pick.{name} -> {name}" for name in _SIZES),
    )

    assert (await play(workflow, inputs={"text": text})).result.outputs == {branch: text}


async def test_a_router_by_rules_gives_a_reason() -> None:
    workflow = flow(entry(), rules("pick", _SIZES), result(), edges="text -> pick\npick.reason -> out")

    assert "size(input) < 6" in (await play(workflow)).out


@pytest.mark.parametrize("rule", ["input.nothing == 1", "size(input)", "1 / 0 == 1"])
async def test_a_failing_or_non_boolean_rule_fails_the_run(rule: str) -> None:
    workflow = flow(entry(), rules("pick", {"a": rule, "b": "else"}), result(), edges="text -> pick\npick.b -> out")

    played = await play(workflow, ends="failed")

    assert played.result.node == "pick"
    assert played.result.outputs == {}


async def test_a_router_by_rules_fails_if_no_rule_is_true() -> None:
    workflow = flow(entry(), rules("pick", {"a": "input == 'no'"}), result(), edges="text -> pick\npick.a -> out")

    assert (await play(workflow, ends="failed")).result.node == "pick"


@pytest.mark.parametrize(
    ("node", "given", "gives"),
    [
        (transform("t", "{{input}}!"), "a", "a!"),
        (transform("t", "{{input.name}} is {{input.n + 1}}"), {"name": "x", "n": 2}, "x is 3"),
        (transform("t", "\\{{input}} {{input}}"), "a", "{{input}} a"),
        (transform("t", "{{input}}"), None, ""),
        (transform("t", "{{input}}"), {"b": 1, "a": [True, None]}, '{"a":[true,null],"b":1}'),
        (formula("t", "input.items.map(i, i * 2)"), {"items": [1, 2]}, [2, 4]),
        (formula("t", "size(input) > 2 ? 'long' : 'short'"), "abc", "long"),
        (formula("t", "{'k': input}"), "v", {"k": "v"}),
    ],
)
async def test_a_transform_outputs_a_value(node: Part, given: Any, gives: Any) -> None:
    workflow = flow(entry("it", type="any", default="x"), node, result(), edges="it -> t -> out")

    assert (await play(workflow, inputs={"it": given})).out == gives


async def test_a_transform_has_a_port_for_every_bare_name() -> None:
    workflow = flow(
        entry("a"),
        entry("b"),
        formula("t", "[left, right, left]"),
        result(),
        edges="a -> t.left\nb -> t.right\nt -> out",
    )

    assert (await play(workflow, inputs={"a": "1", "b": "2"})).out == ["1", "2", "1"]


@pytest.mark.parametrize("node", [transform("t", "{{input.nothing}}"), formula("t", "input.nothing")])
async def test_a_missing_member_fails_the_node_and_is_not_empty_text(node: Part) -> None:
    workflow = flow(entry("it", type="json"), node, result(), edges="it -> t -> out")

    played = await play(workflow, inputs={"it": {"a": 1}}, ends="failed")

    assert played.result.node == "t"
    assert "nothing" in played.result.error


async def test_a_text_over_a_megabyte_fails_the_node() -> None:
    workflow = flow(entry(), transform("t", "{{input}}" * 11), result(), edges="text -> t -> out")

    played = await play(workflow, inputs={"text": "x" * 100_000}, ends="failed")

    assert played.result.node == "t"


def _checked(**config: Any) -> Any:
    return flow(
        entry("it", type="any"),
        part("v", "validator", **config),
        result("good"),
        result("bad"),
        result("errors"),
        edges="it -> v\nv.valid -> good\nv.invalid -> bad\nv.errors -> errors",
    )


_NUMBER = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


async def test_a_validator_passes_a_value_that_matches_the_schema() -> None:
    played = await play(_checked(json_schema=_NUMBER), inputs={"it": {"n": 1}})

    assert played.result.outputs == {"good": {"n": 1}, "errors": []}


async def test_a_validator_parses_text_as_json() -> None:
    played = await play(_checked(json_schema=_NUMBER), inputs={"it": '{"n": 1}'})

    assert played.result.outputs["good"] == {"n": 1}


@pytest.mark.parametrize("value", [{"n": "one"}, {}, "not json", [1], '{"n": "one"}'])
async def test_a_validator_outputs_an_invalid_value_unchanged_with_its_errors(value: Any) -> None:
    played = await play(_checked(json_schema=_NUMBER), inputs={"it": value})

    assert played.result.outputs["bad"] == value
    assert "good" not in played.result.outputs
    assert played.result.outputs["errors"]


@pytest.mark.parametrize(("value", "port"), [("abc", "good"), ("abcdef", "bad")])
async def test_a_validator_checks_a_condition(value: str, port: str) -> None:
    workflow = _checked(mode="expression", expression="size(input) < 5", message="too long")

    played = await play(workflow, inputs={"it": value})

    assert played.result.outputs == {port: value, "errors": [] if port == "good" else ["too long"]}


async def test_a_condition_that_is_not_boolean_fails_the_validator() -> None:
    played = await play(_checked(mode="expression", expression="size(input)"), inputs={"it": "a"}, ends="failed")

    assert played.result.node == "v"


def _reads(**config: Any) -> Any:
    node = part("read", "tool", tool="read_file", **config)
    return flow(entry(), node, result(), edges="text -> read.path\nread -> out")


async def test_a_tool_gets_its_parameters_from_its_ports(tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("hello", "utf-8")

    assert (await play(_reads(), inputs={"text": "note.txt"}, folder=tmp_path)).out == "hello"


async def test_an_unconnected_parameter_comes_from_the_settings(tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("hello", "utf-8")
    workflow = flow(
        part("read", "tool", tool="read_file", arguments={"path": "note.txt"}), result(), edges="read -> out"
    )

    assert (await play(workflow, folder=tmp_path)).out == "hello"


async def test_a_port_value_overrides_the_settings(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a", "utf-8")
    (tmp_path / "b.txt").write_text("b", "utf-8")

    played = await play(_reads(arguments={"path": "a.txt"}), inputs={"text": "b.txt"}, folder=tmp_path)

    assert played.out == "b"


async def test_text_is_converted_to_the_number_a_tool_needs(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hello", "utf-8")
    node = part("read", "tool", tool="read_file", arguments={"path": "a.txt"})
    workflow = flow(entry(), node, result(), edges="text -> read.max_bytes\nread -> out")

    assert (await play(workflow, inputs={"text": "100"}, folder=tmp_path)).out == "hello"
    assert (await play(workflow, inputs={"text": "2"}, folder=tmp_path, ends="failed")).result.node == "read"
    assert (await play(workflow, inputs={"text": "two"}, folder=tmp_path, ends="failed")).result.node == "read"


async def test_a_file_tool_without_a_folder_fails_and_says_what_to_do() -> None:
    played = await play(_reads(), inputs={"text": "note.txt"}, ends="failed")

    assert played.result.node == "read"
    assert played.result.remedy


async def test_a_tool_failure_can_be_handled(tmp_path: Path) -> None:
    node = part("read", "tool", tool="read_file", on_error="branch")
    workflow = flow(
        entry(),
        node,
        transform("say", "failed: {{input}}"),
        result(),
        edges="text -> read.path\nread.error -> say -> out",
    )

    played = await play(workflow, inputs={"text": "missing.txt"}, folder=tmp_path)

    assert played.out.startswith("failed: ")
    assert "missing.txt" in played.out
    assert played.of(NodeCompleted, "read")[0].error
