"""What the nodes of one level of a run share: where they are, what they may spend, what the run offers them."""

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
    Message,
    Model,
    ModelError,
    Price,
    RemembersCalls,
    Reply,
    Request,
    Usage,
    clean_reply,
    clean_request,
)
from engine.nodes.agent_tools import CHOICES, approval_question, approved_arguments, confirmed_as
from engine.nodes.context import Answer, IterationNote, NodeContext, QuestionKind, ToolOutcome, failure_of
from engine.nodes.spec import ModelCall, ModelChoice, NodeError, Outputs
from engine.plan.execution_plan import GraphPlan, NodePlan
from engine.run_state.state import WarningLog
from engine.runner.budget import Budget, estimate, reply_tokens, request_tokens, text_tokens
from engine.runner.event_log import EventLog
from engine.runner.human_input import Mailbox, Note, Question, check_note
from engine.runner.loop_variables import LoopMemory, LoopVariables
from engine.runner.named_state import State, StateView
from engine.runner.replay import Replay
from engine.runner.run_storage import RunCache, may_reuse, recalled_call, request_key, tool_key
from engine.text_sanitizing import quoted
from engine.tools.registry import all_tools, find_tool
from engine.tools.tool import AnyTool, ToolContext, ToolError
from engine.values import Value, clean_text


class PricedModel:
    """A model of this run with its price: the one that the user states, else its own.

    Attributes:
        model: The model.
        known_price: Its price, once it was asked for; None where nobody knows.
        is_price_resolved: Whether it was.
    """

    __slots__ = ("is_price_resolved", "known_price", "model")

    def __init__(self, model: Model, stated: Price | None) -> None:
        self.model = model
        self.known_price = stated
        self.is_price_resolved = stated is not None

    async def price(self) -> Price | None:
        """What it costs; None where nobody knows. Asked for once."""
        if not self.is_price_resolved:
            self.known_price = await self.model.price()
            self.is_price_resolved = True
        return self.known_price


class ConcurrencyLimiter:
    """How many nodes may be at work at once (`limit`); first come, first served."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._free = limit
        self._waiting: deque[asyncio.Future[None]] = deque()

    def try_acquire(self) -> bool:
        """Take a place if one is free."""
        if self._free > 0:
            self._free -= 1
            return True
        return False

    async def acquire(self) -> None:
        """Wait for a place and take it."""
        future = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        try:
            await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled():
                self.release()
            raise

    def force_acquire(self) -> None:
        """Take a place although none may be free: of a node that is being stopped, and will give it back."""
        self._free -= 1

    def release(self) -> None:
        """Give a place back, and if one is free then, hand it to whoever has waited longest."""
        self._free += 1
        while self._free > 0 and self._waiting:
            future = self._waiting.popleft()
            if not future.done():
                self._free -= 1
                future.set_result(None)


@dataclass(slots=True)
class RunContext:
    """What all levels of one run share.

    Attributes:
        event_log: Where events go.
        graph: The whole workflow.
        models: The run's models.
        parameters: The values of the workflow's inputs, by name.
        tools: What tools may do.
        confirms_calls: Whether a person is asked before calls of tools that the document does not hold.
        confirmed: What they answered, by what they were asked about.
        concurrency: The places for nodes at work.
        outputs: Named results so far.
        warnings: The run's warnings so far.
        execute: Runs one node of a graph; handed in, because running a loop means running graphs again.
        is_stopping: Whether the run is being stopped: nothing starts any more, whatever a node makes of that.
        paused: Whether no further node is to start.
        pause_before_iteration: Whether the run pauses by itself before the next iteration of any loop.
        waiting: What is to be started next while the run is paused, in order; True lets it start all the same.
        steps: How many may start although the run is paused, as soon as they come to it.
        replay: What the run had told before it broke off, or its parent before the fork; None for a new run.
        cache: Where earlier replies are found; None where the run is not kept.
        mailbox: What waits for a person's answer.
        state: What nodes with an `output_key` gave last.
        notes: The notes that nobody has received yet.
        bound: The models that nodes have called, by the identity of the choice.
        model_warnings: The warnings of replies that the run has reported, each with the node that has it.
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
    bound: dict[int, tuple[ModelChoice, PricedModel]] = field(
        default_factory=dict[int, tuple[ModelChoice, PricedModel]]
    )

    def discard_state(self, inside: str) -> None:
        """Forget what nodes whose paths begin like this gave: what they lie in is attempted anew."""
        self.state.discard(inside)

    def pause(self) -> None:
        """Start no more nodes."""
        if not self.paused:
            self.paused = True
            self.event_log.emit(RunPaused, "")

    def resume(self) -> None:
        """Start nodes again."""
        if not self.paused:
            return
        self.paused = False
        self.steps = 0
        while self.waiting:
            self._wake(self.waiting.popleft(), is_step=False)
        self.event_log.emit(RunResumed, "")

    def start_one(self) -> None:
        """Let what has waited longest, or else comes next, begin, although the run is paused."""
        while self.waiting:
            if self._wake(self.waiting.popleft(), is_step=True):
                return
        if self.paused:
            self.steps += 1

    async def wait_while_paused(self) -> None:
        """Wait while the run is paused, for a resume or for being let through."""
        if self.steps:
            self.steps -= 1
            return
        while self.paused:
            is_step: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
            self.waiting.append(is_step)
            if await is_step:
                return

    def _wake(self, waiting: asyncio.Future[bool], *, is_step: bool) -> bool:
        """Wake who waits to start, for a step or to look again; false where nobody waits there any more."""
        if waiting.done():
            return False
        waiting.set_result(is_step)
        return True


_SHOWN_ARGUMENTS: Final = 200
"""Characters of a tool call's arguments that the history has before the call is made."""


class LoopExit:
    """Whether a node of an iteration has ended the loop."""

    __slots__ = ("is_wanted",)

    def __init__(self) -> None:
        self.is_wanted = False


_MOST_BOUND: Final = 1024
"""For how many choices of a model a run remembers it by their identity."""


class RunScope:
    """The whole workflow, or one iteration of a loop. It is what nodes know as their `Services`.

    Attributes:
        run_context: What all levels share.
        budget: What this level spends.
        prefix: What stands before a node's id in its path: `loop[2].`.
        loop_variables: The iteration; None outside loops.
        note: What the first model node is told about the iteration; None where it is told nothing.
        memory: What the loop's model nodes remember; None where they remember nothing.
        names: Groups of values that texts may name here and nowhere else.
        exit: Ends the innermost loop around; None outside loops.
        parameters: The values of the inputs of the workflow that this is a level of.
        outputs: Its named results so far.
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
        """What texts may name on this level beside `names` and `inputs`, which come before them."""
        variables: dict[str, Value | Namespace] = {**names, **(inputs or {}), "state": state}
        if self.loop_variables is not None:
            variables["loop"] = self.loop_variables
        if self.names is not None:
            variables.update(self.names)
        return variables

    def parameter(self, name: str) -> Value:
        """The value given to the run for that input."""
        return self.parameters[name]

    def complete(self, context: NodeContext[Any], choice: ModelChoice, request: Request) -> Awaitable[Reply]:
        """Make one model call, within the budget of every level. One that was paid for before is not made again.

        Raises:
            ModelError: It gave no usable reply.
            BudgetError: It does not fit; no call was made.
        """
        request = clean_request(request)  # the history has what is sent
        context.model_choice = choice
        context.is_replaying = False
        if not choice.fallbacks and self.run_context.replay is None and self.run_context.cache is None:
            return self._made(context, self._bound(choice), request)
        chain = self._chain(choice)
        if self.run_context.replay is not None:
            fallback = self.run_context.replay.attempts(context.path).fallback
            used = context.fallen_back.get(choice, 0)
            for place in range(used, len(chain)):
                name = chain[place][1].model.name
                call = self.run_context.replay.call(context.path, len(context.calls), name, request)
                if call is not None:
                    self._use_fallback(context, place)
                    context.is_replaying = True
                    return self._again(context, call)
                used = place if name == fallback else used
            self._use_fallback(context, used)
        served, bound = chain[context.fallen_back.get(choice, 0) if context.fallen_back else 0]
        if self.run_context.cache is not None and _reuses(context, request):
            return self._recalled(self.run_context.cache, context, served, bound, request)
        return self._made(context, bound, request)

    def fall_back(self, context: NodeContext[Any], failure: EngineError) -> str:
        """Switch a node to the next fallback of the model that failed.

        Returns:
            The name of the model that it uses from now on; empty where there is none, or where no model is at fault.
        """
        choice = context.model_choice
        is_models = isinstance(failure, ModelError) or (isinstance(failure, NodeError) and failure.retryable)
        if choice is None or not is_models:
            return ""
        place = context.fallen_back.get(choice, 0) + 1
        return self._use_fallback(context, place, failure.message) if place < len(self._chain(choice)) else ""

    def _use_fallback(self, context: NodeContext[Any], place: int, reason: str = "") -> str:
        """Let a node use the model at that place of the chain from now on, with a warning if that is another one."""
        choice = context.model_choice
        assert choice is not None, "a model was asked"
        before, chain = context.fallen_back.get(choice, 0), self._chain(choice)
        name = chain[place][1].model.name
        if place != before:
            context.fallen_back[choice] = place
            why = f": {reason}" if reason else "."
            context.warn(f"The model {chain[before][1].model.name} failed{why} The fallback {name} is used instead.")
        return name

    def _bound(self, choice: ModelChoice) -> PricedModel:
        """The model of a choice. Choices last as long as the plan, and finding one by its identity is much faster."""
        known = self.run_context.bound.get(id(choice))
        if known is not None and known[0] is choice:
            return known[1]
        bound = self.run_context.models[choice]
        if len(self.run_context.bound) < _MOST_BOUND:  # a plugin's node may make a choice for each call
            self.run_context.bound[id(choice)] = choice, bound
        return bound

    def _chain(self, choice: ModelChoice) -> list[tuple[ModelChoice, PricedModel]]:
        """The models of a choice in the order in which they are tried, each once."""
        if not choice.fallbacks:
            return [(choice, self._bound(choice))]
        models: dict[int, tuple[ModelChoice, PricedModel]] = {}
        for one in choice.chain:
            bound = self.run_context.models[one]
            models.setdefault(id(bound.model), (one, bound))
        return list(models.values())

    async def _recalled(
        self, cache: RunCache, context: NodeContext[Any], choice: ModelChoice, bound: PricedModel, request: Request
    ) -> Reply:
        """Use an earlier reply to the same request again, or make the call and keep its reply for later ones."""
        key = request_key(context.node_type, choice, bound.model.name, request)
        if key is None:
            return await self._made(context, bound, request)
        reply = await cache.reply(key)
        if reply is None:
            reply = await self._made(context, bound, request)
            if failure_of(reply, request, context.config) is None:
                cache.keep(key, reply)
            return reply
        call = recalled_call(bound.model.name, request, reply)
        context.cache_hits += 1
        _add(context, reply.usage, 0.0)
        self._note_call(context, call)
        return reply

    def _made(self, context: NodeContext[Any], bound: PricedModel, request: Request) -> Awaitable[Reply]:
        if self.budget.limited or not bound.is_price_resolved:
            return self._reckoned(context, bound, request)
        return self._call(context, bound.model, bound.known_price, request)

    async def _again(self, context: NodeContext[Any], call: ModelCall) -> Reply:
        """Take up a call that had come to its end before the run broke off; the accounts have counted it already."""
        _add(context, call.reply.usage, call.cost_usd)
        context.calls = (*context.calls, call)
        self._warn_of(context, call.reply)
        return call.reply

    async def _reckoned(self, context: NodeContext[Any], bound: PricedModel, request: Request) -> Reply:
        """Make a call that must fit into a budget, or whose price must first be asked for."""
        price = await bound.price()
        if not self.budget.limited:
            return await self._call(context, bound.model, price, request)
        needed = estimate(request, price)
        await self.budget.reserve(needed)
        try:
            return await self._call(context, bound.model, price, request, reply_tokens(request))
        finally:
            self.budget.release(needed)
            for budget, unit, spent, limit in self.budget.nearly_spent():
                self.run_context.event_log.emit(BudgetWarning, budget.path, unit, spent, limit)

    async def _call(
        self,
        context: NodeContext[Any],
        model: Model,
        price: Price | None,
        request: Request,
        max_tokens: int | None = None,
    ) -> Reply:
        """Make a call; `max_tokens` limits a reply that the request leaves unlimited, as a budget needs it."""
        event_log, number = self.run_context.event_log, len(context.calls)
        if event_log.is_stored:
            remembered = request if isinstance(model, RemembersCalls) else None
            event_log.emit(NodeCalling, context.path, number, model.name, remembered)
            await event_log.flush()  # after a crash the history must know that this call may have been billed
        started = time.perf_counter()
        received: list[str] = []
        try:
            sent = request if max_tokens is None else replace(request, max_tokens=max_tokens)
            reply = clean_reply(await model.complete(sent, partial(self._stream, context.path, received)))
        except BaseException as error:
            # What a provider had sent before the call broke off was most likely billed.
            used = _used(error, request, received)
            if used is not None:
                self._charge(context, used, price, None)
            raise
        cost = self._charge(context, reply.usage, price, reply.cost_usd)
        self._note_call(context, ModelCall(model.name, request, reply, cost, time.perf_counter() - started))
        self._warn_of(context, reply)
        return reply

    def _note_call(self, context: NodeContext[Any], call: ModelCall) -> None:
        number, event_log = len(context.calls), self.run_context.event_log
        context.calls = (*context.calls, call)
        if event_log.is_stored:
            event_log.emit(NodeCalled, context.path, number, call)

    def _warn_of(self, context: NodeContext[Any], reply: Reply) -> None:
        """Put a reply's warnings into the history, each once a run."""
        for warning in reply.warnings:
            if warning not in self.run_context.model_warnings:
                self.run_context.model_warnings[warning] = context.path
                context.warn(warning)

    def _charge(
        self, context: NodeContext[Any], usage: Usage, price: Price | None, stated: float | None
    ) -> float | None:
        cost = stated if stated is not None else price.cost_usd(usage) if price is not None else None
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
        """Call a tool by name; with `may_reuse` use a cached result where the node's setting `cache` allows it.

        Raises:
            ToolError: There is no such tool, the arguments do not fit, or it failed.
        """
        tool = find_tool(name)
        try:
            parameters = tool.parameters.model_validate(arguments)
        except ValidationError as error:
            faults = "; ".join(message.rstrip(".") for _, message, _ in config_errors(tool.parameters, error))
            raise ToolError(
                f'The tool "{name}" cannot be called: {faults}.', f"See `loopwright nodes tool` for what {name} takes."
            ) from error
        cache = self.run_context.cache
        key = tool_key(name, arguments, self.run_context.tools.folder) if may_reuse and _reuses(context) else None
        if cache is None or key is None:
            return await self._use_tool(tool, parameters, arguments, context.path)
        kept = await cache.result(key)
        if kept is not None:
            context.cache_hits += 1
            return kept[0]
        result = await self._use_tool(tool, parameters, arguments, context.path)
        cache.store_tool_result(key, result)
        return result

    async def confirm_call(
        self, context: NodeContext[Any], tool: str, arguments: Mapping[str, Value]
    ) -> Mapping[str, Value]:
        """Have a person confirm a call that the document does not hold, where the run asks for that.

        They are asked once a run for each distinct call; for a web page, for each host.

        Raises:
            ToolError: They refused it.
        """
        known = all_tools().get(tool)
        if not self.run_context.confirms_calls or known is None:
            return arguments
        key = confirmed_as(known, arguments)
        if not key:
            return arguments
        answer = self.run_context.confirmed.get(key)
        if answer is None:
            message = f"The workflow's file does not hold this call. {approval_question(tool)}"
            schema = known.parameters.model_json_schema()
            answer = await self.ask(context, "approval", message, dict(arguments), CHOICES, schema)
            self.run_context.confirmed[key] = answer
        return approved_arguments(answer, arguments)

    async def _use_tool(self, tool: AnyTool, parameters: Any, arguments: Mapping[str, Value], path: str) -> Value:
        event_log = self.run_context.event_log
        if event_log.is_stored and not tool.idempotent:
            event_log.emit(NodeToolCalling, path, tool.name, quoted(dict(arguments), _SHOWN_ARGUMENTS))
        await event_log.flush()  # what a tool does outside cannot be taken back
        return await tool.run(parameters, self.run_context.tools)

    async def act(
        self, context: NodeContext[Any], tool: str, arguments: Value, work: Callable[[], Awaitable[Value]]
    ) -> ToolOutcome:
        """Do what a model wants done by a tool, and tell it. What had been done before the run broke off stays done."""
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
        told = (number, tool, arguments, result, error, duration, outcome.edited_arguments)
        self.run_context.event_log.emit(NodeToolCalled, context.path, *told)
        return outcome

    def notes(self, context: NodeContext[Any]) -> tuple[Message, ...]:
        """The notes that have come for the node since it last asked, those first that it had got before a break."""
        run_context, path = self.run_context, context.path
        if not run_context.notes and run_context.replay is None:
            return ()
        known = run_context.replay.notes(path, len(context.calls)) if run_context.replay is not None else []
        fresh = [note for note in run_context.notes if note.is_for(path)]
        for note in fresh:
            run_context.notes.remove(note)
            run_context.event_log.emit(NodeNoted, path, note.to, note.text, note.sender)
        return tuple(note.message for note in (*known, *fresh))

    def post_note(self, context: NodeContext[Any], to: str, text: str) -> None:
        """Post a note to another node.

        Raises:
            NoteError: Nobody can receive it.
        """
        post_note(self.run_context, Note(to, text, context.path))

    def exit_loop(self, context: NodeContext[Any]) -> None:
        """End the innermost loop around the node after this iteration.

        Raises:
            NodeError: There is none.
        """
        if self.exit is None:
            message = f'"{context.path}" lies in no loop that could be ended.'
            raise NodeError(message, "Put it between a Loop and its Exit.")
        self.exit.is_wanted = True

    async def ask(
        self,
        context: NodeContext[Any],
        kind: QuestionKind,
        message: str,
        value: Value,
        choices: tuple[str, ...],
        value_schema: dict[str, Value] | None = None,
    ) -> Answer:
        """Ask a person, and wait for the answer however long it takes; the node gives up its place meanwhile."""
        run_context = self.run_context
        asked = Question(context.path, kind, value, choices, value_schema)
        known = run_context.replay.answer(context.path) if run_context.replay is not None else None
        if known is not None and asked.takes(known):
            return known
        told = (context.node_type, kind, message, value, choices, value_schema)
        number = run_context.event_log.emit(NodeWaiting, context.path, *told)
        run_context.concurrency.release()
        try:
            with run_context.mailbox.open(number, asked) as given:
                answer = await given
            if not run_context.concurrency.try_acquire():
                await run_context.concurrency.acquire()
        except BaseException:
            run_context.concurrency.force_acquire()
            raise
        run_context.event_log.emit(NodeAnswered, context.path, answer.choice, answer.value, answer.comment)
        return answer


def post_note(run_context: RunContext, note: Note) -> None:
    """Post a note: it waits for the next model call of its receiver.

    Raises:
        NoteError: Nobody can receive it.
    """
    check_note(run_context.graph, note)
    run_context.notes.append(note)
    run_context.event_log.emit(NotePosted, note.sender, note.to, note.text)


def _reuses(context: NodeContext[Any], request: Request | None = None) -> bool:
    """Whether the node's settings say that an earlier reply may be used again."""
    return may_reuse(getattr(context.config, "cache", "off"), request)


def _used(error: BaseException, request: Request, received: list[str]) -> Usage | None:
    """The tokens of a call that failed: what the model knows, or what had arrived; None for nothing."""
    known = error.usage if isinstance(error, ModelError) else None
    if not received:
        return known
    seen = Usage(request_tokens(request), text_tokens(received), exact=False)
    return known if known is not None and known.total_tokens > seen.total_tokens else seen


def _add(context: NodeContext[Any], usage: Usage, cost: float | None) -> None:
    context.usage = usage if context.usage is None else context.usage + usage
    context.cost_usd = None if cost is None or context.cost_usd is None else context.cost_usd + cost
