"""Python source of what the functions of an exported LangGraph module read: inputs, templates, prompts, variables."""

from __future__ import annotations

import ast
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from engine.export.cel_python import UnsupportedError, call, expression_to_python
from engine.export.python_source import literal
from engine.expr import Expression, compile_template
from engine.nodes.model_calls import ModelFields, PromptFields, prompt_texts
from engine.nodes.spec import uses
from engine.plan.execution_plan import GraphPlan, InputPlan, NodePlan
from engine.values import Value

_MARK: Final = secrets.token_hex(16)
"""Marks placeholders in questions of the engine. It is never written anywhere, so no document can contain it."""


@dataclass(frozen=True, slots=True)
class Scope:
    """What the functions of a level can read.

    Attributes:
        ports: The port `node.port` whose value is in each slot of the level.
        loops: The loops around it, innermost first: id and maximum number of iterations.
        iterator: The iterator whose item it processes; None outside of iterators.
        exits: The loop that its nodes may exit; None outside of loops.
        memory: The loop whose model nodes remember, and how many iterations (None for all); None without memory.
        suffix: End of its functions' names, which tells subflows apart.
    """

    ports: Mapping[int, str]
    loops: tuple[tuple[str, int], ...] = ()
    iterator: str | None = None
    exits: str | None = None
    memory: tuple[str, int | None] | None = None
    suffix: str = ""

    def read(self, path: tuple[str, ...]) -> ast.expr:
        """The expression that reads a dotted path.

        Raises:
            UnsupportedError: The module does not have this value.
        """
        if path[0] == "state":
            return _optional(_filled("state['_named'].get({})", path[1]), path[2:])
        if path[0] == "nodes":
            return _optional(_filled("nodes.get({})", path[1]), path[2:])
        if path[0] == "loop" and self.loops:
            return _loop_variable(self.loops, path[1:])
        if path[0] in {"item", "index"} and self.iterator is not None:
            value: ast.expr = _key(_filled("state['_values'][{}]", self.iterator), path[0])
        else:
            value = _filled("inputs[{}]", path[0])
        for name in path[1:]:
            value = call("member", value, ast.Constant(name))
        return value

    def expression(self, text: str) -> str:
        """The source of a CEL expression.

        Raises:
            UnsupportedError: It has no counterpart in Python.
        """
        return _source(expression_to_python(text, self.read))

    def template(self, text: str, indent: str = "    ") -> str:
        """The source of a text with its placeholders filled in."""
        parts: list[str] = []
        for part in compile_template(text).parts:
            if isinstance(part, str):
                parts += [literal(part, indent + "    ")] if part else []
            else:
                parts.append(self.expression(part.text) if isinstance(part, Expression) else _source(self.read(part)))
        one_line = f"fill({', '.join(parts)})"
        return one_line if len(one_line) < 90 and "\n" not in one_line else _fill(parts, indent)

    def sources(self, port: InputPlan | None) -> list[str]:
        """The ports from which an input port gets its values."""
        return [] if port is None else [self.ports[slot] for slot in port.slots]

    def inputs(self, node: NodePlan) -> list[str]:
        """The lines that read a node's inputs, and skip the node without them."""
        required: dict[str, Any] = {port.name: self.sources(port) for port in node.inputs if port.required}
        optional: dict[str, Any] = {port.name: self.sources(port) for port in node.inputs if not port.required}
        blank: list[Any] = [name for name in node.blank or {} if name not in {*required, *optional}]
        convert: dict[str, Any] = {port.name: str(port.convert) for port in node.inputs if port.convert is not None}
        arguments = [literal(required, "    ")]
        for name, value in (("optional", optional), ("blank", blank), ("convert", convert)):
            if value:
                arguments.append(f"{name}={literal(value, '    ')}")
        lines = [f"inputs = node_inputs(state, {', '.join(arguments)})"]
        return [*lines, "if inputs is None:", f"    return skipped({node.id!r})"]

    def messages(self, node: NodePlan, config: PromptFields) -> list[str]:
        """The lines that build the messages of a prompt."""
        lines = [f"prompt = {self.template(config.prompt)}"]
        is_connected = any(port.name == "input" for port in node.inputs)
        if is_connected and not uses(prompt_texts(config), "input"):
            before = "prompt, '\\n\\n', " if config.prompt else ""
            lines.append(f"prompt = fill({before}inputs['input'])")
        if node.tells_iteration:
            loop, max_iterations = self.loops[0]
            lines.append(f"loop = state['_loops'][{loop!r}]")
            lines.append(f"prompt = with_note(prompt, loop['index'] + 1, {max_iterations}, to_text(loop['previous']))")
        messages = ["{'role': 'user', 'content': prompt}"]
        if self.memory is not None:
            loop, window = self.memory
            messages.insert(0, f"*memory_messages(state, {loop!r}, {node.id!r}, {window!r})")
        if config.system:
            lines.append(f"system = {self.template(config.system)}")
            messages.insert(0, "{'role': 'system', 'content': system}")
        return [*lines, f"messages = [{', '.join(messages)}]"]


def _loop_variable(loops: tuple[tuple[str, int], ...], path: tuple[str, ...]) -> ast.expr:
    loop, max_iterations = loops[0]
    if path[0] == "parent" and len(loops) > 1:
        return _loop_variable(loops[1:], path[1:])
    record = _filled("state['_loops'][{}]", loop)
    match path[0]:
        case "iteration":
            return ast.BinOp(_key(record, "index"), ast.Add(), ast.Constant(1))
        case "max_iterations":
            return ast.Constant(max_iterations)
        case "last":
            output = ast.Call(ast.Attribute(_key(record, "last"), "get"), [ast.Constant(path[1])], [])
            return _optional(output, path[2:])
        case "history":
            return _optional(call("loop_history", record, ast.Constant(max_iterations)), path[1:])
        case "index" | "input" | "previous":
            return _optional(_key(record, path[0]), path[1:])
        case _:
            raise UnsupportedError(f"loop.{'.'.join(path)} is not available in a module.")


def _key(value: ast.expr, name: str) -> ast.expr:
    return ast.Subscript(value, ast.Constant(name))


def _filled(pattern: str, name: str) -> ast.expr:
    """A fixed expression with a name filled in as a literal."""
    return ast.parse(pattern.format(repr(name)), mode="eval").body


def _optional(value: ast.expr, names: tuple[str, ...]) -> ast.expr:
    return call("optional_member", value, *map(ast.Constant, names)) if names else value


def _source(expression: ast.expr) -> str:
    return ast.unparse(ast.fix_missing_locations(expression))


def _fill(parts: list[str], indent: str) -> str:
    return "fill(\n" + "".join(f"{indent}    {part},\n" for part in parts) + f"{indent})"


def placeholder(name: str) -> str:
    """A placeholder for a question of the engine, which `fill_question` fills in."""
    return f"\x00{_MARK}:{name}\x00"


def fill_question(question: str, values: Mapping[str, str], indent: str = "    ") -> str:
    """The source of a question of the engine with its placeholders filled in.

    Args:
        question: The question.
        values: The source of each placeholder's value, by name.
        indent: The indentation of the statement.
    """
    pieces = re.split(f"\x00{_MARK}:(\\w+)\x00", question)
    parts = [
        values[piece] if number % 2 else literal(piece, indent + "    ") for number, piece in enumerate(pieces) if piece
    ]
    return _fill(parts, indent)


def model_arguments(node: str, config: ModelFields, schema: Value = None) -> str:
    """The source of the keyword arguments of a model call."""
    settings: dict[str, Value] = {
        "node": node,
        "model": config.model,
        "temperature": config.temperature,
        "max_tokens": config.max_tokens,
        "seed": config.seed,
        "top_p": config.top_p,
        "stop": [*config.stop] or None,
        "reasoning_effort": config.reasoning_effort,
        "extra_body": config.extra_parameters or None,
        "base_url": config.api_base,
        "fallbacks": [*config.fallback_models] or None,
    }
    text = ", ".join(f"{name}={literal(value)}" for name, value in settings.items() if value is not None)
    return text if schema is None else f"{text}, schema={literal(schema, '    ')}"


_RECORDED: Final = {
    "router": "verdict",
    "validator": "validity",
    "input": "value",
    "output": "value",
    "approval": "answer",
    "subflow": "all",
}


def recorded_ports(body: GraphPlan) -> dict[str, Value]:
    """The port whose value `loop.last` has for each node of a body, or what it builds from several ports."""
    return {node.id: _RECORDED.get(node.spec.type, "output") for node in body.nodes}
