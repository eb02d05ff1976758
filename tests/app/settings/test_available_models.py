"""The models that the window offers: keys, servers on this computer, recent models, and models on custom servers."""

from __future__ import annotations

from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.controllers.run_controller import run_options
from app.engine_thread import EngineThread
from app.inspector.model_list import ModelComboBox
from app.settings.available_models import AvailableModels
from app.settings.preferences import Preferences
from engine.models import price_list
from engine.models.keys import Keys
from engine.models.known_models import known_models
from engine.models.price_list import provider_models
from engine.plan.structure import analyse
from engine.settings import CustomServer
from tests.app.settings.conftest import CANARY
from tests.engine.models.gguf_writer import language_model, write_header
from tests.engine.models.test_keys import MemoryKeyring
from tests.engine.semantics.documents import around, llm
from tests.engine.wire.server import WireServer

BUILT_IN = "embedded:smollm2-135m"
LOCAL = ("LM_STUDIO_API_BASE", "LLAMAFILE_API_BASE", "OLLAMA_API_BASE")


@pytest.fixture(autouse=True)
def _some_day(monkeypatch: pytest.MonkeyPatch) -> None:
    """A day on which the models of the pinned list are served."""
    monkeypatch.setattr(price_list, "_today", lambda: "2026-11-01")
    provider_models.cache_clear()


def titles(models: AvailableModels) -> list[str]:
    return [group.title for group in models.groups()]


def group(models: AvailableModels, title: str) -> list[str]:
    (found,) = [group for group in models.groups() if group.title == title]
    return [model.name for model in found.models]


def search(models: AvailableModels, qtbot: QtBot) -> None:
    """Look for models, and wait for the end."""
    models.refresh()
    qtbot.waitUntil(lambda: not models.is_searching)


def test_built_in_model_is_offered_at_first(models: AvailableModels, ring: MemoryKeyring) -> None:
    assert titles(models) == ["Built in"]
    assert models.names() == [BUILT_IN]
    assert models.groups()[0].models[0].label == "Built-in demo model"
    assert ring.asked == 0


def test_likely_models_come_first(preferences: Preferences, models: AvailableModels) -> None:
    preferences.set(
        default_model="openai/gpt-5",
        recent_models=("groq/x", "openai/gpt-5", "a/1", "a/2", "a/3", "a/4"),
        servers=(CustomServer(model="openai/mine", address="http://localhost:9/v1"),),
        local_models=("ollama_chat/llama3.2", "lm_studio/q", "ollama_chat/b"),
    )

    assert titles(models) == [
        "Recently used",
        "Built in",
        "Custom servers",
        "Ollama on this computer",
        "LM Studio on this computer",
    ]
    assert group(models, "Recently used") == ["openai/gpt-5", "groq/x", "a/1", "a/2", "a/3"]
    assert group(models, "Ollama on this computer") == ["ollama_chat/llama3.2", "ollama_chat/b"]
    assert models.groups()[2].models[0].hint == "localhost:9"
    assert len(models.names()) == len(set(models.names()))


def test_models_of_providers_with_a_key_are_found_in_the_background(
    preferences: Preferences,
    models: AvailableModels,
    ring: MemoryKeyring,
    monkeypatch: pytest.MonkeyPatch,
    qtbot: QtBot,
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", CANARY)
    ring.kept["loopwright", "openai"] = CANARY

    with qtbot.waitSignal(models.changed):
        models.refresh()
    qtbot.waitUntil(lambda: not models.is_searching)

    assert preferences.providers_with_key == ("openai", "anthropic")
    assert titles(models) == ["Built in", "OpenAI", "Anthropic"]
    assert group(models, "OpenAI")[0] == "openai/gpt-4o-mini"
    assert len(group(models, "OpenAI")) > 20
    assert models.groups()[1].models[0].hint == "$0.15 / $0.60"
    assert "128,000 tokens" in models.groups()[1].models[0].help
    again = AvailableModels(preferences, models._engine, preferences)
    assert group(again, "OpenAI") == ["openai/gpt-4o-mini"], "until the first search"


def test_model_field_completes_from_what_the_command_line_lists(
    models: AvailableModels, ring: MemoryKeyring, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", CANARY)
    field = ModelComboBox(models)
    qtbot.addWidget(field)
    completer = field.line.completer()
    assert completer is not None
    search(models, qtbot)
    completer.setCompletionPrefix("haiku")
    offered = [completer.currentCompletion() for row in range(100) if completer.setCurrentRow(row)]

    listed = [model.name for model in known_models(Keys()) if model.matches("haiku anthropic")]
    assert len(listed) > 1
    assert sorted(offered) == sorted(listed)


def test_model_files_are_offered_and_remembered(
    preferences: Preferences, models: AvailableModels, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot
) -> None:
    monkeypatch.setenv("LOOPWRIGHT_MODELS_FOLDER", str(tmp_path))
    write_header(tmp_path / "Tiny-Chat.gguf", language_model("Tiny Chat"))
    (tmp_path / "broken.gguf").write_bytes(b"<html>")
    search(models, qtbot)

    assert titles(models) == ["Built in", "Model files on this computer"]
    broken, tiny = models.groups()[1].models
    assert (tiny.name, tiny.label, tiny.hint) == ("gguf:tiny-chat", "tiny-chat", "free")
    assert "Downloaded" in tiny.keywords
    assert "Tiny Chat" in tiny.keywords
    assert "Tiny Chat, 1B, Q4_K_M" in tiny.help
    assert "2,048 tokens" in tiny.help
    assert (broken.name, broken.hint) == ("gguf:broken", "unusable")
    assert "not a GGUF file" in broken.help
    again = AvailableModels(preferences, models._engine, preferences)
    assert group(again, "Model files on this computer") == ["gguf:broken", "gguf:tiny-chat"]


def test_placeholder_is_not_offered(models: AvailableModels, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot) -> None:
    monkeypatch.setenv("OPENROUTER_API_KEY", CANARY)
    search(models, qtbot)
    assert "openrouter/VENDOR/MODEL" not in models.names()


def test_servers_on_this_computer_are_asked_only_with_consent(
    preferences: Preferences,
    models: AvailableModels,
    wire: WireServer,
    monkeypatch: pytest.MonkeyPatch,
    qtbot: QtBot,
) -> None:
    for variable in LOCAL:
        monkeypatch.setenv(variable, wire.base_url)
    search(models, qtbot)
    assert wire.requests == []
    assert models.can_search

    models.allow_search()
    assert not models.can_search
    qtbot.waitUntil(lambda: not models.is_searching)
    assert "lm_studio/plain" in group(models, "LM Studio on this computer")
    asked = len(wire.requests)
    assert asked == len(LOCAL)

    preferences.set(search_local_servers=False)
    assert preferences.local_models == ()
    search(models, qtbot)
    assert len(wire.requests) == asked
    assert models.can_search


def test_consent_withdrawn_during_a_search_discards_what_it_finds(
    preferences: Preferences, models: AvailableModels, wire: WireServer, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot
) -> None:
    for variable in LOCAL:
        monkeypatch.setenv(variable, wire.base_url)
    models.allow_search()
    preferences.set(search_local_servers=False)
    qtbot.waitUntil(lambda: not models.is_searching)
    assert preferences.local_models == ()


def test_search_is_repeated_for_what_changes_while_it_runs(
    models: AvailableModels, wire: WireServer, ring: MemoryKeyring, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot
) -> None:
    for variable in LOCAL:
        monkeypatch.setenv(variable, wire.base_url)
    models.refresh()
    ring.kept["loopwright", "openai"] = CANARY
    models.allow_search()
    qtbot.waitUntil(lambda: "LM Studio on this computer" in titles(models) and not models.is_searching)
    assert "OpenAI" in titles(models)
    assert len(wire.requests) == len(LOCAL)


def test_missing_servers_are_reported_in_the_list(
    models: AvailableModels, nowhere: str, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot
) -> None:
    for variable in LOCAL:
        monkeypatch.setenv(variable, nowhere)
    models.allow_search()
    notes = [found.note for found in models.groups() if found.note]
    assert notes == ["Looking for models…"]
    qtbot.waitUntil(lambda: not models.is_searching)
    notes = [found.note for found in models.groups() if found.note]
    assert len(notes) == 1
    assert "Ollama" in notes[0]


def test_run_calls_the_model_of_a_custom_server_at_its_address(
    engine_thread: EngineThread, preferences: Preferences
) -> None:
    preferences.set(servers=(CustomServer(model="openai/mine", address="http://localhost:9/v1"),))

    structure = analyse(around(llm("draft"), edges="loop -> draft -> exit"))
    options = run_options(structure, engine_thread, preferences, None)

    assert options.models is not None
    assert options.models.get("openai/mine") is engine_thread.models.get("openai/mine", "http://localhost:9/v1")
