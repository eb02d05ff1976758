"""The `agent` node: a model that works in turns and calls tools until it is done; and its turn strategies.

A turn strategy decides how often the model is called and when the work is done. A plugin adds its own with
`register_strategy`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Final, Literal

from engine.formatting import format_count
from engine.models.protocol import Message, ModelError, ModelErrorKind, Reply, ToolCall
from engine.nodes.agent_tools import (
    EXIT_LOOP,
    FINISH,
    TOOL_CALLING,
    AgentConfig,
    Toolbox,
    outcome_text,
    tool_definition,
)
from engine.nodes.context import NodeContext
from engine.nodes.json_values import schema_problems
from engine.nodes.model_calls import (
    UnreadableReplyError,
    call_model,
    prepare_prompts,
    prompt_inputs,
    prompt_messages,
    prompt_texts,
    read,
    read_whole,
    structured_reply,
)
from engine.nodes.spec import Category, FieldProblem, NodeError, NodeSpec, Outputs, Port, PortType
from engine.text_sanitizing import shown
from engine.tools.tool import ToolError
from engine.values import Value


@dataclass(frozen=True, slots=True)
class AgentEnd:
    """The end of an agent's work.

    Attributes:
        status: How it ended.
        output: The final answer; the last text if turns ran out; None if the agent ended the loop.
        steps: One object per tool call: `turn` (from 1), `thought`, `tool`, `arguments`, `result`, `error`.
    """

    status: Literal["finished", "max_turns", "exited_loop"]
    output: Value = None
    steps: tuple[Value, ...] = ()


@dataclass(frozen=True, slots=True)
class TurnStrategy:
    """A way of taking turns.

    Attributes:
        name: Its name in documents.
        title: Its name in the window.
        help: One line on what it does.
        run: Does an agent's work, starting from these messages. When a failed attempt is retried, `context.retry_state`
            still holds what the attempt put there.
        check: Finds settings that do not fit it, before the run.
    """

    name: str
    title: str
    help: str
    run: Callable[[NodeContext[AgentConfig], list[Message]], Awaitable[AgentEnd]]
    check: Callable[[AgentConfig], Iterable[FieldProblem]] = lambda _config: ()


MAX_CALLS_PER_TURN: Final = 20

_ASK_FOR_TEXT: Final = Message("user", "You said nothing. Answer, or call a tool.")


@dataclass(slots=True)
class _Conversation:
    """The state of an agent's work, with which a retry continues.

    Attributes:
        messages: The conversation so far.
        turn: The number of turns so far.
        thought: The text of the last turn.
        pending: The tool calls of the last turn that are still to be made.
        finished_calls: The number of its calls that have been made.
        steps: See `AgentEnd`.
        last_text: The last text that was not empty.
    """

    messages: list[Message]
    turn: int = 0
    thought: str = ""
    pending: deque[ToolCall] = field(default_factory=deque[ToolCall])
    finished_calls: int = 0
    steps: list[Value] = field(default_factory=list[Value])
    last_text: str = ""


async def _run_tool_calling(context: NodeContext[AgentConfig], messages: list[Message]) -> AgentEnd:
    if context.retry_state is None:
        context.retry_state = _Conversation(messages)
    conversation: _Conversation = context.retry_state
    toolbox = Toolbox(context)
    while True:
        end = await _call_tools(context, conversation, toolbox)
        if end is not None:
            return end
        if conversation.turn >= context.config.max_turns:
            return AgentEnd("max_turns", conversation.last_text or None, tuple(conversation.steps))
        reply = await _take_turn(context, conversation, toolbox)
        if not reply.tool_calls:
            end = _answered(context.config, conversation, reply)
            if end is not None:
                return end


async def _take_turn(context: NodeContext[AgentConfig], conversation: _Conversation, toolbox: Toolbox) -> Reply:
    try:
        reply = await call_model(context, context.config, conversation.messages, tools=toolbox.definitions)
    except ModelError as error:
        if error.kind is ModelErrorKind.EMPTY_REPLY:  # the next attempt asks for an answer
            conversation.messages.append(_ASK_FOR_TEXT)
        raise
    conversation.turn += 1
    conversation.thought = reply.text
    if reply.text.strip():
        conversation.last_text = reply.text
    conversation.messages.append(Message("assistant", reply.text, reply.tool_calls))
    conversation.pending = deque(reply.tool_calls)
    conversation.finished_calls = 0
    return reply


async def _call_tools(
    context: NodeContext[AgentConfig], conversation: _Conversation, toolbox: Toolbox
) -> AgentEnd | None:
    """Make the tool calls of the last turn in order, and return the end of the work if one of them ends it."""
    while conversation.pending:
        call = conversation.pending[0]
        if conversation.finished_calls >= MAX_CALLS_PER_TURN:
            error = f"Not made: at most {MAX_CALLS_PER_TURN} tools are called in one turn."
            outcome = await toolbox.refuse(call, error)
        else:
            outcome = await toolbox.call(call)
        conversation.pending.popleft()
        conversation.finished_calls += 1
        conversation.messages.append(Message("tool", outcome_text(outcome), tool_call_id=call.id))
        conversation.steps.append(
            {
                "turn": conversation.turn,
                "thought": conversation.thought,
                "tool": call.name,
                "arguments": call.arguments if outcome.edited_arguments is None else outcome.edited_arguments,
                "result": outcome.result,
                "error": outcome.error,
            }
        )
        if outcome.error:
            continue
        if call.name == FINISH:
            return AgentEnd("finished", outcome.result, tuple(conversation.steps))
        if call.name == EXIT_LOOP:
            context.exit_loop()
            return AgentEnd("exited_loop", None, tuple(conversation.steps))
    return None


def _answered(config: AgentConfig, conversation: _Conversation, reply: Reply) -> AgentEnd | None:
    """The end of the work with the model's answer; None if the answer does not follow the schema."""
    steps = tuple(conversation.steps)
    if config.reply_schema is None:
        return AgentEnd("finished", reply.text, steps)
    try:
        return AgentEnd("finished", read_whole(reply, partial(read, schema=config.reply_schema)), steps)
    except UnreadableReplyError as failure:
        again = f"That could not be read: {shown(str(failure), 300)} Answer again, with the JSON alone."
        conversation.messages.append(Message("user", again))
        return None


TOOL_CALLING_STRATEGY: Final = TurnStrategy(
    TOOL_CALLING, "Tool calling", "Thinks, calls tools, reads their results, and repeats until done.", _run_tool_calling
)


def _check_single_call(config: AgentConfig) -> Iterator[FieldProblem]:
    if config.tools:
        yield FieldProblem(
            "tools-on-single-call",
            "tools",
            f"The strategy single_call uses no tools, but the agent has {format_count(len(config.tools), 'tool')}.",
            "Remove the tools, or choose the strategy tool_calling.",
        )


async def _run_single_call(context: NodeContext[AgentConfig], messages: list[Message]) -> AgentEnd:
    config = context.config
    if config.reply_schema is not None:
        return AgentEnd("finished", await structured_reply(context, config, messages, config.reply_schema))
    reply = await call_model(context, config, messages)
    if reply.tool_calls:
        raise NodeError(
            f'The model called the tool "{reply.tool_calls[0].name[:100]}", but it has no tools.',
            "Choose the strategy tool_calling, or another model.",
        )
    return AgentEnd("finished", reply.text)


SINGLE_CALL_STRATEGY: Final = TurnStrategy(
    "single_call", "Single call", "Calls the model once, without tools.", _run_single_call, _check_single_call
)

_STRATEGIES: dict[str, TurnStrategy] = {
    strategy.name: strategy for strategy in (TOOL_CALLING_STRATEGY, SINGLE_CALL_STRATEGY)
}


def turn_strategies() -> Mapping[str, TurnStrategy]:
    """All strategies by name, those of plugins included; read-only."""
    return MappingProxyType(_STRATEGIES)


def register_strategy(strategy: TurnStrategy) -> None:
    """Add a plugin's strategy, before documents are checked.

    Raises:
        ValueError: There is another one of that name.
    """
    if _STRATEGIES.get(strategy.name, strategy) is not strategy:
        raise ValueError(f"there is a turn strategy {strategy.name!r} already")
    _STRATEGIES[strategy.name] = strategy


def _outputs(config: AgentConfig) -> tuple[Port, ...]:
    kind = PortType.JSON if config.reply_schema is not None else PortType.TEXT
    return (
        Port("output", kind, "The final answer; none if the agent ended the loop."),
        Port("steps", PortType.LIST, "All tool calls: turn, thought, tool, arguments, result, error."),
        Port("status", PortType.TEXT, "How it ended: finished, max_turns or exited_loop."),
    )


def _check(config: AgentConfig) -> Iterator[FieldProblem]:
    yield from _tool_problems(config)
    yield from schema_problems(config.reply_schema, "reply_schema")
    if config.turn_strategy in _STRATEGIES:
        yield from _STRATEGIES[config.turn_strategy].check(config)
        return
    message = f'There is no turn strategy "{config.turn_strategy[:60]}".'
    remedy = f"Choose one of {', '.join(_STRATEGIES)}; one of a plugin needs the plugin."
    yield FieldProblem("unknown-turn-strategy", "turn_strategy", message, remedy)


def _tool_problems(config: AgentConfig) -> Iterator[FieldProblem]:
    for name in dict.fromkeys(config.tools):
        if name == FINISH:
            continue
        try:
            tool_definition(name)
        except ToolError as error:
            yield FieldProblem("unknown-tool", "tools", error.message, error.remedy)
        if config.tools.count(name) > 1:
            yield FieldProblem("repeated-tool", "tools", f'The tool "{name[:60]}" is listed twice.', "Remove one.")
    for name in dict.fromkeys(config.require_approval):
        if name not in config.tools:
            yield FieldProblem(
                "approval-of-no-tool",
                "require_approval",
                f'Calls of "{name[:60]}" require approval, but the agent does not have this tool.',
                "Add the tool, or remove it from 'Require approval'.",
            )


async def _run(context: NodeContext[AgentConfig]) -> Outputs:
    config = context.config
    end = await _STRATEGIES[config.turn_strategy].run(context, prompt_messages(context))
    if end.status == "max_turns" and config.on_max_turns != "return_last":
        message = f"The agent did not finish within {config.max_turns} turns."
        if config.on_max_turns == "fail":
            raise NodeError(message, "Raise 'Max turns', or make the task smaller.")
        context.warn(message)
    beside: Outputs = {"steps": list(end.steps), "status": end.status}
    if end.status == "exited_loop":
        return beside
    is_empty = end.output is None or (isinstance(end.output, str) and not end.output.strip())
    if is_empty and not config.allow_empty:
        raise NodeError("The agent ended without a text.", "Raise 'Max turns', or change the prompt.", retryable=True)
    return {"output": end.output, **beside}


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
    exit_loop_field=lambda config: "tools" if EXIT_LOOP in config.tools else "",
    iteration_note=True,
    model=lambda config: config.choice,
    synonyms=("assistant", "react", "function calling"),
    keeps_retry_state=True,
)
