"""Available models, and models on custom servers."""

from __future__ import annotations

import pytest

from app.controllers.run_controller import CustomServerModels
from app.settings.preferences import CustomServer, Preferences, available_model_names, is_placeholder
from engine.models.catalog import Models
from tests.engine.models.test_keys import MemoryKeyring

BUILT_IN = "embedded:smollm2-135m"


def test_built_in_model_is_offered_at_first(preferences: Preferences) -> None:
    assert available_model_names(preferences) == [BUILT_IN]


def test_likely_models_come_first_without_duplicates(
    preferences: Preferences, ring: MemoryKeyring, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-1")
    preferences.set(
        default_model="openai/gpt-5",
        recent_models=("groq/x", "openai/gpt-5"),
        servers=(CustomServer(model="openai/mine", address="http://localhost:9/v1"),),
        local_models=("ollama_chat/llama3.2",),
        providers_with_key=("openai", "openrouter"),
    )

    assert available_model_names(preferences) == [
        "openai/gpt-5",
        "groq/x",
        BUILT_IN,
        "openai/mine",
        "ollama_chat/llama3.2",
        "openai/gpt-4o-mini",
        "anthropic/claude-haiku-4-5",
    ]
    assert ring.asked == 0


def test_placeholder_is_no_model_name() -> None:
    assert is_placeholder("openrouter/VENDOR/MODEL")
    assert not is_placeholder("openai/gpt-4o-mini")


async def test_model_of_a_custom_server_is_found_by_name() -> None:
    models = Models()
    catalog = CustomServerModels(models, [CustomServer(model="openai/mine", address="http://localhost:9/v1")])

    assert catalog.get("openai/mine") is models.get("openai/mine", "http://localhost:9/v1")
    assert catalog.get("openai/mine", "http://localhost:7/v1") is models.get("openai/mine", "http://localhost:7/v1")
    assert catalog.get("openai/other") is models.get("openai/other")
    mine = catalog.get("openai/mine")
    await catalog.close()
    assert catalog.get("openai/mine") is mine
    await models.close()
