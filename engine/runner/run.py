"""Runs: preparation, start, control and result of a run, and the execution of each node."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from engine.document.files import dumps
from engine.document.model import Settings, Workflow
from engine.errors import EngineError, Fix
from engine.events import (
    AnyEvent,
    RunCancelled,
    RunCompleted,
    RunFailed,
    RunNotKept,
    RunResumed,
    RunStarted,
)
from engine.models.protocol import ModelChoice, Price, RemembersCalls
from engine.nodes.agent_tools import AgentConfig
from engine.nodes.context import Answer
from engine.nodes.spec import Outputs
from engine.plan.compiler import plan_for
from engine.plan.execution_plan import GraphPlan, NodePlan, Plan
from engine.run_state.reducer import apply
from engine.run_state.result import RunError, RunResult, result_of
from engine.run_state.state import Detail, RunState
from engine.runner.budget import Budget, BudgetError
from engine.runner.capabilities import refuse_code
from engine.runner.declared_inputs import read_parameters
from engine.runner.event_log import EventLog
from engine.runner.event_loop import run_in_background_loop
from engine.runner.human_input import Mailbox, Note
from engine.runner.iterator_run import run_aggregator, run_iterator
from engine.runner.loop_run import pass_to_exit, run_loop
from engine.runner.node_execution import bypass_node, run_node, run_subflow, skip_node, use_pinned
from engine.runner.options import Catalog, RunOptions, options_to_json
from engine.runner.replay import CallLog, Replay
from engine.runner.retry import NodeFailure, unexpected_error
from engine.runner.run_scope import ConcurrencyLimiter, PricedModel, RunContext, RunScope
from engine.runner.run_storage import Journal, RunCache, RunHead
from engine.runner.scheduler import DEAD, GraphRun
from engine.tools.tool import ToolContext
from engine.values import Value


@dataclass(frozen=True, slots=True)
class PreparedRun:
    """A document with everything that a run of it needs.

    Attributes:
        workflow: The document.
        plan: Its plan.
        parameters: Values of its inputs, by name.
        options: The options of the run.
        settings: Settings of the document.
        models: Models of its nodes.
        own_catalog: The catalog of models, if the run closes it at its end; else None.
    """

    workflow: Workflow
    plan: Plan
    parameters: dict[str, Value]
    options: RunOptions
    settings: Settings
    models: dict[ModelChoice, PricedModel]
    own_catalog: Catalog | None

    @property
    def model_names(self) -> tuple[str, ...]:
        """Names of the models, each once."""
        return tuple(dict.fromkeys(priced.model.name for priced in self.models.values()))


@dataclass(frozen=True, slots=True)
class RunOrigin:
    """The id, journal and past of a run.

    Attributes:
        run_id: Id of the run.
        journal: Stores the run; None if it is not stored.
        past: Its events before a resume; of a fork, copies of its parent's events before the fork.
        is_fork: Whether it is a fork, whose past the journal does not have yet.
        store_error: Why it is not stored although it should be.
        calls: Earlier calls that scripted models count; None for those of `past`.
    """

    run_id: str
    journal: Journal | None = None
    past: Sequence[AnyEvent] = ()
    is_fork: bool = False
    store_error: EngineError | None = None
    calls: CallLog | None = None


def strategies_of(graph: GraphPlan) -> tuple[str, ...]:
    """Return the turn strategies of the agents of a graph and everything in it, each once."""
    found: list[str] = []
    for node in graph.nodes:
        if isinstance(node.config, AgentConfig) and node.enabled:
            found.append(node.config.turn_strategy)
        if node.body is not None:
            found += strategies_of(node.body)
    return tuple(dict.fromkeys(found))


def has_money_budget(graph: GraphPlan) -> bool:
    """Whether a loop of a graph, at any depth, has a budget in US dollars."""
    return any(
        (node.loop is not None and node.loop.config.budget_usd is not None)
        or (node.body is not None and has_money_budget(node.body))
        for node in graph.nodes
    )


def new_run_id() -> str:
    """Return a new unique id."""
    return secrets.token_hex(6)


def prepare(document: Workflow | Plan, inputs: Mapping[str, Value], options: RunOptions) -> PreparedRun:
    """Prepare a run of a document or a plan, without any call.

    Raises:
        DocumentError: The document has errors; see its `problems`.
        InputError: The inputs are invalid.
        ModelError: A model does not exist.
        CodeNotAllowedError: It runs code, which the options do not allow.
    """
    plan = plan_for(document, options.registry, options.max_iterations_cap)
    workflow = plan.workflow
    parameters = read_parameters(plan.parameters, inputs)
    if not options.allow_code:
        refuse_code(plan.graph)
    catalog = options.models if options.models is not None else _new_catalog()
    settings = Settings.model_validate(workflow.settings)
    models = {choice: _bind(choice, settings, options, catalog) for choice in plan.models}
    return PreparedRun(
        workflow, plan, parameters, options, settings, models, catalog if options.models is None else None
    )


def new_origin(prepared: PreparedRun) -> RunOrigin:
    """Return the origin of a new run. A run that cannot be stored continues and reports that."""
    run_id = prepared.options.run_id or new_run_id()
    return stored_origin(
        prepared.options, RunHead(run_id, dumps(prepared.workflow), stored_options(prepared), prepared.options.source)
    )


def stored_origin(options: RunOptions, head: RunHead, past: Sequence[AnyEvent] = ()) -> RunOrigin:
    """Return the origin of a run, or of a fork with this past, stored where the options say."""
    is_fork = bool(past)
    if options.store is None:
        return RunOrigin(head.run_id, None, past, is_fork)
    try:
        return RunOrigin(head.run_id, options.store.begin(head), past, is_fork)
    except EngineError as error:
        return RunOrigin(head.run_id, None, past, is_fork, error)


def restore_models(models: Iterable[PricedModel], calls: CallLog) -> None:
    """Continue models that remember their calls after these calls."""
    for model in (priced.model for priced in models):
        if isinstance(model, RemembersCalls):
            model.resume_from(calls.requests(model.name), calls.paths_in_flight(model.name))


def stored_options(prepared: PreparedRun) -> dict[str, Value]:
    """Return the options to store, with the name of the default model."""
    default = prepared.models.get(ModelChoice())
    return options_to_json(prepared.options, default.model.name if default is not None else None)


def default_model_of(options: RunOptions) -> str:
    """Return the model of nodes and workflows that name none, as `stored_options` stores it."""
    from engine.models.catalog import default_model_name

    if options.default_model:
        return options.default_model
    # A new catalog would acquire the built-in model's process, which nobody would release.
    name = default_model_name()
    return name if options.models is None else options.models.get(name).name


def _new_catalog() -> Catalog:
    from engine.models.catalog import Models

    return Models()


def _bind(choice: ModelChoice, settings: Settings, options: RunOptions, catalog: Catalog) -> PricedModel:
    name, api_base = options.model or choice.name or settings.model or options.default_model, choice.api_base
    if name is None:
        from engine.models.catalog import default_model_name

        name = default_model_name()
    price = settings.prices.get(name)
    return PricedModel(
        catalog.get(name, None if options.model else api_base),
        None if price is None else Price(price.input_usd_per_million / 1e6, price.output_usd_per_million / 1e6),
    )


def execute(run: GraphRun, node: NodePlan) -> Awaitable[Outputs | None]:  # no coroutine around that of the node
    """Run a node or skip it.

    Returns:
        Its outputs by live port; None if it was skipped.

    Raises:
        NodeFailure: It failed, and that ends whatever it is part of.
        BudgetError: The budget is used up.
    """
    if node.exit_of is not None:
        return _run_exit(run, node, run.plan.nodes[node.exit_of])
    inputs = _inputs(run, node)
    if inputs is None:
        return _skip(run, node, "No value reached it.")
    if node.pinned is not None:
        return _use_pinned(run, node, node.pinned, inputs)
    if node.loop is not None or node.iterator is not None:
        return (run_loop if node.loop is not None else run_iterator)(run, node, inputs)
    if not node.enabled:
        return bypass_node(run.scope, node, inputs)
    return (run_subflow if node.subflow is not None else run_node)(run.scope, node, inputs)


async def _skip(run: GraphRun, node: NodePlan, reason: str) -> None:
    skip_node(run.scope, node, reason)


async def _use_pinned(run: GraphRun, node: NodePlan, pinned: Outputs, inputs: dict[str, Value]) -> Outputs:
    return pass_to_exit(run, node, await use_pinned(run.scope, node, pinned, inputs))


async def _run_exit(run: GraphRun, node: NodePlan, start: NodePlan) -> Outputs | None:
    """Run an exit or an aggregator after its loop or iterator."""
    if node.pinned is not None and run.outputs[start.position] is not None:
        return await use_pinned(run.scope, node, node.pinned, {})
    if start.iterator is not None:
        return await run_aggregator(run, node, start)
    if node.position not in run.exit_values:
        return skip_node(run.scope, node, "Its loop returned no result.")
    return {"output": run.exit_values[node.position]}


def _inputs(run: GraphRun, node: NodePlan) -> dict[str, Value] | None:
    """Return the inputs of a node by port; None if the node is skipped."""
    inputs: dict[str, Value] = {}
    for port in node.inputs:
        value = run.collect(port)
        if value is DEAD:
            if port.required:
                return None
            continue
        inputs[port.name] = value  # pyright: ignore[reportArgumentType] - a slot holds DEAD or a Value
    return inputs if inputs or not node.inputs else None


class Run:
    """A started run. Call its methods in the thread of its event loop.

    Attributes:
        run_id: Id of the run.
        workflow: The document as it runs.
    """

    def __init__(
        self, prepared: PreparedRun, origin: RunOrigin, on_event: Callable[[AnyEvent], None] | None = None
    ) -> None:
        options, settings, past = prepared.options, prepared.settings, origin.past
        self.run_id = origin.run_id
        self.workflow = prepared.workflow
        self._plan = prepared.plan
        self._own_catalogue = prepared.own_catalog
        self._allow_unknown_price = options.allow_unknown_price or settings.allow_unknown_price
        self._state = RunState(self.run_id, Detail.LOOPS)
        reduce = partial(apply, self._state)
        self._event_log = EventLog(self.run_id, reduce, origin.journal, past, store_past=origin.is_fork)
        if on_event is not None:
            self._event_log.add_callback(on_event)
        self._budget = Budget(
            parent=options.shared_budget,
            limit_usd=settings.budget_usd if options.budget_usd is None else options.budget_usd,
            limit_tokens=settings.budget_tokens if options.budget_tokens is None else options.budget_tokens,
        )
        replay = Replay(past) if past else None
        self._run_context = RunContext(
            event_log=self._event_log,
            graph=prepared.plan.graph,
            models=prepared.models,
            parameters=prepared.parameters,
            tools=ToolContext(options.folder, options.allow_private_addresses, options.allow_code),
            confirms_calls=options.confirm_calls,
            concurrency=ConcurrencyLimiter(settings.max_concurrency),
            execute=execute,
            replay=replay,
            cache=RunCache(options.store, self.run_id) if options.store is not None else None,
            warnings=self._state.warnings,
            mailbox=Mailbox(options.store, self.run_id),
        )
        if replay is not None:
            self._run_context.state, self._run_context.notes = replay.state, replay.pending_notes
            restore_models(prepared.models.values(), origin.calls or CallLog(past))
        self._started = time.perf_counter() - (0.0 if origin.is_fork else self._state.active_s)
        self._over = asyncio.Event()
        self._result: RunResult | None = None
        self._has_started = self._is_ending = False
        if not past:
            part = prepared.plan.part
            extent, target = (part.extent.value, part.node) if part is not None else ("", "")
            run_started = partial(
                RunStarted, strategies=strategies_of(prepared.plan.graph), extent=extent, target=target
            )
            self._event_log.emit(run_started, "", prepared.workflow.name, prepared.parameters, prepared.model_names)
        elif not origin.is_fork:
            self._event_log.emit(RunResumed, "")
        if origin.store_error is not None:
            self._event_log.emit(RunNotKept, "", origin.store_error.message, origin.store_error.remedy)
        self._task = asyncio.get_running_loop().create_task(self._main(), name=f"loopwright run {self.run_id}")

    def events(self) -> AsyncIterator[AnyEvent]:
        """Yield all events from the first; ends with the run."""
        return self._event_log.read()

    @property
    def is_over(self) -> bool:
        """Whether the last event was emitted. Any thread may ask."""
        return self._event_log.closed

    def events_since(self, position: int, limit: int) -> list[AnyEvent]:
        """Return at most `limit` published events from a position on, without waiting. Any thread may call it."""
        return self._event_log.events[position : min(position + limit, self._event_log.published)]

    async def result(self) -> RunResult:
        """Wait for the end of the run and return its result, also of a failed or cancelled run."""
        await self._over.wait()
        if self._result is None:
            self._result = result_of(self._state)
        return self._result

    async def delivered(self, within_s: float = 1.0) -> None:
        """Wait until all callbacks have received all events, at most `within_s` seconds."""
        await self._event_log.delivered(within_s)

    def cancel(self) -> None:
        """Cancel the run at once, including calls in flight; finished work stays stored."""
        if self._run_context.is_stopping:
            return
        self._run_context.is_stopping = True
        # A task that is cancelled before its first step could not report it.
        if self._has_started and not self._is_ending:
            self._task.cancel()

    def suspend(self) -> None:
        """Stop at once without an event, so that the stored run can be resumed later.

        The status of the result stays `running`.
        """
        self._event_log.silence()
        self.cancel()

    def pause(self) -> None:
        """Let running nodes finish, and start no more."""
        if not self._event_log.closed:
            self._run_context.pause()

    def resume(self) -> None:
        """Continue after a pause."""
        self._run_context.pause_before_iteration = False
        self._run_context.resume()

    def step_node(self) -> None:
        """Start one more node of a paused run; the run stays paused."""
        self._run_context.start_one()

    def step_iteration(self) -> None:
        """Continue, and pause before the next iteration of any loop."""
        self._run_context.resume()
        self._run_context.pause_before_iteration = True

    def answer(self, path: str, answer: Answer) -> None:
        """Answer a node that waits for a person.

        Raises:
            EngineError: No node waits at that path, or the answer is invalid; the question stays open.
        """
        self._run_context.mailbox.put(path, answer)

    def post_note(self, to: str, text: str) -> None:
        """Post a note to a node, which its next model call includes as a message.

        Args:
            to: Id of the node, or its path in the run (`loop[0].worker`).
            text: The note.

        Raises:
            EngineError: The run is over, there is no such node, it calls no model, or the note is empty.
        """
        if self._event_log.closed or self._is_ending:
            raise EngineError("The run is over, and receives no notes.", "Send notes while it is running.")
        self._run_context.post_note(Note(to, text))

    async def _main(self) -> None:
        self._has_started = True
        try:
            if self._run_context.is_stopping:
                raise asyncio.CancelledError
            await self._resolve_prices()
            await GraphRun(self._plan.graph, RunScope(self._run_context, self._budget)).run()
        except NodeFailure as failure:
            self._fail(failure.sentence, failure, failure.path)
        except BudgetError as error:
            self._fail(error.message, error, error.node)
        except EngineError as error:
            self._fail(error.message, error, "")
        except Exception as error:
            fault = unexpected_error(error)
            self._fail(fault.message, fault, "")
        except asyncio.CancelledError:
            self._event_log.emit(RunCancelled, "", self._run_context.outputs, *self._figures())
        else:
            self._event_log.emit(RunCompleted, "", self._run_context.outputs, *self._figures())
        finally:
            await self._close()

    def _fail(self, sentence: str, error: EngineError, node: str) -> None:
        outputs = self._run_context.outputs
        self._event_log.emit(RunFailed, "", sentence, error.remedy, node, outputs, *self._figures(), error.fix)

    def _figures(self) -> tuple[object, ...]:
        """Return usage, cost, duration and warnings for the last event."""
        duration_s = time.perf_counter() - self._started
        return self._budget.usage, self._budget.cost_usd, duration_s, self._run_context.warnings.all

    async def _resolve_prices(self) -> None:
        """Look up the prices of all models, which also loads them before a node's timeout starts.

        Raises:
            EngineError: There is a budget in US dollars, and the price of a model is unknown.
        """
        has_budget = self._budget.limit_usd is not None or has_money_budget(self._plan.graph)
        must_be_known = has_budget and not self._allow_unknown_price
        for priced in self._run_context.models.values():
            if await priced.price() is None and must_be_known:
                raise EngineError(
                    f'The run has a budget in US dollars, and the price of the model "{priced.model.name}" is unknown.',
                    "Set its price in the settings of the workflow, or allow models of unknown price.",
                    fix=Fix.ALLOW_UNKNOWN_PRICE.of("" if self._budget.limit_usd is None else "budget_usd"),
                )

    async def _close(self) -> None:
        self._is_ending = True
        await self._event_log.flush()
        self._event_log.close()
        self._over.set()
        try:
            await self._run_context.tools.sessions.close()
        finally:
            if self._own_catalogue is not None:
                await self._own_catalogue.close()


def start(
    workflow: Workflow | Plan,
    inputs: Mapping[str, Value] | None = None,
    options: RunOptions | None = None,
    *,
    on_event: Callable[[AnyEvent], None] | None = None,
) -> Run:
    """Start a run in the running event loop and return at once.

    Args:
        workflow: The document or its plan.
        inputs: Values of its inputs, by name.
        options: Options of the run.
        on_event: Called with every event, in a thread of its own.

    Raises:
        DocumentError: The document has errors; see its `problems`.
        InputError: The inputs are invalid.
        ModelError: A model does not exist.
    """
    prepared = prepare(workflow, inputs or {}, options or RunOptions())
    return Run(prepared, new_origin(prepared), on_event)


async def run(
    workflow: Workflow | Plan,
    inputs: Mapping[str, Value] | None = None,
    options: RunOptions | None = None,
    *,
    on_event: Callable[[AnyEvent], None] | None = None,
) -> RunResult:
    """Run a workflow and return its result.

    Args:
        workflow: The document or its plan.
        inputs: Values of its inputs, by name.
        options: Options of the run.
        on_event: Called with every event, in a thread of its own; a slow callback does not slow the run.

    Raises:
        RunError: The run failed or was cancelled; see its `result`.
        DocumentError: The document has errors; nothing ran.
        InputError: The inputs are invalid; nothing ran.
        ModelError: A model does not exist; nothing ran.
    """
    started = start(workflow, inputs, options, on_event=on_event)
    try:
        result = await started.result()
    except BaseException:
        started.cancel()
        await started.result()
        raise
    await started.delivered()
    if result.status != "completed":
        raise RunError(result)
    return result


def run_blocking(
    workflow: Workflow | Plan,
    inputs: Mapping[str, Value] | None = None,
    options: RunOptions | None = None,
    *,
    on_event: Callable[[AnyEvent], None] | None = None,
) -> RunResult:
    """Run a workflow and return its result: `run` for scripts, and for notebooks with an event loop of their own.

    Ctrl+C cancels the run, then raises KeyboardInterrupt. Raises the errors of `run`.
    """
    return run_in_background_loop(run(workflow, inputs, options, on_event=on_event))
