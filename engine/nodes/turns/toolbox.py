"""The tools of one agent at work: what its model is told of them, and what becomes of each call.

Whatever goes wrong with a call is told to the model, which may do better; it never ends the agent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Final

from engine.errors import EngineError
from engine.formatting import format_count
from engine.models.protocol import ToolCall, ToolDefinition
from engine.nodes.agent_config import AgentConfig
from engine.nodes.agent_tools import (
    ASK_PERSON,
    EXIT_LOOP,
    FINISH,
    SEND_NOTE,
    finish_tool,
    tool_definition,
    unknown_tool,
)
from engine.nodes.context import NodeContext, ToolOutcome
from engine.nodes.structured import UnreadableReplyError, faults_by
from engine.nodes.tool_approval import CHOICES, approval_question, approved_arguments
from engine.nodes.verdicts import read_given
from engine.text_sanitizing import shown
from engine.tools.registry import all_tools
from engine.tools.tool import ToolError
from engine.values import Value, to_text

_LONGEST_RESULT: Final = 50_000
"""Characters of a result that the model is told."""


class Toolbox:
    """The tools of one agent.

    Attributes:
        definitions: What the model is told of them; `finish` is always among them.
    """

    def __init__(self, context: NodeContext[AgentConfig]) -> None:
        self._context = context
        self._config = context.config
        names = [name for name in dict.fromkeys(self._config.tools) if name != FINISH]
        chosen = tuple(tool_definition(name) for name in names)
        self.definitions: tuple[ToolDefinition, ...] = (*chosen, finish_tool(self._config.reply_schema))

    async def call(self, call: ToolCall) -> ToolOutcome:
        """Carry out a call that the model wants made."""
        return await self._context.act(call.name, call.arguments, partial(self._carry_out, call))

    async def refuse(self, call: ToolCall, error: str) -> ToolOutcome:
        """Not carry out a call that the model wants made."""

        async def refusal() -> Value:
            raise ToolError(error)

        return await self._context.act(call.name, call.arguments, refusal)

    async def _carry_out(self, call: ToolCall) -> Value:
        names = tuple(tool.name for tool in self.definitions)
        if call.name not in names:
            raise unknown_tool(call.name, names)
        arguments = call.arguments
        if isinstance(arguments, str):
            raise ToolError(f"The arguments are no JSON object: “{shown(arguments, 100)}”.", "Call it again with one.")
        if call.name == FINISH:
            return self._answer(arguments)
        if call.name in self._config.require_approval:
            arguments = await self._approved(call.name, arguments)
        elif call.name in all_tools() and all_tools()[call.name].consents_to_calls:
            arguments = dict(await self._context.services.confirm_call(self._context, call.name, arguments))
        if arguments != call.arguments:
            self._context.edited_arguments = arguments
        if call.name == EXIT_LOOP:
            return None
        if call.name == ASK_PERSON:
            return await self._ask(_text(arguments, "question"))
        if call.name == SEND_NOTE:
            self._context.services.post_note(self._context, _text(arguments, "to"), _text(arguments, "text"))
            return "sent"
        return await self._call_within_time(call.name, arguments)

    def _answer(self, arguments: Mapping[str, Value]) -> Value:
        """The final answer in a call of `finish`."""
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

    async def _approved(self, name: str, arguments: dict[str, Value]) -> dict[str, Value]:
        """The arguments as a person leaves them who lets the call be made."""
        schema = next(tool.parameters for tool in self.definitions if tool.name == name)
        answer = await self._context.ask(
            "approval", approval_question(name), value=arguments, choices=CHOICES, value_schema=schema
        )
        return dict(approved_arguments(answer, arguments))

    async def _ask(self, question: str) -> Value:
        answer = await self._context.ask("question", question)
        return "\n".join(part for part in (to_text(answer.value), answer.comment) if part)

    async def _call_within_time(self, name: str, arguments: Mapping[str, Value]) -> Value:
        limit = self._config.tool_timeout_s
        try:
            async with asyncio.timeout(limit):
                return await self._context.services.call_tool(name, arguments, self._context)
        except TimeoutError as error:
            message = f"It took longer than {limit:g} s, and was stopped."
            raise ToolError(message, "Ask for less, or do without.") from error
        except EngineError:
            raise
        except Exception as error:  # a plugin's tool may raise whatever it likes
            message = f"It failed by a fault of its own: {type(error).__name__}: {shown(str(error), 200)}."
            raise ToolError(message, "Do without, or call it differently.") from error


def told(outcome: ToolOutcome) -> str:
    """What the model is told of a call's outcome."""
    if outcome.error:
        return f"Error: {outcome.error}"
    text = to_text(outcome.result)
    if len(text) > _LONGEST_RESULT:
        return f"{text[:_LONGEST_RESULT]}\n[cut: {format_count(len(text), 'character')} in all]"
    return text or "(nothing)"


def _text(arguments: Mapping[str, Value], name: str) -> str:
    value = arguments.get(name)
    if not isinstance(value, str) or not value.strip():
        raise ToolError(f'"{name}" is to be a text, and is not.', "Call it again.")
    return value
