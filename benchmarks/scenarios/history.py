"""The cost of storing runs, compared with peers and with runs that are not stored, and of reading them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import Any
from unittest.mock import patch

from benchmarks.effort import Effort
from benchmarks.kept import Mode, keep_run, new_store
from benchmarks.peers import KEEPING_PEERS, PeersError, pinned, python_with
from benchmarks.processes import Contender, ContenderError
from benchmarks.tables import Table, aim, milliseconds, times
from benchmarks.timing import Span, Spans, measured, take_turns
from benchmarks.work import STEPS
from engine import events
from engine.models.protocol import Usage
from engine.runner.run_storage import RunHead
from engine.store import RunFilter, RunStatus, Store

_OURS = ("kept_ours_function", "kept_ours_llm")
_LANGGRAPHS = ("kept_langgraph", "kept_langgraph_async")
_CHARACTERS = 1_000
_MODES: tuple[Mode, ...] = ("replace", "append", "wired")
_APPENDED = 900
"""Length of a text if a thousand are joined, because a prompt may have at most a megabyte."""
_DELAY_S = 0.005
_OUTLINE = (events.RunStarted, events.LoopIterationStarted, events.LoopIterationCompleted, events.LoopCompleted)


def tables(effort: Effort) -> list[Table]:
    """Measure everything."""
    return [_beside_peers(effort), _growth(effort), _encodings(effort), _beside_no_store(effort), _reading(effort)]


def _beside_peers(effort: Effort) -> Table:
    names = {
        "kept_ours_function": "Loopwright, three function nodes",
        "kept_ours_llm": "Loopwright, three llm nodes",
        "kept_langgraph": "LangGraph, three functions, sync, SqliteSaver",
        "kept_langgraph_async": "LangGraph, three functions, async, SqliteSaver",
        "kept_burr": "Burr, three functions, SQLitePersister",
    }
    missing: dict[str, str] = {}
    rounds = min(effort.rounds, 3)
    with ExitStack() as stack:
        there: dict[str, Contender] = {}
        for name in (*_OURS, *(KEEPING_PEERS if effort.peers else ())):
            try:
                if name in _LANGGRAPHS:
                    python_with("langgraph")
                python = {"python": python_with(KEEPING_PEERS[name])} if name in KEEPING_PEERS else {}
                contender = stack.enter_context(Contender(name, **python))
                contender.wait_until_ready()
                contender.measure(min(effort.kept, 2))
            except (PeersError, ContenderError) as error:
                missing[name] = str(error)
            else:
                there[name] = contender
        spans = take_turns({name: partial(c.measure, effort.kept) for name, c in there.items()}, rounds)
    table = Table(
        f"History: {effort.kept:,} iterations of three nodes, all results stored, synchronous=FULL",
        ("Contender", "wall, best, ms", "CPU, best, ms", "kB on disk", "wall, × faster LangGraph", "target"),
    )
    langgraph = min((spans[name].wall_s for name in _LANGGRAPHS if name in spans), default=None)
    for name, there_spans in spans.items():
        part = there_spans.wall_s / langgraph if langgraph else None
        version = f" {pinned()[KEEPING_PEERS[name]]}" if name in KEEPING_PEERS else ""
        table.add(
            names[name] + version,
            milliseconds(there_spans.wall_s),
            milliseconds(there_spans.cpu_s),
            f"{_disk_bytes(there_spans) / 1e3:,.0f}",
            "–" if part is None else times(part),
            aim(round(part, 2), 0.25, " ×") if part is not None and name in _OURS else "–",
        )
    table.notes.extend(f"{names[name]} was not measured: {reason}." for name, reason in missing.items())
    table.notes.append(f"Rounds: {rounds}; {_CHARACTERS:,} fresh characters per node; one process per contender.")
    return table


def _disk_bytes(spans: Spans) -> int:
    return max(span.disk_bytes for span in spans.rounds)


def _growth(effort: Effort) -> Table:
    table = Table(
        "History: bytes and time as runs grow",
        (
            "Run",
            "iterations",
            "wall, ms per iteration",
            "CPU, ms per iteration",
            "kB on disk",
            "new text, kB",
            "disk to new text",
            "target",
        ),
    )
    for mode in _MODES:
        characters = _APPENDED if mode == "append" else _CHARACTERS
        for iterations in effort.kept_growth:
            if mode != "replace" and iterations > 1_000:
                continue
            with new_store() as (store, path):
                saved = keep_run(store, path, iterations, characters, mode)
            new = len(STEPS) * iterations * characters
            table.add(
                mode,
                f"{iterations:,}",
                milliseconds(saved.span.wall_s / iterations),
                milliseconds(saved.span.cpu_s / iterations),
                f"{saved.span.disk_bytes / 1e3:,.0f}",
                f"{new / 1e3:,.0f}",
                times(saved.span.disk_bytes / new),
                aim(round(saved.span.disk_bytes / new, 2), 2.0, " ×") if iterations >= 200 else "–",
            )
    return table


def _encodings(effort: Effort) -> Table:
    """Compare delta encoding with whole texts, stored once by hash and compressed with zstd."""
    table = Table(
        "History: delta encoding and whole texts",
        ("Run", "iterations", "delta: disk to new text", "whole: disk to new text", "whole to delta: disk", "CPU"),
    )
    for mode in _MODES[:2]:
        for iterations in effort.encodings:
            new = len(STEPS) * iterations * _APPENDED
            delta = _keep(iterations, mode)
            with patch("engine.store.sqlite.blobs.find_copies", return_value=[]):
                whole = _keep(iterations, mode)
            table.add(
                mode,
                f"{iterations:,}",
                times(delta.disk_bytes / new),
                times(whole.disk_bytes / new),
                times(whole.disk_bytes / delta.disk_bytes),
                times(whole.cpu_s / delta.cpu_s),
            )
    return table


def _keep(iterations: int, mode: Mode) -> Span:
    with new_store() as (store, path):
        return keep_run(store, path, iterations, _APPENDED, mode).span


def _beside_no_store(effort: Effort) -> Table:
    def saved() -> Any:
        with new_store() as (store, path):
            return keep_run(store, path, effort.kept, _CHARACTERS, delay_s=_DELAY_S).span

    turns: dict[str, Callable[[], Any]] = {
        "not kept": lambda: keep_run(None, None, effort.kept, _CHARACTERS, delay_s=_DELAY_S).span,
        "kept": saved,
    }
    spans = take_turns(turns, effort.rounds)
    table = Table(
        f"History: {effort.kept:,} iterations of three model calls of 5 ms each",
        ("Run", "wall, best, ms", "wall, median, ms", "× run that is not stored", "target"),
    )
    for name, there in spans.items():
        ratio = there.wall_s / spans["not kept"].wall_s
        table.add(
            name,
            milliseconds(there.wall_s),
            milliseconds(there.median_wall_s),
            times(ratio),
            aim(round(ratio, 2), 1.5, " ×") if name == "kept" else "–",
        )
    return table


def _reading(effort: Effort) -> Table:
    table = Table("History: reading", ("Operation", "count", "wall, best, ms", "CPU, best, ms", "target"))
    iterations = min(effort.iterations, 1_000)
    with new_store() as (store, path):
        run_id = keep_run(store, path, iterations, _CHARACTERS).run_id
        last = f"loop[{iterations - 1}]"
        work: dict[str, tuple[Callable[[], int], float | None]] = {
            f"outline of a run of {iterations:,} iterations": (
                lambda: sum(1 for _ in store.events(run_id, kinds=_OUTLINE, preview=200)),
                300.0,
            ),
            "its last iteration in full": (lambda: sum(1 for _ in store.events(run_id, level=last)), None),
            "all its events in full": (lambda: sum(1 for _ in store.events(run_id)), None),
        }
        _read(table, effort, work)
    with new_store() as (store, path):
        _fill(store, effort.runs)
        completed = RunFilter(workflow="refine", statuses=frozenset({RunStatus.COMPLETED}))
        _read(
            table,
            effort,
            {
                f"list of {effort.runs:,} runs": (lambda: len(store.runs(limit=effort.runs)), 300.0),
                "the first 100 of them": (lambda: len(store.runs(limit=100)), None),
                "the first 100 by name and state": (lambda: len(store.runs(completed, limit=100)), None),
                "their totals": (lambda: store.totals().count, None),
            },
        )
    return table


def _read(table: Table, effort: Effort, work: dict[str, tuple[Callable[[], int], float | None]]) -> None:
    for what, (read, most) in work.items():
        count = read()
        spans = Spans(tuple(measured(read) for _ in range(effort.rounds)))
        aimed = aim(round(spans.wall_s * 1e3, 1), most, " ms") if most is not None else "–"
        table.add(what, f"{count:,}", milliseconds(spans.wall_s), milliseconds(spans.cpu_s), aimed)


def _fill(store: Store, runs: int) -> None:
    """Store that many short runs."""
    journals = []
    for number in range(runs):
        run_id = f"{number:012x}"
        journal = store.begin(RunHead(run_id, "{}", {}, f"workflows/refine-{number % 20}.loop.json"))
        journal.write(events.RunStarted(run_id, 0, 1e9 + number, "", f"Refine {number % 20}", {}, ("m",)))
        journal.write(events.RunCompleted(run_id, 1, 1e9 + number + 9, "", {}, Usage(10, 20), 0.1, 9.0))
        journals.append(journal)
    for journal in journals:
        journal.close()
    store.delete([])
