"""Compiler of expressions: syntax tree to nested Python functions, and the paths that they read.

The tree has a node for each level of precedence; those without an operator are skipped. Chains (`a + b + c`, `a.b[0]`)
become loops, so a long expression needs no deep stack, neither here nor in evaluation.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias, cast

from engine.errors import did_you_mean
from engine.expr import scope
from engine.expr.functions import (
    ARITHMETIC,
    COMPREHENSIONS,
    FUNCTIONS,
    RELATIONS,
    Body,
    Function,
    Operator,
    Step,
    as_bool,
    decide,
    element,
    negate,
)
from engine.expr.scope import MAX_NESTING, ExpressionError, Frame, MissingError
from engine.expr.syntax import CALLS, CHAINS, NAMES, SUFFIXES, argument_trees, literal_value, start, trees, unwrap
from engine.values import Value

if TYPE_CHECKING:
    from lark import Token

    from engine.expr.syntax import Node

Suffix: TypeAlias = "Callable[[Frame, Value], Value]"
"""Applies what follows a value: `.name`, `[index]`, `.call(…)`."""

Element: TypeAlias = "tuple[tuple[str, ...], tuple[str, ...]]"
"""The path of a list, and a path that is read of one of its elements."""

_OPERATORS = RELATIONS | ARITHMETIC


class Compiler:
    """Compiles one expression.

    Attributes:
        paths: The paths found so far.
        elements: See `Expression.elements`.
    """

    def __init__(self, literals: dict[int, str]) -> None:
        self.paths: set[tuple[str, ...]] = set()
        self.elements: set[Element] = set()
        self._literals = literals
        self._bound: str | None = None
        self._bound_list: tuple[str, ...] = ()
        self._depth = 0
        self._compiled = 0
        self._rules: dict[str, Callable[[Node], Step]] = {
            "expr": self._condition,
            "conditionalor": self._logical,
            "conditionaland": self._logical,
            "unary": self._unary,
            "literal": self._literal,
            "list_lit": self._list,
            "map_lit": self._object,
        } | dict.fromkeys(CHAINS, self._chain)

    def compile(self, tree: Node) -> Step:
        """Compile a tree.

        Raises:
            ExpressionError: It is nested too deeply, or is invalid.
        """
        tree = unwrap(tree)
        if self._depth == MAX_NESTING:
            raise ExpressionError(
                f"The expression is nested more than {MAX_NESTING} levels deep.", "Make it simpler.", start(tree)
            )
        self._depth += 1
        self._compiled += 1
        step = self._rules.get(tree.data, self._member)(tree)
        self._depth -= 1
        return step

    # Operators

    def _condition(self, tree: Node) -> Step:
        condition, yes, no = (self.compile(child) for child in trees(tree))
        position = start(tree)
        return lambda frame: yes(frame) if as_bool(condition(frame), position) else no(frame)

    def _logical(self, tree: Node) -> Step:
        rule, position = tree.data, start(tree)
        decisive = rule == "conditionalor"
        operands: list[Step] = []
        while tree.data == rule:
            left, right = trees(tree)
            operands.append(self.compile(right))
            tree = unwrap(left)
        operands.append(self.compile(tree))
        operands.reverse()
        return lambda frame: decide(frame, operands, decisive, position)

    def _chain(self, tree: Node) -> Step:
        """Compile operators of one precedence, `a + b - c`; the left operands are nested."""
        rule = tree.data
        links: list[tuple[Operator, int | None, Step]] = []
        while tree.data == rule:
            left, right = trees(tree)
            links.append((_OPERATORS[left.data], start(right), self.compile(right)))
            tree = unwrap(trees(left)[0])
        first = self.compile(tree)
        links.reverse()

        def chained(frame: Frame) -> Value:
            value = first(frame)
            for work, position, operand in links:
                value = work(frame, position, value, operand(frame))
            return value

        return chained

    def _unary(self, tree: Node) -> Step:
        signs: list[tuple[bool, int | None]] = []
        while tree.data == "unary":
            sign, operand = trees(tree)
            signs.append((sign.data == "unary_not", start(tree)))
            tree = unwrap(operand)
        step = self.compile(tree)
        signs.reverse()

        def signed(frame: Frame) -> Value:
            value = step(frame)
            for inverts, position in signs:
                value = not as_bool(value, position) if inverts else negate(position, value)
            return value

        return signed

    # Values

    def _literal(self, tree: Node) -> Step:
        value = literal_value(cast("Token", tree.children[0]), self._literals)
        return lambda _frame: value

    def _list(self, tree: Node) -> Step:
        items = self._arguments(tree, 0)
        return lambda frame: [item(frame) for item in items]

    def _object(self, tree: Node) -> Step:
        parts = [self.compile(part) for inits in trees(tree) for part in trees(inits)]
        pairs = list(zip(parts[::2], parts[1::2], strict=True))
        position = start(tree)

        def built(frame: Frame) -> Value:
            made: dict[str, Value] = {}
            for name_of, value_of in pairs:
                name = name_of(frame)
                if not isinstance(name, str):
                    raise ExpressionError(
                        f"A name in an object is a text, but this is {scope.describe(name)}.", "", position
                    )
                if name in made:
                    raise ExpressionError(f"The object has `{name[:40]}` twice.", "Leave out one.", position)
                made[name] = value_of(frame)
            return made

        return built

    # Names, members and calls

    def _member(self, tree: Node) -> Step:
        """Compile a name, call or literal with all its suffixes."""
        suffixes: list[Node] = []
        while tree.data in SUFFIXES:
            suffixes.append(tree)
            tree = unwrap(trees(tree)[0])
        suffixes.reverse()
        path = self._path_start(tree)
        if path:
            while suffixes and suffixes[0].data == "member_dot":
                path.append(str(suffixes.pop(0).children[1]))
            step = self._read(tuple(path), start(tree))
            self._note_element(tuple(path), list(itertools.dropwhile(_is_filter, suffixes)), is_list=True)
        elif tree.data in NAMES:
            step = _variable
            self._note_element(self._bound_list, suffixes, is_list=False)
        elif tree.data in CALLS:
            step = self._call(tree)
        elif tree.data == "member_object":
            raise ExpressionError(
                "There are no types to make objects of.", 'Write an object as {"name": value}.', start(tree)
            )
        else:
            step = self.compile(tree)
        if not suffixes:
            return step
        works = [self._suffix(suffix) for suffix in suffixes]

        def taken(frame: Frame) -> Value:
            value = step(frame)
            for work in works:
                value = work(frame, value)
            return value

        return taken

    def _path_start(self, tree: Node) -> list[str]:
        """The name that starts a path; empty without one, or if a comprehension binds it."""
        if tree.data not in NAMES:
            return []
        name = str(tree.children[0])
        return [] if name == self._bound else [name]

    def _note_element(self, path: tuple[str, ...], suffixes: list[Node], *, is_list: bool) -> None:
        """Note what is read of an element of the list at a path; `is_list`: the suffixes follow the list."""
        if is_list:
            if not suffixes or suffixes[0].data != "member_index":
                return
            suffixes = suffixes[1:]
        members: list[str] = []
        for suffix in suffixes:
            name = str(suffix.children[1]) if suffix.data == "member_dot" else self._quoted_index(suffix)
            if name is None:
                break
            members.append(name)
        if path and members:
            self.elements.add((path, tuple(members)))

    def _quoted_index(self, suffix: Node) -> str | None:
        index = unwrap(trees(suffix)[1]) if suffix.data == "member_index" else suffix
        value = literal_value(cast("Token", index.children[0]), self._literals) if index.data == "literal" else None
        return value if isinstance(value, str) else None

    def _list_path(self, tree: Node) -> tuple[str, ...]:
        """The path of the list of a comprehension, filtered or not; empty if it is no path."""
        path: list[str] = []
        while tree.data == "member_dot" or (tree.data == "member_dot_arg" and _is_filter(tree) and not path):
            if tree.data == "member_dot":
                path.insert(0, str(tree.children[1]))
            tree = unwrap(trees(tree)[0])
        return (*self._path_start(tree), *path) if tree.data in NAMES else ()

    def _read(self, path: tuple[str, ...], position: int | None) -> Step:
        scope.check_path(path, position)
        self.paths.add(path)
        if path[0] not in scope.NAMESPACES:
            return lambda frame: scope.read(path, frame.scope, position)

        def remembered(frame: Frame) -> Value:
            if path not in frame.known:
                frame.known[path] = scope.read(path, frame.scope, position)
            return frame.known[path]

        return remembered

    def _suffix(self, tree: Node) -> Suffix:
        if tree.data == "member_index":
            _, index_tree = trees(tree)
            index, place = self.compile(index_tree), start(index_tree)
            return lambda frame, value: element(place, value, index(frame))
        token = cast("Token", tree.children[1])
        name, position = str(token), token.start_pos
        if tree.data == "member_dot":
            return lambda _frame, value: scope.member_of(value, name, "This", position)
        if name in COMPREHENSIONS:
            return self._comprehension(tree, name, position)
        function = self._function(name, position, method=True)
        call, arguments = function.call, self._arguments(tree, 2)
        _check_count(name, function, len(arguments), 1, position)
        return lambda frame, value: call(frame, position, value, *[argument(frame) for argument in arguments])

    def _call(self, tree: Node) -> Step:
        name, position = str(tree.children[0]), start(tree)
        if name == "has":
            return self._has(tree)
        function = self._function(name, position, method=False)
        call, arguments = function.call, self._arguments(tree, 1)
        _check_count(name, function, len(arguments), 0, position)
        return lambda frame: call(frame, position, *[argument(frame) for argument in arguments])

    def _function(self, name: str, position: int | None, *, method: bool) -> Function:
        function = FUNCTIONS.get(name)
        if function is not None and (function.method if method else function.plain):
            return function
        if function is not None or name in COMPREHENSIONS:
            usage = f"{name}(…)" if method else f"VALUE.{name}(…)"
            raise ExpressionError(f"`{name}` is not called like this.", f"Write {usage}.", position)
        known = sorted([*FUNCTIONS, *COMPREHENSIONS, "has"])
        message = f"There is no function `{name[:40]}`; there is: {', '.join(known)}."
        raise ExpressionError(message, did_you_mean(name, known), position)

    def _arguments(self, tree: Node, index: int) -> list[Step]:
        return [self.compile(argument) for argument in argument_trees(tree, index)]

    def _has(self, tree: Node) -> Step:
        position = start(tree)
        arguments = argument_trees(tree, 1)
        target = unwrap(arguments[0]) if len(arguments) == 1 else tree
        if target.data != "member_dot":
            raise ExpressionError("`has` needs a member.", "Write it as in has(input.title).", position)
        path: list[str] = []
        owner = target
        while owner.data == "member_dot":
            path.insert(0, str(owner.children[1]))
            owner = unwrap(trees(owner)[0])
        root = self._path_start(owner)
        if root:
            full = (*root, *path)
            self.paths.add(full)
            return lambda frame: scope.has(full, frame.scope, position)
        value_of = self.compile(target)

        def tested(frame: Frame) -> Value:
            try:
                value_of(frame)
            except MissingError:
                return False
            return True

        return tested

    def _comprehension(self, tree: Node, name: str, position: int | None) -> Suffix:
        if self._bound is not None:
            raise ExpressionError(
                f"`{name}` is inside another comprehension.", "Split the work between two nodes.", position
            )
        arguments = argument_trees(tree, 2)
        counts = (2, 3) if name == "map" else (2,)
        variable = unwrap(arguments[0]) if arguments else tree
        if len(arguments) not in counts or variable.data != "ident":
            raise ExpressionError(
                f"`{name}` needs a name for the element and an expression.",
                f"Write it as in LIST.{name}(x, x {'+' if name == 'map' else '>'} 1).",
                position,
            )
        before = self._compiled
        self._bound_list = self._list_path(unwrap(trees(tree)[0]))
        self._bound = str(variable.children[0])
        steps = [self.compile(argument) for argument in arguments[1:]]
        self._bound, self._bound_list = None, ()
        outcome = steps.pop() if name == "map" else None
        body = Body(name, steps[0] if steps else None, outcome, self._compiled - before, position)
        work = COMPREHENSIONS[name]
        return lambda frame, value: work(frame, value, body)


def _is_filter(suffix: Node) -> bool:
    return suffix.data == "member_dot_arg" and str(suffix.children[1]) == "filter"


def _variable(frame: Frame) -> Value:
    return frame.variable


def _check_count(name: str, function: Function, count: int, receivers: int, position: int | None) -> None:
    """Check the number of arguments; `receivers` of the function's parameters stand before the dot."""
    least, most = function.least - receivers, function.most - receivers
    if not least <= count <= most:
        wanted = str(least) if least == most else f"{least} or {most}"
        raise ExpressionError(f"`{name}` takes {wanted} in its parentheses, but gets {count}.", "", position)
