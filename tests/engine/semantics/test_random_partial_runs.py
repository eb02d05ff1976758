"""Partial runs of random workflows have the values of a full run, and call only what those values need."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable
from typing import Any

from hypothesis import assume, event, given
from hypothesis import strategies as st

from engine import Workflow, loads, validate
from engine.document.operations import Operation, SetConfig, SetEnabled, SetPinned, SetSettings
from engine.document.problems import has_errors
from engine.events import NodeCompleted, NodeFailed, NodeSkipped
from engine.models.protocol import Usage
from engine.plan.dependencies import part_nodes
from engine.plan.partial_run import Extent, Part
from engine.plan.structure import analyse
from engine.store.partial_runs import MissingValuesError, last_run, plan_partial_run, start_partial_run
from tests.engine.semantics.kit import Played, begin, finish, options
from tests.engine.semantics.models import Call, FakeModels, FunctionModel, Said
from tests.engine.semantics.random_workflows import good_documents
from tests.engine.semantics.test_random_workflows import CHOICES, PERMITTED, reply_to
from tests.engine.semantics.virtual_time import virtually
from tests.engine.store.memory_store import MemoryStore

SOURCE = "w.loop.json"


def deterministic(choices: list[int]) -> FakeModels:
    """Models whose reply depends on the path and on everything that is sent."""

    def answer(call: Call) -> Said:
        said = reply_to(call, choices)
        return f"{said} {zlib.crc32(sent(call).encode())}" if said == "a text" else said

    return FakeModels(FunctionModel(answer, usage=Usage(5, 5)))


def sent(call: Call) -> str:
    """The messages of a call."""
    return json.dumps([(message.role, message.text) for message in call.request.messages])


async def play_whole(workflow: Workflow, choices: list[int], store: MemoryStore | None = None) -> Played:
    """Run a whole workflow."""
    models = deterministic(choices)
    run, _ = begin(workflow, models, {}, max_iterations_cap=3, store=store, source=SOURCE)
    return await finish(run, models)


async def play_part(workflow: Workflow, choices: list[int], store: MemoryStore, part: Part) -> Played:
    """Run a part of a workflow after the last run."""
    models = deterministic(choices)
    given = options(models, max_iterations_cap=3, store=store, source=SOURCE)
    planned = plan_partial_run(store, workflow, part, {}, given, last=last_run(store, SOURCE))
    return await finish(start_partial_run(store, planned, given), models)


def outer(path: str) -> str:
    """The outermost node of a path."""
    return path.partition(".")[0].partition("[")[0]


def values(played: Played) -> dict[str, Any]:
    """The outputs of the outermost nodes that completed, without the cost and duration of iterations.

    The warnings of parallel items are in the order in which the items ended, which differs with other limits.
    """
    return {event.path: _comparable(event.outputs) for event in played.of(NodeCompleted) if "." not in event.path}


def _comparable(value: Any) -> Any:
    if isinstance(value, dict):
        parts = {key: _comparable(part) for key, part in value.items() if key not in {"duration_s", "cost_usd"}}
        return {**parts, "warnings": sorted(parts["warnings"])} if "warnings" in parts else parts
    return [_comparable(part) for part in value] if isinstance(value, list) else value


def requests(played: Played, nodes: Iterable[str]) -> dict[str, list[str]]:
    """Everything that was sent from these outermost nodes, by path."""
    found: dict[str, list[str]] = {}
    for call in played.model.calls:
        if outer(call.path) in nodes:
            found.setdefault(call.path, []).append(sent(call))
    return found


def check_same(partial: Played, whole: Played) -> None:
    """Check that a partial run has the values of a whole one, and made its calls."""
    seen, expected = values(partial), values(whole)
    for done in whole.of(NodeCompleted):
        if done.pinned and done.path in seen:  # outputs that are not pinned may be those of the last run
            seen[done.path] = {port: seen[done.path][port] for port in done.outputs}
    both = seen.keys() & expected.keys()
    assert {node: seen[node] for node in both} == {node: expected[node] for node in both}
    made = requests(partial, both)
    expected_calls = requests(whole, both)
    assert made == {path: expected_calls[path] for path in made}


def without_budgets(document: dict[str, Any]) -> Workflow:
    """The workflow without budgets: a partial run has spent less at the same node."""
    settings = {key: value for key, value in document["settings"].items() if not key.startswith("budget")}
    return loads(json.dumps({**document, "settings": settings}))


def ended(played: Played) -> set[str]:
    """The outermost nodes that completed or were skipped."""
    return {event.path for kind in (NodeCompleted, NodeSkipped) for event in played.of(kind) if "." not in event.path}


@PERMITTED
@given(document=good_documents(), choices=CHOICES, extent=st.sampled_from(Extent), data=st.data())
def test_a_part_of_an_unchanged_workflow_has_the_same_values_and_calls_nothing_before_it(
    document: dict[str, Any], choices: list[int], extent: Extent, data: st.DataObject
) -> None:
    workflow, store = without_budgets(document), MemoryStore()
    part = Part(extent, data.draw(st.sampled_from(list(workflow.nodes_by_id)), label="node"))
    whole = virtually(play_whole(workflow, choices, store))
    nodes = part_nodes(analyse(workflow), part)
    failed = {outer(one.path) for one in whole.of(NodeFailed)} | {
        one.path for one in whole.of(NodeCompleted) if one.error
    }
    try:
        partial = virtually(play_part(workflow, choices, store, part))
    except MissingValuesError:
        event("values are missing")
        assert extent is not Extent.UNTIL
        assert whole.result.status == "failed" or failed & nodes.needed
        return
    event(f"{partial.result.status} after {whole.result.status}")

    check_same(partial, whole)
    if whole.result.status == "completed" and not failed & nodes.needed:
        assert partial.result.status == "completed"
        assert nodes.all <= ended(partial) | {node.id for node in workflow.nodes if node.type == "exit"}
        assert requests(partial, workflow.nodes_by_id) == requests(whole, nodes.targets)


@st.composite
def edits(draw: st.DrawFn, workflow: Workflow, whole: Played) -> list[Operation]:
    """One or two edits of a workflow after a run."""
    node = draw(st.sampled_from(workflow.nodes))
    choices: list[Operation] = [SetEnabled(node.id, not node.enabled), SetSettings(("max_concurrency",), 2)]
    texts = {
        "llm": "prompt",
        "agent": "prompt",
        "transform": "template",
        "loop": "max_iterations",
        "router": "criteria",
    }
    if node.type in texts:
        value = 2 if node.type == "loop" else "edited {{input}}"
        choices += [SetConfig((texts[node.type],), {node.id: value})] * 3
    if node.type == "transform" or node.type in {"llm", "agent"}:
        choices.append(SetConfig(("output_key",), {node.id: draw(st.sampled_from(["", "x", "y"]))}))
    if node.type == "input":
        choices.append(SetConfig(("default",), {node.id: "another seed"}))
    outputs = values(whole).get(node.id)
    if outputs:
        port = draw(st.sampled_from(list(outputs)))
        choices += [SetPinned(node.id, {port: value}) for value in (outputs[port], "pinned")]
    return [draw(st.sampled_from(choices))]


@PERMITTED
@given(document=good_documents(), choices=CHOICES, extent=st.sampled_from(Extent), data=st.data())
def test_a_part_of_an_edited_workflow_has_the_values_of_a_full_run_of_it(
    document: dict[str, Any], choices: list[int], extent: Extent, data: st.DataObject
) -> None:
    workflow, store = without_budgets(document), MemoryStore()
    whole = virtually(play_whole(workflow, choices, store))
    for _ in range(data.draw(st.integers(1, 2), label="edits")):
        for operation in data.draw(edits(workflow, whole), label="edit"):
            workflow, _ = operation.apply(workflow)
    assume(not has_errors(validate(workflow)))
    part = Part(extent, data.draw(st.sampled_from(list(workflow.nodes_by_id)), label="node"))
    fresh = virtually(play_whole(workflow, choices))
    pinned = {node.id for node in workflow.nodes if node.pinned}
    assume(not any(event.path in pinned for event in fresh.of(NodeSkipped)))  # in a part, a pinned node always has it
    try:
        partial = virtually(play_part(workflow, choices, store, part))
    except MissingValuesError:
        event("values are missing")
        assert extent is not Extent.UNTIL
        return
    event(f"{partial.result.status} after {fresh.result.status}")

    check_same(partial, fresh)
    if fresh.result.status == "completed":
        assert partial.result.status == "completed"
