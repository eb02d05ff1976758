"""Why a loop stopped or how far it has come, and what was tested after an iteration, in the words of the engine.

No Qt here.
"""

from __future__ import annotations

from collections.abc import Mapping

from app.inspector.result_parts import loop_sentence
from app.runs.picture import LoopPicture, RunPicture
from engine.document.model import Workflow
from engine.nodes.loop_config import LoopConfig
from engine.nodes.registry import Registry
from engine.store.stopping import what_was_tested, why_stopped
from engine.values import Value


def threshold(config: LoopConfig) -> float | None:
    """The similarity at which the loop stops; None where it stops for something else."""
    return None if config.stability is None else config.stability[0]


def sentence(
    loop: LoopPicture,
    config: LoopConfig,
    *,
    error: str = "",
    similarity: float | None = None,
    given: Mapping[str, Value] | None = None,
) -> str:
    """Why a loop stopped, or how far it has come.

    Args:
        loop: The run of the loop.
        config: Its settings.
        error: What failed, where an error ended it.
        similarity: Of its last two results, from 0 to 1; None where it is not known.
        given: What the nodes of its body gave in its last iteration, by id.
    """
    if not loop.exit_reason:
        return loop_sentence(loop)
    total, last = loop.total or None, len(loop.iterations) - 1
    words = why_stopped(
        config, loop.iterations, loop.exit_reason, total, error=error, similarity=similarity, given=given
    )
    is_other = loop.returned is not None and loop.returned != last
    return f"{words} It gave the result of iteration {(loop.returned or 0) + 1}." if is_other else words


def findings(
    loop: LoopPicture,
    index: int,
    config: LoopConfig,
    *,
    similarity: float | None = None,
    given: Mapping[str, Value] | None = None,
) -> str:
    """What was looked at after an iteration to decide whether another is made, and the verdict's reason in full.

    Args:
        loop: The run of the loop.
        index: An iteration that has ended.
        config: Its settings.
        similarity: Of its result to the one before, from 0 to 1; None where it is not known.
        given: What the nodes of its body gave in it, by id.
    """
    lines = list(what_was_tested(config, loop.iterations, index, similarity=similarity, given=given))
    reason = loop.iterations[index].reason
    return "\n".join([*(f"{line[:1].upper()}{line[1:]}" for line in lines), *(("", reason) if reason else ())])


def given_in(workflow: Workflow, picture: RunPicture, registry: Registry, loop_id: str, place: str) -> dict[str, Value]:
    """What the nodes of a loop's body gave in one iteration (`loop[2]`), by id, as expressions see it."""
    found: dict[str, Value] = {}
    for node in workflow.nodes:
        execution = picture.nodes.get(f"{place}.{node.id}") if picture.parents.get(node.id) == loop_id else None
        spec = registry.find(node.type)
        if execution is not None and execution.outputs and spec is not None:
            found[node.id] = spec.recorded(dict(execution.outputs))
    return found
