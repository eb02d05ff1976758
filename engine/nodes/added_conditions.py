"""Exit conditions that plugins add: which there are, and what makes one.

Here a condition is only a name with a factory: what a condition is, `engine.exits` knows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from engine.values import Value


@dataclass(frozen=True, slots=True)
class AddedCondition:
    """An exit condition of a plugin.

    Attributes:
        name: How documents call it, and the loop's exit reason where it stops one.
        title: How people call it.
        help: One line on when it stops a loop.
        make: Makes one for one run of a loop, of the settings in the document: an `engine.exits.base.ExitCondition`.
            Raises `EngineError` where the settings do not fit.
    """

    name: str
    title: str
    help: str
    make: Callable[[Mapping[str, Value]], Any]


_CONDITIONS: dict[str, AddedCondition] = {}


def added_conditions() -> Mapping[str, AddedCondition]:
    """All of them by name; read-only."""
    return MappingProxyType(_CONDITIONS)


def add_condition(condition: AddedCondition) -> None:
    """Add one, before documents are checked.

    Raises:
        ValueError: There is another of that name.
    """
    if _CONDITIONS.get(condition.name, condition) is not condition:
        raise ValueError(f"there is an exit condition {condition.name!r} already")
    _CONDITIONS[condition.name] = condition
