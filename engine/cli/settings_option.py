"""What `--set NODE.FIELD=VALUE` changes in a workflow's settings."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from engine.cli.inputs import text_or_file
from engine.document.model import Workflow
from engine.errors import EngineError
from engine.nodes.registry import builtin_registry
from engine.text_sanitizing import shown
from engine.values import Value


def read_settings(given: Sequence[str], workflow: Workflow) -> Mapping[str, Mapping[str, Value]]:
    """The settings that `--set` options give.

    Args:
        given: `NODE.FIELD=VALUE`, `NODE.FIELD=@file`, or `NODE.FIELD=@@…` for a value that begins with `@`.
        workflow: The workflow whose settings they are.

    Returns:
        By node id, config fields and their values.

    Raises:
        EngineError: One is malformed, names what is not there, or gives a value that does not fit.
    """
    found: dict[str, dict[str, Value]] = {}
    for text in given:
        place, sign, value = text.partition("=")
        node, _, field = place.partition(".")
        if not (sign and node and field):
            raise EngineError(f'"{shown(text, 60)}" sets nothing.', "Write --set NODE.FIELD=VALUE.")
        found.setdefault(node, {})[field] = _setting(
            workflow, node, field, text_or_file(value, f"--set {shown(place)}")
        )
    return found


def _setting(workflow: Workflow, node_id: str, field: str, text: str) -> Value:
    """The value of a setting: a text where the field takes one, else what the text says as JSON."""
    node = workflow.nodes_by_id.get(node_id)
    if node is None:
        raise EngineError(
            f'The workflow has no node "{shown(node_id, 60)}".', f"It has: {', '.join(workflow.nodes_by_id)}."
        )
    spec = builtin_registry().find(node.type)
    if spec is None or field not in spec.config.model_fields:
        known = ", ".join(spec.config.model_fields) if spec is not None else "none that this program knows"
        raise EngineError(f'The node "{node_id}" has no setting "{shown(field, 60)}".', f"It has: {known}.")
    for candidate in _readings(text):
        try:
            spec.config.model_validate({**node.config, field: candidate})
        except ValidationError:
            continue
        return candidate
    raise EngineError(
        f'The setting "{field}" of the node "{node_id}" does not take "{shown(text, 60)}".',
        f"See 'loopwright nodes {node.type}'.",
    )


def _readings(text: str) -> Iterator[Any]:
    yield text
    try:
        yield json.loads(text)
    except (ValueError, RecursionError):
        return
