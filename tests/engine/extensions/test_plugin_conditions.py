"""Faulty exit conditions and models of plugins."""

from __future__ import annotations

from typing import Any

import pytest

from engine import validate
from engine.exits import loop_conditions
from engine.exits.condition import ConditionConfig, ConditionSpec, EndedIteration, ExitCondition
from engine.exits.loop_conditions import add_condition, condition_specs
from engine.models import catalog as added_models
from engine.models.catalog import Models
from engine.models.protocol import ModelError
from engine.values import Value
from tests.engine.semantics.documents import entry, flow, leave, loop, result, transform
from tests.engine.semantics.kit import play


@pytest.fixture(autouse=True)
def _nothing_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_conditions, "_SPECS", dict(condition_specs()))
    monkeypatch.setattr(added_models, "_MAKERS", {})


class Broken(ExitCondition):
    def reason(self, iteration: EndedIteration) -> str | None:
        raise ZeroDivisionError(f"secret of iteration {iteration.index}")


class After(ExitCondition):
    """Stops after a number of iterations."""

    def __init__(self, count: int) -> None:
        self._count = count

    def reason(self, iteration: EndedIteration) -> str | None:
        return "after" if iteration.index + 1 == self._count else None


class AnySettings(ConditionConfig):
    count: int = 1


def spec(name: str, make: Any, **fields: Any) -> ConditionSpec[Any]:
    return ConditionSpec(name, name, "", AnySettings, make, lambda _config, _evidence: name, **fields)


def looping(name: str, **settings: Value) -> Any:
    listed = [{"condition": name, **settings}]
    parts = (entry(), loop(max_iterations=3, stop_when=listed), transform("same"), leave(), result())
    return flow(*parts, edges="text -> loop -> same -> exit -> out")


def test_an_unknown_condition_is_a_problem() -> None:
    (problem,) = [one for one in validate(looping("absent")) if one.code == "unknown-condition"]
    assert problem.message == 'There is no exit condition "absent".'
    assert problem.field == "stop_when.0.condition"


@pytest.mark.parametrize("count", [1, 2])
async def test_a_plugins_condition_gets_its_settings_and_stops_the_loop(count: int) -> None:
    add_condition(spec("after", lambda config: After(config.count)))
    played = await play(looping("after", count=count), "")
    assert (played.loop.iterations_run, played.loop.exit_reason) == (count, "after")


async def test_a_failing_condition_ends_the_loop_with_an_error_that_names_it() -> None:
    add_condition(spec("broken", lambda _config: Broken()))
    played = await play(looping("broken"), "", ends="failed")
    assert 'The exit condition "broken" failed: ZeroDivisionError.' in str(played.result.error)
    assert "secret" not in str(played.result.error)


class Says(ExitCondition):
    """Returns any values, as a plugin may by mistake."""

    def __init__(self, reason: Any, tested: Any) -> None:
        self._reason, self._tested = reason, tested

    def reason(self, iteration: EndedIteration) -> str | None:
        return self._reason  # type: ignore[no-any-return]

    def tested(self, iteration: EndedIteration) -> Value:
        return self._tested  # type: ignore[no-any-return]


@pytest.mark.parametrize(("reason", "tested"), [(False, 1), (True, 1), (3, 1), (None, {1, 2}), (None, float("nan"))])
async def test_a_condition_with_an_invalid_reason_or_value_ends_the_loop_with_an_error(
    reason: Any, tested: Any
) -> None:
    add_condition(spec("says", lambda _config: Says(reason, tested)))
    played = await play(looping("says"), "", ends="failed")
    assert 'The exit condition "says" returned' in str(played.result.error)


@pytest.mark.parametrize("made", [3, ZeroDivisionError()])
async def test_a_declaration_that_creates_no_condition_is_an_error_that_names_it(made: Any) -> None:
    def make(_config: object) -> Any:
        if isinstance(made, Exception):
            raise made
        return made

    add_condition(spec("odd", make))
    played = await play(looping("odd"), "", ends="failed")
    assert 'The exit condition "odd"' in str(played.result.error)


def test_a_failing_check_and_invalid_settings_are_problems() -> None:
    def check(_config: object) -> Any:
        raise ZeroDivisionError

    add_condition(spec("picky", lambda _config: Broken(), check=check))
    (problem,) = validate(looping("picky"))
    assert (problem.code, problem.field) == ("condition-failed", "stop_when.0")
    (problem,) = validate(looping("picky", count="many"))
    assert (problem.code, problem.field) == ("bad-config", "stop_when.0.count")


def test_a_name_can_be_added_only_once() -> None:
    add_condition(spec("one", lambda _config: Broken()))
    for name in ("one", "judge"):
        with pytest.raises(ValueError, match=f"there is an exit condition '{name}' already"):
            add_condition(spec(name, lambda _config: Broken()))
    added_models.add_models("mine", lambda _name: 1 / 0)  # type: ignore[arg-type, return-value]
    for prefix in ("mine", "embedded", "No"):
        with pytest.raises(ValueError, match="prefix"):
            added_models.add_models(prefix, lambda _name: None)  # type: ignore[arg-type, return-value]
    with pytest.raises(ModelError, match=r"could not create 'x' \(ZeroDivisionError\)"):
        Models().get("mine:x")
