"""What is kept of an iteration, and what a loop makes of its iterations in the end."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from engine.events import LoopIterationCompleted
from engine.expr import Record
from engine.models.base import Usage
from engine.runner.loop_scope import GivenByNodes
from engine.values import Value, to_text


def _no_values() -> dict[str, Value]:  # calling `dict[...]` itself takes ten times as long
    return {}


@dataclass(slots=True)
class IterationRecord:
    """One iteration that has ended; the fields are those of `LoopIterationCompleted`, in its order."""

    index: int
    input: Value
    result: Value
    feedback: Value
    branch: str | None
    reason: str | None
    score: float | None
    similarity: float | None
    usage: Usage
    cost_usd: float | None
    duration_s: float
    warnings: tuple[str, ...] = ()
    tested: dict[str, Value] = field(default_factory=_no_values)
    nodes: dict[str, Value] = field(default_factory=_no_values)

    def fields(self) -> tuple[Any, ...]:
        """All fields, in order."""
        return (
            self.index,
            self.input,
            self.result,
            self.feedback,
            self.branch,
            self.reason,
            self.score,
            self.similarity,
            self.usage,
            self.cost_usd,
            self.duration_s,
            self.warnings,
            self.tested,
            self.nodes,
        )


def record_json(record: IterationRecord) -> dict[str, Value]:
    """The record in the output port `iterations`."""
    return {**_listed_fields(record), "nodes": record.nodes}


def history_entry(record: IterationRecord | LoopIterationCompleted) -> Record:
    """The record in `loop.history`."""
    return Record(_listed_fields(record), nodes=record.nodes)


def _listed_fields(record: IterationRecord | LoopIterationCompleted) -> dict[str, Value]:
    return {  # the names and the order of `RECORD_MEMBERS`, without `nodes`
        "index": record.index,
        "input": record.input,
        "result": record.result,
        "feedback": record.feedback,
        "branch": record.branch,
        "reason": record.reason,
        "score": record.score,
        "similarity": record.similarity,
        "cost_usd": record.cost_usd,
        "duration_s": record.duration_s,
        "warnings": list(record.warnings),
    }


def loop_output(
    mode: Literal["final", "last_iteration", "all_iterations"],
    chosen: IterationRecord,
    records: list[IterationRecord],
    given: GivenByNodes,
) -> Value:
    """What comes out of a loop.

    Args:
        mode: `final`: the chosen result. `last_iteration`: what every body node gave in it, by id. `all_iterations`:
            every result, as one text with a heading each, or as a list where one is no text.
        chosen: The iteration that is returned.
        records: All iterations.
        given: What the body's nodes gave in the chosen one.
    """
    if mode == "final":
        return chosen.result
    if mode == "last_iteration":
        return given.all()
    results = [record.result for record in records]
    if all(result is None or isinstance(result, str) for result in results):
        return "\n".join(f"--- iteration {number} ---\n{to_text(result)}" for number, result in enumerate(results, 1))
    return results
