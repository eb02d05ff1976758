"""Compile once, run often: a plan replaces the document."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest

import engine
from engine import DocumentError, Workflow, run, run_batch, run_blocking, start
from engine.batch.batch import BatchOptions
from engine.nodes.node_registry import builtin_registry
from engine.plan import compiler
from engine.plan.structure import analyse
from tests.engine.semantics.documents import around, each, entry, flow, gather, llm, part, result
from tests.engine.semantics.kit import options
from tests.engine.semantics.models import FakeModels, FunctionModel, numbered

LOOP = around(llm("draft"), edges="loop -> draft -> exit", max_iterations=4)
INPUTS = {"text": "seed"}


@pytest.fixture
def analyzed() -> Iterator[list[Workflow]]:
    """The documents that are analyzed while the test runs."""
    found: list[Workflow] = []

    def noted(workflow: Workflow, *args: Any) -> Any:
        found.append(workflow)
        return analyse(workflow, *args)

    with patch.object(compiler, "analyse", noted):
        yield found


def given() -> Any:
    return options(FunctionModel(numbered))


async def test_a_plan_runs_like_its_document(analyzed: list[Workflow]) -> None:
    plan = engine.compile(LOOP)

    results = [await run(plan, INPUTS, given()), await start(plan, INPUTS, given()).result()]

    assert [outcome.outputs for outcome in results] == [{"out": "draft 3"}] * 2
    assert analyzed == [LOOP]
    assert start(plan, INPUTS, given()).workflow is LOOP


def test_a_plan_runs_blocking_too() -> None:
    assert run_blocking(engine.compile(LOOP), INPUTS, given()).outputs == {"out": "draft 3"}


def test_a_document_with_errors_is_not_compiled() -> None:
    with pytest.raises(DocumentError) as caught:
        engine.compile(Workflow())

    assert [problem.code for problem in caught.value.problems] == ["no-nodes"]


@pytest.mark.parametrize(("compiled", "asked", "iterations"), [(2, 50, 4), (50, 2, 2), (2, 2, 2)])
async def test_the_iteration_cap_of_the_run_applies_to_any_plan(
    compiled: int, asked: int, iterations: int, analyzed: list[Workflow]
) -> None:
    plan = engine.compile(LOOP, max_iterations_cap=compiled)

    outcome = await run(plan, INPUTS, replace(given(), max_iterations_cap=asked))

    assert outcome.loops["loop"].iterations_run == iterations
    assert analyzed == [LOOP]


async def test_a_plan_keeps_the_registry_it_was_compiled_with() -> None:
    transform = builtin_registry().find("transform")
    assert transform is not None
    spec = replace(transform, type="shout")
    workflow = flow(entry(), part("say", "shout", template="{{input}}!"), result(), edges="text -> say -> out")
    plan = engine.compile(workflow, registry=builtin_registry().with_types([spec]))

    assert (await run(plan, INPUTS, given())).outputs == {"out": "seed!"}


async def test_concurrent_runs_of_one_plan_are_independent() -> None:
    plan = engine.compile(around(llm("draft"), edges="loop -> draft -> exit", max_iterations=4, memory="accumulate"))
    started = [start(plan, {"text": str(number)}, given()) for number in range(3)]

    results = [await one.result() for one in started]

    assert [outcome.outputs for outcome in results] == [{"out": "draft 3"}] * 3


async def test_a_batch_compiles_its_document_once(analyzed: list[Workflow]) -> None:
    rows = [{"text": str(number)} for number in range(5)]
    batch = BatchOptions(run=given(), models=lambda: FakeModels(FunctionModel(numbered)))

    outcome = await run_batch(LOOP, rows, batch)

    assert [row.status for row in outcome.rows] == ["completed"] * 5
    assert analyzed == [LOOP]


async def test_iterators_and_subflows_are_compiled_with_their_document(analyzed: list[Workflow]) -> None:
    inner = flow(entry("given"), llm("draft"), result("made"), edges="given -> draft -> made").to_json()
    workflow = flow(
        each(source="list", items=["a", "b", "c"]),
        part("sub", "subflow", file="part.loop.json", workflow=inner),
        gather(),
        result(),
        edges="each -> sub.given\nsub.made -> gather -> out",
    )
    plan = engine.compile(workflow)
    before = len(analyzed)

    outcome = await run(plan, {}, given())

    assert isinstance(outcome.outputs["out"], list)
    assert len(outcome.outputs["out"]) == 3
    assert len(analyzed) == before == 1


def test_an_analyzed_document_is_not_analyzed_again(analyzed: list[Workflow]) -> None:
    plan = compiler.compile_structure(analyse(LOOP))

    assert run_blocking(plan, INPUTS, given()).outputs == {"out": "draft 3"}
    assert analyzed == []
