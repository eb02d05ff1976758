"""The `transform` node: computes a value with a template or an expression, without a model."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

from pydantic import Field

from engine.expr import Expression, Template, compile_expression, compile_template
from engine.nodes.context import NodeContext
from engine.nodes.spec import (
    CACHED_TEXTS,
    Category,
    NamedText,
    NodeConfig,
    NodeSpec,
    OutputKey,
    Outputs,
    Port,
    PortType,
    TextKind,
    choice_label,
    named_ports,
    uses,
)


class TransformConfig(NodeConfig, OutputKey):
    """Settings of a `transform` node."""

    mode: Literal["template", "expression"] = Field(
        default="template",
        title="Made by",
        description=(
            "template: A text with {{names}} filled in. expression: A CEL expression with any JSON value as its result."
        ),
        json_schema_extra={"labels": {"template": "Template", "expression": "Expression"}},
    )
    template: str = Field(
        default="{{input}}",
        title="Template",
        description="The text. {{name}} inserts the value of the port with that name.",
        json_schema_extra={"widget": "prompt", "shown_when": {"mode": "template"}},
    )
    expression: str = Field(
        default="input",
        title="Expression",
        description="A CEL expression, such as size(input) or input.items[0].",
        json_schema_extra={"widget": "expression", "shown_when": {"mode": "expression"}},
    )


def _text(config: TransformConfig) -> str:
    return config.template if config.mode == "template" else config.expression


@lru_cache(maxsize=CACHED_TEXTS)
def _texts(mode: str, text: str) -> tuple[NamedText, ...]:
    return (NamedText(mode, TextKind(mode), text),)


@lru_cache(maxsize=CACHED_TEXTS)
def _ports(mode: str, text: str) -> tuple[Port, ...]:
    texts = _texts(mode, text)
    return (
        Port("input", help="What the text calls {{input}}.", required=uses(texts, "input"), gate=True, many=True),
        *named_ports(texts, beside=("input",)),
    )


_TEXT_OUTPUTS = (Port("output", PortType.TEXT, "The computed value."),)
_OUTPUTS = (Port("output", PortType.ANY, "The computed value."),)


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
    help="Computes a value with a template or an expression, without a model.",
    icon="mdi6.function-variant",
    config=TransformConfig,
    inputs=lambda config: _ports(config.mode, _text(config)),
    outputs=lambda config: _TEXT_OUTPUTS if config.mode == "template" else _OUTPUTS,
    run=_run,
    prepare=_prepare,
    texts=lambda config: _texts(config.mode, _text(config)),
    summary=lambda config: choice_label(config, "mode"),
    synonyms=("template", "text", "format", "join", "replace", "json", "code"),
)
