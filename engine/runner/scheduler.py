"""Running one graph: whatever has its inputs runs.

The order is by readiness. A node waits for the nodes that lead to it; when the last of them is through, it either
runs or, where nothing live reaches a port that it needs, is skipped, and that is handed on. As long as only one
node is ready it runs in the graph's own task; several at once get a task each. What goes wrong in one cancels the
others.
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
"""What lies in a slot that no live value has reached."""


class GraphRun:
    """One pass through a graph.

    Attributes:
        plan: The graph.
        scope: Where in the run it is.
        values: What lies in each slot: a value, or `DEAD`.
        given: What each node gave, by position; None for one that was skipped.
        exit_values: What each exit of this graph gets from its loop, by the exit's position.
    """

    __slots__ = ("_finished", "_ready", "_tasks", "_waits", "_wake", "exit_values", "given", "plan", "scope", "values")

    def __init__(self, plan: GraphPlan, scope: RunScope) -> None:
        self.plan = plan
        self.scope = scope
        self.values: list[object] = [DEAD] * plan.slots
        self.given: list[Outputs | None] = [None] * len(plan.nodes)
        self.exit_values: dict[int, Value] = {}
        self._waits = list(plan.waits)
        self._ready = deque(plan.first)
        self._tasks: set[asyncio.Task[None]] = set()
        self._finished: deque[asyncio.Task[None]] = deque()
        self._wake: asyncio.Future[None] | None = None

    async def run(self) -> None:
        """Run every node that gets its inputs, to the last.

        Raises:
            NodeFailure: A node failed.
            BudgetError: The budget is spent.
        """
        nodes, ready, run_context = self.plan.nodes, self._ready, self.scope.run_context
        execute = run_context.execute
        try:
            while ready or self._tasks:
                if run_context.is_stopping:  # a node has taken no notice of it
                    raise asyncio.CancelledError
                if len(ready) == 1 and not self._tasks:
                    node = nodes[ready.popleft()]
                    self._hand_on(node, await execute(self, node))
                    continue
                while ready:
                    self._start(nodes[ready.popleft()])
                await self._next_finished()
        except BaseException:
            await stop_all(self._tasks)
            raise

    def collect(self, port: InputPlan | None) -> object:
        """What reached a port: a value, or `DEAD`. Several live values are joined as `Port.many` says."""
        if port is None:
            return DEAD
        if len(port.slots) == 1:
            return self.values[port.slots[0]]
        live = [self.values[slot] for slot in port.slots if self.values[slot] is not DEAD]
        if len(live) <= 1:
            return live[0] if live else DEAD
        texts = [value for value in live if isinstance(value, str)]
        return "\n\n".join(texts) if len(texts) == len(live) else live

    async def _work(self, node: NodePlan) -> None:
        self._hand_on(node, await self.scope.run_context.execute(self, node))

    def _hand_on(self, node: NodePlan, outputs: Outputs | None) -> None:
        if outputs is not None:
            self.given[node.position] = outputs
            for port, slot in node.outputs:
                if port in outputs:
                    self.values[slot] = outputs[port]
        waits = self._waits
        for follower in node.followers:
            waits[follower] -= 1
            if waits[follower] == 0:
                self._ready.append(follower)

    def _start(self, node: NodePlan) -> None:
        task = asyncio.get_running_loop().create_task(self._work(node))
        self._tasks.add(task)
        task.add_done_callback(self._note_finished)

    def _note_finished(self, task: asyncio.Task[None]) -> None:
        self._finished.append(task)
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    async def _next_finished(self) -> None:
        """Wait until a task is through, and take up all that are."""
        if not self._finished:
            self._wake = asyncio.get_running_loop().create_future()
            await self._wake
        while self._finished:
            task = self._finished.popleft()
            self._tasks.discard(task)
            task.result()


async def stop_all(tasks: Collection[asyncio.Task[None]]) -> None:
    """Cancel tasks and wait until they have ended, whatever they end with.

    Raises:
        CancelledError: Whoever waits was cancelled meanwhile; it comes once they have ended.
    """
    for task in tasks:
        task.cancel()
    cancelled: asyncio.CancelledError | None = None
    while at_work := [task for task in tasks if not task.done()]:
        try:
            await asyncio.wait(at_work)
        except asyncio.CancelledError as error:
            cancelled = error
    for task in tasks:
        if not task.cancelled():
            task.exception()  # what nobody has looked at would be logged
    if cancelled is not None:
        raise cancelled
