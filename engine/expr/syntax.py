"""Turns the text of an expression into a syntax tree, by the grammar of cel-python. Does not know what the tree means.

Only the parser of that package is used. Its `Environment` sets the recursion limit of the whole process; its
interpreter meets Python's usual limit at 30 parentheses or a sum of a hundred terms, refuses `8 >= 8.5` and
`1 == null`, and takes 0.6 s for the plainest comprehension over 10,000 elements; its other runner works by `exec`.
"""

from __future__ import annotations

import functools
import threading
from typing import TYPE_CHECKING, Protocol, TypeAlias, cast

from engine.expr.errors import ExpressionError
from engine.expr.limits import MAX_EXPRESSION_LENGTH
from engine.expr.literals import Scanned, scan
from engine.formatting import format_count

if TYPE_CHECKING:
    from lark import Token, Tree

    Node: TypeAlias = Tree[Token]


class _Parser(Protocol):
    """What is used of the parser, whose own types say less."""

    def parse(self, text: str) -> Node: ...


CHAINS = frozenset({"relation", "addition", "multiplication"})
"""The levels of precedence at which `a + b + c` stands as (a + b) + c."""

_TRANSPARENT = CHAINS | {"expr", "conditionalor", "conditionaland", "unary", "member", "primary", "paren_expr"}

_lock = threading.Lock()

_REMEDIES = {
    "=": "Compare with ==.",
    "and": "Write && for 'and'.",
    "or": "Write || for 'or'.",
    "not": "Write ! for 'not'.",
    "is": "Compare with ==.",
    "if": "Write CONDITION ? THIS : THAT.",
    "*": "There is no power operator.",
    "&": "Write && for 'and'.",
    "|": "Write || for 'or'.",
}


def parse(text: str) -> tuple[Node, Scanned]:
    """Parse an expression.

    Returns:
        Its tree, and its quoted texts by their positions.

    Raises:
        ExpressionError: It is too long, or it is not well formed.
    """
    if len(text) > MAX_EXPRESSION_LENGTH:
        raise ExpressionError(
            f"The expression has {format_count(len(text), 'character')}; the maximum is {MAX_EXPRESSION_LENGTH:,}.",
            "Divide the work between several nodes.",
        )
    if not text.strip():
        raise ExpressionError("The expression is empty.", "Write what it is to work out.")
    scanned = scan(text)
    from lark.exceptions import UnexpectedCharacters, UnexpectedToken

    with _lock:
        parser = _parser()
        try:
            return parser.parse(scanned.text), scanned
        except UnexpectedToken as error:
            token = cast("Token", error.token)
            if token.type == "$END":
                raise ExpressionError(
                    "The expression ends before it is complete.", "Finish it, or close what is open.", len(text)
                ) from None
            word = str(token)
            shown, position = ("a quoted text" if token.start_pos in scanned.literals else f"`{word}`"), token.start_pos
        except UnexpectedCharacters as error:
            position = cast("int", error.pos_in_stream)
            word = text[position]
            shown = f"`{word}`"
    before = _word_before(scanned.text, position)
    remedy = _REMEDIES.get(word) or _REMEDIES.get(before) or "Correct the expression there."
    raise ExpressionError(f"{shown[:60]} is not expected here.", remedy, position)


def unwrap(tree: Node) -> Node:
    """Go down through the nodes that stand for nothing but a level of precedence or parentheses."""
    while len(tree.children) == 1 and tree.data in _TRANSPARENT:
        tree = trees(tree)[0]
    return tree


def trees(tree: Node) -> list[Node]:
    """Give a tree's children where the grammar says that those that are used are trees."""
    return cast("list[Node]", tree.children)


def argument_trees(tree: Node, index: int) -> list[Node]:
    """Give the list of expressions that a tree has for its child at an index; it may have none."""
    return trees(trees(tree)[index]) if len(tree.children) > index else []


def start(tree: Node) -> int | None:
    """Tell where in the expression a tree starts; None where the parser has lost it."""
    return None if tree.meta.empty else tree.meta.start_pos


def _word_before(text: str, position: int | None) -> str:
    words = text[: position or 0].split()
    return words[-1] if words else ""


@functools.cache
def _parser() -> _Parser:
    """Build the parser, once: it takes a good tenth of a second."""
    from celpy.celparser import CELParser

    CELParser()
    return cast("_Parser", CELParser.CEL_PARSER)
