from __future__ import annotations

from typing import Any

import pytest

from engine.nodes.node_registry import builtin_registry
from engine.nodes.spec import AnySpec, Port, PortType
from engine.tools.registry import builtin_tools
from tests.engine.nodes.context import run_node

_found = builtin_registry().find("tool")
assert _found is not None
TOOL: AnySpec = _found


def ports(**config: Any) -> dict[str, Port]:
    return {port.name: port for port in TOOL.inputs(TOOL.config.model_validate(config))}


def faults(**config: Any) -> list[tuple[str, str | None, str, str]]:
    found = TOOL.check(TOOL.config.model_validate(config))
    return [(fault.code, fault.field, fault.message, fault.remedy) for fault in found]


@pytest.mark.parametrize("name", list(builtin_tools()))
def test_each_parameter_of_a_tool_is_a_port_with_its_help(name: str) -> None:
    parameters = builtin_tools()[name].parameters.model_fields
    there = ports(tool=name)

    assert list(there) == list(parameters)
    assert all(port.help for port in there.values())
    assert {port.name: port.required for port in there.values()} == {
        key: field.is_required() for key, field in parameters.items()
    }


def test_ports_have_the_types_of_the_parameters() -> None:
    there = ports(tool="search_files")

    assert there["query"].type is PortType.TEXT
    assert PortType.NUMBER in {port.type for port in there.values()}


def test_the_output_has_the_type_that_the_tool_declares() -> None:
    for tool in builtin_tools().values():
        (output,) = TOOL.outputs(TOOL.config.model_validate({"tool": tool.name}))
        assert (output.name, output.type) == ("output", PortType(tool.output_type))


def test_a_parameter_with_a_value_in_the_settings_needs_no_edge() -> None:
    assert ports(tool="read_file")["path"].required is True
    assert ports(tool="read_file", arguments={"path": "a.txt"})["path"].required is False


def test_an_unknown_tool_has_no_inputs_and_is_a_problem_with_a_suggestion() -> None:
    assert ports(tool="read_fiel") == {}
    ((code, field, message, remedy),) = faults(tool="read_fiel")
    assert (code, field) == ("unknown-tool", "tool")
    assert "read_fiel" in message
    assert "read_file" in remedy.partition("?")[0]


def test_an_unknown_argument_is_a_problem_with_the_known_ones() -> None:
    assert faults(tool="read_file", arguments={"path": "a", "paht": "b"}) == [
        (
            "unknown-argument",
            "arguments.paht",
            'The tool "read_file" has no parameter "paht".',
            f"It has: {', '.join(builtin_tools()['read_file'].parameters.model_fields)}.",
        )
    ]


def test_a_tool_with_valid_settings_has_no_problem() -> None:
    assert faults(tool="read_file", arguments={"path": "a"}) == []


async def test_a_value_at_a_port_overrides_the_setting() -> None:
    ran = await run_node("tool", {"tool": "write_file", "arguments": {"path": "a", "text": "old"}}, {"text": "new"})

    assert ran.services.tool_calls == [("write_file", {"path": "a", "text": "new"})]
    assert ran.outputs == {"output": "what the tool gave"}


def test_the_summary_names_the_tool() -> None:
    assert TOOL.summary(TOOL.config.model_validate({"tool": "read_file"})) == "read_file"
