"""The function that stands in an exported LangGraph module for each node of a workflow."""

from __future__ import annotations

import ast
import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from engine.export.cel_python import UnsupportedError, expression_to_python
from engine.export.literals import literal, one_line_docstring
from engine.expr import Expression, Template, compile_template
from engine.nodes.agent_tools import EXIT_LOOP
from engine.nodes.llm import LlmConfig
from engine.nodes.model_fields import ModelFields
from engine.nodes.prompts import PromptFields, prompt_texts
from engine.nodes.router import ELSE, RouterConfig, fallback_branch, router_question, verdict_schema
from engine.nodes.texts import uses
from engine.nodes.tool import ToolConfig
from engine.nodes.transform import TransformConfig
from engine.nodes.validator import ValidatorConfig
from engine.plan.graph import InputPlan, NodePlan
from engine.values import Value

_TOKEN: Final = secrets.token_hex(16)
"""Marks places in questions of ours. It is never written anywhere, and no document can hold it."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a node stands.

    Attributes:
        names: What lies in each slot of its level: `node.port`.
        loops: The loops around it, the innermost first: id and most iterations.
    """

    names: Mapping[int, str]
    loops: tuple[tuple[str, int], ...] = ()


def read_path(loops: tuple[tuple[str, int], ...], path: tuple[str, ...]) -> ast.expr:
    """The expression that reads a dotted path in a function of a node.

    Raises:
        UnsupportedError: It names something that the module does not keep.
    """
    if path[0] == "state":
        return _inside(_parsed("state['_named'].get({})", path[1]), path[2:])
    if path[0] == "nodes":
        return _inside(_parsed("nodes.get({})", path[1]), path[2:])
    if path[0] == "loop" and loops:
        return _loop_path(loops, path[1:])
    if path[0] in {"loop", "item", "index", "cost_usd"}:
        raise UnsupportedError(f"{'.'.join(path)} has no counterpart.")
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
        case "index" | "input" | "previous" | "history":
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
    }
    given = {name: value for name, value in settings.items() if value is not None}
    text = ", ".join(f"{name}={literal(value)}" for name, value in given.items())
    return text if schema is None else f"{text}, schema={literal(schema, '    ')}"


class NodeFunctions:
    """Writes the functions of nodes that are neither loops nor exits.

    Attributes:
        left_out: What could not be said, a sentence each.
    """

    def __init__(self) -> None:
        self.left_out: list[str] = []

    def function(self, node: NodePlan, place: Place, body: Callable[[], list[str]] | None = None) -> str:
        """The function of a node.

        Args:
            node: The node.
            place: Where it stands.
            body: Writes its lines; None for the node's own.
        """
        try:
            lines = (body or (lambda: self._lines(node, place)))()
        except UnsupportedError as error:
            said = f'"{node.title}" ({node.spec.type}, {node.id}) is left out. {error.message}'
            self.left_out.append(said)
            lines = [f"raise NotImplementedError({literal(said)})"]
        said = one_line_docstring(f"{node.title} ({node.spec.type}).")
        return f"def node_{node.id}(state: State) -> Update:\n    {said}\n" + "".join(f"    {line}\n" for line in lines)

    def _lines(self, node: NodePlan, place: Place) -> list[str]:
        if not node.enabled:
            return self._bypass(node, place)
        writers: dict[str, Callable[[NodePlan, Place], list[str]]] = {
            "input": self._input,
            "output": self._output,
            "llm": self._llm,
            "router": self._router,
            "transform": self._transform,
            "validator": self._validator,
            "tool": self._tool,
        }
        writer = writers.get(node.spec.type)
        if writer is None:
            raise UnsupportedError("Nodes of this type have no counterpart here.")
        if node.config.on_error != "fail":
            self.left_out.append(f'"{node.title}" ({node.id}) fails the run where it would go on after an error.')
        return writer(node, place)

    def _bypass(self, node: NodePlan, place: Place) -> list[str]:
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
        if config.may_exit_loop:
            self.left_out.append(f'"{node.title}" ({node.id}) cannot end its loop by {EXIT_LOOP}.')
        lines = [*taken(node, place), *_prompt_lines(node, config, place)]
        if config.reply_schema is None:
            lines.append(f"output = ask(messages, {ask_settings(node.id, config)})")
        else:
            lines.append(f"schema = {literal(config.reply_schema, '    ')}")
            settings = f"{ask_settings(node.id, config)}, schema=schema"
            lines.append(f"output = ask_twice(ask, lambda text: find_json(text, schema), messages, {settings})")
        return [*lines, _gave_output(node, config.output_key)]

    def _router(self, node: NodePlan, place: Place) -> list[str]:
        config: RouterConfig = node.config
        lines = taken(node, place)
        names = [branch.name for branch in config.branches]
        if config.mode == "model":
            system, user = router_question(config, placed("criteria"), placed("value"))
            criteria = filled(compile_template(config.criteria), _reader(place), "        ")
            question = marked(user.text, {"criteria": criteria, "value": "given['input']"}, "    ")
            lines.append(f"system = {literal(system.text, '    ')}")
            lines.append(f"question = {question}")
            lines.append("messages = [{'role': 'system', 'content': system}, {'role': 'user', 'content': question}]")
            lines.append(f"names, fallback = {names!r}, {fallback_branch(names)!r}")
            settings = ask_settings(node.id, config, verdict_schema(names))
            lines.append(f"branch, reason = choose(ask, messages, names, fallback, {settings})")
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
                condition = written(expression_to_python(branch.when, _reader(place)))
                lines.append(f"{'elif' if number else 'if'} {condition}:")
            lines.append(f"    branch, reason = {branch.name!r}, {reason!r}")
        if config.branches[-1].when.strip() != ELSE:
            lines += ["else:", "    raise ValueError('No rule of the router was true.')"]
        return lines

    def _transform(self, node: NodePlan, place: Place) -> list[str]:
        config: TransformConfig = node.config
        if config.mode == "template":
            made = filled(compile_template(config.template), _reader(place), "    ")
        else:
            made = written(expression_to_python(config.expression, _reader(place)))
        return [*taken(node, place), f"output = {made}", _gave_output(node, config.output_key)]

    def _validator(self, node: NodePlan, place: Place) -> list[str]:
        config: ValidatorConfig = node.config
        lines = [*taken(node, place), "value = given['input']"]
        if config.mode == "schema":
            lines.append(f"schema = {literal(config.json_schema, '    ')}")
            lines.append("value, errors = examine(value, schema)")
        else:
            condition = written(expression_to_python(config.expression, _reader(place)))
            message = config.message or f"not true: {config.expression}"
            lines.append(f"errors = [] if {condition} else [{message!r}]")
        lines.append("if errors:")
        lines.append(f"    return gave({node.id!r}, {{'invalid': given['input'], 'errors': errors}})")
        return [*lines, f"return gave({node.id!r}, {{'valid': value, 'errors': []}})"]

    def _tool(self, node: NodePlan, place: Place) -> list[str]:
        config: ToolConfig = node.config
        self.left_out.append(f'The tool "{config.tool}" is yours to provide: put a function into TOOLS.')
        arguments: Any = dict(config.arguments)
        lines = [*taken(node, place), f"arguments = {{**{literal(arguments, '    ')}, **given}}"]
        return [*lines, f"return gave({node.id!r}, {{'output': TOOLS[{config.tool!r}](**arguments)}})"]


def _reader(place: Place) -> Callable[[tuple[str, ...]], ast.expr]:
    return lambda path: read_path(place.loops, path)


def _gave_output(node: NodePlan, key: str) -> str:
    return f"return gave({node.id!r}, {{'output': output}}{f', {key!r}' if key else ''})"


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


def _prompt_lines(node: NodePlan, config: PromptFields, place: Place) -> list[str]:
    """The lines that make the messages of a prompt."""
    read = _reader(place)
    lines = [f"prompt = {filled(compile_template(config.prompt), read)}"]
    is_connected = any(port.name == "input" for port in node.inputs)
    if is_connected and not uses(prompt_texts(config), "input"):
        before = "prompt, '\\n\\n', " if config.prompt else ""
        lines.append(f"prompt = fill({before}given['input'])")
    if node.tells_iteration:
        loop, at_most = place.loops[0]
        lines.append(f"prompt = with_note(prompt, state['_loops'][{loop!r}], {at_most})")
    if not config.system:
        return [*lines, "messages = [{'role': 'user', 'content': prompt}]"]
    lines.append(f"system = {filled(compile_template(config.system), read)}")
    return [*lines, "messages = [{'role': 'system', 'content': system}, {'role': 'user', 'content': prompt}]"]
