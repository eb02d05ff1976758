"""Find nodes whose model is a file that is missing on this computer, before they run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from engine.document.problems import Problem, Severity
from engine.models.protocol import GGUF_PREFIX, is_gguf_path
from engine.plan.compiler import models_called

if TYPE_CHECKING:
    from engine.plan.structure import Structure

MISSING_FILE: Final = "missing-model-file"
"""Code of the problem. It depends on the computer, so `validate` does not find it."""


def is_named_file(model: str) -> bool:
    """Whether a model is a file in the user's own folders, not one that is named by its path."""
    return model.startswith(GGUF_PREFIX) and not is_gguf_path(model)


def missing_file_problem(model: str, node: str, field: str) -> Problem | None:
    """Return the problem of a node whose model is a missing file; None if there is one. Searches the folders."""
    from engine.models.model_hub import missing_file

    error = missing_file(model)
    if error is None:
        return None
    return Problem(MISSING_FILE, error.message, error.remedy, Severity.WARNING, node, field=field, fix=error.fix)


def missing_model_files(structure: Structure, default: str, model: str | None = None) -> Iterator[Problem]:
    """Yield a problem for each node whose model is a missing file, unless it has fallbacks.

    A path is looked at only if it comes from the user, not from the document.

    Args:
        structure: The document.
        default: The user's default model.
        model: The user's model for all nodes; None for those in the document.
    """
    own = structure.workflow.settings.get("model")
    usual = own if isinstance(own, str) and own else default
    for node, choice in dict.fromkeys(models_called(structure, structure.workflow.nodes_by_id)):
        name = model or choice.name or usual
        is_from_user = name == model or (name == default and choice.name is None)
        is_checked = is_named_file(name) or (is_from_user and name.startswith(GGUF_PREFIX))
        if is_checked and (model or not choice.fallbacks):
            field = structure.resolution.nodes[node].spec.model_field
            if (problem := missing_file_problem(name, node, field)) is not None:
                yield problem
