"""Human input to a run: questions and their answers, and notes to nodes (which nodes can post, too)."""

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
    """A question to a person; the attributes are those of `NodeWaiting`."""

    path: str
    kind: QuestionKind
    value: Value = None
    choices: tuple[str, ...] = ()
    value_schema: dict[str, Value] | None = None

    def accepts(self, answer: Answer) -> bool:
        """Whether an answer is valid."""
        try:
            check_answer(self, answer)
        except EngineError:
            return False
        return True


AnyQuestion: TypeAlias = Question | NodeWaiting


def check_answer(question: AnyQuestion, answer: Answer) -> None:
    """Check that an answer has one of the choices, and a value of the same type as the one to be approved.

    Raises:
        EngineError: The answer is invalid; the question stays open.
    """
    if question.choices and answer.choice not in question.choices:
        given = f'"{shown(answer.choice, 40)}" is not an answer' if answer.choice else "An answer chooses nothing"
        raise EngineError(
            f'{given} to the question at "{question.path}".', f"Choose one of: {', '.join(question.choices)}."
        )
    if question.kind != "approval" or answer.value is None:
        return
    if isinstance(question.value_schema, dict) and answer.choice != APPROVE:
        return  # the call is not made, whatever its arguments
    fault = _type_error(question.value, answer.value) or _schema_error(question, answer.value)
    if fault:
        raise _invalid_answer(question, fault)


def value_of_text(question: AnyQuestion, text: str) -> Value:
    """Parse a person's text: as JSON, unless the value to be approved is a text.

    Raises:
        EngineError: It is not JSON, or it is null, which would leave the value unchanged.
    """
    if question.kind == "question" or question.value is None or isinstance(question.value, str):
        return text
    try:
        value = parse_json(text)
    except ValueError as error:
        raise _invalid_answer(question, f"it is not JSON: {shown(str(error), 100)}") from error
    if value is None:
        raise _invalid_answer(question, f"it is null, and {_TYPE_NAMES[type(question.value)]} is needed")
    return value


_TYPE_NAMES: Final[dict[type, str]] = {
    dict: "an object",
    list: "a list",
    str: "a text",
    bool: "true or false",
    int: "a number",
    float: "a number",
    type(None): "null",
}


def _type_error(before: Value, value: Value) -> str:
    needed, given = _TYPE_NAMES[type(before)], _TYPE_NAMES[type(value)]
    return "" if before is None or needed == given else f"it is {given}, and {needed} is needed"


def _schema_error(question: AnyQuestion, value: Value) -> str:
    """Return the first schema violation that the original value does not have."""
    if not isinstance(question.value_schema, dict):  # in previews a long schema is a text
        return ""
    try:
        schema = compile_schema(question.value_schema)
    except SchemaError:
        return ""
    before = schema.errors(question.value)
    return next((error.rstrip(".") for error in schema.errors(value) if error not in before), "")


def _invalid_answer(question: AnyQuestion, fault: str) -> EngineError:
    return EngineError(
        f'The value for the question at "{question.path}" does not fit: {fault}.',
        "Change it, or leave it out to keep the value unchanged. The question stays open.",
    )


POLL_INTERVAL_S: Final = 0.5
"""Seconds between two checks of the history for answers from other processes."""


@dataclass(frozen=True, slots=True)
class _OpenQuestion:
    number: int
    answer: asyncio.Future[Answer]
    question: AnyQuestion


class Mailbox:
    """The open questions of a run.

    Args:
        storage: Has the answers from other processes; None if the run is not stored.
        run_id: The run.
    """

    def __init__(self, storage: RunStorage | None = None, run_id: str = "") -> None:
        self._storage = storage
        self._run_id = run_id
        self._questions: dict[str, _OpenQuestion] = {}
        self._polling: asyncio.Task[None] | None = None

    @contextmanager
    def open(self, number: int, question: AnyQuestion) -> Generator[asyncio.Future[Answer]]:
        """Keep a question open.

        Args:
            number: Number of the event that reported the question.
            question: The question.

        Yields:
            The future of the answer.
        """
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._questions[question.path] = _OpenQuestion(number, answer, question)
        if self._storage is not None and self._polling is None:
            self._polling = asyncio.create_task(self._poll(self._storage), name=f"loopwright answers {self._run_id}")
        try:
            yield answer
        finally:
            del self._questions[question.path]
            if self._polling is not None and not self._questions:
                self._polling.cancel()
                self._polling = None

    def put(self, path: str, answer: Answer) -> None:
        """Answer a question.

        Raises:
            EngineError: No node waits at that path, or the answer is invalid; the question stays open.
        """
        question = self._questions.get(path)
        if question is None or question.answer.done():
            raise EngineError(f'No question is open at "{path}".', "It may have been answered already.")
        check_answer(question.question, answer)
        question.answer.set_result(answer)

    async def _poll(self, storage: RunStorage) -> None:
        while True:
            await asyncio.sleep(POLL_INTERVAL_S)
            with suppress(EngineError):  # a busy history is read again
                for posted in await asyncio.to_thread(storage.pending_answers, self._run_id):
                    question = self._questions.get(posted.path)
                    if question is not None and question.number == posted.question:
                        with suppress(EngineError):  # another answer was faster, or this one is invalid
                            self.put(posted.path, posted.answer)


MAX_NOTE_LENGTH: Final = 100_000


class NoteError(EngineError):
    """No node can receive a note."""


@dataclass(frozen=True, slots=True)
class Note:
    """A note to a node.

    Attributes:
        to: Id of the node, or its path in the run (`loop[0].worker`).
        text: Plain text.
        sender: Path of the node that posted it; empty for a person.
    """

    to: str
    text: str
    sender: str = ""

    @property
    def message(self) -> Message:
        """The note as a message to the model."""
        whose = f'the node "{self.sender}"' if self.sender else "a person"
        return Message("user", f"[Note from {whose}, sent during this run]\n{self.text}")

    def is_for(self, path: str) -> bool:
        """Whether the note is for the node at a path."""
        return self.to == path or self.to == path.rpartition(".")[2]


def check_note(graph: GraphPlan, note: Note) -> None:
    """Check that a model call of the workflow can receive a note.

    Raises:
        NoteError: There is no such node, it calls no model, or the note is empty or too long.
    """
    if not note.text.strip():
        raise NoteError("The note is empty.", "Write what the node should know.")
    if len(note.text) > MAX_NOTE_LENGTH:
        raise NoteError(
            f"The note has {format_count(len(note.text), 'character')}.",
            f"At most {format_count(MAX_NOTE_LENGTH)} can be sent.",
        )
    try:
        steps = parse_place(note.to).steps
    except PlaceError as error:
        raise NoteError(f"{shown(note.to, 60)} is not the path of a node.", _possible_receivers(graph)) from error
    nodes = _all_nodes(graph) if len(steps) == 1 else graph.nodes
    for number, step in enumerate(steps):
        node = next((node for node in nodes if node.id == step.node), None)
        is_last = number == len(steps) - 1
        if (
            node is None
            or (step.index is None) != (is_last or node.subflow is not None)
            or (not is_last and node.body is None)
        ):
            raise NoteError(f'There is no node "{shown(note.to, 60)}".', _possible_receivers(graph))
        if is_last and node.spec.model(node.config) is None:
            raise NoteError(
                f'"{shown(note.to, 60)}" calls no model, and so receives no notes.', _possible_receivers(graph)
            )
        nodes = node.body.nodes if node.body is not None else ()


def _all_nodes(graph: GraphPlan) -> tuple[NodePlan, ...]:
    inner = (node for outer in graph.nodes if outer.body is not None for node in _all_nodes(outer.body))
    return (*graph.nodes, *inner)


def _possible_receivers(graph: GraphPlan) -> str:
    names = [node.id for node in _all_nodes(graph) if node.spec.model(node.config) is not None]
    return f"Notes can be sent to: {', '.join(names)}." if names else "No node of this workflow calls a model."
