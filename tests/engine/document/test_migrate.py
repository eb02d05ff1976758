"""Migration of older versions of documents."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from engine.document.builder import Builder
from engine.document.files import dumps, loads
from engine.document.migrate import FIRST_VERSION, MIGRATIONS, migrate, stop_conditions_in_one_list
from engine.document.model import VERSION
from engine.values import Value


def titles_become_names(document: Mapping[str, Value]) -> dict[str, Value]:
    return {"name" if key == "title" else key: value for key, value in document.items()}


def names_become_upper_case(document: Mapping[str, Value]) -> dict[str, Value]:
    return {**document, "name": str(document["name"]).upper()}


@pytest.fixture
def two_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Migrations from versions 1 and 2 to version 3."""
    monkeypatch.setattr("engine.document.migrate.MIGRATIONS", {1: titles_become_names, 2: names_become_upper_case})
    monkeypatch.setattr("engine.document.migrate.VERSION", 3)


def test_a_migration_exists_for_each_older_version() -> None:
    assert set(MIGRATIONS) == set(range(FIRST_VERSION, VERSION))


@pytest.mark.usefixtures("two_steps")
def test_migrations_run_in_order_and_set_the_version() -> None:
    old: dict[str, Value] = {"format": "loopwright.workflow", "version": 1, "title": "flow"}
    new = migrate(old, "a")
    assert new == {"format": "loopwright.workflow", "version": 3, "name": "FLOW"}
    assert old == {"format": "loopwright.workflow", "version": 1, "title": "flow"}


@pytest.mark.usefixtures("two_steps")
def test_migrations_start_at_the_version_of_the_document() -> None:
    old: dict[str, Value] = {"format": "loopwright.workflow", "version": 2, "title": "t", "name": "flow"}
    assert migrate(old, "a")["title"] == "t"


@pytest.mark.usefixtures("two_steps")
def test_current_and_newer_versions_are_unchanged() -> None:
    for version in (3, 4):
        document: dict[str, Value] = {"format": "loopwright.workflow", "version": version, "title": "t"}
        assert migrate(document, "a") is document


UNTIL = {"condition": "until", "expression": "size(output) < 9"}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"exit_condition": "max_iterations", "max_iterations": 4}, {"max_iterations": 4}),
        ({"exit_condition": "evaluator", "evaluator": "check"}, {"stop_when": ["evaluator"], "evaluator": "check"}),
        (
            {"exit_condition": "stable_output", "stability_threshold": 0.9, "stability_patience": 2},
            {"stop_when": [{"condition": "stable_output", "threshold": 0.9, "patience": 2}]},
        ),
        ({"exit_condition": "judge", "stability_threshold": 0.9}, {"stop_when": ["judge"]}),
        ({"until": "size(output) < 9"}, {"stop_when": [UNTIL]}),
        ({"until": " ", "exit_condition": "judge"}, {"stop_when": ["judge"]}),
        ({"until": "size(output) < 9", "exit_condition": "judge"}, {"stop_when": [UNTIL, "judge"]}),
        (
            {"exit_conditions": [{"condition": "until", "until": "size(output) < 9", "threshold": 0.5}]},
            {"stop_when": [UNTIL]},
        ),
        (
            {"exit_conditions": [{"condition": "judge"}, {"condition": "plateau"}], "exit_when": "all"},
            {"stop_when": ["judge", "plateau"], "stop_mode": "all"},
        ),
        (
            {"until": "size(output) < 9", "exit_conditions": [{"condition": "judge"}], "exit_when": "all"},
            {"stop_when": [UNTIL, {"condition": "all_of", "conditions": ["judge"]}]},
        ),
        (
            {
                "exit_conditions": [
                    {"condition": "plugin", "plugin_condition": "at_least", "plugin_settings": {"words": 3}}
                ]
            },
            {"stop_when": [{"condition": "at_least", "words": 3}]},
        ),
        ({"exit_condition": "luck"}, {"stop_when": ["luck"]}),
        ({"exit_conditions": "many", "later": 1}, {"stop_when": "many", "later": 1}),
        ({"exit_conditions": [1, {"when": 2}]}, {"stop_when": [1, {"when": 2}]}),
        ({"stop_when": ["judge"], "until": "x"}, {"stop_when": ["judge"], "until": "x"}),
    ],
)
def test_loop_of_version_1_gets_one_list_of_conditions(old: dict[str, Any], new: dict[str, Any]) -> None:
    def full(value: Any) -> Any:
        if isinstance(value, list):
            return [{"condition": one} if isinstance(one, str) else full(one) for one in value]
        return {key: full(part) for key, part in value.items()} if isinstance(value, dict) else value

    old = {**old, "stop_when": full(old["stop_when"])} if "stop_when" in old else old
    assert stop_conditions_in_one_list(old) == full(new)


def old_file(config: dict[str, Any], version: int = 1) -> dict[str, Any]:
    loop = {"id": "loop", "type": "loop", "config": config}
    return {"format": "loopwright.workflow", "version": version, "nodes": [loop], "edges": []}


def test_old_file_is_saved_in_the_current_version_including_subflows() -> None:
    inner = old_file({"exit_condition": "judge", "unknown": 1})
    outer = old_file({"until": "true"})
    outer["nodes"].append({"id": "part", "type": "subflow", "config": {"file": "a.loop.json", "workflow": inner}})

    saved = json.loads(dumps(loads(json.dumps(outer))))

    assert saved["version"] == VERSION
    loop, part = saved["nodes"]
    assert loop["config"] == {"stop_when": [{"condition": "until", "expression": "true"}]}
    assert part["config"]["workflow"]["version"] == VERSION
    assert part["config"]["workflow"]["nodes"][0]["config"] == {"stop_when": [{"condition": "judge"}], "unknown": 1}


def test_builder_accepts_settings_of_earlier_versions() -> None:
    flow = Builder()
    flow.add("loop", id="loop", exit_condition="evaluator")
    assert flow.build().node("loop").config == {"stop_when": [{"condition": "evaluator"}]}
