"""Tools of MCP servers: parameters from schemas of every kind, and the file of listings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from engine.cli.catalog_commands import fields
from engine.nodes.node_registry import builtin_registry
from engine.tools.mcp_settings import McpServer
from engine.tools.mcp_tools import (
    ListedTool,
    Listing,
    UnusableSchemaError,
    parameters_of,
    read_listings,
    served_tools,
    write_listings,
)
from engine.tools.registry import set_tools
from tests.examples import examples

LOOP = {"$defs": {"A": {"anyOf": [{"$ref": "#/$defs/A"}]}}, "properties": {"a": {"$ref": "#/$defs/A"}}}


def of(properties: dict[str, Any], *required: str) -> Any:
    return parameters_of({"type": "object", "properties": properties, "required": list(required)})


def test_omitted_arguments_are_left_to_the_server() -> None:
    model = of({"path": {"type": "string"}, "lines": {"type": "integer", "default": 10}}, "path")
    assert model.model_validate({"path": "a.txt"}).arguments() == {"path": "a.txt"}
    assert model.model_validate({"path": "a.txt", "lines": 3}).arguments() == {"path": "a.txt", "lines": 3}
    with pytest.raises(ValidationError):
        model.model_validate({"lines": 3})
    with pytest.raises(ValidationError):
        model.model_validate({"path": "a.txt", "other": 1})
    with pytest.raises(ValidationError):
        model.model_validate({"path": "a.txt", "lines": "many"})


def test_renamed_parameters_are_sent_by_their_original_names() -> None:
    model = of({"schema": {"type": "object"}, "_meta": {}, "max-results": {"type": "number"}, "served_names": {}})
    assert list(model.model_fields) == ["schema_", "meta", "max-results", "served_names_"]
    given = {"schema_": {"a": 1}, "meta": None, "max-results": 3, "served_names_": "x"}
    assert model.model_validate(given).arguments() == {
        "schema": {"a": 1},
        "_meta": None,
        "max-results": 3.0,
        "served_names": "x",
    }


def test_parameter_with_an_invalid_name_is_omitted_or_an_error() -> None:
    assert list(of({"a.b": {}, "c": {}}).model_fields) == ["c"]
    with pytest.raises(UnusableSchemaError, match=r"its parameter 'a\.b'"):
        of({"a.b": {}}, "a.b")


def test_too_deep_schema_is_unusable() -> None:
    deep: Any = {}
    for _ in range(495):
        deep = {"items": deep}
    with pytest.raises(UnusableSchemaError, match="nested too deeply"):
        parameters_of({"properties": {"a": {"type": "string"}}, "$defs": {"A": deep}}).model_json_schema()


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"properties": None},
        {"properties": {"a": True}},
        {"properties": {"a": {"type": ["string", "null"], "title": 3, "description": None}}},
        {"properties": {"a": {"$ref": "#/$defs/Missing"}}},
        {"properties": {"a": {"$ref": "https://example.org/schema"}}},
        {"properties": {"a": {"type": "elephant"}}, "required": "a"},
        LOOP,
        {"properties": {"a": {"items": []}, "b": {"items": None}, "c": {"enum": None}, "d": {"items": False}}},
        {"properties": {"a": {"items": {"anyOf": [True, {"properties": {"b": False}}]}}}},
        {"$defs": {"A": {"anyOf": [{"$ref": "#/$defs/A"}]}}, "properties": {"a": {"items": {"$ref": "#/$defs/A"}}}},
        {"properties": {"a": {"items": {"$ref": "#/$defs/Missing"}}}},
    ],
)
def test_any_schema_has_ports_and_fields(schema: dict[str, Any]) -> None:
    _has_ports_and_facts(schema)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=10,
)
keywords = st.sampled_from(["type", "title", "description", "default", "anyOf", "$ref", "enum", "items"])


declared = st.dictionaries(keywords, json_values, max_size=4) | json_values


@given(st.dictionaries(st.text(max_size=6), declared, max_size=4))
@examples(75)
def test_hostile_schema_does_no_harm(properties: dict[str, Any]) -> None:
    _has_ports_and_facts({"properties": properties, "required": list(properties)})


def _has_ports_and_facts(schema: dict[str, Any]) -> None:
    listing = Listing(fingerprint="", tools=(ListedTool(name="tool", input_schema=schema),))
    spec = builtin_registry().find("tool")
    assert spec is not None
    try:
        set_tools("sample", served_tools("sample", McpServer(command="x"), listing))
        config = spec.config.model_validate({"tool": "sample/tool"})
        ports = spec.inputs(config)
        for tool in served_tools("sample", McpServer(command="x"), listing):
            assert [port.name for port in ports] == list(tool.parameters.model_fields)
            assert [one.name for one in fields(tool.parameters)][: len(ports)] == [port.name for port in ports]
            assert list(spec.problems(config)) == []
    finally:
        set_tools("sample", ())


def test_listings_are_stored_and_an_invalid_file_is_empty(tmp_path: Path) -> None:
    path = tmp_path / "new" / "mcp-tools.json"
    assert read_listings(path) == {}
    tool = ListedTool(name="read", title="Read", description="Reads ä.", input_schema={"type": "object"})
    listings = {"files": Listing(fingerprint="abc", tools=(tool,), left_out=("One is missing.",))}
    write_listings(path, listings)
    assert read_listings(path) == listings
    assert [file.name for file in path.parent.iterdir()] == ["mcp-tools.json"]
    path.write_text('{"servers": 3}')
    assert read_listings(path) == {}
