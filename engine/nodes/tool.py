"""The `tool` node: a call of a tool.

The tool's parameters are the input ports. A parameter without an edge gets its value from the settings, else the tool's
default.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pydantic import Field

from engine.nodes.context import NodeContext
from engine.nodes.spec import CacheMode, Category, FieldProblem, NodeConfig, NodeSpec, Outputs, Port, PortType
from engine.tools.registry import find_tool
from engine.tools.tool import AnyTool, ToolError
from engine.values import Value


class ToolConfig(NodeConfig):
    """Settings of a `tool` node."""

    tool: str = Field(default="", title="Tool", description="The tool to call.", json_schema_extra={"widget": "tool"})
    arguments: dict[str, Any] = Field(
        default_factory=dict,
        title="Arguments",
        description="Values of parameters without an edge, by name.",
        json_schema_extra={"widget": "arguments"},
    )
    cache: CacheMode = Field(
        default="off",
        title="Cache results",
        description=(
            "Reuses the stored result for identical arguments instead of calling the tool. Leave it off for tools that "
            "change something. Needs the history. off: The tool is called every time. always: A tool has no "
            "temperature, so this is the same as 'On'."
        ),
        json_schema_extra={
            "group": "more",
            "labels": {"off": "Off", "repeatable": "On", "always": "Always (same as On)"},
        },
    )


_PORT_TYPES: Final = {
    "string": PortType.TEXT,
    "integer": PortType.NUMBER,
    "number": PortType.NUMBER,
    "boolean": PortType.BOOLEAN,
    "array": PortType.LIST,
    "object": PortType.JSON,
}


def _port_type(parameter: dict[str, Any]) -> PortType:
    kind = parameter.get("type")  # a list of types in the schemas of some servers
    return _PORT_TYPES.get(kind, PortType.ANY) if isinstance(kind, str) else PortType.ANY


def _tool(config: ToolConfig) -> AnyTool | None:
    try:
        return find_tool(config.tool)
    except ToolError:
        return None


def _inputs(config: ToolConfig) -> tuple[Port, ...]:
    tool = _tool(config)
    if tool is None:
        return ()
    schema = tool.parameters.model_json_schema()
    required = set(schema.get("required", ()))
    return tuple(
        Port(
            name,
            _port_type(parameter),
            parameter.get("description", ""),
            required=name in required and name not in config.arguments,
        )
        for name, parameter in schema.get("properties", {}).items()
    )


def _outputs(config: ToolConfig) -> tuple[Port, ...]:
    tool = _tool(config)
    kind = PortType.ANY if tool is None else PortType(tool.output_type)
    return (Port("output", kind, "The result of the tool."),)


def _check(config: ToolConfig) -> list[FieldProblem]:
    try:
        tool = find_tool(config.tool)
    except ToolError as error:
        return [FieldProblem("unknown-tool", "tool", error.message, error.remedy)]
    known = tool.parameters.model_fields
    return [
        FieldProblem(
            "unknown-argument",
            f"arguments.{name}",
            f'The tool "{tool.name}" has no parameter "{name}".',
            f"It has: {', '.join(known)}.",
        )
        for name in config.arguments
        if name not in known
    ]


async def _run(context: NodeContext[ToolConfig]) -> Outputs:
    config, services = context.config, context.services
    arguments: Mapping[str, Value] = {**config.arguments, **context.inputs}
    if context.inputs:
        arguments = await services.confirm_call(context, config.tool, arguments)
    return {"output": await services.call_tool(config.tool, arguments, context, may_reuse=True)}


SPEC = NodeSpec(
    type="tool",
    title="Tool",
    category=Category.TOOLS,
    help="Calls a tool: searches files, fetches a page, reads or writes a file.",
    icon="mdi6.wrench",
    config=ToolConfig,
    inputs=_inputs,
    outputs=_outputs,
    run=_run,
    check=_check,
    summary=lambda config: config.tool,
    synonyms=("http", "url", "web", "request", "api", "file", "python", "code", "script", "function"),
)
