"""The engine never runs text as code, unpickles objects, or passes a line to a shell."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.architecture.project import sources

_CALLS = {"eval", "exec", "compile", "__import__"}
_MODULES = {"pickle", "_pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib", "code", "codeop"}
_MEMBERS = {
    ("os", "system"),
    ("os", "popen"),
    ("yaml", "load"),
    ("yaml", "unsafe_load"),
    ("subprocess", "getoutput"),
    ("subprocess", "getstatusoutput"),
    ("asyncio", "create_subprocess_shell"),
    ("builtins", "eval"),
    ("builtins", "exec"),
}


def _banned(module: ast.Module) -> Iterator[tuple[int, str]]:
    """The line and name of each banned call."""
    for node in ast.walk(module):
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name) and node.func.id in _CALLS:
                yield node.lineno, node.func.id
            for keyword in node.keywords:
                if keyword.arg == "shell" and not (
                    isinstance(keyword.value, ast.Constant) and keyword.value.value is False
                ):
                    yield node.lineno, "shell"
        elif isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names if alias.name.partition(".")[0] in _MODULES)
        elif isinstance(node, ast.ImportFrom):
            origin = node.module or ""
            if origin.partition(".")[0] in _MODULES:
                yield node.lineno, origin
            yield from ((node.lineno, alias.name) for alias in node.names if (origin, alias.name) in _MEMBERS)
        elif isinstance(node, ast.Attribute):
            name = ast.unparse(node)
            if tuple(name.rsplit(".", 1)) in _MEMBERS:
                yield node.lineno, name


def test_the_engine_uses_nothing_banned():
    found = {path: list(_banned(module)) for path, module in sources("engine").items()}
    assert {path: places for path, places in found.items() if places} == {}


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("eval('1')", "eval"),
        ("exec('pass')", "exec"),
        ("compile('1', '', 'eval')", "compile"),
        ("import pickle", "pickle"),
        ("from marshal import loads", "marshal"),
        ("from os import system", "system"),
        ("import os\nos.popen('ls')", "os.popen"),
        ("import yaml\nyaml.load(text)", "yaml.load"),
        ("import subprocess\nsubprocess.run('ls', shell=True)", "shell"),
        ("import asyncio\nasyncio.create_subprocess_shell('ls')", "asyncio.create_subprocess_shell"),
    ],
)
def test_each_banned_call_is_detected(source: str, name: str):
    assert [found for _, found in _banned(ast.parse(source))] == [name]


@pytest.mark.parametrize(
    "source", ["re.compile('a')", "import yaml\nyaml.safe_load(text)", "subprocess.run(['ls'], shell=False)"]
)
def test_similar_names_are_allowed(source: str):
    assert list(_banned(ast.parse(source))) == []
