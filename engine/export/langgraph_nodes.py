"""Functions of nodes and agents in an exported LangGraph module.

An agent is three steps of the graph (start, turn, tool call), so that no turn is repeated when the run waits for a
person.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from engine.export.cel_python import UnsupportedError
from engine.export.langgraph_scope import Scope, fill_question, model_arguments, placeholder
from engine.export.python_source import literal, one_line_docstring
from engine.nodes.agent_tools import (
    ASK_PERSON,
    EXIT_LOOP,
    EXIT_LOOP_DEFINITION,
    FINISH,
    SEND_NOTE,
    TOOL_CALLING,
    AgentConfig,
    finish_tool,
    tool_definition,
)
from engine.nodes.approval import ApprovalConfig
from engine.nodes.llm import LlmConfig
from engine.nodes.router import ELSE, RouterConfig, fallback_branch, router_question, verdict_schema
from engine.nodes.tool import ToolConfig
from engine.nodes.transform import TransformConfig
from engine.nodes.validator import ValidatorConfig
from engine.plan.execution_plan import NodePlan
from engine.runner.named_state import NAMED_PORT
from engine.values import Value

SINGLE_CALL: Final = "single_call"
_REPEATING: Final = frozenset({"loop", "exit", "iterator"})
"""Node types whose settings for errors are handled in `langgraph_loops`."""


class NodeWriter:
    """Writes the functions of nodes, and collects what the module needs and what it leaves out.

    Attributes:
        left_out: What the module does not do, a sentence each.
        sequential: The number of nodes so far that must not run in parallel: they ask people or share something.
        asks_people: Whether a node asks a person.
        has_tools: Whether a node calls a tool.
        counts_costs: Whether anything depends on the cost of model calls.
        exited_loops: The loops that a node in them may exit.
        condition_modules: Modules of exit conditions whose functions are copied into the module.
    """

    def __init__(self) -> None:
        self.left_out: list[str] = []
        self.sequential = 0
        self.asks_people = False
        self.has_tools = False
        self.counts_costs = False
        self.exited_loops: set[str] = set()
        self.condition_modules: list[str] = []

    def function(
        self, node: NodePlan, scope: Scope, body: Callable[[], list[str]] | None = None, kind: str = "node"
    ) -> str:
        """The source of a node's function.

        Args:
            node: The node.
            scope: What it can read.
            body: Writes its lines; None for the lines of the node's type.
            kind: The beginning of the function's name.
        """
        try:
            lines = self._function_lines(node, scope, body)
        except UnsupportedError as error:
            message = f'"{node.title}" ({node.spec.type}, {node.id}) is left out. {error.message}'
            self.left_out.append(message)
            lines = [f"raise NotImplementedError({literal(message)})"]
        if kind == "node":
            self.left_out += _ignored_settings(node)
        if getattr(node.config, "output_key", ""):
            self.sequential += 1
        head = f"{_decorator(node, scope)}def {kind}_{node.id}{scope.suffix}(state: State) -> Update:"
        lines = [one_line_docstring(f"{node.title} ({node.spec.type})."), *lines]
        return f"{head}\n" + "".join(f"    {line}\n" for line in lines)

    def _function_lines(self, node: NodePlan, scope: Scope, body: Callable[[], list[str]] | None) -> list[str]:
        if node.pinned is not None and node.loop is None:
            return pinned_lines(node, scope)
        return body() if body is not None else self._lines(node, scope)

    def _lines(self, node: NodePlan, scope: Scope) -> list[str]:
        if not node.enabled:
            return bypass_lines(node, scope)
        writers: dict[str, Callable[[NodePlan, Scope], list[str]]] = {
            "input": self._input,
            "output": self._output,
            "llm": self._llm,
            "router": self._router,
            "transform": self._transform,
            "validator": self._validator,
            "tool": self._tool,
            "approval": self._approval,
        }
        writer = writers.get(node.spec.type)
        if writer is None:
            raise UnsupportedError(f'The node type "{node.spec.type}" cannot be exported.')
        return writer(node, scope)

    def _input(self, node: NodePlan, _scope: Scope) -> list[str]:
        return [f"return node_outputs({node.id!r}, {{'value': state['_inputs'][{(node.config.name or node.id)!r}]}})"]

    def _output(self, node: NodePlan, scope: Scope) -> list[str]:
        return [*scope.inputs(node), f"return node_outputs({node.id!r}, {{'value': inputs['value']}})"]

    def _llm(self, node: NodePlan, scope: Scope) -> list[str]:
        config: LlmConfig = node.config
        if not config.may_exit_loop:
            return self.model_call(node, config, scope, "'output': output")
        self.may_exit_loop(scope)
        definition = EXIT_LOOP_DEFINITION
        tool: Value = {
            "name": definition.name, "description": definition.description, "parameters": definition.parameters
        }  # fmt: skip
        return [
            *scope.inputs(node),
            *scope.messages(node, config),
            f"said, calls = act(messages, tools=[{literal(tool, '    ')}], {model_arguments(node.id, config)})",
            f"if any(call['name'] == {definition.name!r} for call in calls):",
            f"    return exit_loop(state, {node.id!r}, {scope.exits or ''!r}, {{}})",
            "output = said" if config.allow_empty else "output = require_text(said)",
            return_output(node, config.output_key, scope),
        ]

    def model_call(self, node: NodePlan, config: LlmConfig | AgentConfig, scope: Scope, ports: str) -> list[str]:
        """The lines of a node that makes one model call; `ports` is the source of its outputs."""
        lines = [*scope.inputs(node), *scope.messages(node, config)]
        arguments = model_arguments(node.id, config)
        if config.reply_schema is None:
            call = f"ask(messages, {arguments})"
            lines.append(f"output = said = {call if config.allow_empty else f'require_text({call})'}")
        else:
            lines.append(f"schema = {literal(config.reply_schema, '    ')}")
            arguments += f", schema=schema{', allow_empty=True' if config.allow_empty else ''}"
            lines.append(f"output, said = ask_twice(ask, lambda text: read_reply(text, schema), messages, {arguments})")
        return [*lines, return_output(node, config.output_key, scope, ports)]

    def _router(self, node: NodePlan, scope: Scope) -> list[str]:
        config: RouterConfig = node.config
        lines = scope.inputs(node)
        if config.mode == "model":
            names = [branch.name for branch in config.branches]
            system, user = router_question(config, placeholder("criteria"), placeholder("value"))
            values = {"criteria": scope.template(config.criteria, "        "), "value": "inputs['input']"}
            arguments = model_arguments(node.id, config, verdict_schema(names))
            arguments += ", allow_empty=True" if config.allow_empty else ""
            lines += [
                f"system = {literal(system.text, '    ')}",
                f"question = {fill_question(user.text, values)}",
                "messages = [{'role': 'system', 'content': system}, {'role': 'user', 'content': question}]",
                f"names, fallback = {names!r}, {fallback_branch(names)!r}",
                f"branch, reason = choose_branch(ask, messages, names, fallback, {arguments})",
            ]
        else:
            lines += self._rules(config, scope)
        return [*lines, f"return node_outputs({node.id!r}, {{branch: inputs['input'], 'reason': reason}})"]

    def _rules(self, config: RouterConfig, scope: Scope) -> list[str]:
        lines: list[str] = []
        for number, branch in enumerate(config.branches):
            if branch.when.strip() == ELSE:
                reason = "no other rule was true"
                lines.append("else:" if number else "if True:")
            else:
                reason = f"the rule {branch.when} was true"
                lines.append(f"{'elif' if number else 'if'} {scope.expression(branch.when)}:")
            lines.append(f"    branch, reason = {branch.name!r}, {reason!r}")
        if config.branches[-1].when.strip() != ELSE:
            lines += ["else:", "    raise ValueError('No rule of the router was true.')"]
        return lines

    def _transform(self, node: NodePlan, scope: Scope) -> list[str]:
        config: TransformConfig = node.config
        is_template = config.mode == "template"
        value = scope.template(config.template) if is_template else scope.expression(config.expression)
        return [*scope.inputs(node), f"output = {value}", return_output(node, config.output_key)]

    def _validator(self, node: NodePlan, scope: Scope) -> list[str]:
        config: ValidatorConfig = node.config
        lines = [*scope.inputs(node), "value = inputs['input']"]
        if config.mode == "schema":
            lines += [f"schema = {literal(config.json_schema, '    ')}", "value, errors = check_schema(value, schema)"]
        else:
            message = config.message or f"not true: {config.expression}"
            lines.append(f"errors = [] if {scope.expression(config.expression)} else [{message!r}]")
        return [
            *lines,
            "if errors:",
            f"    return node_outputs({node.id!r}, {{'invalid': inputs['input'], 'errors': errors}})",
            f"return node_outputs({node.id!r}, {{'valid': value, 'errors': []}})",
        ]

    def _approval(self, node: NodePlan, scope: Scope) -> list[str]:
        config: ApprovalConfig = node.config
        self.asks_people = True
        self.sequential += 1
        if config.answer_within_s is not None:
            self.left_out.append(f'"{node.title}" ({node.id}) waits for its answer without a time limit.')
        request = f"return request_approval({node.id!r}, message, inputs['input'])"
        return [*scope.inputs(node), f"message = {scope.template(config.message)}", request]

    def _tool(self, node: NodePlan, scope: Scope) -> list[str]:
        config: ToolConfig = node.config
        self.needs_tool(config.tool)
        arguments: Any = dict(config.arguments)
        lines = [*scope.inputs(node), f"arguments = {{**{literal(arguments, '    ')}, **inputs}}"]
        return [*lines, f"return node_outputs({node.id!r}, {{'output': TOOLS[{config.tool!r}](**arguments)}})"]

    def may_exit_loop(self, scope: Scope) -> None:
        """Note that a node of the scope may exit the loop around it."""
        self.sequential += 1
        if scope.exits is not None:
            self.exited_loops.add(scope.exits)

    def needs_tool(self, name: str) -> None:
        """Note that a tool is called."""
        self.has_tools = True
        self.left_out.append(f'The tool "{name}" is not included: add a function to TOOLS.')


def bypass_lines(node: NodePlan, scope: Scope) -> list[str]:
    """The lines of a disabled node: it passes its one input on, or is skipped."""
    used = [port for port, _ in node.outputs]
    branches = {port.name for port in node.spec.all_outputs(node.config) if port.branch}
    if not (len(node.inputs) == len(used) == 1) or used[0] in branches:
        return [f"return skipped({node.id!r})"]
    value = f"inputs[{node.inputs[0].name!r}]"
    return [*scope.inputs(node), f"return node_outputs({node.id!r}, {{{used[0]!r}: {value}}})"]


def pinned_lines(node: NodePlan, scope: Scope) -> list[str]:
    """The lines of a node that returns its pinned values."""
    if node.iterator is not None or node.exit_of is not None:
        raise UnsupportedError("A pinned aggregator cannot be exported.")
    key = f", {node.output_key!r}" if node.output_key and NAMED_PORT in (node.pinned or {}) else ""
    return [*scope.inputs(node), f"return node_outputs({node.id!r}, {literal(node.pinned, '    ')}{key})"]


def return_output(node: NodePlan, key: str, scope: Scope | None = None, ports: str = "'output': output") -> str:
    """The line that returns a node's output; with a scope, its model remembers the messages."""
    outputs = f"node_outputs({node.id!r}, {{{ports}}}{f', {key!r}' if key else ''})"
    if scope is None or scope.memory is None:
        return f"return {outputs}"
    return f"return with_memory({outputs}, state, {scope.memory[0]!r}, prompt, said)"


def _decorator(node: NodePlan, scope: Scope) -> str:
    config = node.config
    if not node.does_work or config.on_error == "fail" or node.spec.type in {*_REPEATING, "agent"}:
        return ""
    ports = node.spec.outputs(config)
    port, value = ("error", "") if config.on_error == "branch" else (ports[0].name if ports else "value", "")
    if config.on_error == "continue":
        value = f", {literal(config.error_value)}"
    remembers = scope.memory is not None and getattr(config, "reply_schema", None) is not None
    memory = f", memory={scope.memory[0]!r}" if remembers and scope.memory is not None else ""
    return f"@continue_on_error({node.id!r}, {port!r}{value}{memory})\n"


def _ignored_settings(node: NodePlan) -> Iterator[str]:
    """A sentence for each setting of a node that the module ignores."""
    config, name = node.config, f'"{node.title}" ({node.id})'
    if node.spec.type in _REPEATING or not node.does_work:
        return
    if config.timeout_s is not None:
        yield f"{name} has no time limit."
    if getattr(config, "cache", "off") != "off":
        yield f"{name} does not reuse replies."
    if config.on_error != "fail" and node.spec.type == "agent":
        yield f"{name} fails the run after an error; 'On error' is ignored."
    elif config.on_error != "fail" and config.retries:
        yield f"{name} is not retried before the run continues after its error."
    if getattr(config, "on_cut_off", "warn") != "warn":
        yield f"{name} uses a reply that was cut off at its token limit."
    if any(port == "usage" for port, _ in node.outputs):
        yield f'The port "usage" of {name} has no value.'
    if getattr(config, "reply_schema", None) is not None:
        yield f"The provider does not get the schema of {name}; its reply is checked against it."


class AgentWriter:
    """Writes the functions of one agent.

    Args:
        writer: Writes functions, and collects what is left out.
        node: The agent.
        scope: What it can read.
    """

    def __init__(self, writer: NodeWriter, node: NodePlan, scope: Scope) -> None:
        self._writer, self._node, self._scope = writer, node, scope
        self._config: AgentConfig = node.config

    @property
    def takes_turns(self) -> bool:
        """Whether it is three steps of the graph; otherwise it is one, like other nodes."""
        return self._node.does_work and self._config.turn_strategy == TOOL_CALLING

    def functions(self) -> list[str]:
        """The functions of its steps: `node`, `turn` and `call` if it takes turns, else `node`."""
        bodies: dict[str, Callable[[], list[str]]] = {"node": self._single_call}
        if self.takes_turns:
            bodies = {"node": self._start, "turn": self._turn, "call": self._tool_call}
        return [self._writer.function(self._node, self._scope, body, kind) for kind, body in bodies.items()]

    def _single_call(self) -> list[str]:
        if not self._node.enabled:
            return bypass_lines(self._node, self._scope)
        if self._config.turn_strategy != SINGLE_CALL:
            raise UnsupportedError(f'The turn strategy "{self._config.turn_strategy}" cannot be exported.')
        ports = "'output': output, 'steps': [], 'status': 'finished'"
        return self._writer.model_call(self._node, self._config, self._scope, ports)

    def _start(self) -> list[str]:
        node, config, writer = self._node, self._config, self._writer
        for name in dict.fromkeys(config.tools):
            if name == SEND_NOTE:
                writer.left_out.append(f'"{node.title}" ({node.id}) cannot send notes to other nodes.')
            elif name not in {ASK_PERSON, EXIT_LOOP, FINISH}:
                writer.needs_tool(name)
        if config.tools:
            writer.left_out.append(f'The tools of "{node.title}" ({node.id}) have no time limit.')
        if config.require_approval or ASK_PERSON in config.tools:
            writer.asks_people = True
            writer.sequential += 1
        if EXIT_LOOP in config.tools:
            writer.may_exit_loop(self._scope)
        read, condition, _ = self._scope.inputs(node)
        lines = [read, condition, f"    return skip_agent({node.id!r})", *self._scope.messages(node, config)]
        return [*lines, f"return start_agent({node.id!r}, messages)"]

    def _turn(self) -> list[str]:
        config = self._config
        tools: Value = list(self._tools())
        arguments = [f"tools={literal(tools, '        ')}", f"max_turns={config.max_turns}", *self._common_arguments()]
        if config.on_max_turns != "return_last":
            arguments.append(f"at_end={config.on_max_turns!r}")
        settings = model_arguments(self._node.id, config).partition(", ")[2]
        arguments += [f"retries={config.retries}"] if config.retries else []
        arguments += [settings] if settings else []
        return _return_call(f"take_turn(act, state, {self._node.id!r}", arguments)

    def _tool_call(self) -> list[str]:
        config = self._config
        arguments = [f"names={[tool['name'] for tool in self._tools()]!r}", *self._common_arguments()]
        if config.require_approval:
            tools = [tool for tool in self._tools() if tool["name"] in config.require_approval]
            schemas: Value = {tool["name"]: tool["parameters"] for tool in tools}
            arguments.append(f"require_approval={literal(schemas, '        ')}")
        if self._scope.exits:
            arguments.append(f"loop={self._scope.exits!r}")
        functions = "TOOLS" if self._writer.has_tools else "{}"
        return _return_call(f"call_tool(state, {self._node.id!r}, {functions}", arguments)

    def _common_arguments(self) -> list[str]:
        config = self._config
        arguments = [f"schema={literal(config.reply_schema, '        ')}"] if config.reply_schema is not None else []
        arguments += [f"key={config.output_key!r}"] if config.output_key else []
        arguments += ["allow_empty=True"] if config.allow_empty else []
        return arguments + ([f"memory={self._scope.memory[0]!r}"] if self._scope.memory is not None else [])

    def _tools(self) -> list[dict[str, Any]]:
        """The definitions of its tools for the model."""
        names = [name for name in dict.fromkeys(self._config.tools) if name not in {FINISH, SEND_NOTE}]
        definitions = [*map(tool_definition, names), finish_tool(self._config.reply_schema)]
        return [{"name": one.name, "description": one.description, "parameters": one.parameters} for one in definitions]


def _return_call(beginning: str, arguments: list[str]) -> list[str]:
    return [f"return {beginning},", *(f"    {argument}," for argument in arguments), ")"]
