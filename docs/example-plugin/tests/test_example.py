"""The plugin is enabled like a user would enable it, and run through the library."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from engine.extensions import enable_plugin, installed_plugins
from engine.importing.importers import importers
from engine.importing.reader import import_text
from engine.models.catalog import Models
from loopwright import Builder, RunOptions, RunResult, Workflow, run, validate


@pytest.fixture(autouse=True)
def _enabled() -> None:
    enable_plugin("example")


def workflow(node: str, config: Mapping[str, Any]) -> Workflow:
    """A workflow of one node between an input and an output."""
    builder = Builder("Sample")
    builder.add("input", id="text")
    builder.add(node, id="node", config=dict(config))
    builder.add("output", id="out")
    builder.connect("text.value", "node.input")
    builder.connect("node.output", "out.value")
    return builder.build()


async def result(made: Workflow, text: str) -> RunResult:
    return await run(made, {"text": text}, RunOptions(model="echo:loud", models=Models()))


def test_it_is_installed_and_enabled() -> None:
    (plugin,) = [one for one in installed_plugins() if one.name == "example"]
    assert (plugin.package, plugin.is_enabled) == ("loopwright-example 1.0.0", True)


async def test_the_node_shortens() -> None:
    ended = await result(workflow("shorten", {"words": 2}), "one two three")
    assert ended.outputs == {"out": "one two"}


async def test_the_model_speaks_loudly() -> None:
    ended = await result(workflow("llm", {"prompt": "say {{input}}"}), "hello")
    assert ended.outputs == {"out": "SAY HELLO"}


async def test_the_turn_strategy_asks_once_more() -> None:
    ended = await result(workflow("agent", {"prompt": "{{input}}", "turn_strategy": "once_more"}), "hello")
    assert ended.outputs == {"out": "ARE YOU SURE? ANSWER ONCE MORE."}


async def test_the_tool_counts() -> None:
    builder = Builder("Sample")
    builder.add("input", id="text")
    builder.add("tool", id="count", config={"tool": "word_count"})
    builder.add("output", id="out")
    builder.connect("text.value", "count.text")
    builder.connect("count.output", "out.value")
    assert (await result(builder.build(), "one two three")).outputs == {"out": 3}


def loop(settings: Mapping[str, Any]) -> Workflow:
    """A loop that adds a word in each iteration."""
    condition = {"condition": "at_least", **settings}
    builder = Builder("Sample")
    builder.add("input", id="text")
    builder.add("loop", id="loop", config={"max_iterations": 9, "stop_when": [condition]})
    builder.add("transform", id="longer", config={"template": "{{input}} word"})
    builder.add("exit", id="exit")
    builder.add("output", id="out")
    for start, end in (("text.value", "loop.input"), ("loop.body", "longer.input"), ("longer.output", "exit.input")):
        builder.connect(start, end)
    builder.connect("exit.output", "out.value")
    return builder.build()


async def test_the_condition_stops_the_loop() -> None:
    ended = await result(loop({"words": 4}), "one")
    assert ended.outputs == {"out": "one word word word"}
    assert ended.loops["loop"].exit_reason == "at_least"
    assert [record.tested for record in ended.loops["loop"].iterations] == [{"at_least": n} for n in (2, 3, 4)]


def test_settings_that_do_not_fit_are_a_problem_before_the_run() -> None:
    (problem,) = validate(loop({}))
    assert (problem.code, problem.field) == ("bad-config", "stop_when.0.words")


async def test_the_importer_converts_its_example() -> None:
    (importer,) = [spec for spec in importers() if spec.name == "prompt-list"]
    imported = import_text(importer.example)
    assert imported.importer is importer
    assert validate(imported.workflow) == []
    ended = await result(imported.workflow, "tea")
    assert ended.outputs == {"result": "MAKE IT SHORTER.\n\nWRITE ABOUT THIS.\n\nTEA"}
