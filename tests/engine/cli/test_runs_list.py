"""`loopwright runs`: the list of stored runs."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from engine.models.protocol import Usage
from engine.runner.run_storage import RunHead
from engine.store import open_store
from tests.engine.cli.kit import Events, Program
from tests.wording import mentions


def keep(
    run_id: str,
    *,
    name: str = "Sample",
    day: int = 1,
    parent: str = "",
    only: str = "",
    end: str = "RunCompleted",
    **fields: Any,
) -> None:
    """Store a run that started on that day of 2026; a fork if it has a parent, or a partial run of one node."""
    place = only or ("loop[1]" if parent else "")
    part = {"extent": "only", "target": only} if only else {}
    began = (datetime(2026, 1, 1).astimezone() + timedelta(days=day - 1)).timestamp()
    event = Events()
    ended = {"outputs": {}, "usage": Usage(3, 4), "cost_usd": 0.5, "duration_s": 1.0}
    looped = {"iterations_run": 1, "exit_reason": "stable_output", "converged": True, "returned": 0}
    events = [
        event("RunStarted", workflow=name, inputs={}, models=("m",), parent=parent, forked_at=place, **part),
        event("LoopIterationStarted", "loop", index=0, total=3, input_preview=""),
        event.iteration("loop", 0, "x"),
        event("LoopCompleted", "loop", cost_usd=0.5, duration_s=1.0, **looped),
    ]
    if end == "RunFailed":
        ended |= {"error": "The key\nwas [red]refused[/red]\x1b[2J.", "remedy": "Set it.", "node": "loop[0].draft"}
    events += [event(end, **{**ended, **fields})] if end else []
    store = open_store()
    head = RunHead(run_id, "{}", {}, f"/home/{name}.loop.json", parent, place)
    store.import_run(head, [_dated(each, run_id, began) for each in events])
    store.close()


def _dated(event: Any, run_id: str, began: float) -> Any:
    from dataclasses import replace

    return replace(event, run_id=run_id, time=began + event.seq)


def ids(program: Program, *options: object) -> list[str]:
    listed = program("runs", "--json", *options)
    assert listed.code == 0
    return [run["run_id"] for run in listed.json["runs"]]


def test_an_empty_history_says_so(program: Program):
    assert (program("runs").out, program("runs").code) == ("The history is empty.\n", 0)
    assert program("runs", "--json").json == {"count": 0, "runs": []}


def test_runs_are_listed_newest_first(program: Program):
    keep("aaaa", day=1)
    keep("bbbb", day=2, name="Other", end="RunFailed")
    keep("cccc", day=3, end="")
    listed = program("runs")
    assert [line.split()[0] for line in listed.out.splitlines()] == ["Run", "cccc", "bbbb", "aaaa"]
    heads, third, second, first = listed.out.splitlines()
    assert heads.split("  ")[0] == "Run"
    assert first.split() == [
        "aaaa",
        "Sample",
        "completed",
        "2026-01-01",
        "00:00",
        "1",
        "7",
        "$0.50",
        *["the", "result", "stopped", "changing"],
    ]
    assert second.endswith("  The key was [red]refused[/red]\\x1b[2J.")
    assert "interrupted" in third
    assert listed.err == "3 runs: 14 tokens, $1.00.\n"


def test_filters(program: Program):
    keep("aaaa", day=1)
    keep("bbbb", day=2, name="Other", end="RunFailed")
    keep("cccc", day=3, end="RunCancelled")
    keep("dddd", day=4, parent="aaaa")
    assert ids(program, "--workflow", "OTH") == ["bbbb"]
    assert ids(program, "--status", "failed", "--status", "Cancelled") == ["cccc", "bbbb"]
    assert ids(program, "--since", "2026-01-03") == ["dddd", "cccc"]
    assert ids(program, "--until", "2026-01-02T00:00") == ["aaaa"]
    assert ids(program, "--since", "9d") == []
    assert ids(program, "--parent", "aa") == ["dddd"]
    assert ids(program, "--limit", 1) == ["dddd"]
    assert program("runs", "pin", "bb").out == "bbbb is pinned.\n"
    assert ids(program, "--pinned") == ["bbbb"]
    assert program("runs", "pin", "bb", "--off").out == "bbbb is no longer pinned.\n"
    assert ids(program, "--pinned") == []
    assert program("runs", "--status", "running").out == "No runs match.\n"
    assert program("runs", "--limit", 1).err.startswith("4 runs, 1 of them shown: ")


def test_tree_shows_forks_below_their_parents(program: Program):
    keep("aaaa", day=1)
    keep("bbbb", day=2, parent="aaaa")
    keep("cccc", day=3, parent="bbbb")
    keep("dddd", day=4, parent="aaaa")
    keep("eeee", day=5, parent="gone")
    drawn = [line.partition("  Sample")[0].rstrip() for line in program("runs", "--tree").out.splitlines()[1:]]
    assert drawn == ["eeee", "aaaa", "├─ bbbb", "│  └─ cccc", "└─ dddd"]


def test_tree_shows_partial_runs_as_siblings(program: Program):
    keep("aaaa", day=1)
    keep("bbbb", day=2, parent="aaaa", only="draft")
    keep("cccc", day=3, parent="bbbb", only="draft")
    keep("dddd", day=4, parent="cccc", only="draft")
    keep("eeee", day=5, parent="dddd")
    drawn = [line.partition("  Sample")[0].rstrip() for line in program("runs", "--tree").out.splitlines()[1:]]
    assert drawn == ["aaaa", "├─ bbbb", "├─ cccc", "└─ dddd", "   └─ eeee"]


def test_run_that_is_its_own_parent_is_listed(program: Program):
    keep("aaaa", parent="aaaa")
    keep("bbbb", day=2, parent="cccc")
    keep("cccc", day=3, parent="bbbb")
    drawn = [line.partition("  Sample")[0].rstrip() for line in program("runs", "--tree").out.splitlines()[1:]]
    assert drawn == ["cccc", "└─ bbbb", "aaaa"]


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["--status", "dead"], '"dead" is not … status … : running, paused, waiting, '),
        (["--since", "soon"], '"soon" is not … time … --since … 2026-11-28, '),
        (["--until", "99999999w"], '"99999999w" is not … time … --until'),
        (["--parent", "zz"], 'no run "zz"'),
        (["show", "zz"], 'no run "zz"'),
        (["show", "aaa"], 'Several … "aaa": aaab, aaaa.'),
    ],
)
def test_wrong_use_is_one_sentence(program: Program, arguments: list[str], parts: str):
    keep("aaaa", day=1)
    keep("aaab", day=2)
    ended = program("runs", *arguments)
    assert (ended.code, ended.out) == (2, "")
    assert mentions(ended.err, parts), ended.err
    assert ended.err.count("\n") == 1


def test_store_option_before_or_after_the_command(program: Program, tmp_path: Path):
    keep("aaaa")
    other = tmp_path / "other.sqlite3"
    assert program("runs", "--store", other).out == "The history is empty.\n"
    assert program("runs", "--store", other, "show", "aaaa").code == 2
    assert program("runs", "show", "aaaa", "--store", other).code == 2
    assert program("runs", "show", "aaaa").code == 0


def test_file_that_is_not_a_history_is_one_sentence(program: Program, tmp_path: Path):
    file = tmp_path / "notes.sqlite3"
    file.write_text("These are notes, and no database at all." * 100)
    ended = program("runs", "--store", file)
    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert "fault" not in ended.err


def test_delete_needs_yes_without_a_terminal(program: Program):
    keep("aaaa")
    keep("bbbb", day=2)
    refused = program("runs", "delete", "aa")
    assert refused.code == 2
    assert mentions(refused.err, "confirmation … no terminal … --yes"), refused.err
    assert ids(program) == ["bbbb", "aaaa"]
    assert program("runs", "delete", "aa", "zz", "--yes").code == 2
    assert ids(program) == ["bbbb", "aaaa"]
    assert program("runs", "delete", "aa", "aaaa", "--yes").out == "Deleted: aaaa.\n"
    assert ids(program) == ["bbbb"]


def test_vacuum_limits_delete_the_oldest_unpinned_runs(program: Program):
    for number, run_id in enumerate(("aaaa", "bbbb", "cccc"), 1):
        keep(run_id, day=number)
    program("runs", "pin", "aaaa")
    assert program("runs", "vacuum", "--keep", 2).out.startswith("1 run was deleted. ")
    assert ids(program) == ["cccc", "aaaa"]
    assert program("runs", "vacuum").out.startswith("0 bytes freed; ")
    assert program("runs", "vacuum", "--keep-mb", 0).out.startswith("1 run was deleted. ")
    assert ids(program) == ["aaaa"]


@pytest.mark.parametrize(
    "arguments", [("--limit", "99999999999999999999"), ("vacuum", "--keep-mb", "inf"), ("vacuum", "--keep-mb", "nan")]
)
def test_out_of_range_number_is_one_sentence(program: Program, arguments: tuple[str, ...]):
    ended = program("runs", *arguments)
    assert ended.code == 2
    assert f"Invalid value for '{arguments[-2]}'" in ended.err


@pytest.mark.parametrize(("limit", "reason"), [("0", "must be at least 1."), ("x", "must be a valid integer.")])
def test_reason_of_an_invalid_option_is_plain(program: Program, limit: str, reason: str):
    assert f"'--limit' / '-n': {reason}" in program("runs", "--limit", limit).err
