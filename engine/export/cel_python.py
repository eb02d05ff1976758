"""Translate CEL expressions to Python expressions.

The result is built as a syntax tree: text of a document is never pasted into code. Plain Python can compare and add
more than CEL can; whatever both allow has the same value.
"""

from __future__ import annotations

import ast
import keyword
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, cast

from engine.errors import EngineError
from engine.expr.scope import plain_path
from engine.expr.syntax import CALLS, CHAINS, NAMES, SUFFIXES, argument_trees, literal_value, parse, trees, unwrap

if TYPE_CHECKING:
    from lark import Token

    from engine.expr.syntax import Node

ReadPath = Callable[[tuple[str, ...]], ast.expr]
"""Creates the expression that reads a dotted path (`loop.last.draft`)."""


class UnsupportedError(EngineError):
    """A part of a workflow that cannot be exported."""


_RELATIONS: Final[dict[str, type[ast.cmpop]]] = {
    "relation_lt": ast.Lt,
    "relation_le": ast.LtE,
    "relation_gt": ast.Gt,
    "relation_ge": ast.GtE,
    "relation_eq": ast.Eq,
    "relation_ne": ast.NotEq,
    "relation_in": ast.In,
}
_OPERATORS: Final[dict[str, type[ast.operator]]] = {
    "addition_add": ast.Add,
    "addition_sub": ast.Sub,
    "multiplication_mul": ast.Mult,
}
_HELPERS: Final = {"multiplication_div": "divide", "multiplication_mod": "remainder"}
_METHODS: Final = {
    "startsWith": "startswith",
    "endsWith": "endswith",
    "lower": "lower",
    "upper": "upper",
    "trim": "strip",
    "split": "split",
    "replace": "replace",
}
_FUNCTIONS: Final = {"size": "len", "int": "int", "double": "float", "string": "to_text", "matches": "matches"}


def call(function: str, *arguments: ast.expr) -> ast.expr:
    """A call of a function by name."""
    return ast.Call(ast.Name(function), list(arguments), [])


def expression_to_python(text: str, read: ReadPath) -> ast.expr:
    """Translate a CEL expression.

    Args:
        text: A valid expression.
        read: Creates the expressions that read paths.

    Raises:
        UnsupportedError: It has no counterpart in Python.
    """
    path = plain_path(text)
    if path is not None:
        return read(path)
    tree, scanned = parse(text)
    return _Translator(scanned.literals, read).translate(tree)


class _Translator:
    def __init__(self, literals: dict[int, str], read: ReadPath) -> None:
        self._literals = literals
        self._read = read
        self._bound: str | None = None

    def translate(self, tree: Node) -> ast.expr:
        tree = unwrap(tree)
        rules: dict[str, Callable[[Node], ast.expr]] = {
            "expr": self._condition,
            "conditionalor": self._logical,
            "conditionaland": self._logical,
            "unary": self._unary,
            "literal": self._constant,
            "list_lit": self._list,
            "map_lit": self._object,
        } | dict.fromkeys(CHAINS, self._chain)
        return rules.get(tree.data, self._member)(tree)

    def _condition(self, tree: Node) -> ast.expr:
        condition, yes, no = (self.translate(child) for child in trees(tree))
        return ast.IfExp(condition, yes, no)

    def _logical(self, tree: Node) -> ast.expr:
        left, right = (self.translate(child) for child in trees(tree))
        return ast.BoolOp(ast.Or() if tree.data == "conditionalor" else ast.And(), [left, right])

    def _chain(self, tree: Node) -> ast.expr:
        left_tree, right_tree = trees(tree)
        left, right, sign = self.translate(trees(left_tree)[0]), self.translate(right_tree), left_tree.data
        if sign in _RELATIONS:
            return ast.Compare(left, [_RELATIONS[sign]()], [right])
        if sign in _HELPERS:
            return call(_HELPERS[sign], left, right)
        return ast.BinOp(left, _OPERATORS[sign](), right)

    def _unary(self, tree: Node) -> ast.expr:
        sign, operand = trees(tree)
        return ast.UnaryOp(ast.Not() if sign.data == "unary_not" else ast.USub(), self.translate(operand))

    def _constant(self, tree: Node) -> ast.expr:
        return ast.Constant(
            cast("str | int | float | None", literal_value(cast("Token", tree.children[0]), self._literals))
        )

    def _list(self, tree: Node) -> ast.expr:
        return ast.List(self._arguments(tree, 0))

    def _object(self, tree: Node) -> ast.expr:
        parts = [self.translate(part) for inits in trees(tree) for part in trees(inits)]
        return ast.Dict(list(parts[::2]), parts[1::2])

    def _arguments(self, tree: Node, index: int) -> list[ast.expr]:
        return [self.translate(argument) for argument in argument_trees(tree, index)]

    def _member(self, tree: Node) -> ast.expr:
        suffixes: list[Node] = []
        while tree.data in SUFFIXES:
            suffixes.append(tree)
            tree = unwrap(trees(tree)[0])
        suffixes.reverse()
        if tree.data in NAMES and str(tree.children[0]) != self._bound:
            path = [str(tree.children[0])]
            while suffixes and suffixes[0].data == "member_dot":
                path.append(str(suffixes.pop(0).children[1]))
            value = self._read(tuple(path))
        elif tree.data in NAMES:
            value = ast.Name(_variable(str(tree.children[0])))
        elif tree.data in CALLS:
            value = self._call(tree)
        else:
            value = self.translate(tree)
        for suffix in suffixes:
            value = self._suffix(suffix, value)
        return value

    def _suffix(self, tree: Node, value: ast.expr) -> ast.expr:
        if tree.data == "member_index":
            return call("element", value, self.translate(trees(tree)[1]))
        name = str(tree.children[1])
        if tree.data == "member_dot":
            return call("member", value, ast.Constant(name))
        if name in {"map", "filter", "all", "exists", "exists_one"}:
            return self._comprehension(tree, name, value)
        return self._method(name, value, self._arguments(tree, 2))

    def _method(self, name: str, value: ast.expr, arguments: list[ast.expr]) -> ast.expr:
        if name in _METHODS:
            return ast.Call(ast.Attribute(value, _METHODS[name]), arguments, [])
        if name == "contains":
            return ast.Compare(arguments[0], [ast.In()], [value])
        if name == "join":
            return ast.Call(ast.Attribute(arguments[0] if arguments else ast.Constant(""), "join"), [value], [])
        if name == "substring":
            return ast.Subscript(value, ast.Slice(arguments[0], arguments[1] if len(arguments) > 1 else None))
        return self._function(name, [value, *arguments])

    def _call(self, tree: Node) -> ast.expr:
        name = str(tree.children[0])
        arguments = self._arguments(tree, 1)
        if name == "has":
            nothing = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
            return call("has", ast.Lambda(nothing, arguments[0]))
        return arguments[0] if name == "dyn" else self._function(name, arguments)

    def _function(self, name: str, arguments: list[ast.expr]) -> ast.expr:
        if name not in _FUNCTIONS:
            raise UnsupportedError(f'The function "{name}" cannot be exported.')
        return call(_FUNCTIONS[name], *arguments)

    def _comprehension(self, tree: Node, name: str, value: ast.expr) -> ast.expr:
        arguments = argument_trees(tree, 2)
        self._bound = str(unwrap(arguments[0]).children[0])
        variable = ast.Name(_variable(self._bound))
        parts = [self.translate(argument) for argument in arguments[1:]]
        self._bound = None
        outcome = parts.pop() if name == "map" else variable
        if name in {"all", "exists"}:
            generator = ast.GeneratorExp(parts[0], [ast.comprehension(variable, value, [], 0)])
            return call("all" if name == "all" else "any", generator)
        found = ast.ListComp(outcome, [ast.comprehension(variable, value, parts, 0)])
        return ast.Compare(call("len", found), [ast.Eq()], [ast.Constant(1)]) if name == "exists_one" else found


def _variable(name: str) -> str:
    """The name of a comprehension's variable, changed if it is a keyword or hides a name that expressions use."""
    return f"{name}_" if keyword.iskeyword(name) or (not name.endswith("_") and name in _TAKEN) else name


_TAKEN: Final = frozenset(
    {
        *("state", "inputs", "loop", "nodes", "member", "optional_member", "element", "divide", "remainder", "matches"),
        *("to_text", "loop_history", "len", "int", "float", "any", "all", "has", "fill"),
    }
)
