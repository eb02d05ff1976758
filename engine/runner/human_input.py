"""Which answers fit the questions of a run."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final, TypeAlias

from engine.errors import EngineError
from engine.events import NodeWaiting, PlaceError, parse_place
from engine.formatting import format_count
from engine.models.protocol import Message
from engine.nodes.context import APPROVE, Answer, QuestionKind
from engine.nodes.json_values import SchemaError, compile_schema, parse_json
from engine.plan.execution_plan import GraphPlan, NodePlan
from engine.runner.run_storage import RunStorage
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


LOOK_S: Final = 0.5
"""Seconds between two looks into the history."""


@dataclass(frozen=True, slots=True)
class _Question:
    """The number of its event, where the answer is put, and what decides whether one fits."""

    number: int
    answer: asyncio.Future[Answer]
    asked: Asked


class Mailbox:
    """The open questions of a run.

    Args:
        keeper: Where other processes leave answers; None where the run is not kept.
        run_id: The run.
    """

    def __init__(self, keeper: RunStorage | None = None, run_id: str = "") -> None:
        self._keeper = keeper
        self._run_id = run_id
        self._questions: dict[str, _Question] = {}
        self._looking: asyncio.Task[None] | None = None

    @contextmanager
    def open(self, number: int, asked: Asked) -> Generator[asyncio.Future[Answer]]:
        """Hold a question open.

        Args:
            number: The number of the event that reported the question.
            asked: The question.

        Yields:
            Where the answer is put.
        """
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._questions[asked.path] = _Question(number, answer, asked)
        if self._keeper is not None and self._looking is None:
            self._looking = asyncio.create_task(self._look(self._keeper), name=f"loopwright answers {self._run_id}")
        try:
            yield answer
        finally:
            del self._questions[asked.path]
            if self._looking is not None and not self._questions:
                self._looking.cancel()
                self._looking = None

    def put(self, path: str, answer: Answer) -> None:
        """Answer a question.

        Raises:
            EngineError: Nothing waits at that path, or the answer does not fit; the question stays open.
        """
        question = self._questions.get(path)
        if question is None or question.answer.done():
            raise EngineError(f'Nothing waits for an answer at "{path}".', "Look whether it has been answered already.")
        check_answer(question.asked, answer)
        question.answer.set_result(answer)

    async def _look(self, keeper: RunStorage) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            with suppress(EngineError):  # a history that is busy is looked at again
                for left in await asyncio.to_thread(keeper.left_answers, self._run_id):
                    question = self._questions.get(left.path)
                    if question is not None and question.number == left.question:
                        with suppress(EngineError):  # another answer was faster, or it is none
                            self.put(left.path, left.answer)


LONGEST_NOTE: Final = 100_000
"""Characters of a note."""


class NoteError(EngineError):
    """A note that nobody can receive."""


@dataclass(frozen=True, slots=True)
class Note:
    """A note.

    Attributes:
        to: A node's id, or its place in the run (`loop[0].worker`).
        text: What it says; plain text.
        sender: The path of the node that posted it; empty for a person.
    """

    to: str
    text: str
    sender: str = ""

    @property
    def message(self) -> Message:
        """The note as the model gets it."""
        whose = f'the node "{self.sender}"' if self.sender else "a person"
        return Message("user", f"[Note from {whose}, while you are at work]\n{self.text}")

    def is_for(self, path: str) -> bool:
        """Whether the node at a path is meant."""
        return self.to == path or self.to == path.rpartition(".")[2]


def check_note(graph: GraphPlan, note: Note) -> None:
    """Refuse a note that no model call of the workflow can receive.

    Raises:
        NoteError: There is no such node, it calls no model, or there is nothing to say.
    """
    if not note.text.strip():
        raise NoteError("The note is empty.", "Write what the node is to know.")
    if len(note.text) > LONGEST_NOTE:
        raise NoteError(
            f"The note has {format_count(len(note.text), 'character')}.", f"At most {LONGEST_NOTE:,} can be sent."
        )
    try:
        steps = parse_place(note.to).steps
    except PlaceError as error:
        raise NoteError(f"{shown(note.to, 60)} names no node.", _remedy(graph)) from error
    nodes = _all_nodes(graph) if len(steps) == 1 else graph.nodes
    for number, step in enumerate(steps):
        node = next((node for node in nodes if node.id == step.node), None)
        is_last = number == len(steps) - 1
        if (
            node is None
            or (step.index is None) != (is_last or node.subflow is not None)
            or (not is_last and node.body is None)
        ):
            raise NoteError(f'There is no node "{shown(note.to, 60)}".', _remedy(graph))
        if is_last and node.spec.model(node.config) is None:
            raise NoteError(f'"{node.title}" calls no model, and so receives no notes.', _remedy(graph))
        nodes = node.body.nodes if node.body is not None else ()


def _all_nodes(graph: GraphPlan) -> tuple[NodePlan, ...]:
    inner = (node for outer in graph.nodes if outer.body is not None for node in _all_nodes(outer.body))
    return (*graph.nodes, *inner)


def _remedy(graph: GraphPlan) -> str:
    names = [node.id for node in _all_nodes(graph) if node.spec.model(node.config) is not None]
    return f"Notes can be sent to: {', '.join(names)}." if names else "No node of this workflow calls a model."
