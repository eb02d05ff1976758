"""An exit condition that a plugin adds, made and held to what a condition is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar, cast

from engine.document.json_rules import faults
from engine.errors import EngineError
from engine.exits.base import EndedIteration, ExitCondition
from engine.nodes.added_conditions import added_conditions
from engine.values import Value

ResultT = TypeVar("ResultT")


class Added(ExitCondition):
    """A plugin's condition. Whatever it raises that is no sentence becomes one; what it gives is what it has to be."""

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
        reason = cast("object", self._guarded(lambda: self._condition.reason(iteration)))
        if reason is None or isinstance(reason, str):
            return reason
        raise self._gave(f"{type(reason).__name__} as its reason, which is no text")

    def tested(self, iteration: EndedIteration) -> Value:
        """What it looked at."""
        tested = self._guarded(lambda: self._condition.tested(iteration))
        if next(faults(tested), None) is not None:
            raise self._gave("something to keep that is no JSON value")
        return tested

    def _gave(self, what: str) -> EngineError:
        return EngineError(
            f'The plugin\'s exit condition "{self.name}" gave {what}.', "Report it to whoever makes the plugin."
        )

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
