"""Functions of nodes and agents in an exported LangGraph module.

An agent is three steps of the graph, its start, a turn and a tool call, so that no turn is repeated when the run waits
for a person.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from engine.export.cel_python import UnsupportedError, expression_to_python
from engine.export.langgraph_texts import (
    Place,
    ask_settings,
    filled,
    marked,
    placed,
    prompt_lines,
    reader,
    taken,
    written,
)
from engine.export.python_source import literal, one_line_docstring
from engine.expr import compile_template
from engine.nodes.agent_tools import (
    ASK_PERSON,
    EXIT_LOOP,
    EXIT_LOOP_TOOL,
    FINISH,
    SEND_NOTE,
    TOOL_CALLING,
    AgentConfig,
    finish_tool,
    tool_definition,
)
from engine.nodes.approval import ApprovalConfig
from engine.nodes.llm import LlmConfig
from engine.nodes.model_calls import ModelFields
from engine.nodes.router import ELSE, RouterConfig, fallback_branch, router_question, verdict_schema
from engine.nodes.tool import ToolConfig
from engine.nodes.transform import TransformConfig
from engine.nodes.validator import ValidatorConfig
from engine.plan.execution_plan import NodePlan
from engine.values import Value

_REPEATED: Final = frozenset({"loop", "exit", "iterator"})
"""Types that say for themselves what their settings do here."""


class NodeFunctions:
    """Writes the functions of nodes, those of a type of its own with lines that are handed to it.

    Attributes:
        left_out: What could not be said, a sentence each.
        in_turn: How many nodes so far must not be at work beside others: they ask people or share something.
        asks_people: Whether any node asks a person.
        has_tools: Whether any node calls a tool.
        counts_costs: Whether anything asks what model calls have cost.
        left_loops: The loops that a node in them may end.
        carried: Modules of exit conditions whose functions are copied into the export.
    """

    def __init__(self) -> None:
        self.left_out: list[str] = []
        self.in_turn = 0
        self.asks_people = False
        self.has_tools = False
        self.counts_costs = False
        self.left_loops: set[str] = set()
        self.carried: list[str] = []

    def function(
        self, node: NodePlan, place: Place, body: Callable[[], list[str]] | None = None, kind: str = "node"
    ) -> str:
        """The function of a node.

        Args:
            node: The node.
            place: Where it stands.
            body: Writes its lines; None for the node's own.
            kind: What the function's name begins with.
        """
        try:
            lines = (body or (lambda: self._lines(node, place)))()
        except UnsupportedError as error:
            said = f'"{node.title}" ({node.spec.type}, {node.id}) is left out. {error.message}'
            self.left_out.append(said)
            lines = [f"raise NotImplementedError({literal(said)})"]
        if kind == "node":
            self.left_out += _not_kept(node)
        if getattr(node.config, "output_key", ""):
            self.in_turn += 1
        said = one_line_docstring(f"{node.title} ({node.spec.type}).")
        head = f"{self._decorator(node, place)}def {kind}_{node.id}{place.suffix}(state: State) -> Update:"
        return f"{head}\n    {said}\n" + "".join(f"    {line}\n" for line in lines)

    def _decorator(self, node: NodePlan, place: Place) -> str:
        config = node.config
        if not node.enabled or config.on_error == "fail" or node.spec.type in {*_REPEATED, "agent"}:
            return ""
        ports = node.spec.outputs(config)
        where, what = ("error", "") if config.on_error == "branch" else (ports[0].name if ports else "value", "")
        if config.on_error == "continue":
            what = f", {literal(config.error_value)}"
        if place.memory is not None and getattr(config, "reply_schema", None) is not None:
            return f"@goes_on_and_remembers({node.id!r}, {place.memory[0]!r}, {where!r}{what})\n"
        return f"@goes_on_after_error({node.id!r}, {where!r}{what})\n"

    def _lines(self, node: NodePlan, place: Place) -> list[str]:
        if not node.enabled:
            return self.bypass(node, place)
        writers: dict[str, Callable[[NodePlan, Place], list[str]]] = {
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
            raise UnsupportedError("Nodes of this type have no counterpart here.")
        return writer(node, place)

    def bypass(self, node: NodePlan, place: Place) -> list[str]:
        """The lines of a disabled node: it passes its one input on, or is skipped."""
        used = [port for port, _ in node.outputs]
        branches = {port.name for port in node.spec.all_outputs(node.config) if port.branch}
        if not (len(node.inputs) == len(used) == 1) or used[0] in branches:
            return [f"return skipped({node.id!r})"]
        value = f"given[{node.inputs[0].name!r}]"
        return [*taken(node, place), f"return gave({node.id!r}, {{{used[0]!r}: {value}}})"]

    def _input(self, node: NodePlan, _place: Place) -> list[str]:
        return [f"return gave({node.id!r}, {{'value': state['_inputs'][{(node.config.name or node.id)!r}]}})"]

    def _output(self, node: NodePlan, place: Place) -> list[str]:
        return [*taken(node, place), f"return gave({node.id!r}, {{'value': given['value']}})"]

    def _llm(self, node: NodePlan, place: Place) -> list[str]:
        config: LlmConfig = node.config
        lines = [*taken(node, place), *prompt_lines(node, config, place)]
        settings = ask_settings(node.id, config)
        if config.may_exit_loop:
            self.may_leave(place)
            definition = EXIT_LOOP_TOOL.definition
            tool: Value = {
                "name": definition.name, "description": definition.description, "parameters": definition.parameters
            }  # fmt: skip
            lines += [
                f"said, calls = act(messages, tools=[{literal(tool, '    ')}], {settings})",
                f"if any(call['name'] == {definition.name!r} for call in calls):",
                f"    return leave(state, {node.id!r}, {place.leaves or ''!r}, {{}})",
                "output = said" if config.allow_empty else "output = with_text(said)",
            ]
        elif config.reply_schema is None:
            lines.append(f"output = said = {asked(config, settings)}")
        else:
            lines.append(f"schema = {literal(config.reply_schema, '    ')}")
            settings = f"{settings}, schema=schema{', allow_empty=True' if config.allow_empty else ''}"
            lines.append(f"output, said = ask_twice(ask, lambda text: read_reply(text, schema), messages, {settings})")
        return [*lines, gave_output(node, config.output_key, place)]

    def _router(self, node: NodePlan, place: Place) -> list[str]:
        config: RouterConfig = node.config
        lines = taken(node, place)
        names = [branch.name for branch in config.branches]
        if config.mode == "model":
            system, user = router_question(config, placed("criteria"), placed("value"))
            criteria = filled(compile_template(config.criteria), reader(place), "        ")
            question = marked(user.text, {"criteria": criteria, "value": "given['input']"}, "    ")
            lines.append(f"system = {literal(system.text, '    ')}")
            lines.append(f"question = {question}")
            lines.append("messages = [{'role': 'system', 'content': system}, {'role': 'user', 'content': question}]")
            lines.append(f"names, fallback = {names!r}, {fallback_branch(names)!r}")
            settings = ask_settings(node.id, config, verdict_schema(names))
            empty = ", allow_empty=True" if config.allow_empty else ""
            lines.append(f"branch, reason = choose(ask, messages, names, fallback, {settings}{empty})")
        else:
            lines += self._rules(config, place)
        return [*lines, f"return gave({node.id!r}, {{branch: given['input'], 'reason': reason}})"]

    def _rules(self, config: RouterConfig, place: Place) -> list[str]:
        lines: list[str] = []
        for number, branch in enumerate(config.branches):
            rule = branch.when.strip()
            reason = "no other rule was true" if rule == ELSE else f"the rule {branch.when} was true"
            if rule == ELSE:
                lines.append("else:" if number else "if True:")
            else:
                condition = written(expression_to_python(branch.when, reader(place)))
                lines.append(f"{'elif' if number else 'if'} {condition}:")
            lines.append(f"    branch, reason = {branch.name!r}, {reason!r}")
        if config.branches[-1].when.strip() != ELSE:
            lines += ["else:", "    raise ValueError('No rule of the router was true.')"]
        return lines

    def _transform(self, node: NodePlan, place: Place) -> list[str]:
        config: TransformConfig = node.config
        if config.mode == "template":
            made = filled(compile_template(config.template), reader(place), "    ")
        else:
            made = written(expression_to_python(config.expression, reader(place)))
        return [*taken(node, place), f"output = {made}", gave_output(node, config.output_key)]

    def _validator(self, node: NodePlan, place: Place) -> list[str]:
        config: ValidatorConfig = node.config
        lines = [*taken(node, place), "value = given['input']"]
        if config.mode == "schema":
            lines.append(f"schema = {literal(config.json_schema, '    ')}")
            lines.append("value, errors = examine(value, schema)")
        else:
            condition = written(expression_to_python(config.expression, reader(place)))
            message = config.message or f"not true: {config.expression}"
            lines.append(f"errors = [] if {condition} else [{message!r}]")
        lines.append("if errors:")
        lines.append(f"    return gave({node.id!r}, {{'invalid': given['input'], 'errors': errors}})")
        return [*lines, f"return gave({node.id!r}, {{'valid': value, 'errors': []}})"]

    def _approval(self, node: NodePlan, place: Place) -> list[str]:
        config: ApprovalConfig = node.config
        self.asks_people = True
        self.in_turn += 1
        message = filled(compile_template(config.message), reader(place))
        if config.answer_within_s is not None:
            self.left_out.append(f'"{node.title}" ({node.id}) waits for its answer however long it takes.')
        return [*taken(node, place), f"message = {message}", f"return decided({node.id!r}, message, given['input'])"]

    def _tool(self, node: NodePlan, place: Place) -> list[str]:
        config: ToolConfig = node.config
        self.needs_tool(config.tool)
        arguments: Any = dict(config.arguments)
        lines = [*taken(node, place), f"arguments = {{**{literal(arguments, '    ')}, **given}}"]
        return [*lines, f"return gave({node.id!r}, {{'output': TOOLS[{config.tool!r}](**arguments)}})"]

    def may_leave(self, place: Place) -> None:
        """Say that a node there may end the loop around it."""
        self.in_turn += 1
        if place.leaves is not None:
            self.left_loops.add(place.leaves)

    def needs_tool(self, name: str) -> None:
        """Say that a tool is called."""
        self.has_tools = True
        self.left_out.append(f'The tool "{name}" is yours to provide: put a function into TOOLS.')


def asked(config: ModelFields, settings: str) -> str:
    """The call that asks a model for a text."""
    call = f"ask(messages, {settings})"
    return call if config.allow_empty else f"with_text({call})"


def gave_output(node: NodePlan, key: str, place: Place | None = None) -> str:
    """The line that gives a node's output, and notes at a place what its model is to remember."""
    given = f"gave({node.id!r}, {{'output': output}}{f', {key!r}' if key else ''})"
    if place is None or place.memory is None:
        return f"return {given}"
    return f"return remembering({given}, state, {place.memory[0]!r}, prompt, said)"


def _not_kept(node: NodePlan) -> Iterator[str]:
    """What a node's settings ask for that the module does not do."""
    config, name = node.config, f'"{node.title}" ({node.id})'
    if node.spec.type in _REPEATED or not node.enabled:
        return
    if config.timeout_s is not None:
        yield f"{name} has no time limit."
    if getattr(config, "cache", "off") != "off":
        yield f"{name} uses no earlier reply again."
    if config.on_error != "fail" and node.spec.type == "agent":
        yield f"{name} fails the run where it would go on after an error."
    elif config.on_error != "fail" and config.retries:
        yield f"{name} is not tried again before the run goes on after its error."
    if getattr(config, "on_cut_off", "warn") != "warn":
        yield f"{name} uses a reply that was cut off at its token limit as far as it goes."
    if any(port == "usage" for port, _ in node.outputs):
        yield f'The port "usage" of {name} gives nothing.'
    if getattr(config, "reply_schema", None) is not None:
        yield f"The provider is not told of the schema of {name}; its reply is held against it all the same."


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
        """The definitions of its tools for the model."""
        names = [name for name in dict.fromkeys(self._config.tools) if name not in {FINISH, SEND_NOTE}]
        definitions = [*map(tool_definition, names), finish_tool(self._config.reply_schema)]
        return [{"name": one.name, "description": one.description, "parameters": one.parameters} for one in definitions]


def _call(beginning: str, arguments: list[str]) -> list[str]:
    return [f"return {beginning},", *(f"    {argument}," for argument in arguments), ")"]
