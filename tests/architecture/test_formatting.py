"""Money, durations, counts and indented JSON are formatted in engine/formatting.py and nowhere else."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from tests.architecture.project import sources

ELSEWHERE = {
    "engine/formatting.py": "the module itself",
    "engine/exits/condition.py": "values of names in an expression, as the expression sees them",
}
EXPORTED = "engine/export/"
"""Generated programs import nothing of this project."""
_AMOUNT = re.compile(r",|[f%]$")


def _formats(module: ast.Module) -> Iterator[tuple[int, str]]:
    """The format specifications of amounts in f-strings, and the indents of JSON."""
    for node in ast.walk(module):
        if isinstance(node, ast.FormattedValue) and node.format_spec is not None:
            spec = ast.unparse(node.format_spec)[2:-1]
            if _AMOUNT.search(spec) and not spec.startswith("%"):  # %H:%M is a time of day
                yield node.lineno, spec
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "json.dumps":
            yield from ((node.lineno, "indent") for keyword in node.keywords if keyword.arg == "indent")


def test_amounts_are_formatted_in_one_module():
    found = {
        path: list(_formats(module))
        for path, module in sources("app", "engine").items()
        if path not in ELSEWHERE and not path.startswith(EXPORTED)
    }
    assert {path: places for path, places in found.items() if places} == {}


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ('f"{cost:.2f}"', [".2f"]),
        ('f"{count:,} rows"', [","]),
        ('f"{share:.1%}"', [".1%"]),
        ('f"{width:g} {name:>8} {now:%H:%M}"', []),
        ("json.dumps(value, indent=2)", ["indent"]),
        ("json.dumps(value)", []),
    ],
)
def test_formats_of_amounts_are_recognized(source: str, found: list[str]):
    assert [spec for _, spec in _formats(ast.parse(source))] == found
