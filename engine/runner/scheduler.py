"""Scheduler of one graph: a node runs as soon as all nodes before it have finished.

A node that finds no live value at a required port is skipped, and so are the nodes that depend on it. While only one
node is ready, it runs in the task of the graph; several ready nodes get a task each. A failure cancels the others.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Collection
from typing import Final

from engine.nodes.spec import Outputs
from engine.plan.execution_plan import GraphPlan, InputPlan, NodePlan
from engine.runner.run_scope import RunScope
from engine.values import Value

DEAD: Final = object()
"""Content of a slot without a live value."""


class GraphRun:
    """One execution of a graph.

    Attributes:
        plan: The graph.
        scope: Its scope in the run.
        values: The content of each slot: a value, or `DEAD`.
        outputs: The outputs of each node, by position; None for a node that was skipped or has not finished.
        exit_values: The output of each loop for its exit, by the exit's position.
    """

    __slots__ = (
        "_finished",
        "_ready",
        "_tasks",
        "_waits",
        "_wake",
        "exit_values",
        "outputs",
        "plan",
        "scope",
        "values",
    )

    def __init__(self, plan: GraphPlan, scope: RunScope) -> None:
        self.plan = plan
        self.scope = scope
        self.values: list[object] = [DEAD] * plan.slots
        self.outputs: list[Outputs | None] = [None] * len(plan.nodes)
        self.exit_values: dict[int, Value] = {}
        self._waits = list(plan.waits)
        self._ready = deque(plan.first)
        self._tasks: set[asyncio.Task[None]] = set()
        self._finished: deque[asyncio.Task[None]] = deque()
        self._wake: asyncio.Future[None] | None = None

    async def run(self) -> None:
        """Run all nodes.

        Raises:
            NodeFailure: A node failed.
            BudgetError: The budget is used up.
        """
        nodes, ready, run_context = self.plan.nodes, self._ready, self.scope.run_context
        execute = run_context.execute
        try:
            while ready or self._tasks:
                if run_context.is_stopping:  # a node suppressed its cancellation
                    raise asyncio.CancelledError
                if len(ready) == 1 and not self._tasks:
                    node = nodes[ready.popleft()]
                    self._finish(node, await execute(self, node))
                    continue
                while ready:
                    self._start(nodes[ready.popleft()])
                await self._next_finished()
        except BaseException:
            await stop_all(self._tasks)
            raise

    def collect(self, port: InputPlan | None) -> object:
        """Return the value at an input port, or `DEAD`. Several live values are joined as `Port.many` describes."""
        if port is None:
            return DEAD
        if len(port.slots) == 1:
            return self.values[port.slots[0]]
        live = [self.values[slot] for slot in port.slots if self.values[slot] is not DEAD]
        if len(live) <= 1:
            return live[0] if live else DEAD
        texts = [value for value in live if isinstance(value, str)]
        return "\n\n".join(texts) if len(texts) == len(live) else live

    async def _execute(self, node: NodePlan) -> None:
        self._finish(node, await self.scope.run_context.execute(self, node))

    def _finish(self, node: NodePlan, outputs: Outputs | None) -> None:
        if outputs is not None:
            self.outputs[node.position] = outputs
            for port, slot in node.outputs:
                if port in outputs:
                    self.values[slot] = outputs[port]
        waits = self._waits
        for follower in node.followers:
            waits[follower] -= 1
            if waits[follower] == 0:
                self._ready.append(follower)

    def _start(self, node: NodePlan) -> None:
        task = asyncio.get_running_loop().create_task(self._execute(node))
        self._tasks.add(task)
        task.add_done_callback(self._on_finished)

    def _on_finished(self, task: asyncio.Task[None]) -> None:
        self._finished.append(task)
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    async def _next_finished(self) -> None:
        """Wait until a task finishes, and collect all that have."""
        if not self._finished:
            self._wake = asyncio.get_running_loop().create_future()
            await self._wake
        while self._finished:
            task = self._finished.popleft()
            self._tasks.discard(task)
            task.result()


async def stop_all(tasks: Collection[asyncio.Task[None]]) -> None:
    """Cancel tasks and wait until they have ended; their exceptions are ignored.

    Raises:
        CancelledError: The caller was cancelled meanwhile; raised once the tasks have ended.
    """
    for task in tasks:
        task.cancel()
    cancelled: asyncio.CancelledError | None = None
    while pending := [task for task in tasks if not task.done()]:
        try:
            await asyncio.wait(pending)
        except asyncio.CancelledError as error:
            cancelled = error
    for task in tasks:
        if not task.cancelled():
            task.exception()  # asyncio would log an exception that was never retrieved
    if cancelled is not None:
        raise cancelled
