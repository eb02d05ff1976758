from __future__ import annotations

import inspect
import re
import subprocess
import sys

import pytest
from pydantic import ValidationError

from engine.tools.base import AnyTool, ToolError
from engine.tools.registry import builtin_tools, find_tool

ALL = list(builtin_tools().values())


def test_the_built_in_tools_are_the_four() -> None:
    assert list(builtin_tools()) == ["search_files", "http_get", "read_file", "write_file"]
    assert find_tool("read_file") is builtin_tools()["read_file"]


def test_the_registry_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        builtin_tools()["x"] = ALL[0]  # type: ignore[index]


def test_a_misspelt_tool_is_answered_with_the_nearest_name_and_all_names() -> None:
    with pytest.raises(ToolError) as caught:
        find_tool("Search_file")
    assert caught.value.message == "There is no tool called 'Search_file'."
    assert "Did you mean 'search_files'?" in caught.value.remedy
    assert "search_files, http_get, read_file, write_file" in caught.value.remedy


def test_a_name_like_none_is_answered_without_a_guess() -> None:
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


def test_importing_the_tools_loads_nothing_slow() -> None:
    # Before, because measuring coverage loads sqlite3 itself.
    program = (
        "import sys; before = set(sys.modules); import engine.tools.registry; "
        "print(sorted({'httpx', 'httpcore', 'sqlite3'} & (set(sys.modules) - before)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
