"""A run from its start to its end."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from engine.document.files import dumps
from engine.document.model import ModelPrice, Settings, Workflow
from engine.errors import EngineError
from engine.events import (
    AnyEvent,
    RunCancelled,
    RunCompleted,
    RunFailed,
    RunNotKept,
    RunResumed,
    RunStarted,
)
from engine.models.protocol import Price, RemembersCalls
from engine.nodes.agent_tools import AgentConfig
from engine.nodes.context import Answer
from engine.nodes.spec import ModelChoice, Outputs
from engine.plan.compiler import compiled
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
from engine.runner.loop_run import run_loop
from engine.runner.node_execution import bypass_node, run_node, run_subflow, skip_node
from engine.runner.options import Catalogue, RunOptions, options_to_json
from engine.runner.replay import CallLog, Replay
from engine.runner.retry import NodeFailure, unexpected_error
from engine.runner.run_scope import ConcurrencyLimiter, PricedModel, RunContext, RunScope
from engine.runner.run_storage import Journal, RunCache, RunHead
from engine.runner.scheduler import DEAD, GraphRun
from engine.tools.tool import ToolContext
from engine.values import Value

_PER_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class PreparedRun:
    """A document that can be run.

    Attributes:
        workflow: The document.
        plan: Its plan.
        parameters: The values of its inputs, by name.
        options: How it is to be done; the default model is named.
        settings: What the document says for all of it.
        models: The models that its nodes call.
        own_catalogue: Where they come from, if that is to be closed at the end; else None.
    """

    workflow: Workflow
    plan: Plan
    parameters: dict[str, Value]
    options: RunOptions
    settings: Settings
    models: dict[ModelChoice, PricedModel]
    own_catalogue: Catalogue | None

    @property
    def model_names(self) -> tuple[str, ...]:
        """The models that the run may call, each once."""
        return tuple(dict.fromkeys(bound.model.name for bound in self.models.values()))

    @property
    def strategies(self) -> tuple[str, ...]:
        """The turn strategies of its agents, each once."""
        return strategies_of(self.plan.graph)


@dataclass(frozen=True, slots=True)
class RunOrigin:
    """Where a run begins.

    Attributes:
        run_id: Short and unique.
        journal: Where it is kept; None where it is not.
        past: What it had told before it broke off, or, of a fork, copies of what its parent told up to the place.
        is_fork: Whether the past is that of a fork, which the journal does not have yet.
        store_error: Why it is not kept although it should be.
        calls: The calls before it that scripted models count; None: those of its past.
    """

    run_id: str
    journal: Journal | None = None
    past: Sequence[AnyEvent] = ()
    is_fork: bool = False
    store_error: EngineError | None = None
    calls: CallLog | None = None


def strategies_of(graph: GraphPlan) -> tuple[str, ...]:
    """The turn strategies of a graph's agents, those of its loops and subflows with them, each once."""
    found: list[str] = []
    for node in graph.nodes:
        if isinstance(node.config, AgentConfig) and node.enabled:
            found.append(node.config.turn_strategy)
        if node.body is not None:
            found += strategies_of(node.body)
    return tuple(dict.fromkeys(found))


def has_money_budget(graph: GraphPlan) -> bool:
    """Whether a loop of a graph, or one in its loops and subflows, has a budget in US dollars of its own."""
    return any(
        (node.loop is not None and node.loop.config.budget_usd is not None)
        or (node.body is not None and has_money_budget(node.body))
        for node in graph.nodes
    )


def new_run_id() -> str:
    """An id that no other run has."""
    return secrets.token_hex(6)


def prepare(document: Workflow | Plan, inputs: Mapping[str, Value], options: RunOptions) -> PreparedRun:
    """Prepare a run of a document or of a plan. Nothing is called yet.

    Raises:
        DocumentError: The document has errors; `problems` names them.
        InputError: The inputs do not fit.
        ModelError: A model that it names does not exist.
        CodeNotAllowedError: It runs code, which the options do not allow.
    """
    plan = compiled(document, options.registry, options.max_iterations_cap)
    workflow = plan.workflow
    parameters = read_parameters(plan.parameters, inputs)
    if not options.allow_code:
        refuse_code(plan.graph)
    catalogue, own = _catalogue(options)
    settings = Settings.model_validate(workflow.settings)
    models = {choice: _bind(choice, settings, options, catalogue) for choice in plan.models}
    return PreparedRun(workflow, plan, parameters, options, settings, models, catalogue if own else None)


def begin(ready: PreparedRun) -> RunOrigin:
    """Begin a new run; one that cannot be kept goes on all the same, and says so."""
    run_id = ready.options.run_id or new_run_id()
    return stored_origin(
        ready.options, RunHead(run_id, dumps(ready.workflow), stored_options(ready), ready.options.source)
    )


def stored_origin(options: RunOptions, head: RunHead, past: Sequence[AnyEvent] = ()) -> RunOrigin:
    """Begin a run, or a fork with that past, where the options say that it is kept."""
    is_fork = bool(past)
    if options.store is None:
        return RunOrigin(head.run_id, None, past, is_fork)
    try:
        return RunOrigin(head.run_id, options.store.begin(head), past, is_fork)
    except EngineError as error:
        return RunOrigin(head.run_id, None, past, is_fork, error)


def restore_models(models: Iterable[PricedModel], calls: CallLog) -> None:
    """Let models that remember their calls continue where they were after these."""
    for model in (bound.model for bound in models):
        if isinstance(model, RemembersCalls):
            model.resume_from(calls.requests(model.name), calls.paths_in_flight(model.name))


def stored_options(ready: PreparedRun) -> dict[str, Value]:
    """What is kept of how a run is to be done. A default model that was found, not named, is named there."""
    found = ready.models.get(ModelChoice())
    return options_to_json(ready.options, found.model.name if found is not None else None)


def _catalogue(options: RunOptions) -> tuple[Catalogue, bool]:
    if options.models is not None:
        return options.models, False
    from engine.models.catalog import Models

    return Models(), True


def _bind(choice: ModelChoice, settings: Settings, options: RunOptions, catalogue: Catalogue) -> PricedModel:
    name, api_base = options.model or choice.name or settings.model or options.default_model, choice.api_base
    if name is None:
        from engine.models.catalog import default_model_name

        name = default_model_name()
    stated = settings.prices.get(name)
    return PricedModel(catalogue.get(name, None if options.model else api_base), _price(stated))


def _price(stated: ModelPrice | None) -> Price | None:
    if stated is None:
        return None
    return Price(stated.input_usd_per_million / _PER_MILLION, stated.output_usd_per_million / _PER_MILLION)


async def execute(run: GraphRun, node: NodePlan) -> Outputs | None:
    """Run a node, or skip it.

    Returns:
        Its outputs by live port; None where it was skipped.

    Raises:
        NodeFailure: It failed, and that ends what it is part of.
        BudgetError: The budget is spent.
    """
    if node.exit_of is not None:
        return await _leave(run, node, run.plan.nodes[node.exit_of])
    inputs = _inputs(run, node)
    if inputs is None:
        return skip_node(run.scope, node, "Nothing live reached it.")
    if node.is_repeated:
        return await (run_loop if node.loop is not None else run_iterator)(run, node, inputs)
    if not node.enabled:
        return bypass_node(run.scope, node, inputs)
    if node.subflow is not None:
        return await run_subflow(run.scope, node, node.subflow, inputs)
    return await run_node(run.scope, node, inputs)


async def _leave(run: GraphRun, node: NodePlan, start: NodePlan) -> Outputs | None:
    """An exit's turn comes after its loop; it has the loop's result, or none where the loop gave none."""
    if start.iterator is not None:
        return await run_aggregator(run, node, start)
    if node.position not in run.exit_values:
        return skip_node(run.scope, node, "Its loop gave no result.")
    return {"output": run.exit_values[node.position]}


def _inputs(run: GraphRun, node: NodePlan) -> dict[str, Value] | None:
    """The node's inputs by port; None where it is to be skipped."""
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
    """A run under way. Its methods belong to the thread of the event loop that it was started in.

    Attributes:
        run_id: Short and unique.
        workflow: The document as it runs.
    """

    def __init__(
        self, ready: PreparedRun, beginning: RunOrigin, on_event: Callable[[AnyEvent], None] | None = None
    ) -> None:
        options, settings, past = ready.options, ready.settings, beginning.past
        self.run_id = beginning.run_id
        self.workflow = ready.workflow
        self._plan = ready.plan
        self._own_catalogue = ready.own_catalogue
        self._allow_unknown_price = options.allow_unknown_price or settings.allow_unknown_price
        self._state = RunState(self.run_id, Detail.LOOPS)
        reduce = partial(apply, self._state)
        self._event_log = EventLog(self.run_id, reduce, beginning.journal, past, store_past=beginning.is_fork)
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
            graph=ready.plan.graph,
            models=ready.models,
            parameters=ready.parameters,
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
            restore_models(ready.models.values(), beginning.calls or CallLog(past))
        self._started = time.perf_counter() - (0.0 if beginning.is_fork else self._state.active_s)
        self._ended = asyncio.Event()
        self._result: RunResult | None = None
        self._begun = self._ending = False
        if not past:
            begins = partial(RunStarted, strategies=ready.strategies)
            self._event_log.emit(begins, "", ready.workflow.name, ready.parameters, ready.model_names)
        elif not beginning.is_fork:
            self._event_log.emit(RunResumed, "")
        if beginning.store_error is not None:
            self._event_log.emit(RunNotKept, "", beginning.store_error.message, beginning.store_error.remedy)
        self._task = asyncio.get_running_loop().create_task(self._main(), name=f"loopwright run {self.run_id}")

    def events(self) -> AsyncIterator[AnyEvent]:
        """All events from the first, as they come; ends with the run."""
        return self._event_log.read()

    @property
    def is_over(self) -> bool:
        """Whether the last event has been told. May be asked from any thread."""
        return self._event_log.closed

    def events_since(self, place: int, most: int) -> list[AnyEvent]:
        """Events from number `place` on, at most `most` of them, without waiting. May be called from any thread."""
        return self._event_log.events[place : min(place + most, self._event_log.published)]

    async def result(self) -> RunResult:
        """Wait for the end of the run and return its result; a failed or cancelled run has one too."""
        await self._ended.wait()
        if self._result is None:
            self._result = result_of(self._state)
        return self._result

    async def delivered(self, within_s: float = 1.0) -> None:
        """Wait until callbacks have had all events, but not longer than that; a slow one is left to its thread."""
        await self._event_log.delivered(within_s)

    def cancel(self) -> None:
        """Stop at once, calls in flight included. What was finished is kept. To say so again changes nothing."""
        if self._run_context.is_stopping:
            return
        self._run_context.is_stopping = True
        # A task that is cancelled before its first step would not get to tell that it was.
        if self._begun and not self._ending:
            self._task.cancel()

    def suspend(self) -> None:
        """Stop at once and tell nothing of it: the history has the run as it stands, to be taken up another day.

        The result's status stays `running`.
        """
        self._event_log.silence()
        self.cancel()

    def pause(self) -> None:
        """Let nodes at work finish, and start no more."""
        if not self._event_log.closed:
            self._run_context.pause()

    def resume(self) -> None:
        """Go on after a pause."""
        self._run_context.pause_before_iteration = False
        self._run_context.resume()

    def step_node(self) -> None:
        """Start one more node of a paused run; the run stays paused."""
        self._run_context.start_one()

    def step_iteration(self) -> None:
        """Go on, and pause again before the next iteration of any loop begins."""
        self._run_context.resume()
        self._run_context.pause_before_iteration = True

    def answer(self, path: str, answer: Answer) -> None:
        """Answer a node that waits for a person.

        Raises:
            EngineError: No node waits at that path, or the answer does not fit; the question stays open.
        """
        self._run_context.mailbox.put(path, answer)

    def post_note(self, to: str, text: str) -> None:
        """Post a note to a node: its next model call receives it, as a message that is marked as a note.

        Args:
            to: The node's id, or its place in the run (`loop[0].worker`).
            text: What the node is to know.

        Raises:
            EngineError: The run is over, there is no such node, it calls no model, or there is nothing to say.
        """
        if self._event_log.closed or self._ending:
            raise EngineError("The run is over, and receives no notes.", "Send them while it is going on.")
        self._run_context.post_note(Note(to, text))

    async def _main(self) -> None:
        self._begun = True
        try:
            if self._run_context.is_stopping:
                raise asyncio.CancelledError
            await self._ask_prices()
            await GraphRun(self._plan.graph, RunScope(self._run_context, self._budget)).run()
        except NodeFailure as failure:
            self._fail(failure.sentence, failure.remedy, failure.path)
        except BudgetError as error:
            self._fail(error.message, error.remedy, error.node)
        except EngineError as error:
            self._fail(error.message, error.remedy, "")
        except Exception as error:
            fault = unexpected_error(error)
            self._fail(fault.message, fault.remedy, "")
        except asyncio.CancelledError:
            self._event_log.emit(RunCancelled, "", self._run_context.outputs, *self._figures())
        else:
            self._event_log.emit(RunCompleted, "", self._run_context.outputs, *self._figures())
        finally:
            await self._close()

    def _fail(self, error: str, remedy: str, node: str) -> None:
        self._event_log.emit(RunFailed, "", error, remedy, node, self._run_context.outputs, *self._figures())

    def _figures(self) -> tuple[object, ...]:
        """Usage, cost, duration and warnings of the run, as the events of its end have them."""
        duration_s = time.perf_counter() - self._started
        return self._budget.usage, self._budget.cost_usd, duration_s, self._run_context.warnings.all

    async def _ask_prices(self) -> None:
        """Ask what the models cost, which also readies them before any node's time limit begins to count.

        Raises:
            EngineError: There is a money budget, and nobody knows what a model costs.
        """
        has_budget = self._budget.limit_usd is not None or has_money_budget(self._plan.graph)
        must_be_known = has_budget and not self._allow_unknown_price
        for bound in self._run_context.models.values():
            if await bound.price() is None and must_be_known:
                raise EngineError(
                    f'The run has a budget in US dollars, and nobody knows what the model "{bound.model.name}" costs.',
                    "State its price under settings.prices, or allow models of unknown price.",
                )

    async def _close(self) -> None:
        self._ending = True
        await self._event_log.flush()
        self._event_log.close()
        self._ended.set()
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
    """Start a run in the event loop that is running, and give it back at once.

    Args:
        workflow: The document, or its plan. The run keeps to it as it is now.
        inputs: Values of its inputs, by name.
        options: How it is to be done, and where it is kept.
        on_event: Called with every event, in a thread of its own.

    Raises:
        DocumentError: The document has errors; `problems` names them.
        InputError: The inputs do not fit.
        ModelError: A model that it names does not exist.
    """
    ready = prepare(workflow, inputs or {}, options or RunOptions())
    return Run(ready, begin(ready), on_event)


async def run(
    workflow: Workflow | Plan,
    inputs: Mapping[str, Value] | None = None,
    options: RunOptions | None = None,
    *,
    on_event: Callable[[AnyEvent], None] | None = None,
) -> RunResult:
    """Run a workflow to its end.

    Args:
        workflow: The document, or its plan.
        inputs: Values of its inputs, by name.
        options: How it is to be done.
        on_event: Called with every event, in a thread of its own. One that is slow does not slow the run.

    Raises:
        RunError: The run failed; its `result` holds what had come out.
        DocumentError: The document has errors; nothing was run.
        InputError: The inputs do not fit; nothing was run.
        ModelError: A model that it names does not exist; nothing was run.
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
    """Run a workflow to its end and wait for it: `run` for scripts and for notebooks whose own loop is busy.

    Ctrl+C stops the run, then raises KeyboardInterrupt. Raises what `run` raises.
    """
    return run_in_background_loop(run(workflow, inputs, options, on_event=on_event))
