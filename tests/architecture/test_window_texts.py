"""No text that the window may show names an option, an environment variable or a command.

The window shows the texts of its own modules and of all of the engine's modules but the command line's.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from tests.architecture.project import sources

NOT_SHOWN = {
    "app/entry.py": "written to the terminal, before there is a window",
    "engine/export/langgraph_module.py": "part of the exported program",
    "engine/export/python_script.py": "part of the exported program",
}
TERMINAL = re.compile(
    r"(?<![\w-])--[a-z]|environment variable|LOOPWRIGHT_|_API_KEY|[`'](?:loopwright|make|pip|uv|python)\b"
    r"|\b(?:pip|uv|apt) install|loopwright (?:runs|batch|models|nodes|tools|templates|plugins|validate)\b"
)
NAME = re.compile(r"[A-Z_]+| ?--[a-z-]+(=[\w:]*)?")
"""A string that is nothing but the name of a variable or an argument of a program is no text."""


def _texts(module: ast.Module) -> Iterator[tuple[int, str]]:
    """All strings of a module that are not documentation."""
    bodies = [node.body for node in ast.walk(module) if isinstance(getattr(node, "body", None), list)]  # type: ignore[attr-defined]
    documentation = {id(statement.value) for body in bodies for statement in body if isinstance(statement, ast.Expr)}
    for node in ast.walk(module):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
            yield node.lineno, node.value


def test_texts_of_the_window_name_nothing_of_the_terminal():
    found = {
        f"{path}:{line}": text
        for path, module in sources("app", "engine").items()
        if not path.startswith("engine/cli/") and path not in NOT_SHOWN
        for line, text in _texts(module)
        if TERMINAL.search(text) and not NAME.fullmatch(text)
    }
    assert found == {}


@pytest.mark.parametrize(
    "text",
    [
        "Start the run with --folder.",
        "Put it into OPENAI_API_KEY.",
        "See `loopwright models`.",
        "See 'loopwright runs'.",
        "Set the environment variable.",
        "pip install x",
    ],
)
def test_texts_for_the_terminal_are_recognized(text: str):
    assert TERMINAL.search(text)
    assert not NAME.fullmatch(text)


@pytest.mark.parametrize("text", ["Loopwright runs here.", "a -- b", "Well-known", "Set the key."])
def test_other_texts_are_not(text: str):
    assert not TERMINAL.search(text)
