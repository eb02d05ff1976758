"""A model that plays the replies of an earlier run once more: for tests, for teaching and for bug reports, with no key.

A reply is found by where in the run it was given (`loop[2].draft`) and by how many calls had been made there before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Final

from engine.errors import EngineError
from engine.events import (
    AnyEvent,
    LoopIterationStarted,
    LoopStarted,
    NodeCalled,
    NodeCompleted,
    NodeFailed,
)
from engine.formatting import format_count
from engine.models.protocol import RECORDED_PREFIX, Model, ModelError, ModelErrorKind, OnText, Price, Reply, Request
from engine.nodes.spec import ModelCall
from engine.run_state.reducer import reduce_events
from engine.store.run_file import read_run_file
from engine.store.store_protocol import Store
from engine.text_sanitizing import shown

RECORDED_NOTE: Final = "recorded: its replies come from an earlier run"
_WITH_CALLS: Final = (LoopStarted, LoopIterationStarted, NodeCalled, NodeCompleted, NodeFailed)


class RecordedModel:
    """Plays the replies of one run. It remembers how many it has given, so one serves one run.

    Args:
        name: How people call it.
        calls: The finished calls of the run, by the path of their node, in order.
    """

    def __init__(self, name: str, calls: dict[str, tuple[ModelCall, ...]]) -> None:
        self._name = name
        self._calls = calls
        self._given: Counter[str] = Counter()

    @property
    def name(self) -> str:
        """The name by which people call it."""
        return self._name

    @property
    def note(self) -> str:
        """What a person should know before trusting it."""
        return RECORDED_NOTE

    async def price(self) -> Price | None:
        """Nothing is paid twice."""
        return Price(0.0, 0.0)

    def resume_from(self, earlier: Iterable[Request], in_flight: Collection[str]) -> None:
        """Continue as if these calls had been made, and no others; the calls in flight get the same replies again."""
        self._given = Counter(request.path for request in earlier)
        self._given.subtract(path for path in in_flight if self._given[path])

    async def complete(self, request: Request, on_text: OnText | None = None) -> Reply:
        """Give the reply that the run had at that place.

        Raises:
            ModelError: It had none (`NOT_FOUND`).
        """
        calls = self._calls.get(request.path, ())
        number = self._given[request.path]
        if number >= len(calls):
            raise self._none(request.path, len(calls))
        self._given[request.path] += 1
        reply = calls[number].reply
        if on_text and reply.text:
            on_text(reply.text)
        return replace(reply, cost_usd=0.0)

    async def close(self) -> None:
        """Nothing to give back."""

    def _none(self, path: str, count: int) -> ModelError:
        place = f"at {path}" if path else "for a call outside of a run"
        had = f"no reply {place}" if not count else f"only {format_count(count, 'reply', 'replies')} {place}"
        return ModelError(
            ModelErrorKind.NOT_FOUND,
            f"The recorded run {shown(self._name.removeprefix(RECORDED_PREFIX))!r} has {had}.",
            "Play it with the document and the inputs that it ran with.",
        )


def recorded_models(history: Callable[[], AbstractContextManager[Store]]) -> Callable[[str], Model]:
    """What makes the model of `recorded:RUN` or `recorded:FILE.json`, for `Models`.

    Args:
        history: Gives the history; called when a run of it is asked for, and left when that has been read.
    """

    def make(run: str) -> Model:
        try:
            if run.endswith(".json"):
                _, events = read_run_file(Path(run))
                return RecordedModel(f"{RECORDED_PREFIX}{run}", _calls(events))
            with history() as store:
                run_id = store.find(run).run_id
                return RecordedModel(f"{RECORDED_PREFIX}{run_id}", _calls(store.events(run_id, kinds=_WITH_CALLS)))
        except ModelError:
            raise
        except EngineError as error:
            raise ModelError(ModelErrorKind.NOT_FOUND, error.message, error.remedy) from error

    return make


def _calls(events: Iterable[AnyEvent]) -> dict[str, tuple[ModelCall, ...]]:
    wanted = (event for event in events if isinstance(event, _WITH_CALLS))
    return {path: node.calls for path, node in reduce_events(wanted).nodes.items() if node.calls}
