"""The named state of a run: what nodes with an `output_key` gave last, whole loops and all their iterations through.

A fold of the events of nodes that came to their ends. A loop that begins anew takes back what was set under its path.
"""

from __future__ import annotations

from typing import Final

from engine.nodes.spec import Outputs
from engine.values import Value

NAMED_PORT: Final = "output"
"""The port whose value is named. A node that gives nothing there leaves the state as it is."""


class StateView:
    """The state at one moment; it stays as it was. Names that nothing has given yet are null."""

    __slots__ = ("values",)

    def __init__(self, values: dict[str, Value]) -> None:
        self.values = values

    def member(self, name: str) -> Value:
        """The value of that name; whether anything may give it is checked before the run."""
        return self.values.get(name)


class State:
    """The state as the run goes on.

    Attributes:
        now: The state at this moment; another object after every change.
    """

    __slots__ = ("_given", "now")

    def __init__(self) -> None:
        self._given: list[tuple[str, str, Value]] = []
        self.now = StateView({})

    def take(self, path: str, key: str, outputs: Outputs) -> None:
        """Take up what a node gave, where it has a name."""
        if key and NAMED_PORT in outputs:
            value = outputs[NAMED_PORT]
            self._given.append((path, key, value))
            self.now = StateView({**self.now.values, key: value})

    def take_back(self, inside: str) -> None:
        """Forget what nodes gave whose paths begin like this."""
        kept = [given for given in self._given if not given[0].startswith(inside)]
        if len(kept) < len(self._given):
            self._given = kept
            self.now = StateView({key: value for _, key, value in kept})
