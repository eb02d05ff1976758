"""Hand-made runs for tests of stores, and waiting until they are stored."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any

from engine import events
from engine.errors import EngineError
from engine.events import AnyEvent
from engine.models.protocol import Message, ModelCall, Reply, Request, Usage
from engine.runner.run_storage import Journal, RunHead
from engine.store.store_protocol import Store

WITHIN_S = 10


class Watcher:
    """Follows a journal."""

    def __init__(self, journal: Journal) -> None:
        self.kept: list[int] = []
        self.errors: list[EngineError] = []
        self._changed = threading.Condition()
        journal.watch(self._on_kept, self._on_failed)

    def wait_for(self, seq: int) -> None:
        """Wait until an event is stored, or storing has failed."""
        self._wait(lambda: bool(self.errors) or (bool(self.kept) and self.kept[-1] >= seq))

    def wait_for_failure(self) -> EngineError:
        self._wait(lambda: bool(self.errors))
        return self.errors[0]

    def _wait(self, reached: Callable[[], bool]) -> None:
        with self._changed:
            assert self._changed.wait_for(reached, WITHIN_S), "nothing was told of the journal"

    def _on_kept(self, seq: int) -> None:
        with self._changed:
            self.kept.append(seq)
            self._changed.notify_all()

    def _on_failed(self, error: EngineError) -> None:
        with self._changed:
            self.errors.append(error)
            self._changed.notify_all()


def head(run_id: str, **fields: Any) -> RunHead:
    """The head of a run."""
    return RunHead(run_id, **{"document": '{"nodes": []}\n', "options": {"model": None}, **fields})


def store_run(store: Store, run_head: RunHead, log: Iterable[AnyEvent], *, close: bool = True) -> Journal:
    """Store a run, and wait until it is written."""
    journal = store.begin(run_head)
    write_all(journal, log)
    if close:
        end(store, journal)
    return journal


def write_all(journal: Journal, log: Iterable[AnyEvent]) -> Watcher:
    """Write events, and wait until they are stored."""
    watcher = Watcher(journal)
    last = -1
    for event in log:
        journal.write(event)
        last = event.seq
    if last >= 0:
        watcher.wait_for(last)
    assert watcher.errors == []
    return watcher


def end(store: Store, journal: Journal) -> None:
    """Close a journal, and wait until its run has no owner, which the next write does."""
    journal.close()
    store.delete([])


def started(run_id: str, time: float = 1000.0, **fields: Any) -> events.RunStarted:
    return events.RunStarted(run_id, 0, time, "", **{"workflow": "Refine", "inputs": {}, "models": ("m",), **fields})


def completed(run_id: str, seq: int, time: float = 1009.0, **fields: Any) -> events.RunCompleted:
    usual = {"outputs": {"answer": "done"}, "usage": Usage(30, 12), "cost_usd": 0.5, "duration_s": 9.0}
    return events.RunCompleted(run_id, seq, time, "", **{**usual, **fields})


def iteration(run_id: str, seq: int, index: int, path: str = "loop", **fields: Any) -> events.LoopIterationCompleted:
    usual = {
        "input": f"input {index}",
        "result": f"result {index}",
        "feedback": f"feedback {index}",
        "branch": "continue",
        "reason": None,
        "score": None,
        "similarity": 0.5,
        "usage": Usage(10, 4),
        "cost_usd": 0.1,
        "duration_s": 1.0,
    }
    return events.LoopIterationCompleted(run_id, seq, 1001.0 + seq, path, index, **{**usual, **fields})


def node(run_id: str, seq: int, path: str, output: Any, **fields: Any) -> events.NodeCompleted:
    usual = {"usage": Usage(10, 4), "cost_usd": 0.125, "duration_s": 1.0}
    return events.NodeCompleted(run_id, seq, 1001.0 + seq, path, "llm", {"output": output}, **{**usual, **fields})


def call(prompt: str, reply: str) -> ModelCall:
    return ModelCall("m", Request((Message("user", prompt),)), Reply(reply, usage=Usage(10, 4)), 0.125, 1.0)


def complete_run(run_id: str, time: float = 1000.0, size: int = 0) -> list[AnyEvent]:
    """The events of a short completed run, with an output that is this many characters longer."""
    return [
        started(run_id, time),
        node(run_id, 1, "loop[0].draft", "a draft" + "x" * size),
        iteration(run_id, 2, 0),
        events.LoopCompleted(run_id, 3, time + 4, "loop", 1, "max_iterations", False, 0, 0.1, 1.0),
        completed(run_id, 4, time + 9),
    ]
