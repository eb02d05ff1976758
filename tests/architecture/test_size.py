"""Files and functions stay small enough to have one reason to change each."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.architecture.project import ROOT, engine_sources

MAX_FILE_LINES = 800
MAX_FUNCTION_LINES = 60

_Function = ast.FunctionDef | ast.AsyncFunctionDef


def _work(function: _Function) -> int:
    """Lines of a function without its signature and docstring: a command's options are declarations, not work."""
    body = function.body[1:] if ast.get_docstring(function, clean=False) is not None else function.body
    return (function.end_lineno or 0) - body[0].lineno + 1 if body else 0


def _functions() -> Iterator[tuple[str, _Function]]:
    for path, module in engine_sources().items():
        for node in ast.walk(module):
            if isinstance(node, _Function):
                yield f"{path}:{node.lineno} {node.name}", node


def test_no_file_of_the_engine_is_long():
    lengths = {path: len((ROOT / path).read_text(encoding="utf-8").splitlines()) for path in engine_sources()}
    assert {path: length for path, length in lengths.items() if length > MAX_FILE_LINES} == {}


def test_no_function_of_the_engine_is_long():
    lengths = {place: _work(function) for place, function in _functions()}
    assert {place: length for place, length in lengths.items() if length > MAX_FUNCTION_LINES} == {}


def test_every_module_has_a_docstring():
    files = {path: module for path, module in engine_sources().items() if module.body}
    assert [path for path, module in files.items() if not ast.get_docstring(module)] == []
