"""docs/coming-from.md: no empty cell, and each line links to evidence that exists."""

from __future__ import annotations

import re

import pytest

from tests.architecture.markdown import read
from tests.architecture.project import ROOT, defines_test

PAGE = "docs/coming-from.md"
SYSTEMS = 5
_LINK = re.compile(r"\[([^\]]+)\]\(\.\./([^)]+)\)")
ROWS = [
    [cell.strip() for cell in line.strip().strip("|").split("|")]
    for line in read(PAGE).splitlines()
    if line.startswith("|") and not line.startswith(("|---", "| Feature "))
]


def test_there_is_a_table_for_each_program() -> None:
    assert read(PAGE).count("| Feature | In Loopwright | Shown by |") == SYSTEMS
    assert len(ROWS) > 80


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_each_line_links_to_evidence_that_exists(row: list[str]) -> None:
    assert len(row) == 3
    assert all(row)
    shown_by = _LINK.findall(row[2])
    assert shown_by
    for name, path in shown_by:
        file = ROOT / path
        assert file.is_file(), path
        if path.startswith("templates/"):
            assert name == f"template {file.name.removesuffix('.loop.json')}"
        else:
            assert defines_test(path, name.strip("`")), f"{path} has no {name}"
