"""docs/semantics.md: every rule links to a test that exists."""

from __future__ import annotations

import re

import pytest

from tests.architecture.markdown import read
from tests.architecture.project import defines_test

RULES = [line[2:] for line in read("docs/semantics.md").splitlines() if line.startswith("- ")]
_LINK = re.compile(r"\[`(test_\w+)`\]\(\.\./([^)]+)\)")


def test_the_page_has_rules():
    assert len(RULES) > 70


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule[:60])
def test_each_rule_links_to_tests_that_exist(rule: str):
    links = _LINK.findall(rule)
    assert links
    assert [link for link in links if not defines_test(link[1], link[0])] == []


@pytest.mark.parametrize(
    ("path", "name", "exists"),
    [
        ("tests/architecture/test_semantics_page.py", "test_the_page_has_rules", True),
        ("tests/architecture/test_semantics_page.py", "test_the_page_has", False),
        ("tests/architecture/no_such_file.py", "test_the_page_has_rules", False),
    ],
)
def test_a_missing_test_is_detected(path: str, name: str, *, exists: bool):
    assert defines_test(path, name) is exists
