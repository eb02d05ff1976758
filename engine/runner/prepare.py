"""What a run needs before its first event: its plan, its inputs, its models, and where it is kept."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from engine.document.files import dumps
from engine.document.model import ModelPrice, Settings, Workflow
from engine.errors import EngineError
from engine.events import AnyEvent
from engine.models.base import Price, RemembersCalls
from engine.nodes.agent_config import AgentConfig
from engine.nodes.spec import ModelChoice
from engine.plan.compiler import compiled
from engine.plan.execution_plan import GraphPlan, Plan
from engine.runner.call_log import CallLog
from engine.runner.capabilities import refuse_code
from engine.runner.declared_inputs import read_parameters
from engine.runner.journal import Journal, RunHead
from engine.runner.options import Catalogue, RunOptions, options_to_json
from engine.runner.run_context import BoundModel
from engine.values import Value

_PER_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Ready:
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
    models: dict[ModelChoice, BoundModel]
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
class Beginning:
    """Where a run begins.

    Attributes:
        run_id: Short and unique.
        journal: Where it is kept; None where it is not.
        past: What it had told before it broke off, or, of a fork, copies of what its parent told up to the place.
        is_fork: Whether the past is that of a fork, which the journal does not have yet.
        not_kept: Why it is not kept although it should be.
        calls: The calls before it that scripted models count; None: those of its past.
    """

    run_id: str
    journal: Journal | None = None
    past: Sequence[AnyEvent] = ()
    is_fork: bool = False
    not_kept: EngineError | None = None
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


def limits_money(graph: GraphPlan) -> bool:
    """Whether a loop of a graph, or one in its loops and subflows, has a budget in US dollars of its own."""
    return any(
        (node.loop is not None and node.loop.config.budget_usd is not None)
        or (node.body is not None and limits_money(node.body))
        for node in graph.nodes
    )


def new_run_id() -> str:
    """An id that no other run has."""
    return secrets.token_hex(6)


def prepare(document: Workflow | Plan, inputs: Mapping[str, Value], options: RunOptions) -> Ready:
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
    return Ready(workflow, plan, parameters, options, settings, models, catalogue if own else None)


def begin(ready: Ready) -> Beginning:
    """Begin a new run; one that cannot be kept goes on all the same, and says so."""
    run_id = ready.options.run_id or new_run_id()
    return begin_kept(ready.options, RunHead(run_id, dumps(ready.workflow), head_options(ready), ready.options.source))


def begin_kept(options: RunOptions, head: RunHead, past: Sequence[AnyEvent] = ()) -> Beginning:
    """Begin a run, or a fork with that past, where the options say that it is kept."""
    is_fork = bool(past)
    if options.store is None:
        return Beginning(head.run_id, None, past, is_fork)
    try:
        return Beginning(head.run_id, options.store.begin(head), past, is_fork)
    except EngineError as error:
        return Beginning(head.run_id, None, past, is_fork, error)


def continue_models(models: Iterable[BoundModel], calls: CallLog) -> None:
    """Let models that remember their calls continue where they were after these."""
    for model in (bound.model for bound in models):
        if isinstance(model, RemembersCalls):
            model.resume_from(calls.requests(model.name), calls.paths_in_flight(model.name))


def head_options(ready: Ready) -> dict[str, Value]:
    """What is kept of how a run is to be done. A default model that was found, not named, is named there."""
    found = ready.models.get(ModelChoice())
    return options_to_json(ready.options, found.model.name if found is not None else None)


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
