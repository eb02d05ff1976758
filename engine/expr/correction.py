"""Corrections of expressions that follow another language's habits: `output contains "good"`, `score = 1 and done`.

A correction is a guess about what a person meant. It is offered, and never applied by itself.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

from engine.expr.expression import compile_expression
from engine.expr.scope import LITERALS, MAX_EXPRESSION_LENGTH, ExpressionError

_CHARACTERS: Final = str.maketrans({"“": '"', "”": '"', "„": '"', "‘": "'", "’": "'", "≥": ">=", "≤": "<=", "≠": "!="})

_QUOTED: Final = re.compile(r'"[^"\n]*"|\'[^\'\n]*\'')
_PLACEHOLDER: Final = re.compile("\ue000(\\d+)\ue001")
"""Stands for a quoted text while the words around it are replaced."""

_OPERAND: Final = r"(?<![\w.])(?:\ue000\d+\ue001|-?\d+(?:\.\d+)?|[A-Za-z_]\w*+(?:\.\w++|\[\d+\])*+(?:\([^()]*+\))?)"
_BARE_WORD: Final = re.compile(r"[A-Za-z_]\w*")
_NUMBER: Final = re.compile(r"-?\d+(?:\.\d+)?")

_WORDS: Final = (
    (r"\.(?:length|len|size)\b(?:\(\))?", ".size()"),
    (r"\.includes\(", ".contains("),
    (r"\.starts_?with\(", ".startsWith("),
    (r"\.ends_?with\(", ".endsWith("),
    (r"\.(?:to_?)?lower_?(?:case)?\(\)", ".lower()"),
    (r"\.(?:to_?)?upper_?(?:case)?\(\)", ".upper()"),
    (r"\.strip\(\)", ".trim()"),
    (r"\b(?:len|length)\(", "size("),
    (r"\btrue\b", "true"),
    (r"\bfalse\b", "false"),
    (r"\b(?:none|nil|null|undefined)\b", "null"),
)
"""Names of other languages, and ours."""

_PHRASES: Final = (
    ("is not empty|isn't empty", "size({a}) > 0"),
    ("is empty", "size({a}) == 0"),
    ("(?:does not|doesn't|not) (?:contain|include)s?", "!{a}.contains({b})"),
    ("contains?|includes?", "{a}.contains({b})"),
    ("(?:does not|doesn't|not) (?:start|begin)s? ?with", "!{a}.startsWith({b})"),
    ("(?:start|begin)s? ?with", "{a}.startsWith({b})"),
    ("(?:does not|doesn't|not) ends? ?with", "!{a}.endsWith({b})"),
    ("ends? ?with", "{a}.endsWith({b})"),
    ("(?:does not|doesn't|not) match(?:es)?", "!{a}.matches({b})"),
    ("match(?:es)?", "{a}.matches({b})"),
    ("(?:is )?longer than", "size({a}) > {b}"),
    ("(?:is )?shorter than", "size({a}) < {b}"),
    ("(?:is )?at least", "{a} >= {b}"),
    ("(?:is )?at most", "{a} <= {b}"),
    ("is (?:greater|more|higher) than", "{a} > {b}"),
    ("is (?:less|smaller|lower) than", "{a} < {b}"),
    ("is not equal to|does not equal|doesn't equal|is not|isn't|<>|!==?", "{a} != {b}"),
    ("is equal to|equals|is|===?|=", "{a} == {b}"),
)
"""Comparisons in words, and ours; `{a}` and `{b}` are the operands."""

_CONNECTIVES: Final = ((r"\band\b|(?<!&)&(?!&)", "&&"), (r"\bor\b|(?<!\|)\|(?!\|)", "||"), (r"\bnot\s+", "!"))


def correct(text: str, names: Collection[str] = ()) -> str | None:
    """Guess the expression that a person meant.

    Args:
        text: The expression: it does not compile, or reads names that do not exist.
        names: The names that it may read. Another bare word after a comparison is taken for a text.

    Returns:
        An expression that compiles; None without a guess.
    """
    if len(text) > MAX_EXPRESSION_LENGTH:
        return None
    quoted: list[str] = []

    def set_aside(literal: str) -> str:
        quoted.append(literal)
        return f"\ue000{len(quoted) - 1}\ue001"

    def operand(word: str, replacement: str) -> str:
        if _BARE_WORD.fullmatch(word):
            is_text = word not in names and word not in LITERALS
        else:
            is_text = replacement.endswith("({b})") and _NUMBER.fullmatch(word) is not None
        return set_aside(f'"{word}"') if is_text else word

    guess = text.translate(_CHARACTERS).strip()
    if guess.startswith("{{") and guess.endswith("}}"):
        guess = guess[2:-2].strip()
    guess = _QUOTED.sub(lambda match: set_aside(match[0]), guess)
    for pattern, replacement in _WORDS:
        guess = re.sub(pattern, replacement, guess, flags=re.IGNORECASE)
    for phrase, replacement in _PHRASES:
        words = phrase.replace(" ?", r"\s*").replace(" ", r"\s+")
        pattern = rf"(?P<a>{_OPERAND})(?:\s+|(?=[=!<]))(?:{words})"
        if "{b}" in replacement:
            pattern += rf"(?:\s+|(?<=[=>]))(?P<b>{_OPERAND})"
        guess = re.sub(
            pattern,
            lambda match, replacement=replacement: replacement.format(
                a=match["a"], b=operand(match["b"], replacement) if "{b}" in replacement else ""
            ),
            guess,
            flags=re.IGNORECASE,
        )
    for pattern, replacement in _CONNECTIVES:
        guess = re.sub(pattern, replacement, guess, flags=re.IGNORECASE)
    guess = _PLACEHOLDER.sub(lambda match: quoted[int(match[1])], guess)
    return guess if guess != text and _compiles(guess) else None


def _compiles(text: str) -> bool:
    try:
        compile_expression(text)
    except ExpressionError:
        return False
    return True
