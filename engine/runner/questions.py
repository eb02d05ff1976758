"""Which answers fit the questions of a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

from engine.errors import EngineError
from engine.events import NodeWaiting
from engine.nodes.context import APPROVE, Answer, QuestionKind
from engine.nodes.json_text import parse_json
from engine.nodes.schema import SchemaError, compile_schema
from engine.text_sanitizing import shown
from engine.values import Value


@dataclass(frozen=True, slots=True)
class Question:
    """What decides whether an answer to a question fits; the attributes are those of `NodeWaiting`."""

    path: str
    kind: QuestionKind
    value: Value = None
    choices: tuple[str, ...] = ()
    value_schema: dict[str, Value] | None = None

    def takes(self, answer: Answer) -> bool:
        """Whether an answer fits."""
        try:
            check_answer(self, answer)
        except EngineError:
            return False
        return True


Asked: TypeAlias = Question | NodeWaiting


def check_answer(asked: Asked, answer: Answer) -> None:
    """Refuse an answer that does not fit: another choice, or a value of another kind than the one to be approved.

    Raises:
        EngineError: It does not fit; the question stays open.
    """
    if asked.choices and answer.choice not in asked.choices:
        given = f'"{shown(answer.choice, 40)}" is no answer' if answer.choice else "An answer chooses nothing"
        raise EngineError(f'{given} to the question at "{asked.path}".', f"Choose one of: {', '.join(asked.choices)}.")
    if asked.kind != "approval" or answer.value is None:
        return
    if isinstance(asked.value_schema, dict) and answer.choice != APPROVE:
        return  # the arguments of a call that is not made
    fault = _kind_fault(asked.value, answer.value) or _schema_fault(asked, answer.value)
    if fault:
        raise _misfit(asked, fault)


def value_of_text(asked: Asked, text: str) -> Value:
    """The value that a person's text stands for: JSON, unless the value to be approved is a text.

    Raises:
        EngineError: It is not JSON, or JSON's null, which would leave the value unchanged.
    """
    if asked.kind == "question" or asked.value is None or isinstance(asked.value, str):
        return text
    try:
        value = parse_json(text)
    except ValueError as error:
        raise _misfit(asked, f"it is not JSON: {shown(str(error), 100)}") from error
    if value is None:
        raise _misfit(asked, f"it is null, and {_KINDS[type(asked.value)]} is needed")
    return value


_KINDS: Final[dict[type, str]] = {
    dict: "an object",
    list: "a list",
    str: "a text",
    bool: "true or false",
    int: "a number",
    float: "a number",
    type(None): "null",
}


def _kind_fault(before: Value, value: Value) -> str:
    needed, given = _KINDS[type(before)], _KINDS[type(value)]
    return "" if before is None or needed == given else f"it is {given}, and {needed} is needed"


def _schema_fault(asked: Asked, value: Value) -> str:
    """The first thing in a value that does not follow the schema, unless it was so before."""
    if not isinstance(asked.value_schema, dict):  # a preview of a long schema is a text
        return ""
    try:
        schema = compile_schema(asked.value_schema)
    except SchemaError:
        return ""
    before = schema.errors(asked.value)
    return next((error.rstrip(".") for error in schema.errors(value) if error not in before), "")


def _misfit(asked: Asked, fault: str) -> EngineError:
    return EngineError(
        f'The value for the question at "{asked.path}" does not fit: {fault}.',
        "Change it, or leave it out to keep the value as it is. The question stays open.",
    )
