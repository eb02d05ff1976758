"""Exit conditions and models of plugins where they go wrong."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from engine import validate
from engine.exits.base import EndedIteration, ExitCondition
from engine.models import model_names as added_models
from engine.models.base import ModelError
from engine.models.catalogue import Models
from engine.nodes import added_conditions
from engine.nodes.added_conditions import AddedCondition, add_condition
from engine.values import Value
from tests.engine.semantics.documents import entry, flow, leave, loop, result, transform
from tests.engine.semantics.kit import play


@pytest.fixture(autouse=True)
def _nothing_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(added_conditions, "_CONDITIONS", {})
    monkeypatch.setattr(added_models, "_MAKERS", {})


class Broken(ExitCondition):
    name = "broken"

    def reason(self, iteration: EndedIteration) -> str | None:
        raise ZeroDivisionError(f"secret of iteration {iteration.index}")


class After(ExitCondition):
    """Stops after so many iterations."""

    name = "after"

    def __init__(self, count: int) -> None:
        self._count = count

    def reason(self, iteration: EndedIteration) -> str | None:
        return self.name if iteration.index + 1 == self._count else None


def looping(name: str, **settings: Value) -> Any:
    listed = [{"condition": "plugin", "plugin_condition": name, "plugin_settings": settings}]
    parts = (entry(), loop(max_iterations=3, exit_conditions=listed), transform("same"), leave(), result())
    return flow(*parts, edges="text -> loop -> same -> exit -> out")


def test_a_condition_that_is_not_there_is_a_problem_before_the_run() -> None:
    (problem,) = [one for one in validate(looping("absent")) if one.code == "unknown-condition"]
    assert problem.message == 'There is no exit condition "absent".'
    assert problem.field == "exit_conditions.0.plugin_condition"


@pytest.mark.parametrize("count", [1, 2])
async def test_a_condition_is_made_of_its_settings_and_is_the_reason_that_the_loop_stopped(count: int) -> None:
    add_condition(AddedCondition("after", "After", "Counts.", lambda settings: After(int(str(settings["count"])))))
    played = await play(looping("after", count=count), "")
    assert (played.loop.iterations_run, played.loop.exit_reason) == (count, "after")


async def test_a_condition_that_fails_ends_the_loop_as_an_error_that_says_whose() -> None:
    add_condition(AddedCondition("broken", "Broken", "Fails.", lambda _settings: Broken()))
    played = await play(looping("broken"), "", ends="failed")
    assert 'The plugin\'s exit condition "broken" failed: ZeroDivisionError.' in str(played.result.error)
    assert "secret" not in str(played.result.error)


class Says(ExitCondition):
    """Gives whatever it is told to, as a plugin may by mistake."""

    name = "says"

    def __init__(self, reason: Any, tested: Any) -> None:
        self._reason, self._tested = reason, tested

    def reason(self, iteration: EndedIteration) -> str | None:
        return self._reason  # type: ignore[no-any-return]

    def tested(self, iteration: EndedIteration) -> Value:
        return self._tested  # type: ignore[no-any-return]


@pytest.mark.parametrize(("reason", "tested"), [(False, 1), (True, 1), (3, 1), (None, {1, 2}), (None, float("nan"))])
async def test_a_condition_that_gives_no_reason_or_no_json_value_ends_the_loop_as_an_error(
    reason: Any, tested: Any
) -> None:
    add_condition(AddedCondition("says", "Says", "", lambda _settings: Says(reason, tested)))
    played = await play(looping("says"), "", ends="failed")
    assert 'The plugin\'s exit condition "says" gave' in str(played.result.error)


@pytest.mark.parametrize("made", [3, ZeroDivisionError()])
def test_what_makes_no_condition_is_told(made: Any) -> None:
    def make(_settings: Mapping[str, Value]) -> Any:
        if isinstance(made, Exception):
            raise made
        return made

    add_condition(AddedCondition("odd", "Odd", "Is none.", make))
    codes = [problem.code for problem in validate(looping("odd"))]
    assert ("plugin-failed" in codes) is isinstance(made, Exception)


def test_a_name_is_taken_once() -> None:
    add_condition(AddedCondition("one", "One", "", lambda _settings: Broken()))
    with pytest.raises(ValueError, match="there is an exit condition 'one' already"):
        add_condition(AddedCondition("one", "Other", "", lambda _settings: Broken()))
    added_models.add_models("mine", lambda _name: 1 / 0)  # type: ignore[arg-type, return-value]
    for prefix in ("mine", "embedded", "No"):
        with pytest.raises(ValueError, match="prefix"):
            added_models.add_models(prefix, lambda _name: None)  # type: ignore[arg-type, return-value]
    with pytest.raises(ModelError, match=r"could not make 'x' \(ZeroDivisionError\)"):
        Models().get("mine:x")
