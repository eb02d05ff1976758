"""Models that plugins add: a prefix (`mine:`) with what makes the model of a name behind it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from engine.models.base import Model

_PREFIX: Final = re.compile(r"[a-z][a-z0-9_-]{1,30}")
_OWN: Final = frozenset({"embedded", "scripted", "recorded"})
_MAKERS: dict[str, Callable[[str], Model]] = {}


def added_prefixes() -> Mapping[str, Callable[[str], Model]]:
    """What makes a model, by prefix without its colon; read-only."""
    return MappingProxyType(_MAKERS)


def can_be_prefix(prefix: str) -> bool:
    """Whether models that a plugin adds may have that prefix."""
    return _PREFIX.fullmatch(prefix) is not None and prefix not in _OWN


def add_models(prefix: str, make: Callable[[str], Model]) -> None:
    """Add models; documents call them `PREFIX:NAME`.

    Args:
        prefix: Small letters, digits, hyphens and underscores.
        make: Makes the model of a name without the prefix; raises `ModelError` where there is none.

    Raises:
        ValueError: It cannot be a prefix, or another has it.
    """
    if not can_be_prefix(prefix):
        raise ValueError(f"no plugin can have models with the prefix {prefix!r}")
    if _MAKERS.get(prefix, make) is not make:
        raise ValueError(f"there are models with the prefix {prefix!r} already")
    _MAKERS[prefix] = make


def split_added(name: str) -> tuple[str, str] | None:
    """Prefix and rest of the name of an added model; None where it is none."""
    prefix, _, rest = name.partition(":")
    return (prefix, rest) if prefix in _MAKERS and rest else None
