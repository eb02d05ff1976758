"""A run from its start to its end."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Callable, Mapping

from engine.document.model import Workflow
from engine.document.settings import ModelPrice, Settings
from engine.errors import EngineError
from engine.models.base import Price
from engine.nodes.spec import ModelChoice
from engine.plan.build import build
from engine.plan.graph import Plan
from engine.runner.account import Account, BudgetError
from engine.runner.attempts import unexpected
from engine.runner.bus import EventBus
from engine.runner.dispatch import execute
from engine.runner.events import (
    AnyEvent,
    RunCancelled,
    RunCompleted,
    RunFailed,
    RunStarted,
)
from engine.runner.failure import NodeFailure
from engine.runner.level import BoundModel, Core, Level, Slots
from engine.runner.options import Catalogue, RunOptions
from engine.runner.parameters import read_parameters
from engine.runner.result import RunResult
from engine.runner.scheduler import GraphRun
from engine.tools.base import ToolContext
from engine.values import Value

_PER_MILLION = 1_000_000


def start(
    workflow: Workflow,
    inputs: Mapping[str, Value] | None = None,
    options: RunOptions | None = None,
    *,
    on_event: Callable[[AnyEvent], None] | None = None,
) -> Run:
    """Start a run in the event loop that is running, and give it back at once.

    Args:
        workflow: The document; the run keeps to it as it is now.
        inputs: Values of its inputs, by name.
        options: How it is to be done.
        on_event: Called with every event, in a thread of its own.

    Raises:
        DocumentError: The document has errors; `problems` names them.
        InputError: The inputs do not fit.
        ModelError: A model that it names does not exist.
    """
    options = options or RunOptions()
    plan = build(workflow, options.registry, max_iterations_cap=options.max_iterations_cap)
    parameters = read_parameters(plan.parameters, inputs or {})
    catalogue, own = _catalogue(options)
    settings = Settings.model_validate(workflow.settings)
    models = {choice: _bind(choice, settings, options, catalogue) for choice in plan.models}
    return Run(workflow, plan, parameters, options, settings, models, catalogue if own else None, on_event)


def _catalogue(options: RunOptions) -> tuple[Catalogue, bool]:
    if options.models is not None:
        return options.models, False
    from engine.models.catalogue import Models

    return Models(), True


def _bind(choice: ModelChoice, settings: Settings, options: RunOptions, catalogue: Catalogue) -> BoundModel:
    name, api_base = options.model or choice.name or settings.model or options.default_model, choice.api_base
    if name is None:
        from engine.models.catalogue import default_model_name

        name = default_model_name()
    stated = settings.prices.get(name)
    return BoundModel(catalogue.get(name, None if options.model else api_base), _price(stated))


def _price(stated: ModelPrice | None) -> Price | None:
    if stated is None:
        return None
    return Price(stated.input_usd_per_million / _PER_MILLION, stated.output_usd_per_million / _PER_MILLION)


class Run:
    """A run under way. Its methods belong to the thread of the event loop that it was started in.

    Attributes:
        run_id: Short and unique.
        workflow: The document as it runs.
    """

    def __init__(
        self,
        workflow: Workflow,
        plan: Plan,
        parameters: dict[str, Value],
        options: RunOptions,
        settings: Settings,
        models: dict[ModelChoice, BoundModel],
        own_catalogue: Catalogue | None,
        on_event: Callable[[AnyEvent], None] | None,
    ) -> None:
        self.run_id = secrets.token_hex(6)
        self.workflow = workflow
        self._plan = plan
        self._own_catalogue = own_catalogue
        self._allow_unknown_price = options.allow_unknown_price or settings.allow_unknown_price
        self._result = RunResult(self.run_id)
        self._bus = EventBus(self.run_id, self._result.fold)
        if on_event is not None:
            self._bus.add_callback(on_event)
        self._account = Account(
            limit_usd=settings.budget_usd if options.budget_usd is None else options.budget_usd,
            limit_tokens=settings.budget_tokens if options.budget_tokens is None else options.budget_tokens,
        )
        self._core = Core(
            bus=self._bus,
            models=models,
            parameters=parameters,
            tools=ToolContext(options.folder, options.allow_private_addresses),
            slots=Slots(settings.max_concurrency),
            execute=execute,
        )
        self._started = time.perf_counter()
        self._ended = asyncio.Event()
        self._begun = False
        self._stopping = False
        names = tuple(dict.fromkeys(bound.model.name for bound in models.values()))
        self._bus.emit(RunStarted, "", workflow.name, parameters, names)
        self._task = asyncio.get_running_loop().create_task(self._main(), name=f"loopwright run {self.run_id}")

    def events(self) -> AsyncIterator[AnyEvent]:
        """All events from the first, as they come; ends with the run."""
        return self._bus.read()

    @property
    def is_over(self) -> bool:
        """Whether the last event has been told. May be asked from any thread."""
        return self._bus.closed

    def events_since(self, place: int, most: int) -> list[AnyEvent]:
        """Events from number `place` on, at most `most` of them, without waiting. May be called from any thread."""
        return self._bus.log[place : place + most]

    async def result(self) -> RunResult:
        """What the run comes to, once it has. A run that failed or was stopped is a result too."""
        await self._ended.wait()
        return self._result

    async def delivered(self, within_s: float = 1.0) -> None:
        """Wait until callbacks have had all events, but not longer than that; a slow one is left to its thread."""
        await self._bus.delivered(within_s)

    def cancel(self) -> None:
        """Stop at once, calls in flight included. What was finished is kept."""
        self._stopping = True
        if self._begun:  # a task that is cancelled before its first step would not get to tell that it was
            self._task.cancel()

    def pause(self) -> None:
        """Let nodes at work finish, and start no more."""
        if not self._bus.closed:
            self._core.pause()

    def resume(self) -> None:
        """Go on after a pause."""
        self._core.stop_before_iteration = False
        self._core.resume()

    def step_node(self) -> None:
        """Start one more node of a paused run; the run stays paused."""
        self._core.let_one_start()

    def step_iteration(self) -> None:
        """Go on, and pause again before the next iteration of any loop begins."""
        self._core.resume()
        self._core.stop_before_iteration = True

    async def _main(self) -> None:
        self._begun = True
        try:
            if self._stopping:
                raise asyncio.CancelledError
            await self._ask_prices()
            await GraphRun(self._plan.graph, Level(self._core, self._account)).run()
        except NodeFailure as failure:
            self._fail(failure.sentence, failure.remedy, failure.path)
        except BudgetError as error:
            self._fail(error.message, error.remedy, error.node)
        except EngineError as error:
            self._fail(error.message, error.remedy, "")
        except Exception as error:
            fault = unexpected(error)
            self._fail(fault.message, fault.remedy, "")
        except asyncio.CancelledError:
            self._bus.emit(RunCancelled, "", self._core.outputs, *self._spent())
        else:
            self._bus.emit(RunCompleted, "", self._core.outputs, *self._spent(), tuple(self._core.warnings))
        finally:
            await self._close()

    def _fail(self, error: str, remedy: str, node: str) -> None:
        self._bus.emit(RunFailed, "", error, remedy, node, self._core.outputs, *self._spent())

    def _spent(self) -> tuple[object, object, float]:
        return self._account.usage, self._account.cost_usd, time.perf_counter() - self._started

    async def _ask_prices(self) -> None:
        """Ask what the models cost, which also readies them before any node's time limit begins to count.

        Raises:
            EngineError: There is a money budget, and nobody knows what a model costs.
        """
        must_be_known = self._has_money_budget() and not self._allow_unknown_price
        for bound in self._core.models.values():
            if await bound.price() is None and must_be_known:
                raise EngineError(
                    f'The run has a budget in US dollars, and nobody knows what the model "{bound.model.name}" costs.',
                    "State its price under settings.prices, or allow models of unknown price.",
                )

    def _has_money_budget(self) -> bool:
        loops = (node.config for node in self.workflow.nodes if node.type == "loop")
        return self._account.limit_usd is not None or any(config.get("budget_usd") is not None for config in loops)

    async def _close(self) -> None:
        self._bus.close()
        self._ended.set()
        if self._own_catalogue is not None:
            await self._own_catalogue.close()
