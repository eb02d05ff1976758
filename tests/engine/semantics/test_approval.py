"""The `approval` node: the effect of an answer, also in a loop and after a timeout."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from engine import EngineError, Run, Workflow
from engine.events import LoopIterationCompleted, NodeAnswered, NodeCompleted, NodeWaiting
from engine.nodes.context import Answer
from tests.engine.semantics.documents import entry, flow, leave, llm, loop, part, result, transform
from tests.engine.semantics.kit import Played, begin, finish
from tests.engine.semantics.virtual_time import virtually

EDGES = """
text -> check
check.approved -> out
check.rejected -> no
check.comment -> said
"""


def one(**config: Any) -> Workflow:
    """text -> check -> out / no, with the comment as `said`."""
    parts = (entry(), part("check", "approval", **config), result(), result("no"), result("said"))
    return flow(*parts, edges=EDGES)


async def answered(workflow: Workflow, *answers: Answer, models: str = "reply", text: Any = "seed") -> Played:
    """Run a workflow with these answers, one for each question."""
    run, catalog = begin(workflow, models, {"text": text})
    given = iter(answers)
    task = asyncio.create_task(_answer_all(run, given))
    played = await finish(run, catalog)
    await task
    assert next(given, None) is None
    return played


async def _answer_all(run: Run, answers: Any) -> None:
    async for event in run.events():
        if isinstance(event, NodeWaiting):
            run.answer(event.path, next(answers))


async def questions(run: Run) -> AsyncIterator[NodeWaiting]:
    async for event in run.events():
        if isinstance(event, NodeWaiting):
            yield event


async def test_an_approved_value_passes_unchanged_with_the_comment() -> None:
    played = await answered(one(), Answer("approve", comment="fine"))
    assert played.result.outputs == {"out": "seed", "said": "fine"}
    (asked,) = played.of(NodeWaiting)
    assert (asked.kind, asked.message, asked.value) == ("approval", "Is this right?", "seed")
    assert asked.choices == ("approve", "reject")


async def test_an_edited_value_is_passed_on() -> None:
    assert (await answered(one(), Answer("approve", "better"))).out == "better"
    played = await answered(one(), Answer("reject", "worse", "no"))
    assert played.result.outputs == {"no": "worse", "said": "no"}


async def test_the_message_shows_the_input_ports() -> None:
    asking = part("check", "approval", message="Is {{input}} by {{author}}?")
    workflow = flow(entry(), asking, result(), edges="text -> check\ntext -> check.author\ncheck.approved -> out")
    played = await answered(workflow, Answer("approve"))
    assert played.of(NodeWaiting)[0].message == "Is seed by seed?"


async def test_an_invalid_choice_is_refused_and_the_question_stays_open() -> None:
    run, models = begin(one())
    asked = await anext(questions(run))
    with pytest.raises(EngineError, match=r'"perhaps" is not an answer .* "check"'):
        run.answer(asked.path, Answer("perhaps"))
    with pytest.raises(EngineError, match="chooses nothing"):
        run.answer(asked.path, Answer())
    run.answer(asked.path, Answer("approve"))
    assert (await finish(run, models)).out == "seed"


def refined() -> Workflow:
    """A loop whose draft a person approves, or rejects with a comment."""
    until = 'nodes.check.choice == "approve"'
    return flow(
        entry(),
        loop(max_iterations=5, until=until),
        llm("draft"),
        part("check", "approval"),
        transform("again", "{{input}}: {{comment}}"),
        leave(),
        result(),
        edges="""
        text -> loop -> draft -> check
        check.approved -> exit
        check.rejected -> again
        check.comment -> again.comment
        again -> exit.feedback
        exit -> out
        """,
    )


async def test_a_rejection_with_its_comment_becomes_the_feedback() -> None:
    played = await answered(refined(), Answer("reject", comment="shorter"), Answer("approve"))
    assert [call.request.messages[-1].text for call in played.model.calls] == ["seed", "reply: shorter"]
    assert [event.path for event in played.of(NodeWaiting)] == ["loop[0].check", "loop[1].check"]
    assert (played.out, played.loop.exit_reason) == ("reply", "until")
    assert [event.index for event in played.of(LoopIterationCompleted)] == [0, 1]


@pytest.mark.parametrize(
    ("unanswered", "outputs"),
    [
        ("approve", {"out": "seed", "said": "Nobody answered within 60 s."}),
        ("reject", {"no": "seed", "said": "Nobody answered within 60 s."}),
    ],
)
def test_an_approval_timeout_can_pass_the_value_on(unanswered: str, outputs: dict[str, str]) -> None:
    played = virtually(_unattended(one(answer_within_s=60, when_unanswered=unanswered)))
    assert played.result.outputs == outputs
    (ended,) = [event for event in played.of(NodeCompleted) if event.path == "check"]
    assert ended.warnings == (f"Nobody answered within 60 s. It counts as {unanswered}.",)
    assert played.of(NodeAnswered) == []


def test_an_approval_timeout_fails_the_node_by_default() -> None:
    played = virtually(_unattended(one(answer_within_s=60)))
    assert (played.result.status, played.result.node) == ("failed", "check")
    assert "within 60 s" in played.result.error


async def _unattended(workflow: Workflow) -> Played:
    run, models = begin(workflow)
    return await finish(run, models)
