"""Dataclasses whose immutability the type checker enforces."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def immutable(cls: type[T]) -> type[T]:
    """Make a dataclass that nobody may change.

    For values that a run makes by the thousand, such as events and messages. A frozen dataclass sets each field through
    `object.__setattr__`, which takes ten times as long as this.
    """
    return dataclass(slots=True, unsafe_hash=True)(cls)
