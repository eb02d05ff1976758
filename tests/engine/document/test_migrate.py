"""From older forms of a document to the present one."""

from __future__ import annotations

from collections.abc import Mapping

from engine.document.migrate import FIRST_VERSION, MIGRATIONS, migrate
from engine.document.model import VERSION
from engine.values import Value


def titles_become_names(document: Mapping[str, Value]) -> dict[str, Value]:
    return {"name" if key == "title" else key: value for key, value in document.items()}


def names_become_upper_case(document: Mapping[str, Value]) -> dict[str, Value]:
    return {**document, "name": str(document["name"]).upper()}


STEPS = {1: titles_become_names, 2: names_become_upper_case}


def test_there_is_a_migration_for_each_version_before_the_present_one() -> None:
    assert set(MIGRATIONS) == set(range(FIRST_VERSION, VERSION))


def test_each_step_is_taken_in_turn_and_the_version_is_set() -> None:
    old: dict[str, Value] = {"format": "loopwright.workflow", "version": 1, "title": "flow"}
    new = migrate(old, "a", migrations=STEPS, current=3)
    assert new == {"format": "loopwright.workflow", "version": 3, "name": "FLOW"}
    assert old == {"format": "loopwright.workflow", "version": 1, "title": "flow"}


def test_the_steps_begin_at_the_version_of_the_document() -> None:
    old: dict[str, Value] = {"format": "loopwright.workflow", "version": 2, "title": "t", "name": "flow"}
    assert migrate(old, "a", migrations=STEPS, current=3)["title"] == "t"


def test_the_present_and_a_newer_version_pass_untouched() -> None:
    for version in (3, 4):
        document: dict[str, Value] = {"format": "loopwright.workflow", "version": version, "title": "t"}
        assert migrate(document, "a", migrations=STEPS, current=3) is document
