"""Overhead of the engine per iteration: three instant nodes in a loop, compared with a bare loop and three peers."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial

from benchmarks.effort import Effort
from benchmarks.peers import PEERS, PeersError, pinned, python_with
from benchmarks.processes import Contender, ContenderError
from benchmarks.tables import Table, aim, microseconds, times
from benchmarks.timing import Spans, take_turns

BARE = "bare"
BURR = "peer_burr"
OURS = ("ours_function", "ours_llm", "ours_llm_read")
NAMES = {
    BARE: "Python while loop",
    "ours_function": "Loopwright, three function nodes",
    "ours_llm": "Loopwright, three llm nodes",
    "ours_llm_read": "Loopwright, three llm nodes, events read by a callback",
    BURR: "Burr",
    "peer_langgraph": "LangGraph",
    "peer_adk": "Google ADK LoopAgent",
}
_PART_OF_BURR = {"ours_function": 1 / 3, "ours_llm": 1 / 2, "ours_llm_read": 1 / 2}


def tables(effort: Effort) -> list[Table]:
    """Measure every contender in turn."""
    missing: dict[str, str] = {}
    with ExitStack() as stack:
        there = _ready(effort, stack, missing)
        for name, contender in list(there.items()):
            try:
                contender.measure(effort.iterations)  # a first round that warms up and does not count
            except ContenderError as error:
                missing[name] = str(error)
                del there[name]
        turns = {name: partial(contender.measure, effort.iterations) for name, contender in there.items()}
        spans = take_turns(turns, effort.rounds)
    return [_table(effort, spans, missing)]


def _ready(effort: Effort, stack: ExitStack, missing: dict[str, str]) -> dict[str, Contender]:
    """The contenders that can be measured; reasons for the others go into `missing`."""
    there: dict[str, Contender] = {}
    for name in (BARE, *OURS, *(PEERS if effort.peers else ())):
        try:
            python = {"python": python_with(PEERS[name])} if name in PEERS else {}
            contender = stack.enter_context(Contender(name, **python))
            contender.wait_until_ready()
        except (PeersError, ContenderError) as error:
            missing[name] = str(error)
        else:
            there[name] = contender
    return there


def _table(effort: Effort, spans: dict[str, Spans], missing: dict[str, str]) -> Table:
    count = effort.iterations
    table = Table(
        f"Loop overhead: three instant nodes, {count:,} iterations, µs per iteration",
        ("Contender", "CPU, best", "CPU, median", "wall, best", "wall, median", "× bare loop", "× Burr", "target"),
    )
    bare, burr = spans[BARE], spans.get(BURR)
    for name, there in spans.items():
        figures = (there.cpu_s, there.median_cpu_s, there.wall_s, there.median_wall_s)
        part = there.cpu_s / burr.cpu_s if burr else None
        table.add(
            _label(name),
            *(microseconds(figure, count) for figure in figures),
            times(there.cpu_s / bare.cpu_s),
            "–" if part is None else times(part),
            aim(round(part, 2), round(_PART_OF_BURR[name], 2), " × Burr") if part is not None and name in OURS else "–",
        )
    for name, reason in missing.items():
        table.add(_label(name), *["–"] * (len(table.columns) - 1))
        table.notes.append(f"{NAMES[name]} was not measured: {reason}.")
    table.notes.append(
        f"Rounds in turn: {effort.rounds}; one process per contender; without building, compiling and planning. "
        "Ratios are of the best CPU times."
    )
    return table


def _label(name: str) -> str:
    return f"{NAMES[name]} {pinned()[PEERS[name]]}" if name in PEERS else NAMES[name]
