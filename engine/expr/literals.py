r"""Finds the quoted texts in an expression, and says what a literal stands for. Knows nothing of the other grammar.

The parser never sees what a person quoted. The pattern that finds texts in cel-python 0.5.0 reads an escape in two
ways, so that a quotation mark left open before n escapes takes it 2ⁿ steps; and it drops line breaks between three
quotation marks. Both are avoided by taking the texts out before. The patterns here never step back, whatever the text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.expr.errors import ExpressionError
from engine.expr.operators import checked
from engine.values import Value

if TYPE_CHECKING:
    from lark import Token

# The two loops with a lookahead are not possessive, for the `re` of Python 3.11.2 gets that wrong. They need not be:
# what they take can be divided in one way only.
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
    """An expression whose quoted texts and comments are blanked out, every position as before.

    Attributes:
        text: The expression, with a stand-in of the same length for each quoted text.
        literals: What the text that is quoted at a position stands for.
    """

    text: str
    literals: dict[int, str]


def scan(text: str) -> Scanned:
    """Take the quoted texts out of an expression.

    Raises:
        ExpressionError: A quotation mark is not closed, or an escape means nothing.
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
            raise ExpressionError("Two quoted texts stand side by side.", "Join them with +.", start)
        else:
            literals[start] = _unquote(match)
            pieces.append(f'"{"_" * (end - start - 2)}"')
        done = end
    pieces.append(text[done:])
    return Scanned("".join(pieces), literals)


def literal_value(token: Token, literals: dict[int, str]) -> Value:
    """Say what a literal of the grammar stands for.

    Raises:
        ExpressionError: It stands for nothing that JSON and 64 bits can hold.
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
            raise ExpressionError("Bytes are no JSON value.", "Leave out the b before the quotation mark.", position)


def hole_end(text: str, start: int) -> int | None:
    """Find the `}}` that ends the hole of a template, past those in quoted texts and in objects.

    Args:
        text: The template.
        start: Where the hole's expression starts.

    Returns:
        The position of the `}}`, or None when there is none.

    Raises:
        ExpressionError: A quotation mark in the hole is not closed; its position is one of the template.
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
                f"`{escape[0]}` does not stand for a character.",
                r"Write \\ for a backslash, or put r before the quotation mark.",
                offset + escape.start(),
            ) from None

    return _ESCAPE.sub(unescape, inside)


def _open_quote(match: re.Match[str]) -> ExpressionError:
    return ExpressionError(
        f"The text that starts here with {match[0]} has no end.", f"Close it with {match[0]}.", match.start()
    )
