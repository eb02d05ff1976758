"""Which turn strategies there are: the built-in ones, and those that plugins have registered."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from engine.nodes.turns.single_call import SINGLE_CALL
from engine.nodes.turns.tool_calling import TOOL_CALLING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.nodes.turns.base import TurnStrategy

_STRATEGIES: dict[str, TurnStrategy] = {strategy.name: strategy for strategy in (TOOL_CALLING, SINGLE_CALL)}


def turn_strategies() -> Mapping[str, TurnStrategy]:
    """All strategies by name, in the order in which they are offered; read-only."""
    return MappingProxyType(_STRATEGIES)


def register_strategy(strategy: TurnStrategy) -> None:
    """Add a plugin's strategy, before documents are checked; one of a built-in's name is refused.

    Raises:
        ValueError: There is another of that name.
    """
    if _STRATEGIES.get(strategy.name, strategy) is not strategy:
        raise ValueError(f"there is a turn strategy {strategy.name!r} already")
    _STRATEGIES[strategy.name] = strategy
