"""docs/workflow-file.md is correct: its example, its tables and its problems."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from engine import loads, run_blocking, validate
from engine.document.files import MAX_BYTES
from engine.document.model import Settings, Workflow
from engine.document.problems import MAX_DEPTH
from engine.exits import MAX_ITERATIONS_CAP
from engine.exits.loop_conditions import condition_specs
from engine.expr import compile_expression, compile_template
from engine.expr.functions import FUNCTIONS
from engine.expr.scope import MAX_EXPRESSION_LENGTH, MAX_TEMPLATE_BYTES
from engine.nodes.loop import LoopConfig
from engine.nodes.spec import PortType
from engine.plan.validation import LOOP_MEMBERS
from engine.runner.options import RunOptions
from tests.architecture.markdown import blocks, read

PAGE = "docs/workflow-file.md"
_VALUE = {"title": "Rain", "words": ["a", "bb", "ccc"]}


def _example() -> str:
    (block,) = [block for block in blocks(PAGE) if block.language == "json"]
    return block.text


def _section(title: str) -> str:
    return re.split(r"^## ", read(PAGE).partition(f"\n## {title}\n")[2], maxsplit=1, flags=re.MULTILINE)[0]


def _rows(title: str) -> list[list[str]]:
    """The cells of a section's tables, without headers."""
    lines = [line for line in _section(title).splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines if not line.startswith("| ---")]


def _pairs(title: str) -> list[tuple[str, str]]:
    """The rows of a section's table with two columns of code."""
    found = [re.fullmatch(r"\| `(.+)` \| `(.+)` \|", line) for line in _section(title).splitlines()]
    return [(match[1], match[2]) for match in found if match]


def _first_column(title: str) -> set[str]:
    return {name for row in _rows(title) for name in re.findall(r"`([^`]+)`", row[0])}


def test_the_example_has_no_problem():
    assert validate(loads(_example())) == []


def test_the_example_runs_until_the_text_is_short(tmp_path: Path):
    replies = {"rules": [{"node": "shorten", "iteration": 0, "reply": "word " * 20}], "default": "Rain."}
    (tmp_path / "replies.json").write_text(json.dumps(replies), encoding="utf-8")
    options = RunOptions(model=f"scripted:{tmp_path / 'replies.json'}")

    result = run_blocking(loads(_example()), {"text": "It rains."}, options)

    assert result.outputs == {"short": "Rain."}
    assert (result.loops["loop"].iterations_run, result.loops["loop"].exit_reason) == (2, "evaluator_done")


def test_the_problems_match_the_command(tmp_path: Path):
    broken = _example().replace('"max_iterations": 4', '"max_iterations": 60').replace("{{input}}", "{{inptu}}")
    (tmp_path / "shorten.loop.json").write_text(broken, encoding="utf-8")
    (example,) = [block for block in blocks(PAGE) if block.language == "text"]

    done = subprocess.run(
        [sys.executable, "-m", "engine.cli.main", "validate", "shorten.loop.json"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "COLUMNS": "300"},
    )

    assert (done.stdout, done.returncode) == (example.text, 2)


@pytest.mark.parametrize(("template", "outcome"), _pairs("Templates"))
def test_every_template_gives_what_the_table_says(template: str, outcome: str):
    assert compile_template(template).render({"input": _VALUE}) == outcome


@pytest.mark.parametrize(("expression", "outcome"), _pairs("Expressions"))
def test_every_expression_gives_what_the_table_says(expression: str, outcome: str):
    assert compile_expression(expression).evaluate({"input": _VALUE}) == json.loads(outcome)


def test_the_tables_have_examples():
    assert len(_pairs("Templates")) >= 4
    assert len(_pairs("Expressions")) >= 6


def test_the_example_value_matches_the_page():
    assert f"`{json.dumps(_VALUE)}`" in _section("Templates")


def test_all_functions_are_listed():
    listed = _section("Expressions").partition("Functions:")[2].partition("; and over lists")[0]
    assert set(re.findall(r"`(\w+)`", listed)) == set(FUNCTIONS)


def test_all_settings_are_listed():
    assert set(Settings.model_fields) <= _first_column("Settings")


def test_all_top_level_keys_are_listed():
    assert set(Workflow.model_fields) == _first_column("File structure")


def test_all_port_types_are_listed():
    sentence = _section("File structure").partition("**Port types**")[2].partition(".")[0]
    assert set(re.findall(r"`(\w+)`", sentence)) == {str(kind) for kind in PortType}


def test_all_loop_names_are_listed():
    assert {name.split(".")[1] for name in _first_column("Names in texts")} == LOOP_MEMBERS


@pytest.mark.parametrize("field", ["feedback_mode", "on_max_iterations"])
def test_all_loop_choices_are_listed(field: str):
    choices = LoopConfig.model_fields[field].annotation.__args__
    assert [choice for choice in choices if f"`{choice}`" not in _section("Loops")] == []


def test_all_conditions_are_listed_with_their_settings_and_exit_reasons():
    rows = {row[0].strip("`"): row for row in _rows("Loops") if row[0].strip("`") in condition_specs()}
    assert list(rows) == list(condition_specs())
    for name, spec in condition_specs().items():
        assert set(re.findall(r"`(\w+)`", rows[name][2])) == set(spec.config.model_fields)
        assert name == "all_of" or rows[name][3] == f"`{spec.reason}`"


def test_the_limits_match_the_program():
    page = read(PAGE)
    assert (MAX_BYTES, MAX_DEPTH, MAX_TEMPLATE_BYTES) == (20_000_000, 200, 1_000_000)
    assert f"at most {MAX_EXPRESSION_LENGTH:,} characters" in page
    assert LoopConfig().max_iterations == 5
    assert f"(5 if left out, {MAX_ITERATIONS_CAP} at the most)" in page
