"""Source of what exported functions read and write: paths, templates, model settings and inputs."""

from __future__ import annotations

import ast
import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from engine.export.cel_python import UnsupportedError, expression_to_python
from engine.export.python_source import literal
from engine.expr import Expression, Template, compile_template
from engine.nodes.model_calls import ModelFields, PromptFields, prompt_texts
from engine.nodes.spec import uses
from engine.plan.execution_plan import GraphPlan, InputPlan, NodePlan
from engine.values import Value

_TOKEN: Final = secrets.token_hex(16)
"""Marks places in questions of ours. It is never written anywhere, and no document can hold it."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a node stands.

    Attributes:
        names: What lies in each slot of its level: `node.port`.
        loops: The loops around it, the innermost first: id and most iterations.
        items: The iterator whose item it works on; None outside of any.
        leaves: The loop that a node here may end; None outside of any.
        memory: The loop whose models remember, and how many iterations (None: all); None where they do not.
        suffix: What the names of its functions end with: those of a subflow tell it.
    """

    names: Mapping[int, str]
    loops: tuple[tuple[str, int], ...] = ()
    items: str | None = None
    leaves: str | None = None
    memory: tuple[str, int | None] | None = None
    suffix: str = ""


def read_path(place: Place, path: tuple[str, ...]) -> ast.expr:
    """The expression that reads a dotted path in a function of a node.

    Raises:
        UnsupportedError: It names something that the module does not keep.
    """
    if path[0] == "state":
        return _inside(_parsed("state['_named'].get({})", path[1]), path[2:])
    if path[0] == "nodes":
        return _inside(_parsed("nodes.get({})", path[1]), path[2:])
    if path[0] == "loop" and place.loops:
        return _loop_path(place.loops, path[1:])
    if path[0] in {"item", "index"} and place.items is not None:
        value: ast.expr = _key(_parsed("state['_values'][{}]", place.items), path[0])
    else:
        value = _parsed("given[{}]", path[0])
    for name in path[1:]:
        value = ast.Call(ast.Name("member"), [value, ast.Constant(name)], [])
    return value


def _loop_path(loops: tuple[tuple[str, int], ...], path: tuple[str, ...]) -> ast.expr:
    loop, at_most = loops[0]
    if path[0] == "parent" and len(loops) > 1:
        return _loop_path(loops[1:], path[1:])
    record = _parsed("state['_loops'][{}]", loop)
    match path[0]:
        case "iteration":
            return ast.BinOp(_key(record, "index"), ast.Add(), ast.Constant(1))
        case "max_iterations":
            return ast.Constant(at_most)
        case "last":
            given = ast.Call(ast.Attribute(_key(record, "last"), "get"), [ast.Constant(path[1])], [])
            return _inside(given, path[2:])
        case "history":
            return _inside(ast.Call(ast.Name("loop_history"), [record, ast.Constant(at_most)], []), path[1:])
        case "index" | "input" | "previous":
            return _inside(_key(record, path[0]), path[1:])
        case _:
            raise UnsupportedError(f"loop.{'.'.join(path)} has no counterpart.")


def _key(value: ast.expr, name: str) -> ast.expr:
    return ast.Subscript(value, ast.Constant(name))


def _parsed(pattern: str, name: str) -> ast.expr:
    """A fixed expression of ours with a name put in as a literal."""
    return ast.parse(pattern.format(repr(name)), mode="eval").body


def _inside(value: ast.expr, names: tuple[str, ...]) -> ast.expr:
    return ast.Call(ast.Name("inside"), [value, *map(ast.Constant, names)], []) if names else value


def written(expression: ast.expr) -> str:
    """An expression as source."""
    return ast.unparse(ast.fix_missing_locations(expression))


def filled(template: Template, read: Callable[[tuple[str, ...]], ast.expr], indent: str = "    ") -> str:
    """The source of a text with its holes filled in."""
    parts: list[str] = []
    for part in template.parts:
        if isinstance(part, str):
            parts += [literal(part, indent + "    ")] if part else []
        elif isinstance(part, Expression):
            parts.append(written(expression_to_python(part.text, read)))
        else:
            parts.append(written(read(part)))
    one_line = f"fill({', '.join(parts)})"
    if len(one_line) < 90 and "\n" not in one_line:
        return one_line
    return "fill(\n" + "".join(f"{indent}    {part},\n" for part in parts) + f"{indent})"


def marked(question: str, put_in: Mapping[str, str], indent: str = "    ") -> str:
    """The source of a question of ours, in which marked places are filled in.

    Args:
        question: The question; a place is the name of what stands there, between two marks.
        put_in: By name, the source of what is put in.
        indent: What its lines begin with.
    """
    pieces = re.split(f"\x00{_TOKEN}:(\\w+)\x00", question)
    parts = [
        put_in[piece] if number % 2 else literal(piece, indent + "    ") for number, piece in enumerate(pieces) if piece
    ]
    return "fill(\n" + "".join(f"{indent}    {part},\n" for part in parts) + f"{indent})"


def placed(name: str) -> str:
    """A place in a question."""
    return f"\x00{_TOKEN}:{name}\x00"


def ask_settings(node: str, config: ModelFields, schema: Value = None) -> str:
    """The source of how a model is asked."""
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
    given = {name: value for name, value in settings.items() if value is not None}
    text = ", ".join(f"{name}={literal(value)}" for name, value in given.items())
    return text if schema is None else f"{text}, schema={literal(schema, '    ')}"


def reader(place: Place) -> Callable[[tuple[str, ...]], ast.expr]:
    """What reads paths at a place."""
    return lambda path: read_path(place, path)


def sources(port: InputPlan | None, place: Place) -> list[str]:
    """Where the values of a port come from."""
    return [] if port is None else [place.names[slot] for slot in port.slots]


def taken(node: NodePlan, place: Place) -> list[str]:
    """The lines that take a node's inputs, and end there where it is skipped."""
    required: dict[str, Any] = {port.name: sources(port, place) for port in node.inputs if port.required}
    optional: dict[str, Any] = {port.name: sources(port, place) for port in node.inputs if not port.required}
    there = {*required, *optional}
    blank: list[Any] = [name for name in node.blank or {} if name not in there]
    convert: dict[str, Any] = {port.name: str(port.convert) for port in node.inputs if port.convert is not None}
    arguments = [literal(required, "    ")]
    for name, value in (("optional", optional), ("blank", blank), ("convert", convert)):
        if value:
            arguments.append(f"{name}={literal(value, '    ')}")
    lines = [f"given = take(state, {', '.join(arguments)})"]
    return [*lines, "if given is None:", f"    return skipped({node.id!r})"]


def prompt_lines(node: NodePlan, config: PromptFields, place: Place) -> list[str]:
    """The lines that make the messages of a prompt."""
    read = reader(place)
    lines = [f"prompt = {filled(compile_template(config.prompt), read)}"]
    is_connected = any(port.name == "input" for port in node.inputs)
    if is_connected and not uses(prompt_texts(config), "input"):
        before = "prompt, '\\n\\n', " if config.prompt else ""
        lines.append(f"prompt = fill({before}given['input'])")
    if node.tells_iteration:
        loop, at_most = place.loops[0]
        lines.append(f"loop = state['_loops'][{loop!r}]")
        lines.append(f"prompt = with_note(prompt, loop['index'] + 1, {at_most}, to_text(loop['previous']))")
    said = ["{'role': 'user', 'content': prompt}"]
    if place.memory is not None:
        loop, most = place.memory
        said.insert(0, f"*remembered(state, {loop!r}, {node.id!r}, {most!r})")
    if config.system:
        lines.append(f"system = {filled(compile_template(config.system), read)}")
        said.insert(0, "{'role': 'system', 'content': system}")
    return [*lines, f"messages = [{', '.join(said)}]"]


_RECORDED: Final = {
    "router": "verdict",
    "validator": "validity",
    "input": "value",
    "output": "value",
    "approval": "answer",
    "subflow": "all",
}


def recorded_ports(body: GraphPlan) -> dict[str, Value]:
    """By node of a body, the port whose value stands for it in `loop.last`, or what is made of several ports."""
    return {node.id: _RECORDED.get(node.spec.type, "output") for node in body.nodes}
