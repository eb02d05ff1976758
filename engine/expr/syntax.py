"""Parser of expressions: text to syntax tree.

`cel.lark` is the grammar of cel-python 0.5.0, unchanged. The rest of that package is not used: its interpreter exceeds
Python's usual recursion limit at 30 parentheses or a sum of 100 terms, rejects `8 >= 8.5` and `1 == null`, and takes
0.6 s for the simplest comprehension over 10,000 elements. Its other runner uses `exec`.
"""

from __future__ import annotations

import functools
import re
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from engine.expr.functions import checked
from engine.expr.scope import MAX_EXPRESSION_LENGTH, ExpressionError
from engine.formatting import format_count
from engine.values import Value

if TYPE_CHECKING:
    from collections.abc import Callable

    from lark import Token, Tree

    Node: TypeAlias = Tree[Token]

# The two loops with a lookahead are not possessive, because the `re` of Python 3.11.2 has a bug there. There is only
# one way to match them anyway.
_TOKEN = re.compile(
    r"""
    (?P<raw>(?<![A-Za-z0-9_])[rR](?:\"{3}.*?\"{3}|'{3}.*?'{3}|"[^"\n]*+"|'[^'\n]*+'))
    | (?P<cooked>\"{3}(?:[^\\"]|\\.|"(?!""))*\"{3}|'{3}(?:[^\\']|\\.|'(?!''))*'{3}
        |"(?:[^\\"\n]|\\[^\n])*+"|'(?:[^\\'\n]|\\[^\n])*+')
    | (?P<quote>["'])
    | (?P<comment>//[^\n]*+)
    | (?P<open>\{)
    | (?P<close>\})
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2})|(.))", re.DOTALL)
_SIMPLE = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"} | {c: c for c in "\\?\"'`"}


@dataclass(frozen=True, slots=True)
class Scanned:
    """An expression with its string literals and comments blanked out; all positions stay the same.

    Attributes:
        text: The expression, with a stand-in of the same length for each string literal.
        literals: The values of the string literals by position.
    """

    text: str
    literals: dict[int, str]


def scan(text: str) -> Scanned:
    """Extract the string literals of an expression.

    Raises:
        ExpressionError: A quotation mark is not closed, or an escape is invalid.
    """
    pieces: list[str] = []
    literals: dict[int, str] = {}
    done = 0
    for match in _TOKEN.finditer(text):
        start, end = match.span()
        if match.lastgroup in {"open", "close"}:
            continue
        pieces.append(text[done:start])
        if match.lastgroup == "comment":
            pieces.append(" " * (end - start))
        elif start == done and literals:
            raise ExpressionError("Two quoted texts follow each other.", "Join them with +.", start)
        else:
            literals[start] = _unquote(match)
            pieces.append(f'"{"_" * (end - start - 2)}"')
        done = end
    pieces.append(text[done:])
    return Scanned("".join(pieces), literals)


def literal_value(token: Token, literals: dict[int, str]) -> Value:
    """The value of a literal.

    Raises:
        ExpressionError: JSON or 64 bits cannot hold it.
    """
    position = token.start_pos
    match token.type:
        case "STRING_LIT" | "MLSTRING_LIT":
            return literals[position or 0]
        case "BOOL_LIT":
            return str(token) == "true"
        case "NULL_LIT":
            return None
        case "FLOAT_LIT":
            return checked(float(token), position)
        case "INT_LIT" | "UINT_LIT":
            digits = token.lower().rstrip("u")
            return checked(int(digits, 16 if "x" in digits else 10), position)
        case _:
            raise ExpressionError("Bytes are not a JSON value.", "Leave out the b before the quotation mark.", position)


def placeholder_end(text: str, start: int) -> int | None:
    """Find the `}}` that ends a placeholder of a template, ignoring those in string literals and objects.

    Args:
        text: The template.
        start: The start of the placeholder's expression.

    Returns:
        The position of the `}}`, or None.

    Raises:
        ExpressionError: A quotation mark in the placeholder is not closed.
    """
    depth = 0
    position = start
    while (match := _TOKEN.search(text, position)) is not None:
        position = match.end()
        match match.lastgroup:
            case "quote":
                raise _open_quote(match)
            case "comment":
                position = match.start() + 2
            case "open":
                depth += 1
            case "close" if depth:
                depth -= 1
            case "close" if text.startswith("}", position):
                return match.start()
            case _:
                pass
    return None


def _unquote(match: re.Match[str]) -> str:
    if match.lastgroup == "quote":
        raise _open_quote(match)
    quoted = match[0].lstrip("rR")
    marks = 3 if quoted.startswith(('"""', "'''")) else 1
    inside = quoted[marks:-marks]
    if match.lastgroup == "raw":
        return inside
    offset = match.start() + marks

    def unescape(escape: re.Match[str]) -> str:
        code = escape[1] or escape[2] or escape[3]
        try:
            if code is not None:
                character = chr(int(code, 16))
                character.encode()
                return character
            return chr(int(escape[4], 8)) if escape[4] else _SIMPLE[escape[5]]
        except (KeyError, ValueError, OverflowError):
            raise ExpressionError(
                f"`{escape[0]}` is not an escape sequence.",
                r"Write \\ for a backslash, or put r before the quotation mark.",
                offset + escape.start(),
            ) from None

    return _ESCAPE.sub(unescape, inside)


def _open_quote(match: re.Match[str]) -> ExpressionError:
    return ExpressionError(
        f"The text that starts here with {match[0]} is not closed.", f"Close it with {match[0]}.", match.start()
    )


CHAINS = frozenset({"relation", "addition", "multiplication"})
"""The rules of left-associative operators: `a + b + c` is (a + b) + c."""

NAMES = frozenset({"ident", "dot_ident"})
CALLS = frozenset({"ident_arg", "dot_ident_arg"})
SUFFIXES = frozenset({"member_dot", "member_dot_arg", "member_index"})

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

    Raises:
        ExpressionError: It is too long or not well-formed.
    """
    if len(text) > MAX_EXPRESSION_LENGTH:
        raise ExpressionError(
            f"The expression has {format_count(len(text), 'character')}; "
            f"the maximum is {format_count(MAX_EXPRESSION_LENGTH)}.",
            "Split the work between several nodes.",
        )
    if not text.strip():
        raise ExpressionError("The expression is empty.", "Write an expression, such as size(input) < 500.")
    scanned = scan(text)
    from lark.exceptions import UnexpectedCharacters, UnexpectedToken

    with _lock:
        parser = _parser()
        try:
            return parser(scanned.text), scanned
        except UnexpectedToken as error:
            token = cast("Token", error.token)
            if token.type == "$END":
                raise ExpressionError(
                    "The expression ends before it is complete.",
                    "Complete it, or close its brackets and quotes.",
                    len(text),
                ) from None
            word = str(token)
            shown, position = ("a quoted text" if token.start_pos in scanned.literals else f"`{word}`"), token.start_pos
        except UnexpectedCharacters as error:
            position = cast("int", error.pos_in_stream)
            word = text[position]
            shown = f"`{word}`"
    before = scanned.text[: position or 0].split()[-1:] or [""]
    remedy = _REMEDIES.get(word) or _REMEDIES.get(before[0]) or "Correct the expression there."
    raise ExpressionError(f"{shown[:60]} is not expected here.", remedy, position)


def unwrap(tree: Node) -> Node:
    """Skip nodes that are only a level of precedence or parentheses."""
    while len(tree.children) == 1 and tree.data in _TRANSPARENT:
        tree = trees(tree)[0]
    return tree


def trees(tree: Node) -> list[Node]:
    """The children of a tree, where the grammar has trees."""
    return cast("list[Node]", tree.children)


def argument_trees(tree: Node, index: int) -> list[Node]:
    """The list of expressions that is a tree's child at an index; empty without one."""
    return trees(trees(tree)[index]) if len(tree.children) > index else []


def start(tree: Node) -> int | None:
    """The start of a tree in the expression; None if the parser does not know it."""
    return None if tree.meta.empty else tree.meta.start_pos


@functools.cache
def _parser() -> Callable[[str], Node]:
    """Build the parser once; it takes about 0.1 seconds."""
    import lark

    parser: Any = lark.Lark(  # its types are incomplete
        Path(__file__).with_name("cel.lark").read_text("utf-8"),
        parser="lalr",
        start="expr",
        g_regex_flags=re.MULTILINE,
        lexer_callbacks={"IDENT": _literal_or_identifier},
        propagate_positions=True,
        maybe_placeholders=False,
        priority="invert",
    )
    return parser.parse


def _literal_or_identifier(token: Token) -> Token:
    """Correct the type of `true` and `false`, which the grammar's lexer takes for identifiers."""
    return token.update(type="BOOL_LIT") if token.value in {"true", "false"} else token
