"""What all events of a run have, and how an event is written as JSON."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, ClassVar


@dataclass(frozen=True, slots=True)
class Event:
    """What all events have.

    Attributes:
        run_id: The run that tells it.
        seq: Its number in the run, from 0, without a gap.
        time: When, in seconds since the epoch (UTC).
        path: Where: `draft`, `loop[2].draft`, `outer[1].inner`; empty for the run itself.
    """

    type: ClassVar[str] = "event"

    run_id: str
    seq: int
    time: float
    path: str

    def to_json(self) -> dict[str, Any]:
        """The event as a JSON object, with its type first."""
        fields = {field.name: _to_json(getattr(self, field.name)) for field in dataclasses.fields(self)}
        return {"type": self.type, **fields}


def _to_json(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: _to_json(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, tuple):
        return [_to_json(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
    return value
