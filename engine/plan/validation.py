"""Validation of a document: its problems, each with its place."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from pydantic import ValidationError

from engine.document.model import FORMAT, VERSION, Settings, Workflow, unknown_settings
from engine.document.problems import Problem, Severity, config_errors
from engine.nodes.agent_config import AgentConfig
from engine.nodes.agent_tools import EXIT_LOOP
from engine.nodes.input import InputConfig
from engine.nodes.iteration_cap import MAX_ITERATIONS_CAP
from engine.nodes.llm import LlmConfig
from engine.nodes.loop import range_problem
from engine.nodes.loop_config import LoopConfig
from engine.nodes.output import OutputConfig
from engine.nodes.pairs import LOOP
from engine.nodes.registry import Registry
from engine.nodes.spec import Category, ModelChoice
from engine.plan.secrets import SECRET_CODE, secret_problems
from engine.plan.structure import Structure, analyse, problem_of_subflow
from engine.plan.variable_check import name_problems
from engine.text_sanitizing import shown

_DOCUMENT_WIDE: Final = frozenset({"bad-id", "duplicate-id", "unknown-loop", SECRET_CODE})
"""Codes of problems with a field that concern more than the node itself."""


def validate(
    workflow: Workflow, registry: Registry | None = None, *, max_iterations_cap: int = MAX_ITERATIONS_CAP
) -> list[Problem]:
    """Find all problems of a document, each with its place.

    Nothing is executed or fetched; the result does not depend on the machine.

    Args:
        workflow: The document.
        registry: The node types; None for the built-in ones.
        max_iterations_cap: The most iterations that a loop may ask for.
    """
    return validate_structure(analyse(workflow, registry), max_iterations_cap=max_iterations_cap)


def validate_structure(structure: Structure, *, max_iterations_cap: int = MAX_ITERATIONS_CAP) -> list[Problem]:
    """The same, for a document that was analysed before. The structure remembers what was found."""
    if max_iterations_cap not in structure.checked:
        structure.checked[max_iterations_cap] = tuple(_all_problems(structure, max_iterations_cap))
    return list(structure.checked[max_iterations_cap])


def _all_problems(structure: Structure, max_iterations_cap: int) -> list[Problem]:
    problems = [
        *_document_problems(structure.workflow),
        *structure.problems,
        *name_problems(structure),
        *_exit_loop_problems(structure),
        *_parameter_problems(structure),
        *_loop_problems(structure, max_iterations_cap),
        *_judge_problems(structure),
        *secret_problems(structure.workflow),
        *_part_problems(structure, max_iterations_cap),
    ]
    position = {node.id: index for index, node in enumerate(structure.workflow.nodes)}
    return sorted(
        (_softened(problem, structure) for problem in problems),
        key=lambda problem: position.get(problem.node or "", -1),
    )


def affects_only_node(problem: Problem, structure: Structure) -> bool:
    """Whether a problem belongs to a disabled node alone, so that it does not prevent a run."""
    if problem.node not in structure.disabled:
        return False
    return problem.code == "unconnected-port" or (problem.field is not None and problem.code not in _DOCUMENT_WIDE)


def _softened(problem: Problem, structure: Structure) -> Problem:
    return replace(problem, severity=Severity.WARNING) if affects_only_node(problem, structure) else problem


def _document_problems(workflow: Workflow) -> Iterator[Problem]:
    if workflow.format != FORMAT:
        yield Problem(
            "wrong-format", f'The format is "{shown(workflow.format, 60)}".', f'It must be "{FORMAT}".', field="format"
        )
    if workflow.version > VERSION:
        yield Problem(
            "newer-version",
            f"The file has version {shown(workflow.version, 40)}; this program knows {VERSION} and may misread it.",
            "Update the program.",
            Severity.WARNING,
            field="version",
        )
    for key in workflow.unknown_keys:
        yield _unknown_key(f'A document has no "{shown(key, 60)}"', key)
    try:
        Settings.model_validate(workflow.settings)
    except ValidationError as error:
        for place, message, remedy in config_errors(Settings, error):
            yield Problem("bad-setting", message, remedy, field=f"settings.{place}")
    for key in unknown_settings(workflow.settings):
        yield _unknown_key(f'There is no setting "{shown(key, 60)}"', f"settings.{key}")
    if not workflow.nodes:
        yield Problem("no-nodes", "The workflow is empty.", "Add an Input, a node that does something, and an Output.")
    elif not any(node.type == "output" for node in workflow.nodes):
        yield Problem(
            "no-output",
            "The workflow has no Output, so that a run gives no result.",
            "Add an Output and connect the result to it.",
            Severity.WARNING,
        )


def _unknown_key(message: str, place: str) -> Problem:
    return Problem(
        "unknown-key",
        f"{message}; it is kept, and means nothing.",
        "Remove it, or open the file with the version of the program that wrote it.",
        Severity.WARNING,
        field=place,
    )


def _exit_loop_problems(structure: Structure) -> Iterator[Problem]:
    """Report nodes outside of all loops that have the tool `exit_loop`."""
    for resolved in structure.resolution.nodes.values():
        field = _exit_loop_field(resolved.config)
        if field and structure.order and structure.around(resolved.id, LOOP) is None:
            yield Problem(
                "exit-loop-outside",
                f'"{resolved.id}" may end the loop around it, and lies in none.',
                "Put it between a Loop and its Exit, or take the tool exit_loop from it.",
                node=resolved.id,
                field=field,
            )


def _exit_loop_field(config: object) -> str:
    """Return the setting that lets a node end its loop, or an empty string."""
    if isinstance(config, LlmConfig):
        return "may_exit_loop" if config.may_exit_loop else ""
    return "tools" if isinstance(config, AgentConfig) and EXIT_LOOP in config.tools else ""


def _parameter_problems(structure: Structure) -> Iterator[Problem]:
    for kind, config in (("input", InputConfig), ("output", OutputConfig)):
        names: dict[str, str] = {}
        for resolved in structure.resolution.nodes.values():
            if resolved.type != kind or not isinstance(resolved.config, config) or resolved.id in structure.disabled:
                continue
            name = resolved.config.name or resolved.id
            if name in names:
                yield Problem(
                    f"duplicate-{kind}",
                    f'Two {kind}s are called "{shown(name, 60)}": "{names[name]}" and "{resolved.id}".',
                    "Rename one.",
                    node=resolved.id,
                    field="name",
                )
            names.setdefault(name, resolved.id)


def _loop_problems(structure: Structure, cap: int) -> Iterator[Problem]:
    for resolved in structure.resolution.nodes.values():
        if not isinstance(resolved.config, LoopConfig):
            continue
        fault = range_problem(resolved.config.max_iterations, cap)
        if fault is not None:
            yield Problem(fault.code, fault.message, fault.remedy, fault.severity, node=resolved.id, field=fault.field)


def _judge_problems(structure: Structure) -> Iterator[Problem]:
    """Warn about a judge with the model of the node that it judges."""
    usual, known = structure.workflow.settings.get("model"), structure.resolution.nodes
    for loop, body in structure.bodies.items():
        config = known[loop].config if loop in known else None
        judge = config.judge if isinstance(config, LoopConfig) and config.has_judge else None
        if judge is None or not judge.model:
            continue
        nodes = (known[node] for node in structure.order if node in body.nodes and node in known)
        writers = (node for node in nodes if node.spec.category is Category.AI)
        same = (node.id for node in writers if _is_model(judge.choice, node.spec.model(node.config), usual))
        if writer := next(same, None):
            yield Problem(
                "judge-is-writer",
                f'The judge has the model of "{writer}", whose work it judges: {shown(judge.model, 60)}.',
                "Models are lenient with their own work: choose another one for the judge, or leave it so knowingly.",
                Severity.WARNING,
                node=loop,
                field="judge.model",
            )


def _is_model(choice: ModelChoice, other: ModelChoice | None, usual: object) -> bool:
    """Whether a node calls that model; one that names none calls the workflow's own."""
    return other is not None and (choice.name, choice.api_base) == (other.name or usual, other.api_base)


def _part_problems(structure: Structure, cap: int) -> Iterator[Problem]:
    """The problems of the workflows in subflows, reported at the subflow."""
    for node_id, inner in structure.subflows.items():
        subflow = structure.resolution.nodes[node_id]
        for problem in validate_structure(inner, max_iterations_cap=cap):
            if problem.code != "no-output":
                yield problem_of_subflow(subflow, problem)
