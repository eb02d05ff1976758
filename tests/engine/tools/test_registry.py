from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import pytest
from pydantic import ValidationError

from engine.tools.registry import all_tools, builtin_tools, find_tool, set_tools
from engine.tools.tool import AnyTool, Parameters, Tool, ToolContext, ToolError
from engine.values import Value

ALL = list(builtin_tools().values())


NAMES = ["search_files", "web_search", "http_get", "read_file", "write_file", "python", "shell"]


def test_names_of_the_built_in_tools() -> None:
    assert list(builtin_tools()) == NAMES
    assert find_tool("read_file") is builtin_tools()["read_file"]


def test_registry_is_read_only() -> None:
    with pytest.raises(TypeError):
        builtin_tools()["x"] = ALL[0]  # type: ignore[index]


def test_misspelled_tool_is_an_error_with_a_suggestion() -> None:
    with pytest.raises(ToolError) as caught:
        find_tool("Search_file")
    assert "search_files" in caught.value.remedy.partition("?")[0]
    assert ", ".join(NAMES) in caught.value.remedy


def test_unknown_tool_without_a_suggestion() -> None:
    with pytest.raises(ToolError) as caught:
        find_tool("zzz" * 100_000)
    assert "Did you mean" not in caught.value.remedy
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("tool", ALL, ids=lambda tool: tool.name)
def test_every_tool_declares_what_a_form_needs(tool: AnyTool) -> None:
    assert inspect.iscoroutinefunction(tool.run)
    assert tool.title
    assert re.fullmatch(r"[A-Z].+\.", tool.help)
    assert tool.output_type in {"any", "text", "json", "number", "boolean", "list"}
    for name, field in tool.parameters.model_fields.items():
        assert field.title, name
        assert field.description, name
    schema = tool.parameters.model_json_schema()
    assert schema["additionalProperties"] is False
    assert all("type" in parameter for parameter in schema["properties"].values())
    with pytest.raises(ValidationError):
        tool.parameters.model_validate({"no_such_parameter": 1})


class NoParameters(Parameters):
    pass


async def nothing(_parameters: NoParameters, _context: ToolContext) -> Value:
    return None


def tool(name: str) -> AnyTool:
    return Tool(name, "Title", "Does nothing.", NoParameters, "any", nothing)


@pytest.fixture
def owners() -> Iterator[None]:
    yield
    for owner in ("ours", "theirs"):
        set_tools(owner, ())


@pytest.mark.usefixtures("owners")
def test_owner_adds_replaces_and_removes_tools() -> None:
    set_tools("ours", [tool("ours/one"), tool("ours/two")])
    set_tools("theirs", [tool("theirs/one")])
    assert list(all_tools()) == [*NAMES, "ours/one", "ours/two", "theirs/one"]
    assert find_tool("ours/two").name == "ours/two"
    set_tools("ours", [tool("ours/three")])
    assert list(all_tools())[len(NAMES) :] == ["ours/three", "theirs/one"]
    set_tools("ours", ())
    set_tools("theirs", ())
    assert list(all_tools()) == NAMES


@pytest.mark.usefixtures("owners")
@pytest.mark.parametrize("taken", ["read_file", "ours/one"])
def test_duplicate_tool_name_is_refused_without_changes(taken: str) -> None:
    set_tools("ours", [tool("ours/one")])
    with pytest.raises(ToolError, match=f'A tool "{taken}" already exists, and theirs has another'):
        set_tools("theirs", [tool("theirs/one"), tool(taken)])
    assert list(all_tools()) == [*NAMES, "ours/one"]
