"""The `agent` node: a model that works in turns, with tools, until it is done."""

from __future__ import annotations

from collections.abc import Iterator

from engine.formatting import format_count
from engine.nodes.agent_config import AgentConfig
from engine.nodes.agent_tools import FINISH, tool_definition
from engine.nodes.context import NodeContext
from engine.nodes.prompts import prepare_prompts, prompt_inputs, prompt_messages, prompt_texts
from engine.nodes.schema import SchemaError, compile_schema
from engine.nodes.spec import Category, FieldProblem, NodeError, NodeSpec, Outputs, Port, PortType
from engine.nodes.texts import text_problems
from engine.nodes.turns.base import AgentEnd
from engine.nodes.turns.registry import turn_strategies
from engine.tools.tool import ToolError


def _outputs(config: AgentConfig) -> tuple[Port, ...]:
    kind = PortType.JSON if config.reply_schema is not None else PortType.TEXT
    return (
        Port("output", kind, "The agent's final answer; nothing where it ended the loop."),
        Port("steps", PortType.LIST, "Every tool call: turn, thought, tool, arguments, result, error."),
        Port("status", PortType.TEXT, "How it ended: finished, max_turns or exited_loop."),
    )


def _check(config: AgentConfig) -> Iterator[FieldProblem]:
    yield from text_problems(prompt_texts(config))
    yield from _tool_problems(config)
    if config.reply_schema is not None:
        try:
            compile_schema(config.reply_schema)
        except SchemaError as error:
            yield FieldProblem("bad-schema", "reply_schema", error.message, error.remedy)
    strategy = turn_strategies().get(config.turn_strategy)
    if strategy is not None:
        yield from strategy.check(config)
        return
    yield FieldProblem(
        "unknown-turn-strategy",
        "turn_strategy",
        f'There is no turn strategy "{config.turn_strategy[:60]}".',
        f"There are: {', '.join(turn_strategies())}; one of a plugin needs the plugin.",
    )


def _tool_problems(config: AgentConfig) -> Iterator[FieldProblem]:
    for name in dict.fromkeys(config.tools):
        if name == FINISH:
            continue
        try:
            tool_definition(name)
        except ToolError as error:
            yield FieldProblem("unknown-tool", "tools", error.message, error.remedy)
        if config.tools.count(name) > 1:
            yield FieldProblem("repeated-tool", "tools", f'The tool "{name[:60]}" is there twice.', "Remove one.")
    for name in dict.fromkeys(config.require_approval):
        if name not in config.tools:
            yield FieldProblem(
                "approval-of-no-tool",
                "require_approval",
                f'A person is to be asked before "{name[:60]}" is called, which the agent does not have.',
                "Give it the tool, or do not ask.",
            )


async def _run(context: NodeContext[AgentConfig]) -> Outputs:
    config = context.config
    end = await turn_strategies()[config.turn_strategy].run(context, prompt_messages(context))
    if end.status == "max_turns":
        _out_of_turns(context)
    if end.status != "exited_loop" and not config.allow_empty and _has_no_text(end):
        raise NodeError("The agent ended without a text.", "Raise 'Max turns', or change the prompt.", retryable=True)
    return _given(end)


def _has_no_text(end: AgentEnd) -> bool:
    return end.output is None or (isinstance(end.output, str) and not end.output.strip())


def _out_of_turns(context: NodeContext[AgentConfig]) -> None:
    config = context.config
    message = f"The agent did not finish within {config.max_turns} turns."
    if config.on_max_turns == "fail":
        raise NodeError(message, "Raise 'Max turns', or make the task smaller.")
    if config.on_max_turns == "flag":
        context.warn(message)


def _given(end: AgentEnd) -> Outputs:
    beside: Outputs = {"steps": list(end.steps), "status": end.status}
    return beside if end.status == "exited_loop" else {"output": end.output, **beside}


def _summary(config: AgentConfig) -> str:
    count = len(config.tools)
    tools = format_count(count, "tool") if count else "no tools"
    return f"{tools} · {config.model_summary}"


SPEC = NodeSpec(
    type="agent",
    title="Agent",
    category=Category.AI,
    help="A model that calls tools in turns until it is done.",
    icon="mdi6.robot-outline",
    config=AgentConfig,
    inputs=prompt_inputs,
    outputs=_outputs,
    run=_run,
    prepare=prepare_prompts,
    texts=prompt_texts,
    check=_check,
    summary=_summary,
    iteration_note=True,
    model=lambda config: config.choice,
    goes_on=True,
)
