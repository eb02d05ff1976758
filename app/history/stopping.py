"""What was tested after an iteration to decide whether another is made, in the words of the engine.

No Qt here.
"""

from __future__ import annotations

from collections.abc import Mapping

from engine.nodes.loop_config import LoopConfig
from engine.run_state.state import LoopExecution
from engine.store.stopping import what_was_tested
from engine.values import Value


def threshold(config: LoopConfig) -> float | None:
    """The similarity at which the loop stops; None where it stops for something else."""
    return None if config.stability is None else config.stability[0]


def findings(
    loop: LoopExecution,
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
