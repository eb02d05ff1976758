"""Migrate documents of older versions of the file format.

A migration is a pure function from the JSON object of version n to that of version n + 1. Its input is unchecked: parts
with an unexpected shape are passed on unchanged, and parsing reports them afterwards. Documents of newer versions are
passed on unchanged, so that a save preserves unknown content.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

from engine.document.model import FORMAT, VERSION, Workflow
from engine.document.problems import DocumentError, kind_of
from engine.text_sanitizing import shown
from engine.values import Value

Migration: TypeAlias = Callable[[Mapping[str, Value]], dict[str, Value]]
"""Returns the object of the next version. It does not set `version` and changes nothing in place."""

FIRST_VERSION: Final = 1


def upgraded_copy(document: dict[str, Value]) -> dict[str, Value]:
    """Migrate the copy of a workflow in a subflow; anything else is returned unchanged."""
    version = document.get("version")
    if isinstance(version, bool) or not isinstance(version, int) or not FIRST_VERSION <= version < VERSION:
        return document
    return migrate(document, "The copy") if document.get("format") == FORMAT else document


def upgraded_config(node_type: str, config: Mapping[str, Value]) -> dict[str, Value]:
    """Migrate the config of a node."""
    return stop_conditions_in_one_list(config) if node_type == "loop" else dict(config)


def stop_conditions_in_one_list(config: Mapping[str, Value]) -> dict[str, Value]:
    """Move all conditions of a loop to `stop_when` (version 2).

    Version 1 had one `exit_condition` with its settings beside it, or a list `exit_conditions`, and an additional
    expression `until`. Settings without effect are dropped; values of an unexpected type are passed on.
    """
    if "stop_when" in config or _OLD_STOP_FIELDS.isdisjoint(config):
        return dict(config)
    listed = config.get("exit_conditions", [])
    conditions: Value = listed
    mode = config.get("exit_when", "any")
    if isinstance(listed, list):
        conditions = [_condition(one) for one in listed] if listed else _single_condition(config)
        until = config.get("until", "")
        if not isinstance(until, str) or until.strip():
            if listed and mode == "all":
                conditions = [{"condition": "all_of", "conditions": conditions}]
                mode = "any"
            conditions = [{"condition": "until", "expression": until}, *conditions]
    upgraded: dict[str, Value] = {}
    new: dict[str, Value] = {"stop_when": conditions} if conditions != [] else {}
    if mode != "any" and conditions != []:
        new["stop_mode"] = mode
    for key, value in config.items():
        if key not in _OLD_STOP_FIELDS:
            upgraded[key] = value
        elif new:  # at the position of the first old field
            upgraded |= new
            new = {}
    return upgraded


_OLD_STOP_FIELDS: Final = frozenset(
    {"exit_condition", "stability_threshold", "stability_patience", "until", "exit_conditions", "exit_when"}
)
_OLD_CONDITION_FIELDS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "until": ("until",),
        "stable_output": ("threshold", "patience"),
        "plateau": ("patience", "epsilon"),
        "oscillation": ("threshold",),
        "max_iterations": ("count",),
        "budget": ("budget_usd",),
        "time": ("seconds",),
        "plugin": ("plugin_condition", "plugin_settings"),
        "evaluator": (),
        "judge": (),
    }
)


def _single_condition(config: Mapping[str, Value]) -> list[Value]:
    name = config.get("exit_condition", "max_iterations")
    if name == "max_iterations":
        return []
    condition: dict[str, Value] = {"condition": name}
    if name == "stable_output":
        for old, new in (("stability_threshold", "threshold"), ("stability_patience", "patience")):
            if old in config:
                condition[new] = config[old]
    return [condition]


def _condition(entry: Value) -> Value:
    """Migrate an entry of `exit_conditions`: drop settings of other conditions, call a plugin condition by its name."""
    name = entry.get("condition") if isinstance(entry, dict) else None
    if not isinstance(entry, dict) or not isinstance(name, str) or name not in _OLD_CONDITION_FIELDS:
        return entry
    others = {field for fields in _OLD_CONDITION_FIELDS.values() for field in fields}
    others -= set(_OLD_CONDITION_FIELDS[name])
    kept: dict[str, Value] = {key: value for key, value in entry.items() if key not in others}
    if name == "until":
        return {("expression" if key == "until" else key): value for key, value in kept.items()}
    settings = kept.get("plugin_settings", {})
    if name != "plugin" or not isinstance(settings, dict) or "condition" in settings:
        return kept
    rest = {
        key: value for key, value in kept.items() if key not in {"condition", "plugin_condition", "plugin_settings"}
    }
    return {"condition": kept.get("plugin_condition", ""), **rest, **settings}


def _to_version_2(document: Mapping[str, Value]) -> dict[str, Value]:
    nodes = document.get("nodes")
    if not isinstance(nodes, list):
        return dict(document)
    return {**document, "nodes": [_node_to_version_2(node) for node in nodes]}


def _node_to_version_2(node: Value) -> Value:
    config = node.get("config") if isinstance(node, dict) else None
    if not isinstance(node, dict) or not isinstance(config, dict):
        return node
    if node.get("type") == "loop":
        return {**node, "config": stop_conditions_in_one_list(config)}
    copy = config.get("workflow")
    if node.get("type") == "subflow" and isinstance(copy, dict):
        return {**node, "config": {**config, "workflow": upgraded_copy(copy)}}
    return node


MIGRATIONS: Final[Mapping[int, Migration]] = MappingProxyType({1: _to_version_2})
"""By the version from which each migrates."""


def is_newer(workflow: Workflow) -> bool:
    """Return whether a newer version of the program wrote the document, which may have unknown content."""
    return workflow.version > VERSION


def migrate(document: dict[str, Value], source: str) -> dict[str, Value]:
    """Migrate a document to the current version.

    Args:
        document: The object of the file.
        source: Name of the document for messages.

    Raises:
        DocumentError: It is not a workflow, or has an invalid version.
    """
    version = _version(document, source)
    while version < VERSION:
        document = MIGRATIONS[version](document)
        version += 1
        document["version"] = version
    return document


def _version(document: Mapping[str, Value], source: str) -> int:
    form = document.get("format")
    if form != FORMAT:
        said = f'its "format" is "{shown(form, 60)}"' if isinstance(form, str) else 'it has no "format"'
        raise DocumentError(
            f"{source}: This is not a workflow: {said}.", f'Choose a workflow file, with the format "{FORMAT}".'
        )
    version = document.get("version")
    remedy = f'Add the version of the file format: "version": {VERSION}.'
    if "version" not in document:
        raise DocumentError(f"{source}: The document has no version.", remedy)
    if isinstance(version, bool) or not isinstance(version, int):
        raise DocumentError(f"{source}: The version is {kind_of(version)}, not a whole number.", remedy)
    if version < FIRST_VERSION:
        raise DocumentError(f"{source}: There is no version {shown(version, 60)} of the file format.", remedy)
    return version
