"""A model that replays the replies of a stored run, for tests, teaching and bug reports without an API key.

A reply is identified by its path (`loop[2].draft`) and the number of earlier calls there.
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
from engine.models.protocol import (
    RECORDED_PREFIX,
    Model,
    ModelCall,
    ModelError,
    ModelErrorKind,
    OnText,
    Price,
    Reply,
    Request,
)
from engine.run_state.reducer import reduce_events
from engine.store.run_file import read_run_file
from engine.store.store_protocol import Store
from engine.text_sanitizing import shown

RECORDED_NOTE: Final = "recorded: its replies come from an earlier run"
_WITH_CALLS: Final = (LoopStarted, LoopIterationStarted, NodeCalled, NodeCompleted, NodeFailed)


class RecordedModel:
    """Replays the replies of one run. It counts them, so each run needs its own.

    Args:
        name: Display name.
        calls: The finished calls of the run, by the path of their node, in order.
    """

    def __init__(self, name: str, calls: dict[str, tuple[ModelCall, ...]]) -> None:
        self._name = name
        self._calls = calls
        self._given: Counter[str] = Counter()

    @property
    def name(self) -> str:
        """Display name."""
        return self._name

    @property
    def note(self) -> str:
        """Note about the model for the user."""
        return RECORDED_NOTE

    async def price(self) -> Price | None:
        """Return a price of zero."""
        return Price(0.0, 0.0)

    def resume_from(self, earlier: Iterable[Request], in_flight: Collection[str]) -> None:
        """Continue after these calls; the calls in flight get the same replies again."""
        self._given = Counter(request.path for request in earlier)
        self._given.subtract(path for path in in_flight if self._given[path])

    async def complete(self, request: Request, on_text: OnText | None = None) -> Reply:
        """Return the reply that the run had at that path.

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
        """Do nothing."""

    def _none(self, path: str, count: int) -> ModelError:
        place = f"at {path}" if path else "for a call outside of a run"
        had = f"no reply {place}" if not count else f"only {format_count(count, 'reply', 'replies')} {place}"
        return ModelError(
            ModelErrorKind.NOT_FOUND,
            f"The recorded run {shown(self._name.removeprefix(RECORDED_PREFIX))!r} has {had}.",
            "Replay it with the same document and inputs.",
        )


def recorded_models(history: Callable[[], AbstractContextManager[Store]]) -> Callable[[str], Model]:
    """Return the factory of `recorded:RUN` and `recorded:FILE.json` models for `Models`.

    Args:
        history: Opens the history when a run of it is requested; closed once the run has been read.
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
