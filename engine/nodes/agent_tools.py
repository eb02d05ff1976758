"""Settings of agents and their tools: definitions for the model, approval by a person, and the calls.

A failed call is reported to the model; it never ends the agent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Literal
from urllib.parse import urlsplit

from pydantic import Field

from engine.errors import EngineError
from engine.formatting import format_count, format_timeout
from engine.models.protocol import ToolCall, ToolDefinition
from engine.nodes.context import APPROVE, REJECT, Answer, NodeContext, ToolOutcome
from engine.nodes.model_calls import PromptFields, UnreadableReplyError, faults_by
from engine.nodes.spec import OutputKey
from engine.nodes.structured_replies import read_given
from engine.text_sanitizing import shown
from engine.tools.registry import all_tools, unknown_tool
from engine.tools.tool import AnyTool, Consent, ToolError
from engine.values import Value, compact_json, to_text

MAX_TURNS: Final = 50

TOOL_CALLING: Final = "tool_calling"


class AgentConfig(PromptFields, OutputKey):
    """Settings of an `agent` node."""

    tools: list[str] = Field(
        default_factory=list,
        title="Tools",
        description="The tools that the agent may call.",
        json_schema_extra={"widget": "tools"},
    )
    max_turns: int = Field(
        default=10, ge=1, le=MAX_TURNS, title="Max turns", description="Maximum number of turns (model calls)."
    )
    on_max_turns: Literal["return_last", "flag", "fail"] = Field(
        default="return_last",
        title="When turns run out",
        description="What to do when the agent has used all its turns without a final answer.",
        json_schema_extra={
            "group": "more",
            "labels": {
                "return_last": "Return the last text",
                "flag": "Return the last text, with a warning",
                "fail": "Fail",
            },
        },
    )
    require_approval: list[str] = Field(
        default_factory=list,
        title="Require approval",
        description="Tools that need a person's approval before each call.",
        json_schema_extra={"widget": "tools", "group": "more"},
    )
    reply_schema: dict[str, Any] | None = Field(
        default=None,
        title="Structured reply",
        description=("A JSON Schema that the final answer must match; the output is JSON. Leave empty for text."),
        json_schema_extra={"widget": "json", "group": "more"},
    )
    tool_timeout_s: float = Field(
        default=60.0,
        gt=0,
        le=86_400,
        title="Tool timeout (seconds)",
        description="Timeout of a tool call. The agent receives an error and continues.",
        json_schema_extra={"group": "more"},
    )
    turn_strategy: str = Field(
        default=TOOL_CALLING,
        title="Turn strategy",
        description="How the agent takes its turns: tool_calling, single_call, or a plugin's strategy.",
        json_schema_extra={"widget": "turn_strategy", "group": "more"},
    )


FINISH: Final = "finish"
ASK_PERSON: Final = "ask_person"
EXIT_LOOP: Final = "exit_loop"
SEND_NOTE: Final = "send_note"


@dataclass(frozen=True, slots=True)
class _OwnTool:
    """A tool that acts on the run around the agent: its texts in the window, and its definition for the model."""

    title: str
    help: str
    definition: ToolDefinition


def _text_parameters(**descriptions: str) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {name: {"type": "string", "description": text} for name, text in descriptions.items()},
        "required": list(descriptions),
        "additionalProperties": False,
    }


EXIT_LOOP_DEFINITION: Final = ToolDefinition(
    EXIT_LOOP,
    "Ends the loop that you work in. Call it only when nothing is left to improve, and write nothing beside it.",
    {"type": "object", "properties": {}, "additionalProperties": False},
)
_OWN: Final = {
    ASK_PERSON: _OwnTool(
        "Ask a person",
        "Asks a person a question, and waits for the answer.",
        ToolDefinition(
            ASK_PERSON,
            "Asks a person a question and waits for the answer. Ask only what you cannot find out by yourself.",
            _text_parameters(question="The question."),
        ),
    ),
    EXIT_LOOP: _OwnTool(
        "End the loop", "Ends the loop around it with the latest value as the result.", EXIT_LOOP_DEFINITION
    ),
    SEND_NOTE: _OwnTool(
        "Send a note",
        "Sends a note to another node, which gets it with its next model call.",
        ToolDefinition(
            SEND_NOTE,
            "Sends a note to another node of the workflow, which reads it with its next call.",
            _text_parameters(to="The node's id, such as worker or loop[0].worker.", text="What the node should know."),
        ),
    ),
}


def finish_tool(reply_schema: dict[str, Any] | None) -> ToolDefinition:
    """The tool with which an agent ends its work and returns an answer that matches the schema."""
    answer = reply_schema if reply_schema is not None else {"type": "string", "description": "The final answer."}
    # References are resolved from the top of the whole schema.
    definitions = {key: answer[key] for key in ("$defs", "definitions") if key in answer}
    form = {key: part for key, part in answer.items() if key not in definitions}
    parameters: dict[str, Any] = {
        "type": "object",
        "properties": {"answer": form},
        "required": ["answer"],
        **definitions,
    }
    return ToolDefinition(FINISH, "Ends your work with the final answer.", parameters)


def tool_choices() -> dict[str, tuple[str, str]]:
    """Title and help of all tools for agents, by name."""
    ordinary = {tool.name: (tool.title, tool.help) for tool in all_tools().values()}
    return ordinary | {name: (tool.title, tool.help) for name, tool in _OWN.items()}


def tool_definition(name: str) -> ToolDefinition:
    """The definition of a tool for the model.

    Raises:
        ToolError: There is no tool of that name.
    """
    if name in _OWN:
        return _OWN[name].definition
    tool = all_tools().get(name)
    if tool is None:
        raise unknown_tool(name, tool_choices())
    return ToolDefinition(tool.name, tool.help, tool.parameters.model_json_schema())


CHOICES: Final = (APPROVE, REJECT)


def approval_question(tool: str) -> str:
    """The question to a person before a call."""
    return f'May the tool "{tool}" be called with these arguments?'


def approved_arguments(answer: Answer, arguments: Mapping[str, Value]) -> Mapping[str, Value]:
    """The arguments of an approved call, edited by the person or unchanged.

    Raises:
        ToolError: The person refused the call.
    """
    if answer.choice != APPROVE:
        reason = f" {answer.comment}" if answer.comment else ""
        raise ToolError(f"A person refused this call.{reason}", "Do without it, or do it differently.")
    if answer.value is None:
        return arguments
    if not isinstance(answer.value, dict):
        raise ToolError("The arguments as the person edited them are not a JSON object.", "Call it again.")
    return answer.value


def confirmation_key(tool: AnyTool, arguments: Mapping[str, Value]) -> str:
    """The key under which a confirmed call counts for later ones; empty if a tool needs no confirmation."""
    if tool.consents_to_calls:
        return compact_json([tool.name, dict(arguments)])
    return f"{tool.name} {_host(arguments.get('url'))}" if tool.consent is Consent.HOST else ""


def _host(address: Value) -> str:
    try:
        return urlsplit(str(address)).hostname or str(address)
    except ValueError:
        return str(address)


_MAX_RESULT_LENGTH: Final = 50_000
"""Characters of a tool's result that the model receives."""


class Toolbox:
    """The tools of a running agent.

    Attributes:
        definitions: Their definitions for the model, with `finish`.
    """

    def __init__(self, context: NodeContext[AgentConfig]) -> None:
        self._context = context
        self._config = context.config
        names = [name for name in dict.fromkeys(self._config.tools) if name != FINISH]
        chosen = tuple(tool_definition(name) for name in names)
        self.definitions: tuple[ToolDefinition, ...] = (*chosen, finish_tool(self._config.reply_schema))

    async def call(self, call: ToolCall) -> ToolOutcome:
        """Make a tool call of the model."""
        return await self._context.act(call.name, call.arguments, partial(self._result, call))

    async def refuse(self, call: ToolCall, error: str) -> ToolOutcome:
        """Report an error for a tool call of the model instead of making it."""

        async def refusal() -> Value:
            raise ToolError(error)

        return await self._context.act(call.name, call.arguments, refusal)

    async def _result(self, call: ToolCall) -> Value:
        names = tuple(tool.name for tool in self.definitions)
        if call.name not in names:
            raise unknown_tool(call.name, names)
        arguments = call.arguments
        if isinstance(arguments, str):
            raise ToolError(
                f"The arguments are not a JSON object: “{shown(arguments, 100)}”.", "Call it again with a JSON object."
            )
        if call.name == FINISH:
            return self._answer(arguments)
        if call.name in self._config.require_approval:
            schema = next(tool.parameters for tool in self.definitions if tool.name == call.name)
            question = approval_question(call.name)
            answer = await self._context.ask(
                "approval", question, value=arguments, choices=CHOICES, value_schema=schema
            )
            arguments = dict(approved_arguments(answer, arguments))
        elif call.name in all_tools() and all_tools()[call.name].consents_to_calls:
            arguments = dict(await self._context.services.confirm_call(self._context, call.name, arguments))
        if arguments != call.arguments:
            self._context.edited_arguments = arguments
        if call.name == EXIT_LOOP:
            return None
        if call.name == ASK_PERSON:
            return await self._ask(_text_argument(arguments, "question"))
        if call.name == SEND_NOTE:
            self._context.services.post_note(
                self._context, _text_argument(arguments, "to"), _text_argument(arguments, "text")
            )
            return "sent"
        return await self._call_within_time(call.name, arguments)

    def _answer(self, arguments: Mapping[str, Value]) -> Value:
        if "answer" not in arguments:
            raise ToolError('"answer" is missing.', "Call it again with the final answer.")
        answer, schema = arguments["answer"], self._config.reply_schema
        if schema is None:
            text = to_text(answer)
            if not text.strip() and not self._config.allow_empty:
                raise ToolError('"answer" is empty.', "Call it again with the final answer.")
            return text
        try:
            return read_given(answer, schema, faults_by(schema))
        except UnreadableReplyError as error:
            raise ToolError(f"The answer does not follow its schema: {error}", "Correct it.") from error

    async def _ask(self, question: str) -> Value:
        answer = await self._context.ask("question", question)
        return "\n".join(part for part in (to_text(answer.value), answer.comment) if part)

    async def _call_within_time(self, name: str, arguments: Mapping[str, Value]) -> Value:
        limit = self._config.tool_timeout_s
        try:
            async with asyncio.timeout(limit):
                return await self._context.services.call_tool(name, arguments, self._context)
        except TimeoutError as error:
            message = f"It took longer than {format_timeout(limit)}, and was stopped."
            raise ToolError(message, "Ask for less, or do without.") from error
        except EngineError:
            raise
        except Exception as error:  # a plugin's tool may raise whatever it likes
            message = f"It failed with an internal error: {type(error).__name__}: {shown(str(error), 200)}."
            raise ToolError(message, "Do without, or call it differently.") from error


def outcome_text(outcome: ToolOutcome) -> str:
    """The text of a call's outcome for the model."""
    if outcome.error:
        return f"Error: {outcome.error}"
    text = to_text(outcome.result)
    if len(text) > _MAX_RESULT_LENGTH:
        return f"{text[:_MAX_RESULT_LENGTH]}\n[cut: {format_count(len(text), 'character')} in all]"
    return text or "(nothing)"


def _text_argument(arguments: Mapping[str, Value], name: str) -> str:
    value = arguments.get(name)
    if not isinstance(value, str) or not value.strip():
        raise ToolError(f'"{name}" must be a text.', "Call it again.")
    return value
