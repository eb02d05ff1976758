"""Which exit conditions a loop has, in the order in which they are checked."""

from __future__ import annotations

from engine.exits.base import ExitCondition
from engine.exits.evaluator import Evaluator
from engine.exits.max_iterations import MaxIterations
from engine.exits.stable_output import StableOutput
from engine.exits.until import Until
from engine.expr import compile_expression
from engine.nodes.loop import LoopConfig


def exit_conditions(config: LoopConfig, max_iterations: int) -> tuple[ExitCondition, ...]:
    """The conditions of a loop: `until` first, then what it asks for, and the count always last."""
    conditions: list[ExitCondition] = []
    if config.until.strip():
        conditions.append(Until(compile_expression(config.until)))
    if config.exit_condition == "evaluator":
        conditions.append(Evaluator())
    elif config.exit_condition == "stable_output":
        conditions.append(StableOutput(config.stability_threshold, config.stability_patience))
    return (*conditions, MaxIterations(max_iterations))
