"""Known models: those of providers with a key, of servers on this computer, and what the others require."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.models import embedded, price_list
from engine.models.catalog import check_model_name
from engine.models.demo_weights import FILE
from engine.models.keys import Keys
from engine.models.known_models import KnownModel, known_examples, known_models
from engine.models.litellm_adapter import load_litellm, local_price
from engine.models.local_servers import LocalServer
from engine.models.price_list import provider_models
from engine.models.protocol import EMBEDDED_MODEL, Price
from engine.models.providers import PROVIDERS
from tests.engine.models.gguf_writer import language_model, write_header


@pytest.fixture(autouse=True)
def _no_keyring(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the machine's own keyring and keys."""
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.null.Keyring")


@pytest.fixture(autouse=True)
def _some_day(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A day on which the models of the pinned list are served."""
    monkeypatch.setattr(price_list, "_today", lambda: "2026-11-01")
    provider_models.cache_clear()
    yield
    provider_models.cache_clear()


def test_example_models_exist() -> None:
    for example in known_examples(Keys({})):
        prefix, _, _ = example.name.partition("/")
        check_model_name(example.name)
        if not PROVIDERS[prefix].local and not example.is_placeholder:
            assert example.name in {model.name for model in provider_models(prefix)}, prefix


def test_known_models_report_availability_and_remedies() -> None:
    known = {model.name: model for model in known_models(Keys({"OPENAI_API_KEY": "sk-secret-value"}))}
    built_in = known[EMBEDDED_MODEL]
    assert (built_in.available, built_in.how_to_get) == (True, "")
    assert built_in.note.endswith("not for good answers")
    openai = known["openai/gpt-4o-mini"]
    assert (openai.title, openai.available, openai.how_to_get) == ("OpenAI", True, "")
    anthropic = known["anthropic/claude-haiku-4-5"]
    assert (anthropic.available, anthropic.how_to_get) == (
        False,
        "Add a key.",
    )
    assert anthropic.fix == "add_key:anthropic"
    ollama = known["ollama_chat/llama3.2"]
    assert (ollama.available, ollama.how_to_get) == (None, "Start Ollama.")
    assert known["scripted:FILE"].available
    assert known["openai/MODEL"].how_to_get == "Give its address as api_base."
    assert "sk-secret-value" not in repr(known)


def test_missing_built_in_model_has_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "RUNTIME_PACKAGE", "no_such_package")
    built_in = known_models(Keys({}))[0]
    assert built_in.available is False
    assert "no_such_package" in built_in.how_to_get
    assert built_in.fix == "install:embedded"


def test_models_in_files_are_listed_with_their_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOOPWRIGHT_MODELS_FOLDER", str(tmp_path))
    size = write_header(tmp_path / "Tiny.gguf", language_model("Tiny Chat")).stat().st_size
    (tmp_path / "broken.gguf").write_bytes(b"<html>")
    write_header(tmp_path / FILE, language_model())

    known = {model.name: model for model in known_models(Keys({}))}

    tiny, broken = known["gguf:tiny"], known["gguf:broken"]
    assert (tiny.title, tiny.note) == ("Downloaded (GGUF file)", f"Tiny Chat, 1B, Q4_K_M, {size} bytes")
    assert (tiny.available, tiny.price_text, tiny.context_tokens) == (True, "free", 2048)
    assert broken.available is False
    assert not any("smollm2" in name for name in known if name.startswith("gguf:"))
    assert "not a GGUF file" in broken.how_to_get

    monkeypatch.setattr(embedded, "RUNTIME_PACKAGE", "no_such_package")
    tiny = next(model for model in known_models(Keys({})) if model.name == "gguf:tiny")
    assert (tiny.available, tiny.fix) == (False, "install:embedded")


def test_invalid_key_is_reported_without_showing_it() -> None:
    known = {model.title: model for model in known_models(Keys({"GROQ_API_KEY": "two words"}))}
    assert known["Groq"].available is False
    assert known["Groq"].fix == "add_key:groq"
    assert "two words" not in repr(known)


def test_all_models_of_a_provider_with_a_key_are_listed_the_example_first() -> None:
    known = [model for model in known_models(Keys({"OPENAI_API_KEY": "sk-1"})) if model.title == "OpenAI"]

    assert known[0].name == "openai/gpt-4o-mini"
    assert len(known) > 20
    names = [model.name for model in known]
    assert len(names) == len(set(names))
    assert all(model.available and model.name.startswith("openai/") for model in known)
    assert "openai/gpt-4.1" in names
    assert not any("embedding" in name or "dall-e" in name or "ft:" in name for name in names)
    for name in names:
        check_model_name(name)


async def test_listed_prices_are_those_of_calls_and_context_lengths_are_known() -> None:
    listed = (await load_litellm()).model_cost

    for prefix in ("openai", "anthropic", "gemini", "cohere"):
        for model in provider_models(prefix):
            assert model.price == local_price(listed, model.name, None, {}), model.name
            assert model.context_tokens > 0


def test_retired_models_are_not_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = {"litellm_provider": "groq", "mode": "chat", "max_input_tokens": 8}
    entries = {
        "groq/old": entry | {"deprecation_date": "2020-01-01"},
        "groq/new": entry | {"deprecation_date": "2999-01-01"},
        "groq/plain": entry,
        "groq/ears": entry | {"mode": "audio_transcription"},
        "groq/bad name": entry,
        "groq/no-context": {"litellm_provider": "groq", "mode": "chat"},
    }
    monkeypatch.setattr(price_list, "price_entries", lambda: entries)

    assert [model.name for model in provider_models.__wrapped__("groq")] == ["groq/new", "groq/plain"]


def test_without_a_price_list_the_example_remains(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.models.known_models.provider_models", lambda _prefix: ())

    known = [model.name for model in known_models(Keys({"GROQ_API_KEY": "k"})) if model.title == "Groq"]

    assert known == ["groq/openai/gpt-oss-20b"]


def test_models_of_local_servers_replace_their_examples() -> None:
    servers = [
        LocalServer("ollama_chat", "Ollama", "http://127.0.0.1:11434", ("ollama_chat/qwen3:8b",)),
        LocalServer("lm_studio", "LM Studio", "http://127.0.0.1:1234/v1", (), "LM Studio is not running.", False),
    ]

    known = {model.name: model for model in known_models(Keys({}), servers)}

    assert known["ollama_chat/qwen3:8b"].available
    assert known["ollama_chat/qwen3:8b"].price == Price(0.0, 0.0)
    assert (known["lm_studio/MODEL"].available, known["lm_studio/MODEL"].how_to_get) == (
        False,
        "LM Studio is not running.",
    )
    assert "ollama_chat/llama3.2" not in known
    assert "llamafile/MODEL" not in known
    assert known["hosted_vllm/MODEL"].available is None


def test_figures_are_shown_for_a_million_tokens() -> None:
    model = KnownModel("openai/x", "OpenAI", "", True, "", Price(1.5e-7, 6e-7), 128_000)
    assert (model.price_text, model.context_text) == ("$0.15 / $0.60", "128,000")
    assert model.figures == (
        "A million input tokens cost $0.15, a million output tokens $0.60. Context length: 128,000 tokens."
    )
    local = KnownModel("ollama_chat/x", "Ollama", "", True, "", Price(0.0, 0.0))
    assert (local.price_text, local.context_text) == ("free", "")
    assert KnownModel("a/b", "A", "", True, "").price_text == ""


def test_models_are_found_by_words_of_name_and_provider() -> None:
    model = KnownModel("together_ai/meta-llama/Llama-3.3-70B", "Together AI", "", True, "")
    assert model.matches("llama together")
    assert model.matches("")
    assert not model.matches("llama openai")
