"""The `subflow` node: another workflow as one node. The engine itself runs it.

The document contains a copy of the other workflow beside the path of its file. So opening it reads no other file, it
runs anywhere, and the history contains what really ran. `engine.document.subflows` updates the copy.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import Field, ValidationError

from engine.formatting import format_count
from engine.nodes.input import InputConfig
from engine.nodes.output import OutputConfig
from engine.nodes.spec import Category, FieldProblem, NodeConfig, NodeSpec, Outputs, Port
from engine.values import Value, as_list, as_object

SUBFLOW = "subflow"


class SubflowConfig(NodeConfig):
    """Settings of a `subflow` node."""

    file: str = Field(
        default="",
        title="Workflow file",
        description=("Path of the other workflow, relative to this file: draft.loop.json or parts/draft.loop.json."),
        json_schema_extra={"widget": "workflow_file"},
    )
    workflow: dict[str, Any] | None = Field(
        default=None,
        title="Embedded copy",
        description="The other workflow as last loaded. This copy is what runs.",
        json_schema_extra={"hidden": True},
    )


def _nodes(config: SubflowConfig, node_type: str) -> Iterator[tuple[str, dict[str, Any], bool]]:
    """Id and settings of the copy's nodes of one type, and whether each is enabled; malformed nodes are skipped."""
    for node in map(as_object, as_list((config.workflow or {}).get("nodes"))):
        node_id = node.get("id")
        if node.get("type") == node_type and isinstance(node_id, str):
            yield node_id, as_object(node.get("config")), node.get("enabled") is not False


def _inputs(config: SubflowConfig) -> tuple[Port, ...]:
    ports: dict[str, Port] = {}
    for node_id, settings, is_enabled in _nodes(config, "input"):
        try:
            declared = InputConfig.model_validate(settings)
        except ValidationError:
            continue
        name, is_open = declared.name or node_id, declared.default is not None
        if not is_enabled:  # its edges have no effect
            ports.setdefault(name, Port(name, declared.type, declared.description, many=True))
            continue
        ports[name] = Port(name, declared.type, declared.description, required=not is_open, gate=is_open, many=True)
    return tuple(ports.values())


def _outputs(config: SubflowConfig) -> tuple[Port, ...]:
    names: dict[str, None] = {}
    for node_id, settings, _ in _nodes(config, "output"):
        try:
            names[OutputConfig.model_validate(settings).name or node_id] = None
        except ValidationError:
            continue
    return tuple(Port(name, help=f"The result “{name}” of the other workflow.") for name in names)


def _check(config: SubflowConfig) -> list[FieldProblem]:
    if not config.file.strip() and config.workflow is None:
        return [FieldProblem("no-subflow", "file", "The workflow file is missing.", "Choose a file.")]
    if config.workflow is None:
        message = f'The workflow file "{config.file}" has not been read.'
        return [FieldProblem("subflow-not-read", "file", message, "Save this workflow beside it, and choose it again.")]
    return []


def _summary(config: SubflowConfig) -> str:
    nodes = as_list((config.workflow or {}).get("nodes"))
    return config.file or (format_count(len(nodes), "node") if nodes else "")


def _recorded(outputs: Outputs) -> Value:
    given = {name: value for name, value in outputs.items() if name != "error"}
    return next(iter(given.values())) if len(given) == 1 else given


SPEC = NodeSpec(
    type=SUBFLOW,
    title="Subflow",
    category=Category.IO,
    help="Runs another workflow file as one node: its inputs and outputs are the ports.",
    icon="mdi6.file-tree",
    config=SubflowConfig,
    inputs=_inputs,
    outputs=_outputs,
    run=None,
    check=_check,
    summary=_summary,
    recorded=_recorded,
    model_field="file",
    synonyms=("function", "module", "include", "call"),
)
