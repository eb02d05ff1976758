"""Validation and planning of a large document."""

from __future__ import annotations

from functools import partial

from benchmarks.effort import Effort
from benchmarks.tables import Table, milliseconds
from benchmarks.timing import measured, take_turns
from benchmarks.workflows import loops_of_ten
from engine import dumps, loads, validate
from engine.plan.compiler import compile_workflow


def tables(effort: Effort) -> list[Table]:
    """Measure a document whose nodes are in loops of ten."""
    workflow = loops_of_ten(effort.nodes, effort.edges)
    problems = validate(workflow)
    if problems:
        raise RuntimeError(f"The document has problems; the first: {problems[0]}")
    text = dumps(workflow)
    turns = {
        "read from text": partial(measured, partial(loads, text)),
        "validate": partial(measured, partial(validate, workflow)),
        "validate and plan": partial(measured, partial(compile_workflow, workflow)),
    }
    take_turns(turns, 1)  # warms up and does not count
    spans = take_turns(turns, effort.rounds)
    table = Table(
        f"A document of {len(workflow.nodes):,} nodes and {len(workflow.edges):,} edges in loops of ten, ms",
        ("Work", "CPU, best", "CPU, median", "wall, best", "wall, median"),
    )
    for name, there in spans.items():
        figures = (there.cpu_s, there.median_cpu_s, there.wall_s, there.median_wall_s)
        table.add(name, *map(milliseconds, figures))
    return [table]
