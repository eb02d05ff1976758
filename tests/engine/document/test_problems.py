"""Formatting of problems."""

from __future__ import annotations

from engine.document.problems import Problem, Severity, has_errors

ERROR = Problem("missing-exit", "The loop has no exit.", "Add one.", node="loop", port="body", field="a\nb")
WARNING = Problem("old", "The field is old.", severity=Severity.WARNING, edge="a.b -> c.d")


def test_problem_is_one_line_with_its_place() -> None:
    assert str(ERROR) == 'error: node "loop", port "body", field "a\\nb": The loop has no exit. Add one.'
    assert str(WARNING) == 'warning: edge "a.b -> c.d": The field is old.'
    assert str(Problem("empty", "Nothing runs.")) == "error: Nothing runs."


def test_problem_as_json_has_all_fields_and_the_place() -> None:
    assert WARNING.to_json() == {
        "code": "old",
        "message": "The field is old.",
        "remedy": "",
        "severity": "warning",
        "node": None,
        "port": None,
        "field": None,
        "edge": "a.b -> c.d",
        "correction": "",
        "fix": "",
        "place": 'edge "a.b -> c.d"',
    }


def test_warnings_are_no_errors() -> None:
    assert not has_errors([WARNING])
    assert has_errors([WARNING, ERROR])
