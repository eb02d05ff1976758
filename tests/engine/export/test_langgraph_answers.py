"""Exported modules ask again if an approval's answer is invalid, by the rules of the engine."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import Answer
from engine.export import langgraph_runtime_agents
from engine.runner.human_input import Question
from tests.engine.export.kit import Both
from tests.engine.semantics.agents import agent, tools_fixture, wants
from tests.engine.semantics.documents import entry, flow, part, result

__all__ = ["tools_fixture"]

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

JSON_VALUES: list[st.SearchStrategy[Any]] = [
    st.none() | st.booleans() | st.integers(-2, 2) | st.floats(-1, 1) | st.text(max_size=2),
    st.lists(st.integers(0, 1), max_size=2),
    st.dictionaries(st.sampled_from("abc"), st.integers(0, 1) | st.text(max_size=1), max_size=2),
]


def replies(*prompts: Any) -> Any:
    """Replies turn by turn, chosen by the number of earlier replies in the conversation."""

    def answer(_node: str, messages: list[tuple[str, str]]) -> Any:
        return prompts[sum(role == "assistant" for role, _ in messages)]

    return answer


_ADD_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
    "required": ["a"],
}


@pytest.mark.parametrize("misfit", [["x"], "x", 1, True, {}, {"a": "many"}])
def test_invalid_arguments_are_requested_again_and_never_replaced_by_the_calls_own(misfit: Any, tools: Any):
    added: list[dict[str, Any]] = []

    def add(**arguments: Any) -> float:
        added.append(arguments)
        return 0

    helper = agent("helper", tools=["add"], require_approval=["add"])
    workflow = flow(entry(), helper, result(), edges="text -> helper -> out")
    answers = [Answer("approve", misfit), Answer("approve", {"a": 5})]
    both = Both(workflow, replies(wants(("add", {"a": 1, "b": 1})), "Done."), answers)

    assert both.run_module({"text": "seed"}, {"add": add}) == {"out": "Done."}

    assert added == [{"a": 5}]
    first, second = both.their_questions
    assert "does not fit" in second["error"]
    assert {**second, "error": ""} == {**first, "error": ""}


@pytest.mark.parametrize(("value", "misfit"), [({"a": 1}, ["x"]), ([1], "x"), (1, "1"), (True, 1)])
def test_a_value_of_another_kind_is_requested_again(value: Any, misfit: Any):
    workflow = flow(
        entry(type="json"), part("check", "approval"), result(), edges="text -> check\ncheck.approved -> out"
    )
    both = Both(workflow, answers=[Answer("maybe"), Answer("approve", misfit), Answer("approve")])

    assert both.run_module({"text": value}) == {"out": value}

    assert [bool(asked.get("error")) for asked in both.their_questions] == [False, True, True]


@given(st.one_of(*JSON_VALUES), st.one_of(*JSON_VALUES), st.sampled_from(["approve", "reject", "", "x"]), st.booleans())
def test_an_answer_fits_a_module_if_it_fits_the_engine(value: Any, edited: Any, choice: str, with_schema: bool) -> None:
    schema = _ADD_SCHEMA if with_schema else None
    question = Question("check", "approval", value, ("approve", "reject"), schema)
    asked = {"value": value, "choices": ["approve", "reject"]}

    fault = langgraph_runtime_agents.answer_error({"choice": choice, "value": edited}, asked, schema)

    assert question.accepts(Answer(choice, edited)) is (fault == "")


def test_a_question_on_the_terminal_cannot_control_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    prompts: list[str] = []

    def typed(prompt: str) -> str:
        prompts.append(prompt)
        return "approve"

    monkeypatch.setattr("builtins.input", typed)
    value = {"command": "rm\x1b]0;x\x07 -rf\u202e /\nls"}

    langgraph_runtime_agents.ask_at_terminal(
        {"node": "a", "message": "\x9b2J?", "value": value, "choices": ["approve"]}
    )

    assert all(c.isprintable() or c == "\n" for c in prompts[0])
    assert "\\u202e" in prompts[0]
