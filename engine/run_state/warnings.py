"""The warnings of a run: each once, with the place that it came from."""

from __future__ import annotations

import re
from typing import Final

from engine.formatting import format_spending

_ITERATION_END: Final = re.compile(r"\]")


class WarningLog:
    """The warnings of a run, in order.

    One reads `loop[2].draft: The reply was cut off.`; one of the run itself has no place.
    """

    def __init__(self) -> None:
        self._all: dict[str, None] = {}
        self._by_path: dict[str, list[str]] = {}
        self._by_iteration: dict[str, dict[str, None]] = {}

    @property
    def all(self) -> tuple[str, ...]:
        """All warnings so far."""
        return tuple(self._all)

    def inside(self, iteration: str) -> tuple[str, ...]:
        """The warnings of an iteration (`loop[2]`) and of everything in it."""
        return tuple(self._by_iteration.get(iteration, ()))

    def add(self, path: str, warning: str) -> None:
        """Add a warning of a node, a loop or an iteration; with an empty path of the run."""
        self.add_text(path, f"{path}: {warning}" if path else warning)

    def add_text(self, path: str, text: str) -> None:
        """Add a warning that names its place already."""
        if text in self._all:
            return
        self._all[text] = None
        self._by_path.setdefault(path, []).append(text)
        for end in _ITERATION_END.finditer(path):
            self._by_iteration.setdefault(path[: end.end()], {})[text] = None

    def drop(self, path: str) -> None:
        """Drop the warnings of the node or loop at a path itself."""
        if not self._by_path:
            return
        for text in self._by_path.pop(path, ()):
            self._all.pop(text, None)
            for end in _ITERATION_END.finditer(path):
                self._by_iteration.get(path[: end.end()], {}).pop(text, None)

    def drop_inside(self, path: str) -> None:
        """Drop the warnings of everything in a loop or a subflow."""
        inside = (f"{path}[", f"{path}.")
        for other in [other for other in self._by_path if other.startswith(inside)]:
            self.drop(other)


def budget_warning(spent: float, limit: float, unit: str) -> str:
    """The warning that most of a budget is used; `unit`: `usd` or `tokens`."""
    return f"Most of the budget is used ({format_spending(spent, limit, unit)})."


def not_stored(error: str) -> str:
    """The warning that the history no longer stores a run."""
    return f"The run is no longer stored in the history: {error}"
