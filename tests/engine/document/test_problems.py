"""How a problem is told."""

from __future__ import annotations

from engine.document.problems import Problem, Severity, has_errors

ERROR = Problem("missing-exit", "The loop has no exit.", "Add one.", node="loop", port="body", field="a\nb")
WARNING = Problem("old", "The field is old.", severity=Severity.WARNING, edge="a.b -> c.d")


def test_a_problem_reads_as_one_line_with_its_place() -> None:
    assert str(ERROR) == 'error: node "loop", port "body", field "a\\nb": The loop has no exit. Add one.'
    assert str(WARNING) == 'warning: edge "a.b -> c.d": The field is old.'
    assert str(Problem("empty", "Nothing runs.")) == "error: Nothing runs."


def test_a_problem_as_json_holds_everything_and_the_place_in_words() -> None:
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
        "place": 'edge "a.b -> c.d"',
    }


def test_warnings_alone_stop_nothing() -> None:
    assert not has_errors([WARNING])
    assert has_errors([WARNING, ERROR])
