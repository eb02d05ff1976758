"""Fixtures and settings that several folders of tests share."""

from __future__ import annotations

import pytest

from tests.engine.wire.fixtures import loopback_only, wire

__all__ = ["loopback_only", "wire"]

# Of litellm's own making, and silenced when it is loaded; pytest forgets that after the test that loaded it.
_LITELLM_WARNINGS = (
    "ignore:.*Accessing the.*attribute on the instance is deprecated",
    "ignore:.*`ReadOnly` qualifier",
    "ignore:coroutine '(OpenAIChatCompletion|BaseLLMHTTPHandler)[.].*' was never awaited:RuntimeWarning",
)


def pytest_configure(config: pytest.Config) -> None:
    for warning in _LITELLM_WARNINGS:
        config.addinivalue_line("filterwarnings", warning)
