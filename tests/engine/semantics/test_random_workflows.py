"""Random workflows end with problems, results or engine errors, and nothing else."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given
from hypothesis import strategies as st

from engine import DocumentError, InputError, Problem, Workflow, loads, start, validate
from engine.document.problems import has_errors
from engine.models.protocol import ModelError, ModelErrorKind, Price, Usage
from tests.engine.document.strategies import workflows
from tests.engine.semantics.agents import wants
from tests.engine.semantics.kit import begin, finish, options
from tests.engine.semantics.models import Call, FakeModels, FunctionModel, Said, verdict
from tests.engine.semantics.random_workflows import broken_documents, good_documents
from tests.engine.semantics.virtual_time import virtually
from tests.examples import examples

_REPLIES: list[Said] = [
    "a text",
    "{{input}} {{loop.index}}",
    "",
    "done",
    "not done yet",
    verdict("done"),
    verdict("continue"),
    verdict("left"),
    '{"k": 1}',
    '{"done": true, "score": 7, "reason": "fine"}',
    '{"done": false, "score": 3, "reason": "dull"}',
    wants(("read_file", {"path": "a.txt"}), text="I look."),
    wants(("exit_loop", {})),
    wants(("send_note", {"to": "llm_1", "text": "Hurry."}), ("nonsense", "{"), ("finish", {"answer": "the end"})),
    ModelError(ModelErrorKind.SERVER, "The server is overloaded.", "Wait."),
    ModelError(ModelErrorKind.AUTHENTICATION, "The key is wrong.", "Check the key."),
]
PERMITTED = examples(
    100, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
)


def reply_to(call: Call, choices: list[int]) -> Said:
    """A reply that depends on the call's path and not on the order of calls, which may be parallel."""
    turn = sum(message.role == "assistant" for message in call.request.messages)
    return _REPLIES[choices[(sum(map(ord, call.path)) + turn) % len(choices)]]


def counted_models(choices: list[int], *, known_price: bool) -> FakeModels:
    price = Price(1 / 64, 1 / 8) if known_price else None  # sums of these are exact in any order
    return FakeModels(FunctionModel(lambda call: reply_to(call, choices), price=price, usage=Usage(5, 5)))


async def _outcome(workflow: Workflow, models: FakeModels) -> str:
    """The outcome of the workflow, after checking that it is possible."""
    problems = validate(workflow)
    assert all(isinstance(problem, Problem) and problem.message for problem in problems)
    more: dict[str, Any] = {"max_iterations_cap": 3}
    if has_errors(problems):
        with pytest.raises(DocumentError) as caught:
            start(workflow, {}, options(models, **more))
        assert has_errors(caught.value.problems)
        return "refused"
    try:
        run, _ = begin(workflow, models, {}, **more)
    except InputError:
        return "wrong inputs"
    played = await finish(run, models)
    assert played.result.status in {"completed", "failed"}
    if played.result.status == "failed":
        assert played.result.error
        assert "Unexpected error" not in played.result.error, played.result.error
        assert "Traceback" not in played.result.error
    return played.result.status


CHOICES = st.lists(st.integers(0, len(_REPLIES) - 1), min_size=1, max_size=6)


@PERMITTED
@given(document=good_documents(), choices=CHOICES, known_price=st.booleans())
def test_a_valid_random_workflow_ends(document: dict[str, Any], choices: list[int], known_price: bool) -> None:
    workflow = loads(json.dumps(document))
    problems = validate(workflow)

    assert not has_errors(problems), problems
    ended = virtually(_outcome(workflow, counted_models(choices, known_price=known_price)))
    event(ended)
    assert ended in {"completed", "failed"}


@PERMITTED
@given(document=broken_documents(), choices=CHOICES)
def test_a_broken_random_workflow_is_refused_or_ends(document: dict[str, Any], choices: list[int]) -> None:
    event(virtually(_outcome(loads(json.dumps(document)), counted_models(choices, known_price=True))))


@PERMITTED
@given(workflow=workflows())
def test_any_document_that_opens_is_refused_or_ends(workflow: Workflow) -> None:
    event(virtually(_outcome(workflow, counted_models([0], known_price=True))))
