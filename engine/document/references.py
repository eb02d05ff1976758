"""Where the config of a node names other nodes, and how those names follow when a node gets another id.

Two kinds of places are known: the fields that pair a loop with its exit, pair an iterator with its aggregator or name a
controlling router, and the paths `loop.last.ID` and `nodes.ID` in templates and expressions. Nothing else is known here
of what a config means, so a text that holds no `{{` is taken for an expression as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from engine.document.model import Node
from engine.values import Value

NAMING_FIELDS = frozenset({("exit", "loop"), ("loop", "evaluator"), ("aggregator", "iterator")})
"""Node type and config field, where the field's value is the id of another node."""

_OTHER_NAMES = frozenset({("subflow", "workflow")})
"""Node type and config field, where the field holds a workflow of its own: what it names are its own nodes."""

_PATH = re.compile(
    r"(?<![A-Za-z0-9_.])((?:loop(?:\.parent)*\.last|nodes)\.)([a-z][a-z0-9_]*)(?![A-Za-z0-9_])",
)


def with_new_names(node: Node, names: Mapping[str, str]) -> Node:
    """The node with every mention of other nodes in its config changed.

    Args:
        node: The node; its own id stays.
        names: The new id by the old one. All change at once, so two nodes may swap their ids.
    """
    config = {key: _in_field((node.type, key), value, names) for key, value in node.config.items()}
    return node if config == node.config else node.model_copy(update={"config": config})


def _in_field(field: tuple[str, str], value: Any, names: Mapping[str, str]) -> Value:
    if field in _OTHER_NAMES:
        return value
    if field in NAMING_FIELDS and isinstance(value, str):
        return names.get(value, value)
    return _in_value(value, names)


def _in_value(value: Any, names: Mapping[str, str]) -> Value:
    if isinstance(value, str):
        return _in_template(value, names) if "{{" in value else _in_expression(value, names)
    if isinstance(value, list):
        return [_in_value(item, names) for item in value]  # pyright: ignore[reportUnknownVariableType] # any JSON
    if isinstance(value, dict):
        return {key: _in_value(item, names) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType] # any JSON
    return value


def _in_template(text: str, names: Mapping[str, str]) -> str:
    written: list[str] = []
    position = 0
    while (start := text.find("{{", position)) >= 0 and (end := text.find("}}", start)) >= 0:
        if text[start - 1 : start] == "\\":
            end = start + 2
            written.append(text[position:end])
        else:
            written += [text[position:start], _in_expression(text[start:end], names)]
        position = end
    return "".join([*written, text[position:]])


def _in_expression(text: str, names: Mapping[str, str]) -> str:
    return _PATH.sub(lambda found: found[1] + names.get(found[2], found[2]), text)
