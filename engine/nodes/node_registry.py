"""The registry of node types.

The built-in types are listed here and nowhere else. Loading a plugin executes it, so opening a document loads none: the
program adds the types of plugins at its start, with `Registry.add`.
"""

from __future__ import annotations

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
        """The type of that name, or None."""
        return self._specs.get(node_type)

    def with_types(self, specs: Iterable[AnySpec]) -> Registry:
        """A registry with more types; a type replaces one of the same name."""
        return Registry([*self._specs.values(), *specs])

    def add(self, specs: Iterable[AnySpec]) -> None:
        """Add the types of a plugin: all or none.

        Raises:
            ValueError: There is another type of that name.
        """
        added = {spec.type: spec for spec in specs}
        taken = next((name for name, spec in added.items() if self._specs.get(name, spec) is not spec), None)
        if taken is not None:
            raise ValueError(f"there is a node type {taken!r} already")
        self._specs |= added

    def __iter__(self) -> Iterator[AnySpec]:
        return iter(self._specs.values())


_BASIC = (input_node, output, llm, agent, router, transform, validator, approval, tool)
_BUILT_IN = Registry(module.SPEC for module in (*_BASIC, loop, exit_node, iterator, aggregator, subflow))


def builtin_registry() -> Registry:
    """The registry of the built-in node types and those of enabled plugins; the same object in all threads."""
    return _BUILT_IN
