"""Which exit conditions a loop has, in the order in which they are asked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import assert_never

from engine.exits.added import Added
from engine.exits.base import EndedIteration, ExitCondition
from engine.exits.evaluator import Evaluator
from engine.exits.every import Every
from engine.exits.judge import Judged
from engine.exits.max_iterations import MaxIterations
from engine.exits.oscillation import Oscillation
from engine.exits.plateau import Plateau
from engine.exits.spending import SpentBudget, SpentTime
from engine.exits.stable_output import StableOutput
from engine.exits.until import Until
from engine.expr import compile_expression
from engine.nodes.loop_config import LoopConfig
from engine.nodes.loop_exits import ListedCondition
from engine.values import Value


def exit_conditions(config: LoopConfig, max_iterations: int) -> tuple[ExitCondition, ...]:
    """The conditions of a loop: `until` first, then what it asks for, and the count always last."""
    conditions: list[ExitCondition] = []
    if config.until.strip():
        conditions.append(Until(compile_expression(config.until)))
    listed = [_listed(one) for one in config.exit_conditions]
    if listed:
        conditions += listed if config.exit_when == "any" else [Every(listed)]
    elif config.exit_condition == "evaluator":
        conditions.append(Evaluator())
    elif config.exit_condition == "stable_output":
        conditions.append(StableOutput(config.stability_threshold, config.stability_patience))
    elif config.exit_condition == "judge":
        conditions.append(Judged())
    return (*conditions, MaxIterations(max_iterations))


def _listed(one: ListedCondition) -> ExitCondition:  # noqa: PLR0911 - one line a condition
    match one.condition:
        case "evaluator":
            return Evaluator()
        case "judge":
            return Judged()
        case "until":
            return Until(compile_expression(one.until))
        case "stable_output":
            return StableOutput(one.threshold, one.patience)
        case "plateau":
            return Plateau(one.epsilon, one.patience)
        case "oscillation":
            return Oscillation(one.threshold)
        case "max_iterations":
            return MaxIterations(one.count)
        case "budget":
            return SpentBudget(one.budget_usd)
        case "time":
            return SpentTime(one.seconds)
        case "plugin":
            return Added(one.plugin_condition, one.plugin_settings)
    assert_never(one.condition)


def values_tested(conditions: Iterable[ExitCondition], iteration: EndedIteration) -> dict[str, Value]:
    """What the conditions looked at after an iteration, by condition; what they had no value for is left out."""
    tested = ((condition.name, condition.tested(iteration)) for condition in _each(conditions))
    return {name: value for name, value in tested if value is not None}


def _each(conditions: Iterable[ExitCondition]) -> Iterator[ExitCondition]:
    for condition in conditions:
        yield from condition.conditions if isinstance(condition, Every) else (condition,)
