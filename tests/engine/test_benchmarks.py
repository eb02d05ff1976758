"""The benchmarks run and do the work that they measure. Nothing here is about speed, and no peer takes part."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import pytest

from benchmarks import work
from benchmarks.__main__ import SCENARIOS, main
from benchmarks.effort import SMALLEST
from benchmarks.install import WAYS, listed_packages
from benchmarks.processes import ROOT, Contender, ContenderError
from benchmarks.tables import Table, aim
from benchmarks.timing import Span, Stopwatch, take_turns
from benchmarks.workflows import loops_of_ten
from engine import validate

CONTENDERS = ("bare", "ours_function", "ours_llm", "ours_llm_read")


def test_the_command_lists_its_scenarios():
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "--list"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert [line.split()[0] for line in done.stdout.splitlines()] == list(SCENARIOS)


def test_a_scenario_that_does_not_exist_is_refused(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["loop_overhed"])
    assert stopped.value.code == 2
    assert "loop_overhed" in capsys.readouterr().err


@pytest.mark.parametrize("name", WAYS)
def test_a_way_to_install_follows_the_readme(name):
    way, readme = WAYS[name], " ".join((ROOT / "README.md").read_text("utf-8").split())
    commands = [each for each in (*way.commands, way.window, *(way.packages or ())) if each != "pipx install uv"]
    assert [each for each in commands if each not in readme] == []
    assert way.built_by in {"", *WAYS}
    assert set(way.without) <= set(listed_packages())


def test_the_program_is_started_as_it_was_installed():
    assert {name: way.program for name, way in WAYS.items()} == {
        "pip": "~/loopwright-env/bin/loopwright",
        "pipx": "loopwright",
        "uv": "loopwright",
        "make": "",
        "build": "",
        "bundle": "~/loopwright/loopwright",
        "deb": "loopwright",
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENARIOS)
def test_every_scenario_runs_and_fills_its_tables(name):
    for table in import_module(f"benchmarks.scenarios.{name}").tables(SMALLEST):
        assert table.rows
        assert all(len(row) == len(table.columns) and all(row) for row in table.rows)


@pytest.mark.parametrize("name", CONTENDERS)
def test_every_contender_runs_three_steps_per_iteration(name):
    assert import_module(f"benchmarks.contenders.{name}").run(2, Stopwatch()) == "ghijklmabcdef" == work.after(6)


def test_a_contender_that_cannot_be_loaded_says_why():
    with Contender("nobody") as contender, pytest.raises(ContenderError, match=r"benchmarks\.contenders\.nobody"):
        contender.wait_until_ready()


def test_contenders_take_turns():
    order: list[str] = []

    def contender(name: str) -> Span:
        order.append(name)
        return Span(len(order), 10 - len(order))

    spans = take_turns({name: lambda name=name: contender(name) for name in "AB"}, 2)
    assert order == ["A", "B", "A", "B"]
    assert (spans["A"].wall_s, spans["A"].cpu_s, spans["B"].median_wall_s) == (1, 7, 3)


def test_the_large_document_has_its_size_and_no_problem():
    workflow = loops_of_ten(1_000, 1_500)
    assert (len(workflow.nodes), len(workflow.edges)) == (998, 1_500)
    assert validate(workflow) == []


def test_a_table_is_aligned_markdown():
    table = Table("T", ("Name", "µs"), notes=["Note."])
    table.add("a", "12.5")
    assert table.text() == "## T\n\n| Name |   µs |\n| ---- | ---: |\n| a    | 12.5 |\n\nNote."


def test_a_target_reports_whether_it_was_met():
    assert (aim(5.0, 5.0, " ms"), aim(5.1, 5.0, " ms")) == ("≤ 5 ms: met", "≤ 5 ms: missed")
