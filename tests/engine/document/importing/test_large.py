"""Files as large as they may be are read at once: what is asked of each thing does not grow with all the others."""

from __future__ import annotations

import time
from itertools import pairwise

from engine.document.importing.canvas_paths import Wires
from engine.document.importing.report import Report
from engine.document.importing.values import Fields


def test_where_loops_end_is_found_at_once_on_a_canvas_of_many() -> None:
    count = 400
    kinds = {f"c{number}": "loop" if number % 2 else "llm" for number in range(count)}
    edges = [(f"c{number}", f"c{number + step}") for number in range(count - 5) for step in range(1, 6)]
    began = time.perf_counter()
    assert Wires(kinds, edges).ends == {}
    assert time.perf_counter() - began < 1.0


def test_loops_in_loops_end_at_their_own_exits() -> None:
    depth = 60
    starts, ends = [f"start{number}" for number in range(depth)], [f"end{number}" for number in range(depth)]
    way = [*starts, "work", *reversed(ends)]
    kinds = {**dict.fromkeys(starts, "loop"), "work": "llm", **dict.fromkeys(ends, "exit")}
    paths = Wires(kinds, list(pairwise(way)))
    assert paths.ends == dict(zip(starts, ends, strict=True))


def test_a_report_of_many_things_is_settled_at_once() -> None:
    report = Report()
    began = time.perf_counter()
    for number in range(3_000):
        fields = Fields({"model": "x", "colour": "red", "size": 3})
        fields.take("model")
        fields.take("size")
        report.carried(f"card {number}, model", "x.")
        report.settle(f"card {number}", fields)
    assert time.perf_counter() - began < 1.0
    assert [str(entry) for entry in report.entries[-3:]] == [
        "carried over: card 2999, model: x.",
        "left out: card 2999, size: Nothing was made of it.",
        "left out: card 2999, colour: Nothing here stands for it.",
    ]
