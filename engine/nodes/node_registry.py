"""Which node types there are.

The built-in types are listed here and nowhere else. Loading a plugin executes it, so nothing is loaded because a
document was opened: types from elsewhere are added by whoever starts the program, through `Registry.add`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator

from engine.nodes import (
    agent,
    aggregator,
    approval,
    iterator,
    llm,
    loop,
    output,
    router,
    subflow,
    tool,
    transform,
    validator,
)
from engine.nodes import exit as exit_node
from engine.nodes import input as input_node
from engine.nodes.spec import AnySpec


class Registry:
    """Node types by name, in the palette's order."""

    def __init__(self, specs: Iterable[AnySpec]) -> None:
        self._specs = {spec.type: spec for spec in specs}

    def find(self, node_type: str) -> AnySpec | None:
        """The type of that name; None where there is none."""
        return self._specs.get(node_type)

    def suggestion(self, node_type: str) -> str | None:
        """The name most like one that is not there; None where none is like it."""
        return next(iter(difflib.get_close_matches(node_type, self._specs, n=1)), None)

    def with_types(self, specs: Iterable[AnySpec]) -> Registry:
        """A registry with further types; one of the same name takes the place of the old one."""
        return Registry([*self._specs.values(), *specs])

    def add(self, specs: Iterable[AnySpec]) -> None:
        """Add types, as a plugin does when the program starts: all of them, or none.

        Raises:
            ValueError: There is one of that name.
        """
        added = {spec.type: spec for spec in specs}
        taken = next((name for name, spec in added.items() if self._specs.get(name, spec) is not spec), None)
        if taken is not None:
            raise ValueError(f"there is a node type {taken!r} already")
        self._specs |= added

    def __iter__(self) -> Iterator[AnySpec]:
        return iter(self._specs.values())


_PLAIN = (input_node, output, llm, agent, router, transform, validator, approval, tool)
_BUILTIN = Registry(module.SPEC for module in (*_PLAIN, loop, exit_node, iterator, aggregator, subflow))


def builtin_registry() -> Registry:
    """The node types of the program, and those that enabled plugins have added; the same one in all threads."""
    return _BUILTIN
