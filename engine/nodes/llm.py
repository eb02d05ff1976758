"""The `llm` node: one call of a language model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import Field

from engine.models.protocol import Reply
from engine.nodes.agent_tools import EXIT_LOOP, EXIT_LOOP_DEFINITION
from engine.nodes.context import NodeContext, no_text
from engine.nodes.json_values import schema_problems
from engine.nodes.model_calls import (
    PromptFields,
    call_model,
    prepare_prompts,
    prompt_inputs,
    prompt_messages,
    prompt_texts,
    structured_reply,
)
from engine.nodes.spec import Category, FieldProblem, NodeSpec, OutputKey, Outputs, Port, PortType
from engine.values import Value


class LlmConfig(PromptFields, OutputKey):
    """Settings of an `llm` node."""

    reply_schema: dict[str, Any] | None = Field(
        default=None,
        title="Structured reply",
        description="A JSON Schema that the reply must match; the output is JSON. Leave empty for text.",
        json_schema_extra={"widget": "json", "group": "more"},
    )
    may_exit_loop: bool = Field(
        default=False,
        title="May end the loop",
        description=("In a loop, the model may call the tool exit_loop instead of answering, which ends the loop."),
        json_schema_extra={"group": "more"},
    )


_USAGE = Port("usage", PortType.JSON, "Tokens and price of the call.")
_OUTPUTS = Port("output", PortType.TEXT, "The model's reply."), _USAGE
_STRUCTURED_OUTPUTS = Port("output", PortType.JSON, "The model's reply."), _USAGE


def _check(config: LlmConfig) -> Iterator[FieldProblem]:
    if config.reply_schema is None:
        return
    yield from schema_problems(config.reply_schema, "reply_schema")
    if config.may_exit_loop:
        yield FieldProblem(
            "exit-loop-with-schema",
            "may_exit_loop",
            "A structured reply leaves no room for ending the loop.",
            "Use an agent with the tool exit_loop, or a condition 'until' of the loop that reads the reply.",
        )


async def _run(context: NodeContext[LlmConfig]) -> Outputs:
    if context.config.reply_schema is not None:
        schema = context.config.reply_schema
        output = await structured_reply(context, context.config, prompt_messages(context), schema)
        return {"output": output, "usage": _usage(context)}
    config = context.config
    tools = (EXIT_LOOP_DEFINITION,) if config.may_exit_loop else ()
    reply = await call_model(context, config, prompt_messages(context), tools=tools)
    if reply.tool_calls and await _exits_loop(context, reply):
        return {"usage": _usage(context)}
    if reply.tool_calls and not reply.text.strip() and not config.allow_empty:
        raise no_text(reply, context.calls[-1].request)
    return {"output": reply.text, "usage": _usage(context)}


async def _exits_loop(context: NodeContext[LlmConfig], reply: Reply) -> bool:
    """Whether the model ended the loop; the tool call becomes part of the history."""

    async def nothing() -> Value:
        return None

    for call in reply.tool_calls:
        if context.config.may_exit_loop and call.name == EXIT_LOOP:
            await context.act(call.name, call.arguments, nothing)
            context.exit_loop()
            return True
    if reply.tool_calls:
        context.warn(f'The model requested the tool "{reply.tool_calls[0].name[:60]}", which it does not have.')
    return False


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


SPEC = NodeSpec(
    type="llm",
    title="LLM",
    category=Category.AI,
    help="Calls a language model once.",
    icon="mdi6.creation",
    config=LlmConfig,
    inputs=prompt_inputs,
    outputs=lambda config: _OUTPUTS if config.reply_schema is None else _STRUCTURED_OUTPUTS,
    run=_run,
    prepare=prepare_prompts,
    texts=prompt_texts,
    check=_check,
    summary=lambda config: config.model_summary + (" · structured" if config.reply_schema is not None else ""),
    exit_loop_field=lambda config: "may_exit_loop" if config.may_exit_loop else "",
    iteration_note=True,
    model=lambda config: config.choice,
    synonyms=("prompt", "chat", "gpt", "model", "ai", "ask", "completion"),
)
