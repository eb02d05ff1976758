"""Problems of expressions suggest corrections."""

from __future__ import annotations

import pytest

from engine import Problem, Workflow, validate


def problems_of(until: str) -> list[Problem]:
    condition = {"condition": "until", "expression": until}
    return validate(
        Workflow.model_validate(
            {
                "nodes": [
                    {"id": "text", "type": "input"},
                    {"id": "loop", "type": "loop", "config": {"stop_when": [condition]}},
                    {"id": "draft", "type": "llm", "config": {"prompt": "{{input}}"}},
                    {"id": "exit", "type": "exit"},
                    {"id": "out", "type": "output"},
                ],
                "edges": [
                    {"from": "text.value", "to": "loop.input"},
                    {"from": "loop.body", "to": "draft.input"},
                    {"from": "draft.output", "to": "exit.input"},
                    {"from": "exit.output", "to": "out.value"},
                ],
            }
        )
    )


@pytest.mark.parametrize(
    ("until", "code", "correction"),
    [
        ('output contains "good"', "bad-expression", 'output.contains("good")'),
        ("output contains good", "bad-expression", 'output.contains("good")'),
        ("similarity = 1", "bad-expression", "similarity == 1"),
        ("output == done", "unknown-name", 'output == "done"'),
        ("output > similarit", "unknown-name", ""),
        ("output ((", "bad-expression", ""),
    ],
)
def test_a_problem_of_a_condition_has_a_correction(until: str, code: str, correction: str):
    [problem] = [problem for problem in problems_of(until) if problem.node == "loop"]
    assert (problem.code, problem.correction) == (code, correction)
    assert not correction or correction in problem.remedy


def test_a_corrected_condition_has_no_problem():
    [problem] = [problem for problem in problems_of("output contains good") if problem.node == "loop"]
    assert [one for one in problems_of(problem.correction) if one.node == "loop"] == []
