"""A condition that searches for an empty text gets a warning, as its result never changes."""

from __future__ import annotations

import pytest

from engine import validate
from tests.engine.plan.documents import LOOPED, document, in_a_row, looped
from tests.wording import mentions


def warnings(until: str) -> list[str]:
    loop = {"exit_condition": "expression", "until": until}
    return [one.message for one in validate(document(looped(loop), *LOOPED)) if one.code == "empty-search"]


@pytest.mark.parametrize(
    ("until", "result"),
    [
        ('output.contains("")', "true"),
        ("!output.contains('')", "false"),
        ('output.startsWith("")', "true"),
        ('output.endsWith("")', "true"),
        ('output.matches("")', "true"),
        ('similarity > 0.9 || output.contains( "" )', "true"),
    ],
)
def test_a_search_for_an_empty_text_gets_a_warning(until: str, result: str) -> None:
    (message,) = warnings(until)

    assert mentions(message, f"`output` … empty … always {result}")


@pytest.mark.parametrize(
    "until",
    ['output == ""', 'output != ""', 'output.contains("\\"\\"")', 'output.contains(" ")', 'output.contains("") +'],
)
def test_other_comparisons_get_none(until: str) -> None:
    assert warnings(until) == []


def test_a_template_with_such_a_text_gets_none() -> None:
    workflow = in_a_row(("transform", {"template": 'output.contains("") {{input}}'}))

    assert [problem.code for problem in validate(workflow)] == []
