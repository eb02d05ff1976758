"""The largest allowed files are imported; what searched all paths would never end."""

from __future__ import annotations

from itertools import pairwise

from engine.importing.reactflow import BodyEnds
from engine.importing.report import FieldReader, ImportReport


def test_a_canvas_with_very_many_paths_ends() -> None:
    count = 400
    kinds = {f"c{number}": "loop" if number % 2 else "llm" for number in range(count)}
    edges = [(f"c{number}", f"c{number + step}") for number in range(count - 5) for step in range(1, 6)]
    assert BodyEnds(kinds, edges).of_start == {}


def test_nested_loops_end_at_their_own_exits() -> None:
    depth = 60
    starts, ends = [f"start{number}" for number in range(depth)], [f"end{number}" for number in range(depth)]
    way = [*starts, "work", *reversed(ends)]
    kinds = {**dict.fromkeys(starts, "loop"), "work": "llm", **dict.fromkeys(ends, "exit")}
    paths = BodyEnds(kinds, list(pairwise(way)))
    assert paths.of_start == dict(zip(starts, ends, strict=True))


def test_a_large_report_keeps_the_order() -> None:
    report = ImportReport()
    for number in range(3_000):
        fields = FieldReader({"model": "x", "color": "red", "size": 3}, report, f"node {number}")
        fields.pop("model")
        fields.pop("size")
        report.carried_over(f"node {number}, model", "x.")
        fields.report_rest()
    assert [str(entry) for entry in report.entries[-3:]] == [
        "carried over: node 2999, model: x.",
        "left out: node 2999, size: It has no effect here.",
        "left out: node 2999, color: It has no counterpart here.",
    ]
