"""The settings of a workflow."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from engine.document.model import MAX_CONCURRENCY_DEFAULT, Settings, unknown_settings


def test_missing_settings_have_defaults() -> None:
    settings = Settings.model_validate({})
    assert (settings.model, settings.max_concurrency, settings.budget_usd) == (None, MAX_CONCURRENCY_DEFAULT, None)
    assert (settings.budget_tokens, settings.prices, settings.allow_unknown_price) == (None, {}, False)


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_concurrency": 0},
        {"max_concurrency": 1001},
        {"max_concurrency": 1.5},
        {"budget_usd": -0.1},
        {"budget_usd": float("nan")},
        {"budget_tokens": -1},
        {"prices": {"m": {"input_usd_per_million": 1.0}}},
        {"allow_unknown_price": 1},
    ],
)
def test_setting_outside_its_limits_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Settings.model_validate(wrong)


def test_unknown_settings_are_named_and_accepted() -> None:
    settings = {"budget_usd": 1, "speed": "high", "colour": 3}
    assert unknown_settings(settings) == ("speed", "colour")
    assert Settings.model_validate(settings).budget_usd == 1
