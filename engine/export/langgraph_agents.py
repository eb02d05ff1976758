"""The three functions of each agent in an exported LangGraph module: its beginning, a turn, and a tool call.

Each is a step of the graph, so that a turn that was made is not made again where a person is waited for.
"""

from __future__ import annotations

from typing import Any, Final

from engine.export.cel_python import UnsupportedError
from engine.export.langgraph_nodes import NodeFunctions, asked
from engine.export.langgraph_texts import Place, ask_settings, prompt_lines, taken
from engine.export.literals import literal
from engine.nodes.agent_config import TOOL_CALLING, AgentConfig
from engine.nodes.agent_tools import ASK_PERSON, EXIT_LOOP, FINISH, SEND_NOTE, finish_tool, tool_definition
from engine.plan.execution_plan import NodePlan
from engine.values import Value

SINGLE_CALL: Final = "single_call"


class AgentFunctions:
    """Writes the functions of one agent.

    Args:
        functions: Writes functions, and keeps what was left out.
        node: The agent.
        place: Where it stands.
    """

    def __init__(self, functions: NodeFunctions, node: NodePlan, place: Place) -> None:
        self._functions, self._node, self._place = functions, node, place
        self._config: AgentConfig = node.config

    @property
    def takes_turns(self) -> bool:
        """Whether it is three steps of the graph; else it is one, like any other node."""
        return self._node.enabled and self._config.turn_strategy == TOOL_CALLING

    def single(self) -> str:
        """The function of an agent that takes no turns."""
        return self._functions.function(self._node, self._place, self._single_lines)

    def steps(self) -> list[str]:
        """The functions of an agent that takes turns."""
        write = self._functions.function
        return [
            write(self._node, self._place, self._begin_lines),
            write(self._node, self._place, self._turn_lines, "turn"),
            write(self._node, self._place, self._call_lines, "call"),
        ]

    def _single_lines(self) -> list[str]:
        node, config = self._node, self._config
        if not node.enabled:
            return self._functions.bypass(node, self._place)
        if config.turn_strategy != SINGLE_CALL:
            raise UnsupportedError("Its turn strategy is a plugin's.")
        lines = [*taken(node, self._place), *prompt_lines(node, config, self._place)]
        settings = ask_settings(node.id, config, config.reply_schema)
        empty = ", allow_empty=True" if config.allow_empty else ""
        if config.reply_schema is None:
            lines.append(f"output = said = {asked(config, settings)}")
        else:
            schema = literal(config.reply_schema, "    ")
            reader = f"lambda text: read_reply(text, {schema})"
            lines.append(f"output, said = ask_twice(ask, {reader}, messages, {settings}{empty})")
        ports = "{'output': output, 'steps': [], 'status': 'finished'}"
        given = f"gave({node.id!r}, {ports}{f', {config.output_key!r}' if config.output_key else ''})"
        if self._place.memory is not None:
            given = f"remembering({given}, state, {self._place.memory[0]!r}, prompt, said)"
        return [*lines, f"return {given}"]

    def _begin_lines(self) -> list[str]:
        node, config = self._node, self._config
        for name in dict.fromkeys(config.tools):
            if name == SEND_NOTE:
                self._functions.left_out.append(f'"{node.title}" ({node.id}) cannot send notes to other nodes.')
            elif name not in {ASK_PERSON, EXIT_LOOP, FINISH}:
                self._functions.needs_tool(name)
        if config.tools:
            self._functions.left_out.append(f'The tools of "{node.title}" ({node.id}) have no time limit.')
        if self._asks_people:
            self._functions.asks_people = True
            self._functions.in_turn += 1
        if EXIT_LOOP in config.tools:
            self._functions.may_leave(self._place)
        first, condition, _ = taken(node, self._place)
        lines = [first, condition, f"    return skip_agent({node.id!r})"]
        lines += prompt_lines(node, config, self._place)
        return [*lines, f"return begin_agent({node.id!r}, messages)"]

    @property
    def _asks_people(self) -> bool:
        return bool(self._config.require_approval) or ASK_PERSON in self._config.tools

    def _turn_lines(self) -> list[str]:
        config = self._config
        tools: Value = list(self._tools())
        arguments = [f"tools={literal(tools, '        ')}", f"max_turns={config.max_turns}", *self._common()]
        if config.on_max_turns != "return_last":
            arguments.append(f"at_end={config.on_max_turns!r}")
        settings = ask_settings(self._node.id, config).partition(", ")[2]
        arguments += [f"retries={config.retries}"] if config.retries else []
        arguments += [settings] if settings else []
        return _call(f"take_turn(act, state, {self._node.id!r}", arguments)

    def _call_lines(self) -> list[str]:
        config = self._config
        arguments = [f"names={[tool['name'] for tool in self._tools()]!r}", *self._common()]
        if config.require_approval:
            tools = [tool for tool in self._tools() if tool["name"] in config.require_approval]
            schemas: Value = {tool["name"]: tool["parameters"] for tool in tools}
            arguments.append(f"ask_before={literal(schemas, '        ')}")
        if self._place.leaves:
            arguments.append(f"loop={self._place.leaves!r}")
        functions = "TOOLS" if self._functions.has_tools else "{}"
        return _call(f"call_tool(state, {self._node.id!r}, {functions}", arguments)

    def _common(self) -> list[str]:
        config = self._config
        common = [f"schema={literal(config.reply_schema, '        ')}"] if config.reply_schema is not None else []
        common += [f"key={config.output_key!r}"] if config.output_key else []
        common += ["allow_empty=True"] if config.allow_empty else []
        return common + ([f"memory={self._place.memory[0]!r}"] if self._place.memory is not None else [])

    def _tools(self) -> list[dict[str, Any]]:
        """Its tools, as a model is told of them."""
        names = [name for name in dict.fromkeys(self._config.tools) if name not in {FINISH, SEND_NOTE}]
        definitions = [*map(tool_definition, names), finish_tool(self._config.reply_schema)]
        return [{"name": one.name, "description": one.description, "parameters": one.parameters} for one in definitions]


def _call(beginning: str, arguments: list[str]) -> list[str]:
    return [f"return {beginning},", *(f"    {argument}," for argument in arguments), ")"]
