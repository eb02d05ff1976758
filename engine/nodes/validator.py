"""The `validator` node: checks a value against a JSON Schema or an expression."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from engine.expr import Expression, compile_expression
from engine.nodes.context import NodeContext
from engine.nodes.json_values import Schema, compile_schema, parse_json, schema_problems
from engine.nodes.spec import Category, NamedText, NodeConfig, NodeError, NodeSpec, Outputs, Port, PortType, TextKind
from engine.text_sanitizing import quoted
from engine.values import Value


class ValidatorConfig(NodeConfig):
    """Settings of a `validator` node."""

    mode: Literal["schema", "expression"] = Field(
        default="schema",
        title="Checked by",
        description="schema: The value must match a JSON Schema. expression: A condition on the value must be true.",
        json_schema_extra={"labels": {"schema": "JSON Schema", "expression": "Condition"}},
    )
    json_schema: dict[str, Any] = Field(
        default_factory=dict,
        title="JSON Schema",
        description="The schema of a valid value. Text is parsed as JSON first. {} accepts any JSON.",
        json_schema_extra={"widget": "json", "shown_when": {"mode": "schema"}},
    )
    expression: str = Field(
        default="true",
        title="Condition",
        description="What is true of a valid value, such as: input is shorter than 500.",
        json_schema_extra={"widget": "comparison", "shown_when": {"mode": "expression"}},
    )
    message: str = Field(
        default="",
        title="Message",
        description=("The text at the port 'errors' if the condition is false. Leave empty for the condition itself."),
        json_schema_extra={"shown_when": {"mode": "expression"}},
    )


def _texts(config: ValidatorConfig) -> tuple[NamedText, ...]:
    if config.mode == "schema":
        return ()
    return (NamedText("expression", TextKind.EXPRESSION, config.expression),)


def _prepare(config: ValidatorConfig) -> Schema | Expression:
    if config.mode == "schema":
        return compile_schema(config.json_schema)
    return compile_expression(config.expression)


async def _run(context: NodeContext[ValidatorConfig]) -> Outputs:
    value, errors = _examine(context)
    if errors:
        return {"invalid": context.inputs["input"], "errors": errors}
    return {"valid": value, "errors": []}


def _examine(context: NodeContext[ValidatorConfig]) -> tuple[Value, list[Value]]:
    prepared: Schema | Expression = context.prepared
    value = context.inputs["input"]
    if isinstance(prepared, Schema):
        if isinstance(value, str):
            try:
                value = parse_json(value)
            except ValueError as error:
                return value, [f"the text is not JSON ({error})."]
        return value, list(prepared.errors(value))
    verdict = prepared.evaluate(context.scope)
    if not isinstance(verdict, bool):
        raise NodeError(
            f"The condition {context.config.expression!r} returned {quoted(verdict)}, not true or false.",
            "Write a condition, such as size(input) < 500.",
        )
    return value, [] if verdict else [context.config.message or f"not true: {context.config.expression}"]


def _recorded(outputs: Outputs) -> Value:
    valid = "valid" in outputs
    return {"valid": valid, "value": outputs.get("valid" if valid else "invalid"), "errors": outputs.get("errors")}


SPEC = NodeSpec(
    type="validator",
    title="Validator",
    category=Category.LOGIC,
    help="Checks a value against a JSON Schema or a condition.",
    icon="mdi6.check-decagram",
    config=ValidatorConfig,
    inputs=lambda _config: (Port("input", help="The value to check.", required=True, many=True),),
    outputs=lambda _config: (
        Port("valid", help="The value, if it is valid; text that was parsed as JSON is JSON here.", branch=True),
        Port("invalid", help="The value, unchanged, if it is invalid.", branch=True),
        Port("errors", PortType.LIST, "The errors as texts; empty if there are none."),
    ),
    run=_run,
    prepare=_prepare,
    texts=_texts,
    check=lambda config: schema_problems(config.json_schema if config.mode == "schema" else None, "json_schema"),
    summary=lambda config: "JSON Schema" if config.mode == "schema" else config.expression,
    recorded=_recorded,
    recorded_members=("valid", "value", "errors"),
    synonyms=("schema", "check", "assert", "guard"),
)
