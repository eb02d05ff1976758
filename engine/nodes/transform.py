"""The `transform` node: makes a new value of its inputs, by a template or an expression, without a model."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from engine.expr import Expression, Template, compile_expression, compile_template
from engine.nodes.context import NodeContext
from engine.nodes.output_key import OutputKey
from engine.nodes.spec import Category, FieldProblem, NamedText, NodeConfig, NodeSpec, Outputs, Port, PortType, TextKind
from engine.nodes.texts import named_ports, text_problems, uses


class TransformConfig(NodeConfig, OutputKey):
    """Settings of a `transform` node."""

    mode: Literal["template", "expression"] = Field(
        default="template",
        title="Made by",
        description="template: a text with {{names}} filled in. expression: a formula that may give any JSON value.",
    )
    template: str = Field(
        default="{{input}}",
        title="Template",
        description="The text. {{name}} puts in what reaches the port of that name.",
        json_schema_extra={"widget": "prompt", "shown_when": {"mode": "template"}},
    )
    expression: str = Field(
        default="input",
        title="Expression",
        description="A CEL expression, such as size(input) or input.items[0].",
        json_schema_extra={"widget": "expression", "shown_when": {"mode": "expression"}},
    )


def _texts(config: TransformConfig) -> tuple[NamedText, ...]:
    if config.mode == "template":
        return (NamedText("template", TextKind.TEMPLATE, config.template),)
    return (NamedText("expression", TextKind.EXPRESSION, config.expression),)


def _inputs(config: TransformConfig) -> tuple[Port, ...]:
    texts = _texts(config)
    return (
        Port("input", help="What the text calls {{input}}.", required=uses(texts, "input"), gate=True, many=True),
        *named_ports(texts, beside=("input",)),
    )


def _outputs(config: TransformConfig) -> tuple[Port, ...]:
    kind = PortType.TEXT if config.mode == "template" else PortType.ANY
    return (Port("output", kind, "What was made."),)


def _check(config: TransformConfig) -> list[FieldProblem]:
    return list(text_problems(_texts(config)))


def _prepare(config: TransformConfig) -> Template | Expression:
    if config.mode == "template":
        return compile_template(config.template)
    return compile_expression(config.expression)


async def _run(context: NodeContext[TransformConfig]) -> Outputs:
    prepared: Template | Expression = context.prepared
    if isinstance(prepared, Template):
        return {"output": prepared.render(context.scope)}
    return {"output": prepared.evaluate(context.scope)}


SPEC = NodeSpec(
    type="transform",
    title="Transform",
    category=Category.LOGIC,
    help="Makes a new value with a template or an expression; no model is asked.",
    icon="mdi6.function-variant",
    config=TransformConfig,
    inputs=_inputs,
    outputs=_outputs,
    run=_run,
    prepare=_prepare,
    texts=_texts,
    check=_check,
    summary=lambda config: config.mode,
)
