"""The `input` node: a named, typed parameter of the workflow."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from engine.nodes.context import NodeContext
from engine.nodes.json_values import ConversionError, convert
from engine.nodes.spec import Category, FieldProblem, NodeConfig, NodeSpec, Outputs, Port, PortType, choice_label


class InputConfig(NodeConfig):
    """Settings of an `input` node."""

    name: str = Field(
        default="",
        max_length=100,
        title="Name",
        description=("Name of the input in the run dialog and on the command line. Leave empty for the node's id."),
    )
    type: PortType = Field(
        default=PortType.TEXT,
        strict=False,
        title="Type",
        description="The type of the value.",
        json_schema_extra={
            "labels": {
                "any": "Any",
                "text": "Text",
                "json": "JSON",
                "number": "Number",
                "boolean": "True or false",
                "list": "List",
            }
        },
    )
    default: Any = Field(
        default=None,
        title="Default",
        description="The value if a run provides none. Leave empty to make the input required.",
    )
    description: str = Field(
        default="", title="Description", description="A hint for the person who fills in the value."
    )


def _check(config: InputConfig) -> list[FieldProblem]:
    if config.default is None:
        return []
    try:
        convert(config.default, config.type)
    except ConversionError as error:
        message = f"The default is not of the type {config.type}: {error.message}"
        remedy = "Write a default of the declared type, or change the type."
        return [FieldProblem("bad-default", "default", message, remedy)]
    return []


async def _run(context: NodeContext[InputConfig]) -> Outputs:
    # The run has converted the value to the declared type; parsing a JSON text twice would change it.
    return {"value": context.services.parameter(context.config.name or context.path.rpartition(".")[2])}


def _summary(config: InputConfig) -> str:
    return f"{choice_label(config, 'type')}, {'optional' if config.default is not None else 'required'}"


SPEC = NodeSpec(
    type="input",
    title="Input",
    category=Category.IO,
    help="An input value of the workflow.",
    icon="mdi6.login",
    config=InputConfig,
    inputs=lambda _config: (),
    outputs=lambda config: (Port("value", config.type, "The value that the run received."),),
    run=_run,
    check=_check,
    summary=_summary,
    recorded=lambda outputs: outputs.get("value"),
    synonyms=("variable", "parameter", "start", "question"),
)
