"""Run context and scopes: what the nodes of a run share, and the services that a run offers to them.

A run has one `RunContext`. The whole workflow, each iteration of a loop and each subflow have a `RunScope`.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

from pydantic import ValidationError

from engine.document.problems import config_errors
from engine.errors import EngineError
from engine.events import (
    BudgetWarning,
    NodeAnswered,
    NodeCalled,
    NodeCalling,
    NodeNoted,
    NodeStreaming,
    NodeToolCalled,
    NodeToolCalling,
    NodeWaiting,
    NotePosted,
    RunPaused,
    RunResumed,
)
from engine.expr import Namespace
from engine.models.protocol import (
    HasTokenizer,
    Message,
    Model,
    ModelCall,
    ModelChoice,
    ModelError,
    Price,
    RemembersCalls,
    Reply,
    Request,
    Usage,
    add_costs,
    clean_reply,
    clean_request,
)
from engine.nodes.agent_tools import CHOICES, approval_question, approved_arguments, confirmation_key
from engine.nodes.context import Answer, IterationNote, NodeContext, QuestionKind, ToolOutcome, failure_of
from engine.nodes.spec import NodeError, Outputs
from engine.plan.execution_plan import GraphPlan, NodePlan
from engine.run_state.state import WarningLog
from engine.runner.budget import Budget, Estimate, estimate, reply_tokens, request_texts, request_tokens, text_tokens
from engine.runner.event_log import EventLog
from engine.runner.human_input import Mailbox, Note, Question, check_note
from engine.runner.loop_variables import LoopMemory, LoopVariables
from engine.runner.named_state import State, StateView
from engine.runner.replay import Replay
from engine.runner.run_storage import RunCache, may_reuse, request_key, tool_key
from engine.text_sanitizing import quoted
from engine.tools.registry import all_tools, find_tool
from engine.tools.tool import AnyTool, ToolContext, ToolError
from engine.values import Value, clean_text


class PricedModel:
    """A model of this run with its price: the one from the settings, or the model's own.

    Attributes:
        model: The model.
        known_price: Its price once it is resolved; None if it is unknown.
        is_price_resolved: Whether the price has been looked up.
        remembers_calls: Whether its replies depend on earlier calls (`RemembersCalls`).
    """

    __slots__ = ("is_price_resolved", "known_price", "model", "remembers_calls")

    def __init__(self, model: Model, stated: Price | None) -> None:
        self.model = model
        self.known_price = stated
        self.is_price_resolved = stated is not None
        self.remembers_calls = isinstance(model, RemembersCalls)  # a check of a protocol is slow

    async def price(self) -> Price | None:
        """Return the price, or None if it is unknown. It is looked up once."""
        if not self.is_price_resolved:
            self.known_price = await self.model.price()
            self.is_price_resolved = True
        return self.known_price


class ConcurrencyLimiter:
    """Limits how many nodes run at the same time; first come, first served."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._free = limit
        self._waiting: deque[asyncio.Future[None]] = deque()

    def try_acquire(self) -> bool:
        """Acquire a slot if one is free."""
        if self._free > 0:
            self._free -= 1
            return True
        return False

    async def acquire(self) -> None:
        """Wait for a free slot and acquire it."""
        future = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        try:
            await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled():
                self.release()
            raise

    def force_acquire(self) -> None:
        """Acquire a slot even if none is free, for a node that is being stopped and releases it again."""
        self._free -= 1

    def release(self) -> None:
        """Release a slot, and pass a free one to whoever has waited longest."""
        self._free += 1
        while self._free > 0 and self._waiting:
            future = self._waiting.popleft()
            if not future.done():
                self._free -= 1
                future.set_result(None)


@dataclass(slots=True)
class RunContext:
    """What all scopes of a run share.

    Attributes:
        event_log: Log of events.
        graph: The whole workflow.
        models: Models of the run.
        parameters: Values of the workflow's inputs, by name.
        tools: Permissions of tools.
        confirms_calls: Whether a person has to confirm tool calls that are not part of the document.
        confirmed: The answers, by the key of the call.
        concurrency: Limits how many nodes run at the same time.
        outputs: Named results so far.
        warnings: The run's warnings so far.
        execute: Runs one node of a graph; passed in, because a loop runs graphs in turn.
        is_stopping: Whether the run is being stopped, so that nothing starts any more.
        paused: Whether no further node starts.
        pause_before_iteration: Whether the run pauses before the next iteration of any loop.
        waiting: Nodes and iterations that wait while the run is paused, in order; True starts one despite the pause.
        steps: How many may start despite the pause, as soon as they are ready.
        replay: Past of a resumed run or a fork; None for a new run.
        cache: Cache of replies; None if the run is not stored.
        mailbox: Open questions to people.
        state: Latest outputs of nodes with an `output_key`.
        notes: Notes that have not been received.
        models_by_id: Models that nodes have called, by the identity of the choice.
        model_warnings: Warnings of replies that the run has reported, each with the path of its node.
    """

    event_log: EventLog
    graph: GraphPlan
    models: Mapping[ModelChoice, PricedModel]
    parameters: Mapping[str, Value]
    tools: ToolContext
    concurrency: ConcurrencyLimiter
    execute: Callable[[Any, NodePlan], Awaitable[Outputs | None]]
    outputs: dict[str, Value] = field(default_factory=dict[str, Value])
    warnings: WarningLog = field(default_factory=WarningLog)
    is_stopping: bool = False
    paused: bool = False
    pause_before_iteration: bool = False
    waiting: deque[asyncio.Future[bool]] = field(default_factory=deque[asyncio.Future[bool]])
    steps: int = 0
    confirms_calls: bool = False
    confirmed: dict[str, Answer] = field(default_factory=dict[str, Answer])
    replay: Replay | None = None
    cache: RunCache | None = None
    mailbox: Mailbox = field(default_factory=Mailbox)
    state: State = field(default_factory=State)
    notes: list[Note] = field(default_factory=list[Note])
    model_warnings: dict[str, str] = field(default_factory=dict[str, str])
    models_by_id: dict[int, tuple[ModelChoice, PricedModel]] = field(
        default_factory=dict[int, tuple[ModelChoice, PricedModel]]
    )

    def pause(self) -> None:
        """Stop starting nodes."""
        if not self.paused:
            self.paused = True
            self.event_log.emit(RunPaused, "")

    def resume(self) -> None:
        """Continue to start nodes."""
        if not self.paused:
            return
        self.paused = False
        self.steps = 0
        while self.waiting:
            self._wake(self.waiting.popleft(), is_step=False)
        self.event_log.emit(RunResumed, "")

    def start_one(self) -> None:
        """Start what has waited longest, or whatever comes next, despite the pause."""
        while self.waiting:
            if self._wake(self.waiting.popleft(), is_step=True):
                return
        if self.paused:
            self.steps += 1

    async def wait_while_paused(self) -> None:
        """Wait until the run is resumed or a step is granted."""
        if self.steps:
            self.steps -= 1
            return
        while self.paused:
            is_step: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
            self.waiting.append(is_step)
            if await is_step:
                return

    async def pause_between_iterations(self) -> None:
        """Pause if that was requested before the next iteration, and wait while the run is paused."""
        if self.pause_before_iteration:
            self.pause_before_iteration = False
            self.pause()
        await self.wait_while_paused()

    def _wake(self, waiting: asyncio.Future[bool], *, is_step: bool) -> bool:
        """Wake a waiting start; return False if it no longer waits."""
        if waiting.done():
            return False
        waiting.set_result(is_step)
        return True

    def post_note(self, note: Note) -> None:
        """Post a note, which the next model call of its receiver includes.

        Raises:
            NoteError: Nobody can receive it.
        """
        check_note(self.graph, note)
        self.notes.append(note)
        self.event_log.emit(NotePosted, note.sender, note.to, note.text)


class LoopExit:
    """Whether a node of an iteration has ended the loop."""

    __slots__ = ("is_requested",)

    def __init__(self) -> None:
        self.is_requested = False


_MAX_ARGUMENTS_PREVIEW: Final = 200
"""Characters of a tool call's arguments that are stored before the call."""
_MAX_MODELS_BY_ID: Final = 1024


class RunScope:
    """The whole workflow, one iteration of a loop, or a subflow. Implements the `Services` of nodes.

    Attributes:
        run_context: What all scopes share.
        budget: Budget of this scope.
        prefix: Prefix of the paths of its nodes: `loop[2].`.
        loop_variables: Variables of the iteration; None outside loops.
        note: Iteration note for the first model node; None without one.
        memory: Conversation memory of the loop's model nodes; None without one.
        names: Further variables of this scope, such as `item` and `index`.
        exit: Ends the innermost loop; None outside loops.
        parameters: Values of the inputs of the workflow or subflow.
        outputs: Named results so far.
    """

    __slots__ = (
        "budget",
        "exit",
        "loop_variables",
        "memory",
        "names",
        "note",
        "outputs",
        "parameters",
        "prefix",
        "run_context",
    )

    def __init__(
        self,
        run_context: RunContext,
        budget: Budget,
        prefix: str = "",
        loop_variables: LoopVariables | None = None,
        note: IterationNote | None = None,
        *,
        memory: LoopMemory | None = None,
        names: Mapping[str, Value | Namespace] | None = None,
        exit: LoopExit | None = None,  # noqa: A002 - a part of every loop
        parameters: Mapping[str, Value] | None = None,
        outputs: dict[str, Value] | None = None,
    ) -> None:
        self.run_context = run_context
        self.budget = budget
        self.prefix = prefix
        self.loop_variables = loop_variables
        self.note = note
        self.memory = memory
        self.names = names
        self.exit = exit
        self.parameters = run_context.parameters if parameters is None else parameters
        self.outputs = run_context.outputs if outputs is None else outputs

    def variables(
        self, names: Mapping[str, Value], state: StateView, inputs: Mapping[str, Value] | None = None
    ) -> dict[str, Value | Namespace]:
        """Return the variables for templates and expressions; those of the scope override `names` and `inputs`."""
        variables: dict[str, Value | Namespace] = {**names, **(inputs or {}), "state": state}
        if self.loop_variables is not None:
            variables["loop"] = self.loop_variables
        if self.names is not None:
            variables.update(self.names)
        return variables

    def parameter(self, name: str) -> Value:
        """Return the value of an input of the workflow."""
        return self.parameters[name]

    def complete(self, context: NodeContext[Any], choice: ModelChoice, request: Request) -> Awaitable[Reply]:
        """Make one model call within all budgets; a call that was finished before a resume is not repeated.

        Raises:
            ModelError: The call failed.
            BudgetError: It does not fit into a budget; no call was made.
        """
        request = clean_request(request)  # the history stores what is sent
        context.model_choice = choice
        context.is_replaying = False
        if not choice.fallbacks and self.run_context.replay is None and self.run_context.cache is None:
            return self._call(context, self._model(choice), request)
        chain = self._chain(choice)
        if self.run_context.replay is not None:
            fallback = self.run_context.replay.attempts(context.path).fallback
            used = context.fallen_back.get(choice, 0)
            for position in range(used, len(chain)):
                name = chain[position][1].model.name
                call = self.run_context.replay.call(context.path, len(context.calls), name, request)
                if call is not None:
                    self._use_model(context, position)
                    context.is_replaying = True
                    return self._replay_call(context, call)
                used = position if name == fallback else used
            self._use_model(context, used)
        used_choice, priced = chain[context.fallen_back.get(choice, 0) if context.fallen_back else 0]
        if self.run_context.cache is not None and _may_reuse(context, request):
            return self._call_cached(self.run_context.cache, context, used_choice, priced, request)
        return self._call(context, priced, request)

    def fall_back(self, context: NodeContext[Any], failure: EngineError) -> str:
        """Switch a node to the next fallback of the model that failed.

        Returns:
            The name of the model used from now on; empty if there is none, or if the failure is not a model's.
        """
        choice = context.model_choice
        is_model_failure = isinstance(failure, ModelError) or (isinstance(failure, NodeError) and failure.retryable)
        if choice is None or not is_model_failure:
            return ""
        position = context.fallen_back.get(choice, 0) + 1
        return self._use_model(context, position, failure.message) if position < len(self._chain(choice)) else ""

    def _use_model(self, context: NodeContext[Any], position: int, reason: str = "") -> str:
        """Switch a node to a model of the chain, with a warning if it is another one, and return its name."""
        choice = context.model_choice
        assert choice is not None, "a model was called"
        before, chain = context.fallen_back.get(choice, 0), self._chain(choice)
        name = chain[position][1].model.name
        if position != before:
            context.fallen_back[choice] = position
            why = f": {reason}" if reason else "."
            context.warn(f"The model {chain[before][1].model.name} failed{why} The fallback {name} is used instead.")
        return name

    def _model(self, choice: ModelChoice) -> PricedModel:
        # Choices live as long as the plan, and a lookup by identity is much faster than one by value.
        known = self.run_context.models_by_id.get(id(choice))
        if known is not None and known[0] is choice:
            return known[1]
        priced = self.run_context.models[choice]
        if len(self.run_context.models_by_id) < _MAX_MODELS_BY_ID:  # a plugin's node may create a choice for each call
            self.run_context.models_by_id[id(choice)] = choice, priced
        return priced

    def _chain(self, choice: ModelChoice) -> list[tuple[ModelChoice, PricedModel]]:
        """Return a model and its fallbacks, each once, in the order in which they are tried."""
        if not choice.fallbacks:
            return [(choice, self._model(choice))]
        models: dict[int, tuple[ModelChoice, PricedModel]] = {}
        for one in choice.chain:
            priced = self.run_context.models[one]
            models.setdefault(id(priced.model), (one, priced))
        return list(models.values())

    async def _call_cached(
        self, cache: RunCache, context: NodeContext[Any], choice: ModelChoice, priced: PricedModel, request: Request
    ) -> Reply:
        """Reuse an earlier reply to the same request, or make the call and cache its reply."""
        key = request_key(context.node_type, choice, priced.model.name, request)
        if key is None:
            return await self._call(context, priced, request)
        reply = await cache.reply(key)
        if reply is None:
            reply = await self._call(context, priced, request)
            if failure_of(reply, request, context.config) is None:
                cache.store_reply(key, reply)
            return reply
        context.cache_hits += 1
        _add(context, reply.usage, 0.0)
        self._record_call(context, ModelCall(priced.model.name, request, reply, 0.0, 0.0))
        return reply

    def _call(self, context: NodeContext[Any], priced: PricedModel, request: Request) -> Awaitable[Reply]:
        if self.budget.limited or not priced.is_price_resolved:
            return self._call_within_budget(context, priced, request)
        return self._call_model(context, priced, request)

    async def _replay_call(self, context: NodeContext[Any], call: ModelCall) -> Reply:
        """Return the reply of a call that finished before the resume; budgets have counted it already."""
        _add(context, call.reply.usage, call.cost_usd)
        context.calls = (*context.calls, call)
        self._report_warnings(context, call.reply)
        return call.reply

    async def _call_within_budget(self, context: NodeContext[Any], priced: PricedModel, request: Request) -> Reply:
        """Make a call that must fit into a budget, or whose price has not been looked up."""
        price = await priced.price()
        if not self.budget.limited:
            return await self._call_model(context, priced, request)
        needed = await _estimated(priced.model, request, price)
        await self.budget.reserve(needed)
        try:
            return await self._call_model(context, priced, request, reply_tokens(request))
        finally:
            self.budget.release(needed)
            for budget, unit, spent, limit in self.budget.new_warnings():
                self.run_context.event_log.emit(BudgetWarning, budget.path, unit, spent, limit)

    async def _call_model(
        self, context: NodeContext[Any], priced: PricedModel, request: Request, max_tokens: int | None = None
    ) -> Reply:
        """Make a call; `max_tokens` limits a reply that the request does not limit, as budgets require."""
        event_log, model, price = self.run_context.event_log, priced.model, priced.known_price
        if event_log.is_stored:
            remembered = request if priced.remembers_calls else None
            event_log.emit(NodeCalling, context.path, len(context.calls), model.name, remembered)
            await event_log.flush()  # after a crash the history shows that this call may have been billed
        started = time.perf_counter()
        received: list[str] = []
        try:
            sent = request if max_tokens is None else replace(request, max_tokens=max_tokens)
            reply = clean_reply(await model.complete(sent, partial(self._stream, context.path, received)))
        except BaseException as error:
            # A provider most likely bills what it sent before the failure.
            used = _usage_of_failed_call(error, request, received)
            if used is not None:
                self._charge(context, used, price, None)
            raise
        cost = self._charge(context, reply.usage, price, reply.cost_usd)
        self._record_call(context, ModelCall(model.name, request, reply, cost, time.perf_counter() - started))
        if reply.warnings:
            self._report_warnings(context, reply)
        return reply

    def _record_call(self, context: NodeContext[Any], call: ModelCall) -> None:
        context.calls = (*context.calls, call)
        if self.run_context.event_log.is_stored:
            self.run_context.event_log.emit(NodeCalled, context.path, len(context.calls) - 1, call)

    def _report_warnings(self, context: NodeContext[Any], reply: Reply) -> None:
        """Report the warnings of a reply, each once a run."""
        for warning in reply.warnings:
            if warning not in self.run_context.model_warnings:
                self.run_context.model_warnings[warning] = context.path
                context.warn(warning)

    def _charge(
        self, context: NodeContext[Any], usage: Usage, price: Price | None, reported: float | None
    ) -> float | None:
        cost = reported if reported is not None else price.cost_usd(usage) if price is not None else None
        _add(context, usage, cost)
        self.budget.charge(usage, cost)
        return cost

    def _stream(self, path: str, received: list[str], text: str) -> None:
        text = clean_text(text)
        received.append(text)
        self.run_context.event_log.emit(NodeStreaming, path, text, len(received))

    async def call_tool(
        self, name: str, arguments: Mapping[str, Value], context: NodeContext[Any], *, may_reuse: bool = False
    ) -> Value:
        """Call a tool by name; with `may_reuse`, use a cached result if the node's setting `cache` allows it.

        Raises:
            ToolError: The tool is unknown, the arguments are invalid, or it failed.
        """
        tool = find_tool(name)
        try:
            parameters = tool.parameters.model_validate(arguments)
        except ValidationError as error:
            faults = "; ".join(message.rstrip(".") for _, message, _ in config_errors(tool.parameters, error))
            raise ToolError(
                f'The tool "{name}" cannot be called: {faults}.',
                f"Its parameters: {', '.join(tool.parameters.model_fields)}.",
            ) from error
        cache = self.run_context.cache
        key = tool_key(name, arguments, self.run_context.tools.folder) if may_reuse and _may_reuse(context) else None
        if cache is None or key is None:
            return await self._run_tool(tool, parameters, arguments, context.path)
        cached = await cache.tool_result(key)
        if cached is not None:
            context.cache_hits += 1
            return cached[0]
        result = await self._run_tool(tool, parameters, arguments, context.path)
        cache.store_tool_result(key, result)
        return result

    async def confirm_call(
        self, context: NodeContext[Any], tool: str, arguments: Mapping[str, Value]
    ) -> Mapping[str, Value]:
        """Let a person confirm a call that is not part of the document, if the run requires it.

        A run asks once for each distinct call; for web pages, once for each host.

        Raises:
            ToolError: The person rejected it.
        """
        known = all_tools().get(tool)
        if not self.run_context.confirms_calls or known is None:
            return arguments
        key = confirmation_key(known, arguments)
        if not key:
            return arguments
        answer = self.run_context.confirmed.get(key)
        if answer is None:
            message = f"This call is not part of the workflow file. {approval_question(tool)}"
            schema = known.parameters.model_json_schema()
            answer = await self.ask(context, "approval", message, dict(arguments), CHOICES, schema)
            self.run_context.confirmed[key] = answer
        return approved_arguments(answer, arguments)

    async def _run_tool(self, tool: AnyTool, parameters: Any, arguments: Mapping[str, Value], path: str) -> Value:
        event_log = self.run_context.event_log
        if event_log.is_stored and not tool.idempotent:
            event_log.emit(NodeToolCalling, path, tool.name, quoted(dict(arguments), _MAX_ARGUMENTS_PREVIEW))
        await event_log.flush()  # a tool's side effects cannot be undone
        return await tool.run(parameters, self.run_context.tools)

    async def act(
        self, context: NodeContext[Any], tool: str, arguments: Value, work: Callable[[], Awaitable[Value]]
    ) -> ToolOutcome:
        """Make and report a tool call that a model requested; a call that finished before a resume is not repeated."""
        number, replay = context.tool_calls, self.run_context.replay
        context.tool_calls += 1
        known = replay.tool_call(context.path, number, tool, arguments) if replay is not None else None
        if known is not None:
            return ToolOutcome(known.result, known.error, known.edited_arguments)
        started = time.perf_counter()
        context.edited_arguments = result = None
        error = ""
        try:
            result = await work()
        except EngineError as failure:
            error = str(failure)
        outcome = ToolOutcome(result, error, context.edited_arguments)
        duration = time.perf_counter() - started
        fields = (number, tool, arguments, result, error, duration, outcome.edited_arguments)
        self.run_context.event_log.emit(NodeToolCalled, context.path, *fields)
        return outcome

    def notes(self, context: NodeContext[Any]) -> tuple[Message, ...]:
        """Return new notes for a node, after those that it received at the same call before a resume."""
        run_context, path = self.run_context, context.path
        if not run_context.notes and run_context.replay is None:
            return ()
        known = run_context.replay.notes(path, len(context.calls)) if run_context.replay is not None else []
        new = [note for note in run_context.notes if note.is_for(path)]
        for note in new:
            run_context.notes.remove(note)
            run_context.event_log.emit(NodeNoted, path, note.to, note.text, note.sender)
        return tuple(note.message for note in (*known, *new))

    def post_note(self, context: NodeContext[Any], to: str, text: str) -> None:
        """Post a note to another node.

        Raises:
            NoteError: Nobody can receive it.
        """
        self.run_context.post_note(Note(to, text, context.path))

    def exit_loop(self, context: NodeContext[Any]) -> None:
        """End the innermost loop around the node after this iteration.

        Raises:
            NodeError: The node is not in a loop.
        """
        if self.exit is None:
            message = f'"{context.path}" is not in a loop.'
            raise NodeError(message, "Put it between a Loop and its Exit.")
        self.exit.is_requested = True

    async def ask(
        self,
        context: NodeContext[Any],
        kind: QuestionKind,
        message: str,
        value: Value,
        choices: tuple[str, ...],
        value_schema: dict[str, Value] | None = None,
    ) -> Answer:
        """Ask a person and wait for the answer; meanwhile the node does not count against the concurrency limit."""
        run_context = self.run_context
        question = Question(context.path, kind, value, choices, value_schema)
        known = run_context.replay.answer(context.path) if run_context.replay is not None else None
        if known is not None and question.accepts(known):
            return known
        fields = (context.node_type, kind, message, value, choices, value_schema)
        number = run_context.event_log.emit(NodeWaiting, context.path, *fields)
        run_context.concurrency.release()
        try:
            with run_context.mailbox.open(number, question) as future:
                answer = await future
            if not run_context.concurrency.try_acquire():
                await run_context.concurrency.acquire()
        except BaseException:
            run_context.concurrency.force_acquire()
            raise
        run_context.event_log.emit(NodeAnswered, context.path, answer.choice, answer.value, answer.comment)
        return answer


def _may_reuse(context: NodeContext[Any], request: Request | None = None) -> bool:
    return may_reuse(getattr(context.config, "cache", "off"), request)


async def _estimated(model: Model, request: Request, price: Price | None) -> Estimate:
    """Estimate the maximum cost of a call, with the model's own tokenizer where it is known."""
    counted = await model.count_tokens(request_texts(request)) if isinstance(model, HasTokenizer) else None
    return estimate(request, price, counted)


def _usage_of_failed_call(error: BaseException, request: Request, received: list[str]) -> Usage | None:
    """Return the tokens of a failed call: those that the model reports, or those received; None for none."""
    known = error.usage if isinstance(error, ModelError) else None
    if not received:
        return known
    estimated = Usage(request_tokens(request), text_tokens(received), exact=False)
    return known if known is not None and known.total_tokens > estimated.total_tokens else estimated


def _add(context: NodeContext[Any], usage: Usage, cost: float | None) -> None:
    if context.usage is None:
        context.usage, context.cost_usd = usage, cost
    else:
        context.usage, context.cost_usd = context.usage + usage, add_costs(context.cost_usd, cost)
