"""Write values and texts as Python source: literals and docstrings that are safe for any text."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from engine.text_sanitizing import harmless
from engine.values import Value

_WIDTH: Final = 100
_STEP: Final = "    "
_SHORT: Final = 60
_PIECES: Final = re.compile(r"\n*[^\n]+\n*|\n+")
_QUOTES: Final = re.compile(r'\\|"(?="|$)|(?<=")"')


def literal(value: Value, indent: str = "") -> str:
    """A value as a Python literal. Text of several lines becomes several literals in parentheses.

    Args:
        value: The value.
        indent: The indentation of the statement.
    """
    inner = indent + _STEP
    if isinstance(value, str):
        pieces = _PIECES.findall(value)
        if len(pieces) < 2 or len(repr(value)) <= _SHORT:
            return repr(value)
        return "(\n" + "".join(f"{inner}{piece!r}\n" for piece in pieces) + f"{indent})"
    plain = repr(value)
    if not isinstance(value, (list, dict)) or (len(plain) + len(indent) <= _WIDTH and "\\n" not in plain):
        return plain
    if isinstance(value, list):
        return "[\n" + "".join(f"{inner}{literal(item, inner)},\n" for item in value) + f"{indent}]"
    lines = (f"{inner}{name!r}: {literal(item, inner)},\n" for name, item in value.items())
    return "{\n" + "".join(lines) + f"{indent}}}"


def one_line_docstring(text: str) -> str:
    """A text as a docstring of one line."""
    return f'"""{_escaped(" ".join(text.split()))}"""'


def docstring(paragraphs: Iterable[str]) -> str:
    """Paragraphs as a docstring. Only paragraphs that start with neither a space nor a hyphen are wrapped."""
    written: list[str] = []
    for paragraph in paragraphs:
        lines = paragraph.split("\n")
        is_fixed = all(line.startswith((" ", "-")) for line in lines)
        whole = paragraph if is_fixed else "\n".join(textwrap.wrap(" ".join(paragraph.split()), _WIDTH))
        written.append("\n".join(_escaped(line).rstrip() for line in whole.split("\n")))
    return '"""' + "\n\n".join(part for part in written if part) + '\n"""'


def _escaped(text: str) -> str:
    """A line that neither ends the docstring nor contains invisible characters."""
    return _QUOTES.sub(r"\\\g<0>", harmless(text)) if text else ""


@dataclass(frozen=True, slots=True)
class Exported:
    """An exported workflow.

    Attributes:
        text: The source of a Python module.
        left_out: What the module does not do although the workflow does, a sentence each.
    """

    text: str
    left_out: tuple[str, ...]
