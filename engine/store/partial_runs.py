"""Runs of a part of a workflow: a node with what it needs, a node alone, or a node with everything after it.

A partial run is a fork of the last run. It reuses the stored outputs of all nodes that neither the part runs again nor
an edit has made stale (`engine.plan.dependencies`), and runs the rest of the part.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from engine.document.files import dumps, loads
from engine.document.model import Workflow
from engine.errors import EngineError, Fix
from engine.events import AnyEvent, NodeCompleted, NodeSkipped, RunStarted, parse_place
from engine.models.protocol import ModelChoice
from engine.nodes.input import InputConfig
from engine.nodes.spec import LOOP, Outputs
from engine.plan.compiler import compile_workflow
from engine.plan.dependencies import nodes_after, part_nodes, stale_nodes
from engine.plan.execution_plan import NodePlan, Plan
from engine.plan.partial_run import Extent, Part
from engine.plan.structure import Structure, analyse
from engine.runner.declared_inputs import given_inputs, read_parameters
from engine.runner.fork import events_of_nodes, latest_executions
from engine.runner.options import RunOptions, options_with_stored
from engine.runner.replay import CallLog
from engine.runner.run import (
    Run,
    default_model_of,
    new_run_id,
    prepare,
    start,
    stored_options,
    stored_origin,
    strategies_of,
)
from engine.runner.run_storage import RunHead
from engine.store.run_file import is_imported, mark_imported
from engine.store.store_protocol import ACTIVE, RunFilter, RunSummary, Store
from engine.values import Value

_MOST_NAMED = 5
"""Maximum number of nodes that an error names."""


class MissingValuesError(EngineError):
    """A part needs outputs that the last run does not have.

    Attributes:
        nodes: The nodes whose outputs are missing.
    """

    def __init__(self, message: str, nodes: Sequence[str]) -> None:
        super().__init__(message, "Run up to the node instead, which runs them too.", fix=Fix.RUN_UP_TO)
        self.nodes = tuple(nodes)


@dataclass(frozen=True, slots=True)
class PartialRunPlan:
    """A partial run before it is started.

    Attributes:
        plan: The compiled part.
        inputs: Values of the inputs that take part.
        last: The run whose outputs are reused; None if there is none.
        reused: The outermost nodes whose outputs are reused, whether or not they take part.
        rerun: The outermost nodes that run, in the order of the document.
    """

    plan: Plan
    inputs: Mapping[str, Value]
    last: RunSummary | None
    reused: frozenset[str]
    rerun: tuple[str, ...]


def last_run(store: Store, source: str) -> RunSummary | None:
    """Return the latest run of a workflow file that is not running any more, or None.

    A fork from a place in a run is none: its prompts and values may be other ones than those of the file.

    Raises:
        StoreError: The history cannot be read.
    """
    which = RunFilter(source=source)
    runs = store.runs(which, limit=100) if source else ()
    return next((run for run in runs if run.status not in ACTIVE and not (run.is_fork and run.forked_at)), None)


def plan_partial_run(
    store: Store | None,
    workflow: Workflow,
    part: Part,
    inputs: Mapping[str, Value] | None = None,
    options: RunOptions | None = None,
    *,
    last: RunSummary | None = None,
) -> PartialRunPlan:
    """Plan a run of a part of a workflow without running anything.

    Args:
        store: The history; None if there is none.
        workflow: The current workflow.
        part: The part.
        inputs: Values of its inputs by name; those that are missing are taken from the last run.
        options: Options of the run.
        last: The run whose outputs may be reused; None for none.

    Raises:
        MissingValuesError: The part needs outputs that the last run does not have. Never raised for `Extent.UNTIL`.
        DocumentError: The part has errors.
        EngineError: There is no such node, or the history cannot be read.
    """
    options = options or RunOptions()
    plan = compile_workflow(workflow, options.registry, max_iterations_cap=options.max_iterations_cap, part=part)
    nodes = part_nodes(plan.structure, part)
    past = _Past(store, last, plan.structure, options) if store is not None and last is not None else None
    given = {**(past.inputs if past is not None else {}), **(inputs or {})}
    given = {name: value for name, value in given.items() if name in plan.parameters}
    usable = past.usable(plan, given) if past is not None else frozenset[str]()
    missing = nodes.needed - usable
    lacking = [node for node in plan.graph.nodes if node.id in missing and not _has_value(plan, node)]
    if lacking and part.extent is not Extent.UNTIL:
        raise _missing_values(plan.structure, part, [node.id for node in lacking], past)
    # An input with the value of the last run, or a pin, outputs the same again: what is after it stays valid.
    steady = {node.id for node in plan.graph.nodes if node.id in usable and _has_value(plan, node)}
    rerun = nodes.targets | nodes_after(plan.structure, (nodes.targets - steady) | missing)
    order = (node for node in plan.structure.order if node in nodes.all and node in rerun)
    return PartialRunPlan(plan, given, last, usable - rerun, tuple(order))


def _has_value(plan: Plan, node: NodePlan) -> bool:
    """Whether a node has its outputs without any work: it is an input, or pinned with what it is part of."""
    start = plan.graph.nodes[node.exit_of] if node.exit_of is not None else node
    return isinstance(node.config, InputConfig) or node.pinned is not None or start.pinned is not None


class _Past:
    """The last run as far as a partial run needs it."""

    def __init__(self, store: Store, run: RunSummary, structure: Structure, options: RunOptions) -> None:
        stored = options_with_stored(RunOptions(), store.options(run.run_id))
        today = replace(options, default_model=default_model_of(options))
        workflow = loads(store.document(run.run_id), source=f"run {run.run_id}")
        self.events = list(store.events(run.run_id))
        self._structure = structure
        before = analyse(workflow, options.registry)

        def called(where: Structure, choice: ModelChoice) -> object:
            used = stored if where is before else today
            default = where.workflow.settings.get("model") or used.default_model
            return used.model or choice.name or default, choice.api_base

        ended = {
            event.path: event
            for event in latest_executions(self.events)
            if isinstance(event, (NodeCompleted, NodeSkipped)) and "." not in event.path
        }
        # The value of a node that failed and let the run continue stands in for its output.
        self.failed = {path for path, event in ended.items() if isinstance(event, NodeCompleted) and event.error}
        self.finished = {path: event for path, event in ended.items() if path not in self.failed}
        outputs = {path: event.outputs for path, event in self.finished.items() if isinstance(event, NodeCompleted)}
        self.inputs = self._given_inputs(workflow, outputs)
        self.part = run.part
        self.stale = stale_nodes(before, structure, outputs, models=called)

    def _given_inputs(self, workflow: Workflow, outputs: Mapping[str, Outputs]) -> dict[str, Value]:
        """Return the inputs of that run by name, also of those that only had a reused value because it was partial."""
        first = self.events[0] if self.events else None
        if not isinstance(first, RunStarted):
            return {}
        reused = {
            str(node.config.get("name") or node.id): outputs[node.id]["value"]
            for node in workflow.nodes
            if node.type == "input" and "value" in outputs.get(node.id, {})
        }
        return given_inputs(workflow, {**reused, **first.inputs})

    def usable(self, plan: Plan, given: Mapping[str, Value]) -> frozenset[str]:
        """Return the outermost nodes whose stored outputs a run would give again."""
        structure = self._structure
        exits = {body.exit: body.loop for body in structure.bodies.values() if body.kind is LOOP}  # have no events
        outer = structure.members.get(None, ())
        unusable = [node for node in outer if exits.get(node, node) not in self.finished]
        unusable += self._changed_inputs(plan, given)
        return frozenset(outer) - self.stale - nodes_after(structure, unusable)

    def _changed_inputs(self, plan: Plan, given: Mapping[str, Value]) -> list[str]:
        """Return the inputs that have another value than in that run."""
        known = {name for name, config in plan.parameters.items() if name in given or config.default is not None}
        values = read_parameters({name: plan.parameters[name] for name in known}, given)
        changed: list[str] = []
        for node in plan.graph.nodes:
            event = self.finished.get(node.id)
            if not isinstance(node.config, InputConfig) or not isinstance(event, NodeCompleted):
                continue
            name = node.config.name or node.id
            if name not in values or event.outputs.get("value") != values[name]:
                changed.append(node.id)
        return changed


def _missing_values(structure: Structure, part: Part, missing: Sequence[str], past: _Past | None) -> MissingValuesError:
    nodes = structure.workflow.nodes_by_id

    def name(node: str) -> str:
        return f"“{structure.resolution.name(node)}”"

    ran, broken = (past.finished, past.failed) if past is not None else ({}, set[str]())
    changed = [name(node) for node in missing if node in ran]
    failed = [name(node) for node in missing if node in broken]
    never = [name(node) for node in missing if node not in {*ran, *broken, *structure.loop_of}]
    # The outputs after a node that ran again are not reused, so that the last run does not have them.
    again = past.part.node if past is not None and past.part is not None and past.part.node in nodes else ""
    since = f" since {name(again)} did" if again and again != part.node else ""
    reasons = [f"{_listed(never)} {'has' if len(never) == 1 else 'have'} not run{since}"] if never else []
    reasons += [f"{_listed(failed)} failed in the last run"] if failed else []
    reasons += [f"{_listed(changed)} changed since the last run, or something before did"] if changed else []
    message = f"{name(part.node)} needs values that the last run does not have: {'; '.join(reasons)}."
    return MissingValuesError(message, missing)


def _listed(names: Sequence[str]) -> str:
    if len(names) > _MOST_NAMED:
        names = [*names[:_MOST_NAMED], f"{len(names) - _MOST_NAMED} more"]
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def start_partial_run(
    store: Store | None,
    planned: PartialRunPlan,
    options: RunOptions | None = None,
    *,
    on_event: Callable[[AnyEvent], None] | None = None,
) -> Run:
    """Start a partial run in the current event loop.

    Args:
        store: The history with the last run; the run is stored where the options say.
        planned: Output of `plan_partial_run`.
        options: Options of the run, as for `plan_partial_run`.
        on_event: Called with every event, in a thread of its own.

    Raises:
        InputError: An input of the part has no value or an invalid one.
        ModelError: A model does not exist.
        StoreError: The last run cannot be read.
    """
    options = options or RunOptions()
    last = planned.last
    if store is None or last is None or not planned.reused:
        return start(planned.plan, planned.inputs, options, on_event=on_event)
    ready, run_id = prepare(planned.plan, planned.inputs, options), new_run_id()
    past = list(store.events(last.run_id))
    started = past[0]
    assert isinstance(started, RunStarted), "something of it is reused"
    part = planned.plan.part
    assert part is not None
    edits = {
        place: value for place, value in started.edits.items() if parse_place(place).steps[0].node in planned.reused
    }
    begins = partial(RunStarted, strategies=strategies_of(ready.plan.graph), extent=part.extent.value, target=part.node)
    names = (ready.workflow.name, ready.parameters, ready.model_names, last.run_id, part.node)
    first = begins(run_id, 0, time.time(), "", *names, edits)
    kept = stored_options(ready)
    if kept["default_model"] is None:  # the part calls no model, but reuses outputs of the default one
        kept["default_model"] = store.options(last.run_id).get("default_model")
    kept = mark_imported(kept, imported=is_imported(store, last.run_id))
    head = RunHead(run_id, dumps(ready.workflow), kept, options.source or last.source, last.run_id, part.node)
    reused = events_of_nodes(past, planned.reused, run_id)
    calls = CallLog(event for event in past if event.path and parse_place(event.path).steps[0].node in planned.reused)
    return Run(ready, replace(stored_origin(options, head, [first, *reused]), calls=calls), on_event)
