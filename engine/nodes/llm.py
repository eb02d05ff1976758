"""The `llm` node: one call of a language model."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from pydantic import Field

from engine.expr import Template, compile_template
from engine.models.base import Finish, Message
from engine.nodes.context import NodeContext
from engine.nodes.model_fields import ModelFields
from engine.nodes.schema import SchemaError, compile_schema
from engine.nodes.spec import (
    Category,
    FieldProblem,
    ModelChoice,
    NamedText,
    NodeError,
    NodeSpec,
    Outputs,
    Port,
    PortType,
    TextKind,
)
from engine.nodes.structured import UnreadableReplyError, ask, read
from engine.nodes.texts import named_ports, text_problems, uses
from engine.values import Value, to_text


class LlmConfig(ModelFields):
    """Settings of an `llm` node."""

    system: str = Field(
        default="",
        title="System prompt",
        description="Who the model is and how it works. {{name}} puts in what reaches the port of that name.",
        json_schema_extra={"widget": "prompt"},
    )
    prompt: str = Field(
        default="",
        title="Prompt",
        description="What the model is asked. {{input}} puts in the input; without it, the input comes last.",
        json_schema_extra={"widget": "prompt"},
    )
    reply_schema: dict[str, Any] | None = Field(
        default=None,
        title="Structured reply",
        description="A JSON Schema that the reply must follow; the output is then JSON. Empty: free text.",
        json_schema_extra={"widget": "json", "group": "more"},
    )


@dataclass(frozen=True, slots=True)
class _Prepared:
    system: Template
    prompt: Template
    names_input: bool
    choice: ModelChoice


def _texts(config: LlmConfig) -> tuple[NamedText, ...]:
    return (
        NamedText("system", TextKind.TEMPLATE, config.system),
        NamedText("prompt", TextKind.TEMPLATE, config.prompt),
    )


def _inputs(config: LlmConfig) -> tuple[Port, ...]:
    texts = _texts(config)
    needed = uses(texts, "input") or not config.prompt.strip()
    return (
        Port("input", help="What the prompt calls {{input}}.", required=needed, gate=True, many=True),
        *named_ports(texts, beside=("input",)),
    )


def _outputs(config: LlmConfig) -> tuple[Port, ...]:
    kind = PortType.JSON if config.reply_schema is not None else PortType.TEXT
    return (
        Port("output", kind, "The model's reply."),
        Port("usage", PortType.JSON, "Tokens and price of the call."),
    )


def _check(config: LlmConfig) -> list[FieldProblem]:
    problems = list(text_problems(_texts(config)))
    if config.reply_schema is not None:
        try:
            compile_schema(config.reply_schema)
        except SchemaError as error:
            problems.append(FieldProblem("bad-schema", "reply_schema", error.message, error.remedy))
    return problems


def _prepare(config: LlmConfig) -> _Prepared:
    system, prompt = compile_template(config.system), compile_template(config.prompt)
    return _Prepared(system, prompt, uses(_texts(config), "input"), config.choice)


def _messages(context: NodeContext[LlmConfig]) -> list[Message]:
    prepared: _Prepared = context.prepared
    prompt = prepared.prompt.render(context.scope)
    if not prepared.names_input and "input" in context.inputs:
        given = to_text(context.inputs["input"])
        prompt = f"{prompt}\n\n{given}" if prompt else given
    if context.iteration_note is not None:
        prompt = context.iteration_note.added_to(prompt)
    messages = [Message("user", prompt)]
    if context.config.system:
        messages.insert(0, Message("system", prepared.system.render(context.scope)))
    return messages


async def _run(context: NodeContext[LlmConfig]) -> Outputs:
    config = context.config
    output: Value
    if config.reply_schema is not None:
        schema = config.reply_schema
        try:
            output = await ask(context, config, _messages(context), schema, partial(read, schema=schema))
        except UnreadableReplyError as error:
            raise NodeError(
                f"The reply does not follow the JSON Schema, asked twice: {error}",
                "Make the schema simpler, allow more tokens in the reply, or take a stronger model.",
                retryable=True,
            ) from error
    else:
        reply = await context.complete(
            context.prepared.choice,
            _messages(context),
            temperature=config.temperature,
            max_tokens=config.max_tokens,
            seed=config.seed,
        )
        output = reply.text
        if reply.finish is Finish.LENGTH:
            context.warn("The reply was cut off at the most tokens that it may have; raise 'Most tokens in the reply'.")
        elif reply.finish is Finish.CONTENT_FILTER:
            context.warn("The provider's content filter cut the reply off.")
    return {"output": output, "usage": _usage(context)}


def _usage(context: NodeContext[LlmConfig]) -> Value:
    usage = context.usage
    if usage is None:
        return None
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "exact": usage.exact,
        "cost_usd": context.cost_usd,
    }


def _summary(config: LlmConfig) -> str:
    return config.model_summary + (" · structured" if config.reply_schema is not None else "")


SPEC = NodeSpec(
    type="llm",
    title="LLM",
    category=Category.AI,
    help="Asks a language model once.",
    icon="mdi6.creation",
    config=LlmConfig,
    inputs=_inputs,
    outputs=_outputs,
    run=_run,
    prepare=_prepare,
    texts=_texts,
    check=_check,
    summary=_summary,
    model=lambda config: config.choice,
)
