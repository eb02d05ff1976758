"""Retries: attempts of a node, their timeout and delay, and the switch to a fallback model."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any, Final

from engine.errors import EngineError
from engine.events import NodeRetrying
from engine.formatting import format_timeout
from engine.models.protocol import ModelError
from engine.nodes.context import NodeContext
from engine.nodes.spec import NodeConfig, NodeError, Outputs
from engine.runner.budget import BudgetError
from engine.runner.run_scope import RunScope
from engine.text_sanitizing import shown


class NodeFailure(EngineError):  # noqa: N818 - reported as an event; no user sees it as an exception
    """The failure of a node, which ends whatever the node is part of.

    Attributes:
        path: Path of the node.
        title: Its title.
    """

    def __init__(self, path: str, title: str, cause: EngineError) -> None:
        # Loops and subflows retry after any failure of a node.
        super().__init__(cause.message, cause.remedy, fix=cause.fix, retryable=True)
        self.path = path
        self.title = title

    @property
    def sentence(self) -> str:
        """The failure in one sentence."""
        return f"“{self.title}” failed: {self.message}"


_MAX_DELAY_S: Final = 3600.0


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
    """Make an attempt and, if it fails, the retries from the settings, each within `timeout_s` seconds.

    When a node with a `context` has used up its retries, it switches to its next fallback model and starts at once,
    with all its retries. Failed attempts before a resume count.

    Args:
        scope: The scope of the node.
        path: Path of the node.
        config: Its settings.
        attempt: Makes one attempt.
        timeout_s: Timeout in seconds; None without one.
        goes_on: Whether an attempt continues where the one before failed.
        context: The node's context; None for nodes without fallback models.

    Raises:
        EngineError: The last attempt failed; other exceptions of node types are converted to it.
        CancelledError: The run is being stopped.
    """
    made = failed = 0
    if scope.run_context.replay is not None:
        before = scope.run_context.replay.attempts(path)
        made, failed = before.made, before.failed
    while True:
        try:
            if timeout_s is None:
                return await attempt()
            return await _with_timeout(timeout_s, attempt)
        except BudgetError:
            raise
        except EngineError as error:
            failure = error
        except Exception as error:
            failure = unexpected_error(error)
        if scope.run_context.is_stopping:
            raise asyncio.CancelledError from failure
        if failed < config.retries and failure.retryable:
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
            _start_over(scope, path, context)
        if delay > 0:
            await asyncio.sleep(delay)


def _start_over(scope: RunScope, path: str, context: NodeContext[Any] | None) -> None:
    """Prepare an attempt from the beginning: in a loop or a subflow, models may repeat their warnings."""
    if context is not None:
        context.restart_attempt()
    warned = scope.run_context.model_warnings
    for warning in [one for one, node in warned.items() if node.startswith((f"{path}[", f"{path}."))]:
        del warned[warning]


async def _with_timeout(timeout_s: float, attempt: Callable[[], Awaitable[Outputs]]) -> Outputs:
    try:
        async with asyncio.timeout(timeout_s):
            try:
                return await attempt()
            except TimeoutError as error:
                # The node raised it, so it is not the node's timeout.
                raise unexpected_error(error) from error
    except TimeoutError as error:
        raise timeout_error(timeout_s) from error


def timeout_error(timeout_s: float) -> NodeError:
    """Return the error for a timeout."""
    return NodeError(
        f"It exceeded its timeout of {format_timeout(timeout_s)}.",
        "Raise 'Timeout (seconds)', or find out why it takes so long.",
        retryable=True,
    )


def unexpected_error(error: Exception) -> NodeError:
    """Return the error for an exception that is not an `EngineError`."""
    failure = NodeError(
        f"Unexpected error: {type(error).__name__}: {shown(error)}.",
        "This is a bug in the program or in a plugin. Please report it.",
    )
    failure.__cause__ = error
    return failure


def _delay(first_s: float, failed: int, error: EngineError) -> float:
    """Return the seconds before the next attempt: doubled each time, with jitter, and at least what a provider asks."""
    delay = first_s * 2 ** (failed - 1) * random.uniform(0.75, 1.25)  # noqa: S311 - not used for secrets
    asked = error.retry_after if isinstance(error, ModelError) and error.retry_after is not None else 0.0
    return min(max(delay, asked), _MAX_DELAY_S)
