"""Attempts: a node's time limit, its retries, and what its failure becomes."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any, Final

from engine.errors import EngineError
from engine.events import NodeRetrying
from engine.models.protocol import ModelError
from engine.nodes.context import NodeContext
from engine.nodes.spec import NodeConfig, NodeError, Outputs
from engine.runner.budget import BudgetError
from engine.runner.run_scope import RunScope
from engine.text_sanitizing import shown
from engine.tools.tool import ToolError


class NodeFailure(EngineError):  # noqa: N818 - it is told as an event, and never reaches a user as an exception
    """A node's failure on its way up.

    Attributes:
        path: The node that failed.
        title: What people call it.
    """

    def __init__(self, path: str, title: str, cause: EngineError) -> None:
        super().__init__(cause.message, cause.remedy)
        self.path = path
        self.title = title

    @property
    def sentence(self) -> str:
        """What failed and why, in one sentence."""
        return f"“{self.title}” failed: {self.message}"


_LONGEST_DELAY_S: Final = 3600.0


async def run_attempts(
    scope: RunScope,
    path: str,
    config: NodeConfig,
    attempt: Callable[[], Awaitable[Outputs]],
    timeout_s: float | None,
    *,
    goes_on: bool = False,
    context: NodeContext[Any] | None = None,
) -> Outputs:
    """Attempt a node's work as often as its settings allow, each attempt within `timeout_s` seconds.

    With `goes_on` an attempt continues where the one before failed. When the failure of a node with a `context` is
    final, the node switches to its fallback model, if it has another one, and is attempted again at once, with all its
    retries.
    Attempts that failed before the run was resumed count too.

    Raises:
        EngineError: The last attempt failed; never anything else, whatever a node type raises.
        CancelledError: The run is being stopped, whatever the attempt made of that.
    """
    made = failed = 0
    if scope.run_context.replay is not None:
        before = scope.run_context.replay.attempts(path)
        made, failed = before.made, before.failed
    while True:
        try:
            if timeout_s is None:
                return await attempt()
            return await _within_time(timeout_s, attempt)
        except BudgetError:
            raise
        except EngineError as error:
            failure = error
        except Exception as error:
            failure = unexpected_error(error)
        if scope.run_context.is_stopping:
            raise asyncio.CancelledError from failure
        if failed < config.retries and _is_retryable(failure):
            failed += 1
            fallback, delay = "", _delay(config.retry_delay_s, failed, failure)
        else:
            fallback, delay = scope.fall_back(context, failure) if context is not None else "", 0.0
            if not fallback:
                raise failure
            failed = 0
        made += 1
        scope.run_context.event_log.emit(NodeRetrying, path, made, delay, str(failure), goes_on, fallback)
        if not goes_on:
            _forget_warnings(scope, path)
        if delay > 0:
            await asyncio.sleep(delay)


def _forget_warnings(scope: RunScope, path: str) -> None:
    """Have models warn again of what the nodes in a loop or a subflow that starts over had warned of."""
    warned = scope.run_context.model_warnings
    for warning in [one for one, node in warned.items() if node.startswith((f"{path}[", f"{path}."))]:
        del warned[warning]


async def _within_time(timeout_s: float, attempt: Callable[[], Awaitable[Outputs]]) -> Outputs:
    try:
        async with asyncio.timeout(timeout_s):
            try:
                return await attempt()
            except TimeoutError as error:
                # One that the node raised by itself has nothing to do with its time limit.
                raise unexpected_error(error) from error
    except TimeoutError as error:
        raise timeout_error(timeout_s) from error


def timeout_error(timeout_s: float) -> NodeError:
    """The error for work that took longer than its time limit."""
    return NodeError(
        f"It took longer than its time limit of {timeout_s:g} s.",
        "Raise 'Timeout (seconds)', or find out what takes so long.",
        retryable=True,
    )


def unexpected_error(error: Exception) -> NodeError:
    """The error for whatever is none of the engine's own."""
    failure = NodeError(
        f"Something that should not happen did: {type(error).__name__}: {shown(error)}.",
        "This is a fault of the program or of a plugin; please report it.",
    )
    failure.__cause__ = error
    return failure


def _is_retryable(error: EngineError) -> bool:
    """Whether another attempt may succeed. A loop is attempted anew whatever made it fail."""
    if isinstance(error, (ModelError, ToolError, NodeError)):
        return error.retryable
    return isinstance(error, NodeFailure)


def _delay(first_s: float, failed: int, error: EngineError) -> float:
    """Seconds before the next attempt: doubled each time, with jitter; at least what a provider asks for."""
    delay = first_s * 2 ** (failed - 1) * random.uniform(0.75, 1.25)  # noqa: S311 - no secret hangs on it
    asked = error.retry_after if isinstance(error, ModelError) and error.retry_after is not None else 0.0
    return min(max(delay, asked), _LONGEST_DELAY_S)
