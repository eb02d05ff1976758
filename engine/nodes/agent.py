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
from engine.nodes.context import NodeContext, ToolOutcome
from engine.nodes.json_values import SchemaError, compile_schema
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
from engine.nodes.spec import Category, FieldProblem, NodeError, NodeSpec, Outputs, Port, PortType, text_problems
from engine.text_sanitizing import shown
from engine.tools.tool import ToolError
from engine.values import Value

AgentStatus = Literal["finished", "max_turns", "exited_loop"]
"""How an agent's work came to its end."""


@dataclass(frozen=True, slots=True)
class AgentEnd:
    """What an agent's work came to.

    Attributes:
        status: How it ended.
        output: The final answer; where turns ran out, the last text; nothing where the agent ended the loop.
        steps: What it did, one object a tool call: `turn` (from 1), `thought`, `tool`, `arguments`, `result`, `error`.
    """

    status: AgentStatus
    output: Value = None
    steps: tuple[Value, ...] = ()


def no_problems(_config: AgentConfig) -> Iterable[FieldProblem]:
    """For strategies that any settings fit."""
    return ()


@dataclass(frozen=True, slots=True)
class TurnStrategy:
    """A way of taking turns.

    Attributes:
        name: How documents call it.
        title: How people call it.
        help: One line on what it does.
        run: Does an agent's work, starting from these messages. What it puts into `context.kept` is there again when
            it is called anew after a failure that may pass.
        check: Refuses settings that do not fit it, before the run.
    """

    name: str
    title: str
    help: str
    run: Callable[[NodeContext[AgentConfig], list[Message]], Awaitable[AgentEnd]]
    check: Callable[[AgentConfig], Iterable[FieldProblem]] = no_problems


MOST_CALLS: Final = 20
"""The most tools that are called in one turn."""

_SAY_SOMETHING: Final = Message("user", "You said nothing. Answer, or call a tool.")


@dataclass(slots=True)
class _Conversation:
    """How far an agent has come: what a later attempt goes on from.

    Attributes:
        messages: What was said so far.
        turn: How many turns it has taken.
        thought: The text of the last turn.
        pending: The calls of the last turn that have not been carried out yet.
        carried_out: How many of the last turn's have.
        steps: What it did.
        last_text: The last text that was not empty.
    """

    messages: list[Message]
    turn: int = 0
    thought: str = ""
    pending: deque[ToolCall] = field(default_factory=deque[ToolCall])
    carried_out: int = 0
    steps: list[Value] = field(default_factory=list[Value])
    last_text: str = ""


async def _run_tool_calling(context: NodeContext[AgentConfig], messages: list[Message]) -> AgentEnd:
    if context.kept is None:
        context.kept = _Conversation(messages)
    conversation: _Conversation = context.kept
    toolbox = Toolbox(context)
    while True:
        end = await _carry_out(context, conversation, toolbox)
        if end is not None:
            return end
        if conversation.turn >= context.config.max_turns:
            return AgentEnd("max_turns", conversation.last_text or None, tuple(conversation.steps))
        reply = await _think(context, conversation, toolbox)
        if not reply.tool_calls:
            end = _answered(context.config, conversation, reply)
            if end is not None:
                return end


async def _think(context: NodeContext[AgentConfig], conversation: _Conversation, toolbox: Toolbox) -> Reply:
    """One turn: call the model, and take up what it says."""
    try:
        reply = await call_model(context, context.config, conversation.messages, tools=toolbox.definitions)
    except ModelError as error:
        if error.kind is ModelErrorKind.EMPTY_REPLY:  # the next attempt asks for an answer
            conversation.messages.append(_SAY_SOMETHING)
        raise
    conversation.turn += 1
    conversation.thought = reply.text
    if reply.text.strip():
        conversation.last_text = reply.text
    conversation.messages.append(Message("assistant", reply.text, reply.tool_calls))
    conversation.pending = deque(reply.tool_calls)
    conversation.carried_out = 0
    return reply


async def _carry_out(
    context: NodeContext[AgentConfig], conversation: _Conversation, toolbox: Toolbox
) -> AgentEnd | None:
    """Carry out the calls of the last turn, one after the other; the end of the work, if one of them ends it."""
    while conversation.pending:
        call = conversation.pending[0]
        if conversation.carried_out >= MOST_CALLS:
            outcome = await toolbox.refuse(call, f"Not made: at most {MOST_CALLS} tools are called in one turn.")
        else:
            outcome = await toolbox.call(call)
        conversation.pending.popleft()
        conversation.carried_out += 1
        conversation.messages.append(Message("tool", outcome_text(outcome), tool_call_id=call.id))
        conversation.steps.append(_step(conversation, call, outcome))
        if outcome.error:
            continue
        if call.name == FINISH:
            return AgentEnd("finished", outcome.result, tuple(conversation.steps))
        if call.name == EXIT_LOOP:
            context.exit_loop()
            return AgentEnd("exited_loop", None, tuple(conversation.steps))
    return None


def _step(conversation: _Conversation, call: ToolCall, outcome: ToolOutcome) -> Value:
    return {
        "turn": conversation.turn,
        "thought": conversation.thought,
        "tool": call.name,
        "arguments": call.arguments if outcome.edited_arguments is None else outcome.edited_arguments,
        "result": outcome.result,
        "error": outcome.error,
    }


def _answered(config: AgentConfig, conversation: _Conversation, reply: Reply) -> AgentEnd | None:
    """The end of the work where the model answered; None where it did not, or not as its schema says."""
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
    TOOL_CALLING,
    "Tool calling",
    "Thinks, calls tools, looks at what they gave, and goes on until it is done.",
    _run_tool_calling,
)


def _check_single_call(config: AgentConfig) -> Iterator[FieldProblem]:
    if config.tools:
        yield FieldProblem(
            "tools-on-single-call",
            "tools",
            f"An agent of the strategy single_call calls its model once, and no tools; it has {len(config.tools)}.",
            "Remove the tools, or choose the strategy tool_calling.",
        )


async def _run_single_call(context: NodeContext[AgentConfig], messages: list[Message]) -> AgentEnd:
    config = context.config
    if config.reply_schema is not None:
        return AgentEnd("finished", await structured_reply(context, config, messages, config.reply_schema))
    reply = await call_model(context, config, messages)
    if reply.tool_calls:
        raise NodeError(
            f'The model wants the tool "{reply.tool_calls[0].name[:100]}" called, although it was given none.',
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
    """All strategies by name, in the order in which they are offered; read-only."""
    return MappingProxyType(_STRATEGIES)


def register_strategy(strategy: TurnStrategy) -> None:
    """Add a plugin's strategy, before documents are checked; one of a built-in's name is refused.

    Raises:
        ValueError: There is another of that name.
    """
    if _STRATEGIES.get(strategy.name, strategy) is not strategy:
        raise ValueError(f"there is a turn strategy {strategy.name!r} already")
    _STRATEGIES[strategy.name] = strategy


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
    synonyms=("assistant", "react", "function calling"),
)
