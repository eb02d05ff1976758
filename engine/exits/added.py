"""An exit condition that a plugin adds, made and held to what a condition is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from engine.errors import EngineError
from engine.exits.base import EndedIteration, ExitCondition
from engine.nodes.added_conditions import added_conditions
from engine.values import Value

ResultT = TypeVar("ResultT")


class Added(ExitCondition):
    """A plugin's condition. Whatever it raises that is no sentence becomes one."""

    def __init__(self, name: str, settings: Mapping[str, Value]) -> None:
        self.name = name
        made = self._guarded(lambda: added_conditions()[name].make(settings))
        if not isinstance(made, ExitCondition):
            raise EngineError(
                f'The plugin\'s exit condition "{name}" is none.', "Report it to whoever makes the plugin."
            )
        self._condition: ExitCondition = made

    def observe(self, iteration: EndedIteration) -> None:
        """Let it observe."""
        self._guarded(lambda: self._condition.observe(iteration))

    def reason(self, iteration: EndedIteration) -> str | None:
        """Its reason."""
        return self._guarded(lambda: self._condition.reason(iteration))

    def tested(self, iteration: EndedIteration) -> Value:
        """What it looked at."""
        return self._guarded(lambda: self._condition.tested(iteration))

    def _guarded(self, work: Callable[[], ResultT]) -> ResultT:
        try:
            return work()
        except EngineError:
            raise
        except Exception as error:
            raise EngineError(
                f'The plugin\'s exit condition "{self.name}" failed: {type(error).__name__}.',
                "Report it to whoever makes the plugin.",
            ) from error
