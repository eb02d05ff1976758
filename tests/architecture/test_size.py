"""Rule 8: modules and functions stay small, and a module is something that a reader looks for by name."""

from __future__ import annotations

import ast
from collections import Counter

from tests.architecture.project import ROOT, sources

MAX_FILE_LINES = 800
MAX_FUNCTION_LINES = 60
MIN_LINES_WITH_ONE_IMPORTER = 100
MAX_EQUAL_NAMES = 2
MAX_SMALL_MODULES = 6
"""The number of modules below that length with one importer: members of a family, such as exit conditions."""


def _sources() -> dict[str, ast.Module]:
    return sources("app", "engine")


def _lengths() -> dict[str, int]:
    return {path: len((ROOT / path).read_text(encoding="utf-8").splitlines()) for path in _sources()}


def _body_length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """The lines of a function without its signature and docstring: options of a command are declarations."""
    body = function.body[1:] if ast.get_docstring(function, clean=False) is not None else function.body
    return (function.end_lineno or 0) - body[0].lineno + 1 if body else 0


def _imported(module: ast.Module) -> set[str]:
    """The dotted names that a module imports, modules or not."""
    names: set[str] = set()
    for node in ast.walk(module):
        if isinstance(node, ast.ImportFrom):
            names |= {str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return names


def test_no_module_is_long():
    assert {path: length for path, length in _lengths().items() if length > MAX_FILE_LINES} == {}


def test_no_function_is_long():
    lengths = {
        f"{path}:{node.lineno} {node.name}": _body_length(node)
        for path, module in _sources().items()
        for node in ast.walk(module)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert {place: length for place, length in lengths.items() if length > MAX_FUNCTION_LINES} == {}


def test_every_module_has_a_docstring():
    assert [path for path, module in _sources().items() if module.body and not ast.get_docstring(module)] == []


def test_module_names_tell_modules_apart():
    names = Counter(path.rpartition("/")[2] for path in _sources())
    del names["__init__.py"]
    assert {name: count for name, count in names.items() if count > MAX_EQUAL_NAMES} == {}


def test_small_modules_with_one_importer_are_rare():
    modules = _sources()
    imports = [_imported(module) for module in modules.values()]
    names = {path: path.removesuffix(".py").replace("/", ".") for path in modules if not path.endswith("__init__.py")}
    importers = {path: sum(name in imported for imported in imports) for path, name in names.items()}
    lengths = _lengths()
    # Exit conditions have a file each, however small.
    small = [
        path
        for path in names
        if lengths[path] < MIN_LINES_WITH_ONE_IMPORTER and importers[path] == 1 and not path.startswith("engine/exits/")
    ]
    assert len(small) <= MAX_SMALL_MODULES, small
