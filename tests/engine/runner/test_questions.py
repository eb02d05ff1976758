"""Which questions are open, by what a run has told."""

from __future__ import annotations

from typing import Any

import pytest

from engine.errors import EngineError
from engine.models.base import Usage
from engine.nodes.context import Answer
from engine.runner.questions import Question, check_answer, open_questions, value_of_text
from engine.store.base import RunStatus
from engine.store.fold import RunFold
from tests.engine.cli.kit import Events

_ENDED: dict[str, Any] = {"node_type": "loop", "error": "No.", "remedy": "Do.", "duration_s": 1.0}


def told(path: str, around: str) -> dict[str, list[Any]]:
    """A question at a path, and what closes it, by what that is."""
    event = Events()
    asked = event(
        "NodeWaiting", path, node_type="approval", kind="approval", message="?", value=None, choices=("approve",)
    )
    return {
        "the node is answered": [asked, event("NodeAnswered", path, choice="approve", value=None, comment="")],
        "what it lies in is over": [asked, event.node(around, Usage(), node_type="loop")],
        "what it lies in has failed": [asked, event("NodeFailed", around, **_ENDED)],
        "what it lies in is tried again": [asked, event("NodeRetrying", around, attempt=1, delay_s=1.0, error="No.")],
        "a loop begins anew": [
            asked,
            event("LoopIterationStarted", around, index=0, total=2, input_preview=""),
        ],
    }


@pytest.mark.parametrize(("path", "around"), [("loop[1].ask", "loop"), ("part.ask", "part")])
def test_a_question_is_closed_with_what_it_lies_in(path: str, around: str) -> None:
    for why, events in told(path, around).items():
        if why == "a loop begins anew" and around == "part":
            continue
        fold = RunFold()
        fold.take(events[0])
        assert (list(open_questions(events[:1])), fold.state) == ([path], RunStatus.WAITING)

        fold.take(events[1])

        assert open_questions(events) == {}, why
        assert fold.state is RunStatus.RUNNING, why


def test_a_question_is_closed_with_the_item_it_lies_in() -> None:
    event = Events()
    (asked, *_) = told("each[1].ask", "each")["the node is answered"]
    nothing: dict[str, Any] = dict.fromkeys(("input", "result", "feedback", "branch", "reason", "score", "similarity"))

    def ended(index: int) -> Any:
        spent = {"usage": Usage(), "cost_usd": 0.0, "duration_s": 1.0}
        return event("LoopIterationCompleted", "each", index=index, **nothing, **spent)

    assert list(open_questions([asked, ended(0), ended(11)])) == ["each[1].ask"]
    assert open_questions([asked, ended(1)]) == {}


def test_a_question_stays_open_whatever_others_do() -> None:
    event = Events()
    for other in ("other", "loop2", "loop[1].asking"):
        (asked, *_) = told("loop[1].ask", "loop")["the node is answered"]
        ended = event.node(other, Usage())
        fold = RunFold()
        fold.take(asked)
        fold.take(ended)

        assert list(open_questions([asked, ended])) == ["loop[1].ask"]
        assert fold.state is RunStatus.WAITING


_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "lines": {"type": "integer"}},
    "required": ["path"],
}
_CHOICES = ("approve", "reject")


def _question(value: Any, schema: dict[str, Any] | None = None) -> Question:
    return Question("check", "approval", value, _CHOICES, schema)


@pytest.mark.parametrize(
    ("value", "fitting", "misfits"),
    [
        ("text", ["other", ""], [1, True, ["x"], {"a": 1}]),
        (3, [4, 0.5, -1], ["3", True, [3], {}]),
        (0.5, [1, 2.5], ["0.5", False]),
        (True, [False], [0, 1, "true", []]),
        (["a"], [[], [{"b": 1}]], ["a", {"0": "a"}, 1]),
        ({"a": 1}, [{}, {"b": [2]}], ['{"a": 2}', ["x"], 1, False]),
        (None, ["x", 1, [1], {"a": 1}], []),
    ],
)
def test_an_edited_value_must_be_of_the_same_kind(value: Any, fitting: list[Any], misfits: list[Any]) -> None:
    asked = _question(value)
    for edited in (value, None, *fitting):
        check_answer(asked, Answer("approve", edited))
    for edited in misfits:
        for choice in _CHOICES:
            with pytest.raises(EngineError, match='"check" does not fit: it is'):
                check_answer(asked, Answer(choice, edited))


@pytest.mark.parametrize(
    "edited", [["x"], "x", {}, {"path": 1}, {"path": "a", "lines": "many"}, {"lines": 2}, {"path": None}]
)
def test_edited_arguments_must_follow_the_schema_of_the_tool(edited: Any) -> None:
    asked = _question({"path": "a"}, _SCHEMA)
    with pytest.raises(EngineError, match="does not fit"):
        check_answer(asked, Answer("approve", edited))
    check_answer(asked, Answer("reject", edited))  # the call is not made
    check_answer(asked, Answer("approve", {"path": "b", "lines": 3}))


def test_what_did_not_follow_the_schema_before_is_no_fault_of_the_answer() -> None:
    asked = _question({"path": "a", "lines": "3"}, _SCHEMA)  # which the tool may well take
    check_answer(asked, Answer("approve", {"path": "b", "lines": "3"}))
    with pytest.raises(EngineError):
        check_answer(asked, Answer("approve", {"lines": "3"}))


@pytest.mark.parametrize("schema", [{"$ref": "http://elsewhere/schema"}, {"type": "nothing"}, {"type": 3}])
def test_a_schema_that_cannot_be_used_refuses_nothing_but_another_kind(schema: dict[str, Any]) -> None:
    asked = _question({"path": "a"}, schema)
    check_answer(asked, Answer("approve", {"any": 1}))
    with pytest.raises(EngineError):
        check_answer(asked, Answer("approve", [1]))


@pytest.mark.parametrize(
    ("value", "text", "read"),
    [
        ("a", '["x"]', '["x"]'),
        (None, "null", "null"),
        ({"a": 1}, '{"a": 2}', {"a": 2}),
        ([1], "[2]", [2]),
        (1, "2.5", 2.5),
        (True, "false", False),
    ],
)
def test_a_text_is_read_as_what_is_asked_about(value: Any, text: str, read: Any) -> None:
    assert value_of_text(_question(value), text) == read


@pytest.mark.parametrize("text", ["null", "", "{", "yes", "NaN", " null "])
@pytest.mark.parametrize("value", [{"a": 1}, [1], 1, False])
def test_null_and_what_is_no_json_are_refused_where_a_value_is_needed(value: Any, text: str) -> None:
    with pytest.raises(EngineError, match="does not fit"):
        value_of_text(_question(value), text)
