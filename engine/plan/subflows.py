"""The workflows of a document's subflows, read from the copies in the document, never from files."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, Final, cast

from pydantic import ValidationError

from engine.document.migrate import upgraded_copy
from engine.document.model import Node, Workflow
from engine.document.problems import Problem
from engine.nodes.registry import Registry
from engine.nodes.subflow import SUBFLOW, SubflowConfig, json_object, json_objects
from engine.plan.resolve import Resolution, Resolved
from engine.text_sanitizing import shown
from engine.values import Value

MAX_DEPTH: Final = 16
"""How deep workflows may lie inside one another; each level needs some of Python's stack."""


def inner_workflows(resolution: Resolution, registry: Registry) -> dict[str, Workflow]:
    """The workflow in each subflow, by the subflow's id; what cannot be read is a problem."""
    found: dict[str, Workflow] = {}
    for resolved in resolution.nodes.values():
        config = resolved.config
        if not isinstance(config, SubflowConfig) or config.workflow is None:
            continue
        try:
            workflow = Workflow.model_validate(upgraded_copy(config.workflow))
        except ValidationError:
            message = f'The copy of "{shown(config.file, 60)}" in this document is no workflow.'
            resolution.problems.append(
                Problem("bad-subflow", message, "Choose the file again.", node=resolved.id, field="file")
            )
            continue
        if depth(config.workflow) > MAX_DEPTH:
            message = f"Workflows lie more than {MAX_DEPTH} deep inside one another."
            resolution.problems.append(
                Problem("nested-too-deep", message, "Flatten them.", node=resolved.id, field="file")
            )
            continue
        found[resolved.id] = _with_own_model(workflow, registry)
    return found


def node_at(workflow: Workflow, path: str) -> Node | None:
    """The node at a path of a run (`outer[1].inner`, `part.draft` in a subflow); None where there is none."""
    *around, last = path.split(".")
    for step in around:
        node = workflow.nodes_by_id.get(step.partition("[")[0])
        if node is not None and node.type == SUBFLOW:
            copy: object = node.config.get("workflow")
            if isinstance(copy, dict):
                copy = upgraded_copy(cast("dict[str, Value]", copy))
            try:
                workflow = Workflow.model_validate(copy)
            except ValidationError:
                return None
    return workflow.nodes_by_id.get(last.partition("[")[0])


def depth(workflow: dict[str, Any]) -> int:
    """How many workflows lie inside one another, itself the first."""
    deepest, level = 0, [workflow]
    while level and deepest <= MAX_DEPTH:
        deepest += 1
        nodes = [node for each in level for node in json_objects(each.get("nodes"))]
        level = json_objects([json_object(node.get("config")).get("workflow") for node in nodes])
    return deepest


def problem_of_subflow(subflow: Resolved, problem: Problem) -> Problem:
    """A problem of the workflow in a subflow, reported at the subflow."""
    place = f"{problem.place}: " if problem.place else ""
    message = f'In "{shown(subflow.config.file, 60)}": {place}{problem.message}'
    return Problem(problem.code, message, problem.remedy, problem.severity, node=subflow.id, field="file")


def _with_own_model(workflow: Workflow, registry: Registry) -> Workflow:
    """The workflow with its own default model at the nodes that name none: around it another one may be the default."""
    model = workflow.settings.get("model")
    if not isinstance(model, str) or not model:
        return workflow
    return workflow.model_copy(update={"nodes": tuple(_with_model(node, model, registry) for node in workflow.nodes)})


def _with_model(node: Node, model: str, registry: Registry) -> Node:
    spec = registry.find(node.type)
    config = deepcopy(node.config)
    takers = [config] if spec is not None and "model" in spec.config.model_fields else []
    if node.type == "loop":
        takers.append(json_object(config.get("judge")))
    if node.type == SUBFLOW:
        takers.append(json_object(json_object(config.get("workflow")).setdefault("settings", {})))
    for settings in takers:
        if settings.get("model") is None:
            settings["model"] = model
    return node.model_copy(update={"config": config}) if takers else node
